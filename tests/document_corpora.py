"""Small corpora of clean documents, as data_beam.prepare leaves them."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from data_beam.sinks.documents import SCHEMA


def document(number: int, text: str, source: str = "a", domain: str = "general",
             split: str = "train") -> dict:
    """A row of documents/*.parquet."""
    key = hashlib.sha256(f"{source} {number}".encode()).hexdigest()
    return {"id": key[:32], "text": text, "source": source, "domain": domain,
            "licence": "CC0-1.0", "path": f"{source}/{number}.txt", "language": "en",
            "split": split, "sha256": hashlib.sha256(text.encode()).hexdigest()}


def write_corpus(directory: Path, rows: Iterable[dict], shards: int = 2) -> Path:
    """Writes documents/*.parquet and a manifest.json of them."""
    rows = list(rows)
    folder = directory / "documents"
    folder.mkdir(parents=True)
    outputs = []
    for shard in range(shards):
        part = sorted((row for row in rows if int(row["id"][:16], 16) % shards == shard),
                      key=lambda row: row["id"])
        path = folder / f"documents-{shard:05d}-of-{shards:05d}.parquet"
        pq.write_table(pa.Table.from_pylist(part, SCHEMA), path)
        content = path.read_bytes()
        outputs.append({"file": f"documents/{path.name}", "rows": len(part),
                        "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()})
    sources = {}
    for row in rows:
        entry = sources.setdefault(row["source"], {
            "domain": row["domain"], "licence": row["licence"], "kept": 0, "bytes": 0,
            "splits": {}})
        entry["kept"] += 1
        entry["bytes"] += len(row["text"].encode())
        entry["splits"][row["split"]] = entry["splits"].get(row["split"], 0) + 1
    (directory / "manifest.json").write_text(
        json.dumps({"sources": sources, "outputs": outputs}), encoding="utf-8")
    return directory
