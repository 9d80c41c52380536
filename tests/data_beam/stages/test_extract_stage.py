"""The stage `extract`: sources that cannot be read, and where a document comes from."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data_beam.base.records import Origin
from data_beam.config import InputConfig, RecipeConfig, SourceConfig
from maxlm.config.schema import ConfigError
from tests.data_beam.runs import run
from tests.data_beam.warc_files import members, response

TEXT = "A sentence about the history of tea, long enough to be kept by every filter, number {}."


def make(folder: Path, *inputs: tuple[str, str], allow_unreadable: bool = False) -> dict:
    """A corpus of the files in `raw`: source `good`, which is read, and `other` with the inputs."""
    (folder / "good").mkdir(exist_ok=True)
    (folder / "good/a.txt").write_text(TEXT.format(0))
    recipe = RecipeConfig(shards=2, sources=(
        SourceConfig("good", "d", "MIT", (InputConfig(str(folder / "good"), "*", "text"),)),
        SourceConfig("other", "d", "MIT", tuple(
            InputConfig(str(folder / "raw"), pattern, format, url_field="link" if format in (
                "jsonl", "json", "parquet") else "")
            for pattern, format in inputs), allow_unreadable=allow_unreadable)))
    return run(recipe, folder / "out")


def write(folder: Path, name: str, rows: list) -> None:
    (folder / "raw").mkdir(exist_ok=True)
    path = folder / "raw" / name
    if name.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif name.endswith(".json"):
        path.write_text(json.dumps(rows))
    else:
        path.write_text("\n".join(map(json.dumps, rows)))


@pytest.mark.parametrize("format", ["jsonl", "json", "parquet"])
def test_a_source_of_which_nothing_can_be_read_stops_the_run(tmp_path, format):
    write(tmp_path, f"a.{format}", [{"id": str(i), "body": TEXT.format(i)} for i in range(30)])
    (tmp_path / "raw" / f"b.{format}").write_bytes(b"")
    words = rf"'other': none of its .* a\.{format}.*'text' is not there; found: 'id', 'body'"
    with pytest.raises(ConfigError, match=words):
        make(tmp_path, ("*", format))
    assert not (tmp_path / "out/manifest.json").exists()
    manifest = make(tmp_path, ("*", format), allow_unreadable=True)
    assert manifest["sources"]["other"]["kept"] == 0 and manifest["sources"]["good"]["kept"] == 1


@pytest.mark.parametrize("name, content, format", [
    ("a.pdf", b"%PDF-1.4 and no more", "pdf"), ("a.jsonl.gz", gzip.compress(b"{}")[:-1], "jsonl"),
    ("a.warc", b"no archive", "warc"), ("a.txt", b"\x89PNG\0", "text")])
def test_files_of_another_format_stop_the_run_too(tmp_path, name, content, format):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / name).write_bytes(content)
    with pytest.raises(ConfigError, match=r"'other': none of its . records can be read"):
        make(tmp_path, ("*", format))


def test_a_source_goes_on_where_something_can_be_read(tmp_path):
    """One record is enough, and so is a page that is dropped."""
    write(tmp_path, "a.jsonl", [{"body": 1}, {"text": TEXT.format(1)}])
    assert make(tmp_path, ("*", "jsonl"))["sources"]["other"]["kept"] == 1
    archive = tmp_path / "second"
    (archive / "raw").mkdir(parents=True)
    (archive / "raw/a.warc").write_bytes(response(b"gone", status="404 Gone") + b"garbage")
    assert make(archive, ("*", "warc"))["sources"]["other"]["kept"] == 0


def test_a_document_says_which_file_record_and_address_it_comes_from(tmp_path):
    pages = [response(f"<p>{TEXT.format(i)}</p>".encode(), f"http://e.org/{i}")
             for i in range(1, 5)]
    write(tmp_path, "rows.jsonl", [{"text": TEXT.format(i), "link": link}
                                   for i, link in ((10, "http://e.org/10"), (11, None))])
    write(tmp_path, "rows.parquet", [{"text": TEXT.format(12), "link": "http://e.org/12"}])
    write(tmp_path, "rows.json", [{"text": TEXT.format(13)}])
    (tmp_path / "raw/one.warc").write_bytes(b"".join(pages[:2]))
    (tmp_path / "raw/two.warc.gz").write_bytes(members(pages[2:]))
    make(tmp_path, ("*.jsonl", "jsonl"), ("*.parquet", "parquet"), ("*.json", "json"),
        ("*.warc*", "warc"))
    found = pq.read_table(tmp_path / "out/documents").to_pylist()
    assert {row["text"]: (row["path"], row["record"], row["url"], row["offset"])
            for row in found} == {
        TEXT.format(0): ("a.txt", None, None, None),
        TEXT.format(1): ("one.warc", 1, "http://e.org/1", 0),
        TEXT.format(2): ("one.warc", 2, "http://e.org/2", len(pages[0])),
        TEXT.format(3): ("two.warc.gz", 1, "http://e.org/3", 0),
        TEXT.format(4): ("two.warc.gz", 2, "http://e.org/4", len(members(pages[2:3]))),
        TEXT.format(10): ("rows.jsonl", 1, "http://e.org/10", None),
        TEXT.format(11): ("rows.jsonl", 2, None, None),
        TEXT.format(12): ("rows.parquet", 1, "http://e.org/12", None),
        TEXT.format(13): ("rows.json", 1, None, None)}
    assert all(row["id"] == Origin(row["source"], row["path"], row["record"]).id for row in found)
