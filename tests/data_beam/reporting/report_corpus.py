"""A corpus with everything that a report can show, written without `prepare`."""

import collections
import hashlib
import json
import math
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from data_beam.base.records import Origin
from data_beam.dedup.clusters import SCHEMA as CLUSTERS
from data_beam.sinks.documents import SCHEMA
from data_beam.sinks.shards import DROPPED_SCHEMA

HOSTILE = ("<script>alert('x')</script> \"quoted\" & "
           "<img src=http://evil.example/x onerror=alert(1)>")
SUBJECTS = {
    "en": [words.split() for words in (
        "river boat bridge water fish shore current sail harbour anchor tide wave",
        "court judge appeal statute verdict lawyer evidence trial witness jury sentence plea")],
    "zh": [words.split() for words in (
        "血压 患者 治疗 医院 症状 药物 手术 护士 医生 诊断 发热 疾病",
        "足球 比赛 球员 教练 冠军 联赛 进球 裁判 球迷 训练 胜利 决赛")]}
SOURCES = {"web": ("general", "CC-BY-4.0"), "law-zh": ("domain", "CC0-1.0"),
           "code": ("code", "MIT"), "empty": ("general", "MIT")}


def _documents(rng: random.Random) -> list[dict[str, Any]]:
    rows = []
    for number in range(300):
        source = ("web", "law-zh", "code")[number % 3]
        path = f"{source}/{number}.txt"
        origin = Origin(source, path)
        size = int(rng.lognormvariate(4, 0.8)) + 10
        if source == "code":
            text, language, score = "def f(x):\n\treturn x\n" * size, "python", None
        elif source == "law-zh":
            text, language = "，".join(rng.choices(rng.choice(SUBJECTS["zh"]), k=size)) + "。", "zh"
            score = round(rng.uniform(0.8, 1), 4)
        else:
            text = " ".join(rng.choices(rng.choice(SUBJECTS["en"]), k=size)) + "."
            language = rng.choice(["en", "en", "fr"])
            score = round(rng.uniform(0.4, 1), 4)
        scores: dict[str, float] = {}
        if source != "code":
            scores = {"perplexity": rng.lognormvariate(5, 1), "toxicity": rng.betavariate(0.5, 4),
                      "quality": 5 * rng.random()}
            if number % 5 == 0:
                scores["pii/email"] = float(rng.randint(1, 4))
            if number % 11 == 0:
                scores["augmented"] = 1.0  # a mark, and no measure
            if number % 7 == 0:
                scores["pii/phone"] = 1.0
            if number == 4:
                scores["quality"] = math.nan
        if number == 0:
            text = HOSTILE + "\n" + text
        rows.append({
            "id": origin.id, "text": text, "source": source, "domain": SOURCES[source][0],
            "licence": HOSTILE if number == 3 else SOURCES[source][1], "path": path,
            "language": language, "split": rng.choices(("train", "validation", "test"),
                                                       (90, 6, 4))[0],
            "sha256": hashlib.sha256(text.encode()).hexdigest(), "record": None,
            "language_score": score, "bytes_sha256": "", "scores": sorted(scores.items()),
            "cluster": None,
            "transforms": ["whitespace", "privacy:email=2"] if "pii/email" in scores else []})
    return rows


def _clusters(rows: list[dict[str, Any]], rng: random.Random) -> list[list[dict[str, Any]]]:
    """Clusters of 2 to 40 documents around some of the kept ones."""
    found = []
    kept = [row for row in rows if row["source"] != "code"]
    for number, size in enumerate([2] * 9 + [3, 3, 5, 9, 40]):
        row = kept[number * 7]
        row["cluster"] = row["id"]
        members = [{"cluster": row["id"], "id": row["id"], "source": row["source"],
                    "path": row["path"], "record": None, "characters": len(row["text"]),
                    "quality": 0.0, "similarity": 1.0, "kept": True}]
        for copy in range(size - 1):
            origin = Origin("web", f"copies/{number}-{copy}.txt", copy)
            members.append({**members[0], "id": origin.id, "source": "web", "path": origin.path,
                            "record": copy, "characters": len(row["text"]) - 1,
                            "similarity": rng.uniform(0.7, 1), "kept": False})
        members[1:] = sorted(members[1:], key=lambda member: member["id"])
        found.append(members)
    return found


def _dropped(clusters: list[list[dict[str, Any]]]) -> list[tuple[Origin, str, str, str, str]]:
    """Origin, stage, reason, detail, text."""
    outcomes = [(Origin("web", f"empty/{i}.html"), "read", "empty file", "", "") for i in range(4)]
    short = "Home\nAbout us\nThis line is long enough to be no short line at all.\nNews\nContact"
    outcomes += [(Origin("web", f"menu/{i}.html"), "filter", "short lines", "0.8 of the lines",
                  short) for i in range(6)]
    outcomes += [(Origin("law-zh", f"赌/{i}.txt"), "gopher_repetition", "duplicate lines",
              "0.4, limit 0.3 '点击  这里 &<b>'", f"好文。\n点击 这里\n&<b>\n结束。{HOSTILE}")
             for i in range(5)]
    outcomes += [(Origin("web", "private.txt"), "privacy", "personal data",
              "email=3: 'write to [EMAIL] now'", "Please write to jane.doe@example.org now.")]
    outcomes += [(Origin(m["source"], m["path"], m["record"]), "dedup", "near duplicate",
              f"similarity {m['similarity']:.3f}", "a near copy") for members in clusters
             for m in members[1:]]
    outcomes += [(Origin("web", f"{HOSTILE}/{i}"), "dedup", "exact duplicate", "same text",
                  "a copy") for i in range(7)]
    return outcomes


