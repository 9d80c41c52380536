"""What `prepare` shows while it runs and when it is done."""

import io
import json

from data_beam.progress import Progress, summary


def test_the_line_adds_up_what_the_workers_have_done(tmp_path):
    folder, output = tmp_path / "progress", tmp_path / "out"
    (output / "documents").mkdir(parents=True)
    folder.mkdir()
    for worker, done in (("a", (1, 300, 2000)), ("b", (2, 200, 500))):
        (folder / f"{worker}.json").write_text(
            json.dumps(dict(zip(("files", "bytes", "documents"), done, strict=True))))
    (folder / "unfinished-c").write_text('{"fil')  # being written by a worker right now
    (output / "documents/documents-00000-of-00002.parquet").write_bytes(b"")
    stream = io.StringIO()
    with Progress(folder, output, total_bytes=1000, total_shards=6, stream=stream) as progress:
        assert progress.line().startswith(
            "read  50%, 3 files, 2,500 documents; written 1/6 files; 0 s")
    assert stream.getvalue().count("\n") == 1  # no terminal: no line is rewritten


def test_the_table_shows_the_conservation_law():
    counts = {"domain": "general", "read": 1234, "kept": 1200, "dropped": {"too short": 30},
              "dead_letters": {"invalid JSON": 4}, "bytes": 2_500_000,
              "languages": {"de": 1, "en": 1100, "zh": 90, "fr": 9}}
    manifest = {"sources": {"web": counts}, "total": {
        "read": 1234, "kept": 1200, "dropped": 30, "dead_letters": 4, "bytes": 2_500_000}}
    heading, _, row, total, *reasons = summary(manifest).splitlines()
    assert heading.split() == ["source", "domain", "read", "kept", "dropped", "dead", "MB", "of",
                               "text", "languages"]
    assert row.split() == ["web", "general", "1,234", "1,200", "30", "4", "2.50",
                           "en,", "zh,", "fr"]
    assert total.split() == ["total", "1,234", "1,200", "30", "4", "2.50"]
    assert reasons == ["  web: dropped, too short: 30", "  web: dead letters, invalid JSON: 4"]
