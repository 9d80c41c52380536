"""report.json: all that the page shows, from the manifest and the summary of a corpus."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from data_beam.reporting import summary as summaries
from data_beam.reporting.distribution import Distribution
from data_beam.reporting.marks import clip, find_marks, redact
from data_beam.reporting.summary import COUNTS, KEYS, LANGUAGE_SCORE, LENGTH, Key, Summary
from data_beam.reporting.topics import Topic

FORMAT = "maxlm corpus report 2"
PERPLEXITY, QUALITY, TOXICITY, PII = "perplexity", "quality", "toxicity", "pii/"  # names of scores
_FLAG = "augmented"  # 1 wherever it is present: counted, not shown as a distribution
TOXIC = (0.25, 0.5, 0.75)  # lower limits of the shares of toxic documents
MIXTURE_ROWS = 200
# A value and its limit in the detail of a filter: `0.31, limit 0.3`, `39 characters, fewer than
# 50`, `2 of 3 lines, more than 0.5`.
_NUMBER = r"(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
_LIMIT = re.compile(rf"{_NUMBER}(?: of (\d+) lines)?[^,']*, "
                    rf"(?:limit|more than|fewer than|less than) {_NUMBER}")
_BEFORE_FILTERS = ("read", "extract", "filter", "licence", "language")
_AFTER_FILTERS = ("perplexity", "quality", "safety", "decontaminate", "privacy")
_LAST = ("dedup", "augment")


def make(manifest: Mapping[str, Any], summary: Summary, topics: Mapping[str, Sequence[Topic]],
         near_copies: Mapping[str, Any] | None, tokenizer: Mapping[str, Any] | None
         ) -> dict[str, Any]:
    """The facts, from the manifest of a corpus, the summary of all its shards, topics by language,
    clusters/_summary.json (None where near copies were not looked for), and hash and size of the
    tokenizer that tokens were counted with, or None."""
    names = list(manifest["sources"])
    lost_characters = [_total(entry.get("dropped_characters", {}))
                       for entry in manifest["sources"].values()]
    return {
        "format": FORMAT,
        "recipe_sha256": manifest["recipe_sha256"],
        "inputs": {key: manifest["inputs"][key] for key in ("files", "bytes")},
        "libraries": manifest["libraries"],
        "made": manifest.get("made", {"started": None, "seconds": None}),
        "total": {**manifest["total"], "dropped_characters": sum(lost_characters),
                  "tokens": _tokens(summary) if tokenizer else None},
        "sources": [_source(name, manifest["sources"][name], summary, tokenizer is not None)
                    for name in names],
        "funnel": _funnel(manifest),
        "samples": {
            "kept": [{"source": name, "samples": [
                _plain(row) for row in summary.kept.get((name,), [])]} for name in names],
            "dropped": _dropped(manifest, summary),
            "dead_letters": _dead_letters(manifest, summary)},
        "distributions": {name: {**summary.distribution("source", name).facts(),
                                 "sources": _short(_each(summary, "source", names, name))}
                          for name in _score_names(summary)},
        "duplicates": _duplicates(manifest, summary, near_copies),
        "mixture": _mixture(summary, tokenizer is not None),
        "splits": _splits(manifest, summary),
        "tokenizer": dict(tokenizer) if tokenizer else None,
        "perplexity_variance": _perplexity_variance(summary, names),
        "topics": _topics(topics, summary),
        "toxicity": _toxicity(summary, names),
        "personal_data": _personal_data(summary, names),
        "transforms": [{"name": name, "documents": count} for name, count in sorted(
            summary.transforms.items(), key=lambda item: (-item[1], item[0]))],
    }


def _tokens(summary: Summary, source: str | None = None) -> int:
    """Tokens of the documents of a source, or of all."""
    column = COUNTS.index("tokens")
    return sum(counts[column] for key, counts in summary.documents.items()
               if source in (None, key[KEYS.index("source")]))


def _total(outcomes: Mapping[str, Mapping[str, int]]) -> int:
    return sum(sum(reasons.values()) for reasons in outcomes.values())


def _source(name: str, entry: Mapping[str, Any], summary: Summary, tokens: bool) -> dict[str, Any]:
    languages = sorted(entry["languages"].items(), key=lambda item: (-item[1], item[0]))
    return {
        "name": name, **{key: entry[key] for key in (
            "domain", "licence", "files", "input_bytes", "read", "kept", "augmented",
            "characters", "bytes")},
        "dropped": _total(entry["dropped"]), "dead_letters": _total(entry["dead_letters"]),
        "dropped_characters": _total(entry.get("dropped_characters", {})),
        "tokens": _tokens(summary, name) if tokens else None,
        "languages": dict(languages), "splits": entry["splits"],
        "length": summary.numbers.get(("source", name), {}).get(
            LENGTH, Distribution()).short_facts()}


def stage_order(manifest: Mapping[str, Any]) -> list[str]:
    """The stages that documents were lost in, in the order in which documents meet them."""
    found = {stage for entry in manifest["sources"].values()
             for kind in ("dropped", "dead_letters") for stage in entry[kind]}
    rules = tuple(manifest["recipe"].get("filters", {}).get("rules", ()))
    before = (*_BEFORE_FILTERS, *rules, *_AFTER_FILTERS)
    order = dict.fromkeys((*before, *sorted(found - {*before, *_LAST}), *_LAST))
    return [stage for stage in order if stage in found]


def _funnel(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """By stage: documents that came in, were lost (with reasons) and were left, and characters of
    the dropped texts; None for dead letters and for what was dropped before it had a text."""
    result = []
    characters = _by_reason(manifest, "dropped_characters")
    left = manifest["total"]["read"]
    for stage in stage_order(manifest):
        reasons: dict[tuple[str, str], dict[str, int]] = {}
        for name, entry in manifest["sources"].items():
            for kind in ("dropped", "dead_letters"):
                for reason, count in entry[kind].get(stage, {}).items():
                    reasons.setdefault((kind, reason), {})[name] = count
        rows = [{"reason": reason, "dead_letter": kind == "dead_letters",
                 "documents": sum(sources.values()), "sources": sources,
                 "characters": characters.get((stage, reason)) if kind == "dropped" else None}
                for (kind, reason), sources in reasons.items()]
        rows.sort(key=lambda row: (-row["documents"], row["reason"]))
        lost = sum(row["documents"] for row in rows)
        result.append({"stage": stage, "entered": left, "lost": lost, "left": left - lost,
                       "characters": sum(row["characters"] or 0 for row in rows),
                       "reasons": rows})
        left -= lost
    return result


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """A kept document as JSON has it: without infinities and NaNs."""
    scores = {name: value if math.isfinite(value) else None
              for name, value in sorted(row["scores"].items())}
    return {**{key: row[key] for key in (
                "id", "path", "record", "url", "domain", "licence", "language")},
            "language_score": None if row["language_score"] is None else round(
                row["language_score"], 4),
            **{key: row[key] for key in ("split", "transforms", "characters")},
            "scores": scores, "text": row["text"]}


def _by_reason(manifest: Mapping[str, Any], kind: str) -> Counter[tuple[str, str]]:
    """Counts of a kind by stage and reason, summed over the sources."""
    counts: Counter[tuple[str, str]] = Counter()
    for entry in manifest["sources"].values():
        for stage, reasons in entry.get(kind, {}).items():
            counts.update({(stage, reason): count for reason, count in reasons.items()})
    return counts


def _outcomes(manifest: Mapping[str, Any], kind: str) -> list[tuple[str, str, int]]:
    """Stage, reason and documents of all that were not kept, in the order of the stages."""
    order = stage_order(manifest)
    return sorted(((*key, count) for key, count in _by_reason(manifest, kind).items()),
                  key=lambda item: (order.index(item[0]), -item[2], item[1]))


def _dropped(manifest: Mapping[str, Any], summary: Summary) -> list[dict[str, Any]]:
    """Samples by stage and reason. Personal data is masked: these documents did not reach the
    filter that would have replaced it, or were dropped by it."""
    result = []
    for stage, reason, count in _outcomes(manifest, "dropped"):
        samples = []
        for row in summary.dropped.get((stage, reason), []):
            text, detail = redact(row["text"]), redact(row["detail"])
            piece, marks, start = clip(
                text, find_marks(text, stage, reason, detail, manifest["recipe"]),
                summaries.SHOWN_CHARACTERS)
            after = len(text) - start - len(piece) + (row["characters"] or 0) - len(row["text"])
            samples.append({
                "id": row["id"], "source": row["source"], "path": row["path"],
                "record": row["record"], "detail": detail, "limit": limit_of(detail),
                "characters": row["characters"],
                "before": start, "text": piece, "after": after,
                "marks": [list(mark) for mark in marks]})
        result.append({"stage": stage, "reason": reason, "documents": count, "samples": samples})
    return result


def limit_of(detail: str) -> dict[str, float] | None:
    """What a filter measured, its limit, and their distance relative to the limit (absolute where
    that is 0), from the detail of a dropped document; None where it has no limit."""
    found = _LIMIT.match(detail)
    if not found:
        return None
    value, limit = float(found[1]) / (int(found[2] or 0) or 1), float(found[3])
    return {"value": value, "limit": limit,
            "distance": round((value - limit) / (abs(limit) or 1), 4)}


def _dead_letters(manifest: Mapping[str, Any], summary: Summary) -> list[dict[str, Any]]:
    return [{"stage": stage, "reason": reason, "records": count, "samples": [
                {key: row[key] for key in ("source", "path", "record", "detail")}
                for row in summary.dead_letters.get((stage, reason), [])]}
            for stage, reason, count in _outcomes(manifest, "dead_letters")]


def _each(summary: Summary, kind: str, values: Sequence[str], name: str) -> dict[str, Distribution]:
    """The distributions of a name that have numbers, by source or language."""
    found = {value: summary.numbers.get((kind, value), {}).get(name) for value in values}
    return {value: numbers for value, numbers in found.items() if numbers and numbers.count}


def _short(found: Mapping[str, Distribution]) -> dict[str, dict[str, Any]]:
    return {name: numbers.short_facts() for name, numbers in found.items()}


def _score_names(summary: Summary) -> list[str]:
    """Names of distributions in the order of the page; without the counts of personal data."""
    found = {name for group, named in summary.numbers.items() if group[0] == "source"
             for name in named if not name.startswith(PII) and name != _FLAG}
    first = [LENGTH, LANGUAGE_SCORE, PERPLEXITY, QUALITY, TOXICITY]
    return [name for name in [*first, *sorted(found.difference(first))] if name in found]


def _duplicates(manifest: Mapping[str, Any], summary: Summary,
                near_copies: Mapping[str, Any] | None) -> dict[str, Any]:
    lost = Counter({"exact duplicate": 0, "near duplicate": 0, "repeated text": 0})
    for entry in manifest["sources"].values():
        lost.update(entry["dropped"].get("dedup", {}))
    examined = manifest["stages"]["dedup"]["read"]
    copies = lost["exact duplicate"] + lost["near duplicate"]
    search = {key: value for key, value in (near_copies or {}).items()
              if key not in ("clusters", "documents", "largest")}
    return {
        "examined": examined, "dropped": lost, "rate": copies / examined if examined else 0.0,
        "near_copies": None if near_copies is None else {
            "search": search, "clusters": sum(summary.cluster_sizes.values()),
            "documents": sum(size * count for size, count in summary.cluster_sizes.items()),
            "sizes": [list(item) for item in sorted(summary.cluster_sizes.items())],
            "largest": summary.clusters}}


def _grouped(summary: Summary, keys: Sequence[str]) -> dict[Key, list[int]]:
    """COUNTS by the values of some KEYS."""
    places = [KEYS.index(key) for key in keys]
    result: dict[Key, list[int]] = {}
    for key, counts in summary.documents.items():
        entry = result.setdefault(tuple(key[place] for place in places), [0] * len(COUNTS))
        entry[:] = [a + b for a, b in zip(entry, counts, strict=True)]
    return result


def _counts(counts: Sequence[int], tokens: bool) -> dict[str, int]:
    return {name: count for name, count in zip(COUNTS, counts, strict=True)
            if tokens or name != "tokens"}


def _mixture(summary: Summary, tokens: bool) -> dict[str, Any]:
    """Shares of source, licence and language together, and of each alone; small ones in one row."""
    result: dict[str, Any] = {}
    for title, keys in (("together", ("source", "licence", "language")), ("domain", ("domain",)),
                        ("licence", ("licence",)), ("language", ("language",))):
        rows = sorted(_grouped(summary, keys).items(), key=lambda item: (-item[1][2], item[0]))
        rest = [sum(column) for column in zip(*(counts for _, counts in rows[MIXTURE_ROWS:]),
                                              strict=True)]
        result[title] = {
            "rows": [{**dict(zip(keys, key, strict=True)), **_counts(counts, tokens)}
                     for key, counts in rows[:MIXTURE_ROWS]],
            "more": max(0, len(rows) - MIXTURE_ROWS),
            "rest": _counts(rest, tokens) if rest else None}
    return result


def _splits(manifest: Mapping[str, Any], summary: Summary) -> list[dict[str, Any]]:
    grouped = _grouped(summary, ("source", "split"))
    return [{"source": source, "split": split, "documents": counts[0], "bytes": counts[2]}
            for source in manifest["sources"] for split in ("train", "validation", "test")
            if (counts := grouped.get((source, split)))]


def _perplexity_variance(summary: Summary, sources: Sequence[str]) -> dict[str, Any] | None:
    """PPL-Var: the variance over documents of the perplexity of a document, of all, by source and
    by language (each language has a model and so a scale of its own)."""
    whole = summary.distribution("source", PERPLEXITY)
    if not whole.count:
        return None
    languages = sorted(value for kind, value in summary.numbers if kind == "language")
    return {
        "all": whole.short_facts(),
        "sources": _short(_each(summary, "source", sources, PERPLEXITY)),
        "languages": _short(_each(summary, "language", languages, PERPLEXITY))}


def _topics(topics: Mapping[str, Sequence[Topic]], summary: Summary) -> dict[str, Any]:
    return {language: {
        "documents": len(summary.topic_texts[language]),
        "coherence": round(sum(topic.coherence for topic in found) / len(found), 6),
        "topics": [{"words": list(topic.words), "share": topic.share,
                    "coherence": round(topic.coherence, 6)} for topic in found]}
        for language, found in topics.items() if found}


def _toxicity(summary: Summary, sources: Sequence[str]) -> dict[str, Any] | None:
    def facts(found: Distribution) -> dict[str, Any]:
        return {**found.short_facts(), "tails": {
            str(limit): found.share_from(limit) for limit in TOXIC}}

    whole = summary.distribution("source", TOXICITY)
    if not whole.count:
        return None
    return {"all": facts(whole), "sources": {
        name: facts(found)
        for name, found in _each(summary, "source", sources, TOXICITY).items()}}


def _personal_data(summary: Summary, sources: Sequence[str]) -> list[dict[str, Any]]:
    """Finds and documents by type."""
    kinds = sorted({name for group, named in summary.numbers.items() if group[0] == "source"
                    for name in named if name.startswith(PII)})
    rows = []
    for kind in kinds:
        by_source = _each(summary, "source", sources, kind)
        rows.append({
            "type": kind.removeprefix(PII),
            "found": int(sum(found.total for found in by_source.values())),
            "documents": sum(found.count for found in by_source.values()),
            "sources": {name: int(found.total) for name, found in by_source.items()}})
    return sorted(rows, key=lambda row: (-row["found"], row["type"]))