def write(folder: Path, shards: int = 3) -> dict[str, Any]:
    """Writes it; returns the manifest."""
    rng = random.Random(11)
    rows = _documents(rng)
    clusters = _clusters(rows, rng)
    dropped = _dropped(clusters)
    dead = [{"source": "web", "path": f"bad/{i}.gz", "record": i or None, "stage": "read",
             "reason": "truncated gzip" if i % 2 else "invalid JSON", "detail": HOSTILE}
            for i in range(9)]
    shard_of = lambda id: int(id[:16], 16) % shards  # noqa: E731
    outputs = []

    def record(name: str, count: int) -> None:
        data = (folder / name).read_bytes()
        outputs.append({"file": name, "rows": count, "bytes": len(data),
                        "sha256": hashlib.sha256(data).hexdigest()})

    for kind in ("documents", "dropped", "samples", "dead_letters", "clusters"):
        (folder / kind).mkdir(parents=True)
    columns = [{"id": o.id, "source": o.source, "path": o.path, "stage": stage, "reason": reason,
                "record": o.record, "detail": detail} for o, stage, reason, detail, _ in dropped]
    samples = [{**row, "characters": len(text), "text": text}
               for row, (*_, text) in zip(columns, dropped, strict=True) if text]
    for kind, items, key, schema in (
            ("documents", rows, lambda row: row["id"], SCHEMA),
            ("dropped", columns, lambda row: row["id"], DROPPED_SCHEMA),
            ("samples", samples, lambda row: row["id"], None),
            ("dead_letters", dead, lambda row: Origin(
                row["source"], row["path"], row["record"]).id, None),
            ("clusters", [member for members in clusters for member in members],
             lambda row: row["cluster"], CLUSTERS)):
        for shard in range(shards):
            name = f"{kind}/{kind}-{shard:05d}-of-{shards:05d}"
            here = sorted((item for item in items if shard_of(key(item)) == shard), key=key)
            if schema is None:
                name += ".jsonl"
                (folder / name).write_text("".join(
                    json.dumps(item, ensure_ascii=False) + "\n" for item in here), "utf-8")
            else:
                name += ".parquet"
                pq.write_table(pa.Table.from_pylist(here, schema), folder / name,
                               row_group_size=40)
            record(name, len(here))
    (folder / "clusters/_summary.json").write_text(json.dumps({
        "copies": {"buckets": 31, "largest_bucket": 40, "hot_buckets": 0, "similarity": 0.7,
                   "bands": 14, "rows": 8, "candidate_probability": 0.565},
        "clusters": len(clusters), "documents": 0, "largest": []}))
    record("clusters/_summary.json", 1)
    manifest = _manifest(rows, dropped, dead, outputs)
    (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    return manifest


def _manifest(rows: list[dict[str, Any]], dropped: list, dead: list, outputs: list
              ) -> dict[str, Any]:
    sources: dict[str, Any] = {}
    for name, (domain, licence) in SOURCES.items():
        kept = [row for row in rows if row["source"] == name]
        sources[name] = {
            "domain": domain, "licence": licence, "input_bytes": 10**6, "read": len(kept),
            "kept": len(kept), "augmented": 0, "dropped": {}, "dead_letters": {},
            "dropped_characters": {},
            "characters": sum(len(row["text"]) for row in kept),
            "bytes": sum(len(row["text"].encode()) for row in kept),
            "splits": dict(collections.Counter(row["split"] for row in kept)),
            "languages": dict(collections.Counter(row["language"] for row in kept))}

    def count(kind: str, source: str, stage: str, reason: str, number: int = 1) -> None:
        counts = sources[source][kind].setdefault(stage, {})
        counts[reason] = counts.get(reason, 0) + number

    for origin, stage, reason, _, text in dropped:
        sources[origin.source]["read"] += 1
        count("dropped", origin.source, stage, reason)
        if text:
            count("dropped_characters", origin.source, stage, reason, len(text))
    for row in dead:
        sources[row["source"]]["read"] += 1
        count("dead_letters", row["source"], row["stage"], row["reason"])
    for entry in sources.values():
        entry["files"] = entry["read"]
    total: dict[str, int] = {key: sum(entry[key] for entry in sources.values()) for key in (
        "files", "read", "kept", "augmented", "characters", "bytes")}
    total.update(dropped=len(dropped), dead_letters=len(dead))
    copies = sum(stage == "dedup" for _, stage, *_ in dropped)
    return {
        "format": "maxlm corpus 3", "recipe": {"filters": {
            "short_line_width": 30, "rules": ["c4", "gopher_repetition"]}},
        "recipe_sha256": "0" * 64, "libraries": {"numpy": "2.0"},
        "inputs": {"files": total["files"], "bytes": 4 * 10**6, "fingerprint": ""},
        "loaded": {},
        "total": total, "sources": sources, "outputs": outputs,
        "made": {"started": "2026-01-02T03:04:05Z", "seconds": 67.8},
        "stages": {"dedup": {"read": len(rows) + copies, "kept": len(rows)}}}
