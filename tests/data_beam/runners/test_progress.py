"""What `prepare` shows while it runs and when it is done."""

import io
import json

from data_beam.runners.progress import Progress, WorkerProgress, summary


def test_the_line_adds_up_what_the_workers_have_done(tmp_path):
    folder = tmp_path / "progress"
    folder.mkdir()
    for worker, done in (("a", (1, 300, 2000)), ("b", (2, 200, 500))):
        (folder / f"{worker}.json").write_text(
            json.dumps(dict(zip(("files", "bytes", "documents"), done, strict=True))))
    (folder / "unfinished-c").write_text('{"fil')  # being written by a worker right now
    stream = io.StringIO()
    with Progress("extract", folder, "bytes", 1000, stream) as progress:
        assert progress.line() == "extract  50%, 3 files, 2,500 documents; 0 s"
    assert stream.getvalue().count("\n") == 1  # no terminal: no line is rewritten


def test_how_long_it_may_take(tmp_path):
    """In proportion to what is done; nothing is said where that is no time at all."""
    for done, told in ((250, "25%, 1 documents; 100 s, about 300 s left"),
                       (10, "1%, 1 documents; 100 s"),
                       (999, "100%, 1 documents; 100 s"), (1000, "100%, 1 documents; 100 s")):
        (tmp_path / "a.json").write_text(json.dumps({"files": 0, "bytes": done, "documents": 1}))
        progress = Progress("extract", tmp_path, "bytes", 1000, io.StringIO())
        progress._started -= 100
        assert progress.line().split(maxsplit=1)[1] == told


def test_the_table_of_counts_adds_up():
    counts = {"domain": "general", "read": 1234, "kept": 1200, "augmented": 0,
              "dropped": {"filter": {"too short": 30}},
              "dead_letters": {"read": {"invalid JSON": 4}}, "bytes": 2_500_000,
              "languages": {"de": 1, "en": 1100, "zh": 90, "fr": 9}}
    manifest = {"sources": {"web": counts}, "total": {
        "read": 1234, "kept": 1200, "dropped": 30, "dead_letters": 4, "bytes": 2_500_000,
        "augmented": 0}}
    heading, _, row, total, *reasons = summary(
        manifest, {("web", "read", "invalid JSON"): "a.jsonl, record 7: Extra data"}).splitlines()
    assert heading.split() == ["source", "domain", "read", "kept", "dropped", "dead", "MB", "of",
                               "text", "languages"]
    assert row.split() == ["web", "general", "1,234", "1,200", "30", "4", "2.50",
                           "en,", "zh,", "fr"]
    assert total.split() == ["total", "1,234", "1,200", "30", "4", "2.50"]
    assert reasons == ["  web: dropped, filter, too short: 30",
                       "  web: dead letters, read, invalid JSON: 4",
                       "    for example a.jsonl, record 7: Extra data"]
    counts["augmented"] = manifest["total"]["augmented"] = 100
    counts["kept"] = manifest["total"]["kept"] = 1300
    heading, _, row, total, *_ = summary(manifest, {}).splitlines()
    assert heading.split()[2:5] == ["read", "made", "kept"]
    assert row.split()[2:7] == ["1,234", "100", "1,300", "30", "4"]
    assert total.split() == ["total", "1,234", "100", "1,300", "30", "4", "2.50"]


def test_a_stage_that_reads_its_documents_several_times(tmp_path):
    worker = WorkerProgress(str(tmp_path))
    worker.add(documents=30)
    worker.flush()
    progress = Progress("dedup", tmp_path, "documents", 20, io.StringIO(), passes=3)
    assert progress.line().startswith("dedup  50%, 10 documents;")
