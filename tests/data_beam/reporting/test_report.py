"""The report: every number counted again by other means, and a page that no text can break."""

import base64
import collections
import datetime
import hashlib
import html
import html.parser
import json
import math
import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_beam import report, tokenize, train_tokenizer
from data_beam.config import RecipeConfig
from data_beam.readers import corpus_files
from data_beam.reporting import page
from data_beam.reporting.facts import limit_of
from data_beam.reporting.marks import clip, find_marks, redact
from data_beam.reporting.page import change, duration, marked
from data_beam.reporting.summary import Summary
from maxlm.config.schema import ConfigError
from tests.data_beam.reporting import report_corpus
from tests.data_beam.runs import TWO_PROCESSES, contents, run, text_recipe


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    report_corpus.write(folder)
    return folder


@pytest.fixture(scope="module")
def tokenizer(corpus, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer") / "out"
    train_tokenizer.main([f"--corpus={corpus}", f"--output={folder}", "--vocab_size=400"])
    return folder


@pytest.fixture(scope="module")
def made(corpus, tokenizer, tmp_path_factory) -> Path:
    """A folder with the report of the corpus, tokens included."""
    output = tmp_path_factory.mktemp("report")
    report.main([f"--corpus={corpus}", f"--tokenizer={tokenizer}", f"--output={output}"])
    return output


@pytest.fixture(scope="module")
def facts(made) -> dict:
    return json.loads((made / "report.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def rows(corpus) -> list[dict]:
    return [{**row, "scores": dict(row["scores"])}
            for row in pq.read_table(corpus / "documents").to_pylist()]


def numbers(rows: list[dict], name: str) -> np.ndarray:
    """The finite numbers of a distribution."""
    if name == "characters":
        found = [len(row["text"]) for row in rows]
    elif name == "language_score":
        found = [row["language_score"] for row in rows if row["language_score"] is not None]
    else:
        found = [row["scores"][name] for row in rows if name in row["scores"]]
    values = np.array(found, np.float64)
    return values[np.isfinite(values)]


def agrees(entry: dict, values: np.ndarray) -> None:
    """The moments are those of the values; the median but for its bin."""
    assert entry["count"] == len(values)
    assert math.isclose(entry["mean"], values.mean(), rel_tol=1e-12)
    assert math.isclose(entry["variance"], values.var(), rel_tol=1e-10)
    assert (entry["minimum"], entry["maximum"]) == (values.min(), values.max())
    median = np.quantile(values, 0.5, method="inverted_cdf")
    assert 0 <= median - entry["median"] <= median * 2.0**-8


def test_totals_and_sources(facts, rows, corpus):
    manifest = json.loads((corpus / "manifest.json").read_text("utf-8"))
    lost = sum(entry["dropped_characters"] for entry in facts["sources"])
    assert facts["total"] == {**manifest["total"], "tokens": facts["total"]["tokens"],
                              "dropped_characters": lost}
    assert facts["made"] == manifest["made"]
    assert [entry["name"] for entry in facts["sources"]] == list(report_corpus.SOURCES)
    for entry in facts["sources"]:
        of = [row for row in rows if row["source"] == entry["name"]]
        assert entry["kept"] == len(of)
        assert entry["characters"] == sum(len(row["text"]) for row in of)
        assert entry["bytes"] == sum(len(row["text"].encode()) for row in of)
        assert entry["languages"] == collections.Counter(row["language"] for row in of)
        assert entry["splits"] == collections.Counter(row["split"] for row in of)
        assert entry["read"] == entry["kept"] + entry["dropped"] + entry["dead_letters"]
        if of:
            agrees(entry["length"], numbers(of, "characters"))
        else:
            assert entry["length"]["count"] == 0


def test_the_funnel_leads_from_what_was_read_to_what_was_kept(facts, corpus):
    dropped = pq.read_table(corpus / "dropped").to_pylist()
    dead = [json.loads(line) for path in (corpus / "dead_letters").iterdir()
            for line in path.read_text("utf-8").splitlines()]
    stages = [stage["stage"] for stage in facts["funnel"]]
    assert stages == ["read", "filter", "gopher_repetition", "privacy", "dedup"]
    left = facts["total"]["read"]
    for stage in facts["funnel"]:
        assert stage["entered"] == left
        left = stage["left"]
        for reason in stage["reasons"]:
            ends = dead if reason["dead_letter"] else dropped
            of = [row for row in ends
                  if (row["stage"], row["reason"]) == (stage["stage"], reason["reason"])]
            assert reason["documents"] == len(of) > 0
            assert reason["sources"] == collections.Counter(row["source"] for row in of)
        assert stage["lost"] == sum(reason["documents"] for reason in stage["reasons"])
        assert stage["characters"] == sum(row["characters"] or 0 for row in stage["reasons"])
    assert left == facts["total"]["kept"]


def test_distributions(facts, rows):
    assert list(facts["distributions"]) == [
        "characters", "language_score", "perplexity", "quality", "toxicity"]
    for name, entry in facts["distributions"].items():
        values = numbers(rows, name)
        agrees(entry, values)
        edges = entry["histogram"]["edges"]
        assert entry["histogram"]["counts"] == np.histogram(
            values, [*edges[:-1], np.nextafter(edges[-1], -np.inf)])[0].tolist()
        for source, moments in entry["sources"].items():
            agrees(moments, numbers([r for r in rows if r["source"] == source], name))
    assert facts["distributions"]["quality"]["not_finite"] == 1
    assert "code" not in facts["distributions"]["perplexity"]["sources"]


def test_perplexity_variance_whole_by_source_and_by_language(facts, rows):
    found = facts["perplexity_variance"]
    agrees(found["all"], numbers(rows, "perplexity"))
    for kind, column in (("sources", "source"), ("languages", "language")):
        groups = {row[column] for row in rows if "perplexity" in row["scores"]}
        assert set(found[kind]) == groups
        for name in groups:
            agrees(found[kind][name], numbers([r for r in rows if r[column] == name], "perplexity"))


def test_toxicity_mean_and_tails(facts, rows):
    for name, entry in [(None, facts["toxicity"]["all"]), *facts["toxicity"]["sources"].items()]:
        values = numbers([row for row in rows if name in (None, row["source"])], "toxicity")
        agrees(entry, values)
        assert entry["tails"] == {str(limit): np.mean(values >= limit)
                                  for limit in (0.25, 0.5, 0.75)}


def test_personal_data_by_type(facts, rows):
    found = {entry["type"]: entry for entry in facts["personal_data"]}
    assert set(found) == {"email", "phone"}
    for kind, entry in found.items():
        of = [row for row in rows if f"pii/{kind}" in row["scores"]]
        assert entry["documents"] == len(of)
        assert entry["found"] == sum(row["scores"][f"pii/{kind}"] for row in of)
        assert sum(entry["sources"].values()) == entry["found"]
    changed = {entry["name"]: entry["documents"] for entry in facts["transforms"]}
    assert changed == {"whitespace": found["email"]["documents"],
                       "privacy:email": found["email"]["documents"]}


def test_copies(facts, corpus):
    table = [row for path in sorted((corpus / "clusters").glob("*.parquet"))
             for row in pq.read_table(path).to_pylist()]
    sizes = collections.Counter(row["cluster"] for row in table)
    found = facts["duplicates"]
    dropped = collections.Counter(row["reason"] for row in pq.read_table(
        corpus / "dropped").to_pylist() if row["stage"] == "dedup")
    assert found["dropped"] == {**dropped, "repeated text": 0}
    assert found["examined"] == facts["total"]["kept"] + dropped.total()
    assert found["rate"] == dropped.total() / found["examined"]
    near = found["near_copies"]
    assert (near["clusters"], near["documents"]) == (len(sizes), len(table))
    assert near["sizes"] == [list(item) for item in sorted(
        collections.Counter(sizes.values()).items())]
    ordered = sorted(sizes, key=lambda cluster: (-sizes[cluster], cluster))
    assert [entry["cluster"] for entry in near["largest"]] == ordered[:10]
    texts = {row["id"]: row["text"] for row in pq.read_table(corpus / "documents").to_pylist()}
    for entry in near["largest"]:
        members = [row for row in table if row["cluster"] == entry["cluster"]]
        assert entry["documents"] == len(members)
        assert entry["members"] == [{key: value for key, value in row.items() if key != "cluster"}
                                    for row in members[:12]]
        assert entry["text"] == texts[entry["cluster"]][:1200]
    summary = json.loads((corpus / "clusters/_summary.json").read_text())
    assert near["search"] == {"copies": summary["copies"]}


def test_mixture_and_splits(facts, rows):
    for title, keys in (("together", ("source", "licence", "language")), ("domain", ("domain",)),
                        ("licence", ("licence",)), ("language", ("language",))):
        truth: dict = {}
        for row in rows:
            entry = truth.setdefault(tuple(row[key] for key in keys), [0, 0, 0])
            for i, count in enumerate((1, len(row["text"]), len(row["text"].encode()))):
                entry[i] += count
        found = facts["mixture"][title]
        assert {tuple(row[key] for key in keys): [
            row["documents"], row["characters"], row["bytes"]] for row in found["rows"]} == truth
        sizes = [row["bytes"] for row in found["rows"]]
        assert sizes == sorted(sizes, reverse=True) and found["more"] == 0
        assert sum(row["tokens"] for row in found["rows"]) == facts["total"]["tokens"]
    splits = collections.Counter((row["source"], row["split"]) for row in rows)
    assert {(row["source"], row["split"]): row["documents"] for row in facts["splits"]} == splits


def test_tokens_are_those_that_tokenize_writes(facts, corpus, tokenizer, tmp_path):
    model = tokenizer / "tokenizer.model"
    tokenize.main([f"--corpus={corpus}", f"--tokenizer={model}", f"--output={tmp_path / 'out'}"])
    tokens: collections.Counter[str] = collections.Counter()
    for split in ("train", "validation", "test"):
        for source in json.loads(
                (tmp_path / "out" / split / "manifest.json").read_text())["sources"]:
            tokens[source["name"]] += source["tokens"]
    assert {entry["name"]: entry["tokens"] for entry in facts["sources"]} == tokens
    assert facts["total"]["tokens"] == tokens.total()
    assert facts["tokenizer"] == {"sha256": hashlib.sha256(model.read_bytes()).hexdigest(),
                                  "vocabulary": 400}


def test_samples_are_those_with_the_smallest_ids(facts, rows, corpus):
    for entry in facts["samples"]["kept"]:
        of = sorted((row for row in rows if row["source"] == entry["source"]),
                    key=lambda row: row["id"])[:3]
        assert [(s["id"], s["text"]) for s in entry["samples"]] == [
            (row["id"], row["text"][:1200]) for row in of]
    dropped = pq.read_table(corpus / "dropped").to_pylist()
    ends = collections.Counter((row["stage"], row["reason"]) for row in dropped)
    assert {(entry["stage"], entry["reason"]): entry["documents"]
            for entry in facts["samples"]["dropped"]} == ends
    for entry in facts["samples"]["dropped"]:
        of = sorted(row["id"] for row in dropped
                    if (row["stage"], row["reason"]) == (entry["stage"], entry["reason"]))
        assert [sample["id"] for sample in entry["samples"]] == of[:3]
    assert sum(entry["records"] for entry in facts["samples"]["dead_letters"]) == 9


def test_the_reason_is_marked_in_the_text(facts):
    found = {(entry["stage"], entry["reason"]): entry["samples"][0]
             for entry in facts["samples"]["dropped"]}

    def marked(stage: str, reason: str) -> list[str]:
        sample = found[stage, reason]
        return [sample["text"][start:end] for start, end in sample["marks"]]

    assert marked("filter", "short lines") == ["Home", "About us", "News", "Contact"]
    assert marked("gopher_repetition", "duplicate lines") == ["点击 这里\n&<b>"]
    assert marked("dedup", "exact duplicate") == []
    # The address itself is nowhere; what the rule quotes is found all the same.
    assert found["privacy", "personal data"]["text"] == "Please write to [EMAIL] now."
    assert marked("privacy", "personal data") == ["write to [EMAIL] now"]


def test_dropped_characters_by_stage_and_reason(facts, corpus):
    texts = [json.loads(line) for path in (corpus / "samples").iterdir()
             for line in path.read_text("utf-8").splitlines()]
    shown = {(stage["stage"], row["reason"]): row["characters"]
             for stage in facts["funnel"] for row in stage["reasons"] if not row["dead_letter"]}
    assert shown.pop(("read", "empty file")) is None  # dropped before it had a text
    truth = collections.Counter()
    for row in texts:
        truth[row["stage"], row["reason"]] += row["characters"]
    assert shown == truth
    assert facts["total"]["dropped_characters"] == truth.total()


@pytest.mark.parametrize(("detail", "value", "limit", "distance"), [
    ("0.3125, limit 0.25", 0.3125, 0.25, 0.25), ("39 characters, fewer than 50", 39, 50, -0.22),
    ("0.816 of the lines, more than 0.68", 0.816, 0.68, 0.2),
    ("2 of 4 lines, more than 0.4: 'a, limit 9'", 0.5, 0.4, 0.25),
    ("20 copies, limit 20 'And so'", 20, 20, 0), ("3, limit 0", 3, 0, 3),
    ("1e+04, limit 5000 'x'", 1e4, 5000, 1), ("0.00, less than 2", 0, 2, -1),
    ("1267.4, more than 950.0 (the limit of the recipe)", 1267.4, 950, 0.3341)])
def test_how_far_a_measure_is_from_its_limit(detail, value, limit, distance):
    assert limit_of(detail) == {"value": value, "limit": limit, "distance": distance}


@pytest.mark.parametrize("detail", [
    "", "'1, limit 2'", "same text as 12ab", "similarity 0.9 to 12ab, the longest of 2", "es 0.98",
    "email=3: '4, limit 5'", "it is 3, limit 4"])
def test_a_detail_without_a_limit_has_no_distance(detail):
    assert limit_of(detail) is None


RECIPE = {"filters": {"short_line_width": 30}}


def test_marks():
    text = "one two\n\tThree  four one TWO"
    for stage in ("x", "c4", "privacy"):  # what is quoted is marked for every filter
        for reason, detail, marks in (("n-grams", "0.3, limit 0.2 'one two'", [(0, 7), (21, 28)]),
                                      ("repeated", "0.3 'three four one…'", [(9, 24)]),
                                      ("x", "it's 'not there'", [])):
            assert find_marks(text, stage, reason, detail, RECIPE) == marks
    assert find_marks("Ｏｎｅ　ｔｗｏ！", "c4", "x", "'one two!'", RECIPE) == [(0, 8)]
    lines = "中文短行\n" + "长" * 40
    for stage, text, reason, marks in (
            ("gopher_quality", "- a\n- b\nc", "bullet lines", [(0, 3), (4, 7)]),
            ("gopher_quality", "A １２ b", "words without letters", [(2, 4)]),
            ("gopher_quality", "# " * 500, "hashes", [(2 * i, 2 * i + 1) for i in range(60)]),
            ("nemo", "a 12 ３", "digits", [(2, 4), (5, 6)]), ("c4", "a 12", "digits", []),
            ("filter", lines, "short lines", [(0, 4)]), ("fineweb", lines, "short lines", [(0, 4)]),
            ("chinese_web_text", lines, "short lines", [(0, 4)]), ("x", lines, "short lines", []),
            ("filter", "", "short lines", [])):
        assert find_marks(text, stage, reason, "0.9, limit 0.8", RECIPE) == marks
    assert clip("a" * 100 + "bad" + "c" * 100, [(100, 103)], 40) == (
        "a" * 10 + "bad" + "c" * 27, [(10, 13)], 90)
    assert clip("short", [(0, 5)], 40) == ("short", [(0, 5)], 0)
    assert redact("邮件：zhang.san@example.com。电话13800138000") == "邮件：[EMAIL]。电话[PHONE]"


@given(st.text(max_size=300), st.sampled_from([
    ("filter", "short lines"), ("nemo", "digits"), ("gopher_quality", "ellipses"), ("x", "x")]),
       st.text(max_size=60))
def test_any_text_is_marked_in_order_and_comes_back_from_its_markup(text, dropped_by, detail):
    stage, reason = dropped_by
    for quoted in (detail, f"0.3, limit 0.2 '{detail}'", f"0.3 '{text[5:60]}'"):
        marks = find_marks(text, stage, reason, quoted, RECIPE)
        piece, inside, start = clip(text, marks, 50)
        assert piece == text[start:start + 50]
        for spans, of in ((marks, text), (inside, piece)):
            places = [place for span in spans for place in span]
            assert places == sorted(places) and all(0 <= place <= len(of) for place in places)
            markup = marked(of, spans)
            assert set(re.findall("<[^>]*>", markup)) <= {"<mark>", "</mark>"}
            without = html.unescape(re.sub("</?mark>", "", markup))
            assert without == html.unescape(marked(of, []))
            if of.isprintable():
                assert without == of


class Reader(html.parser.HTMLParser):
    """What a browser would make of the page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: collections.Counter[str] = collections.Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.open: list[str] = []
        self.text: dict[str, list[str]] = collections.defaultdict(list)
        self.texts: list[str] = []
        """Of <pre>, whose first line feed does not count."""

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in ("meta", "br", "hr"):
            self.open.append(tag)
        if tag == "pre":
            self.texts.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text[self.open[-1] if self.open else ""].append(data)
        if "pre" in self.open:
            self.texts[-1] += data


def read(made: Path) -> Reader:
    reader = Reader()
    reader.feed((made / "report.html").read_text("utf-8"))
    reader.close()
    assert not reader.open
    return reader


def test_no_text_becomes_markup(made):
    """Texts, paths, licences and details of the corpus hold scripts, quotes and tags."""
    reader = read(made)
    assert reader.tags["script"] == reader.tags["style"] == reader.tags["head"] == 1
    assert not {"img", "iframe", "link", "object", "embed", "form", "b&"} & set(reader.tags)
    shown = "".join("".join(parts) for parts in reader.text.values())
    assert shown.count("<script>alert('x')</script>") >= 3  # as text: a path, a licence, a detail
    for _, name, value in reader.attributes:
        assert not name.startswith("on") and name not in ("src", "srcdoc", "action"), name
        assert name != "href" or value.startswith("#")
    raw = (made / "report.html").read_text("utf-8")
    assert "http://" not in re.sub(r"http://evil\.example", "", raw) and "https://" not in raw


def test_the_page_forbids_what_it_does_not_bring(made):
    reader = read(made)
    policy = next(value for tag, name, value in reader.attributes
                  if tag == "meta" and name == "content" and "default-src" in value)
    assert "default-src 'none'" in policy
    script, = reader.text["script"]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy


def test_the_page_can_be_used_without_seeing_it(made):
    reader = read(made)
    of = lambda tag, name: [v for t, n, v in reader.attributes if (t, n) == (tag, name)]  # noqa: E731
    assert of("html", "lang") == ["en"] and "zh" in of("pre", "lang")
    assert reader.tags["table"] == reader.tags["caption"] == reader.tags["thead"]
    assert len(of("svg", "aria-label")) == reader.tags["svg"] == 5
    assert all(label for label in of("svg", "aria-label"))
    ids = of("section", "id")
    assert len(ids) == len(set(ids))
    assert {f"#{id}" for id in ids} | {"#content"} == set(of("a", "href"))


def test_the_page_shows_the_facts(made, facts):
    text = " ".join("".join(parts) for parts in read(made).text.values())
    for shown in (f"{facts['total']['kept']:,}", f"{facts['total']['tokens']:,}", "PPL-Var",
                  f"{facts['topics']['zh']['coherence']:.3f}", "Toxicity", "privacy:email",
                  "0.565"):
        assert shown in text, shown
    assert "Not measured" not in text


def test_made_documents_have_a_column_where_there_are_some(facts):
    assert "augmented</th>" not in page.render(facts)
    changed = json.loads(json.dumps(facts))
    changed["sources"][1]["augmented"] = changed["total"]["augmented"] = 17
    shown = page.render(changed)
    assert shown.count("augmented</th>") == 1 and "+17 made" in shown


def test_control_characters_and_turned_directions_are_shown_as_such(facts):
    changed = json.loads(json.dumps(facts))
    changed["samples"]["kept"][0]["samples"][0]["text"] = "a\x00b\x1b[31m\u202egnp.exe\u2066"
    shown = page.render(changed)
    assert "a␀b␛[31m\ufffdgnp.exe\ufffd" in shown
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)


def test_topics(facts, rows):
    assert set(facts["topics"]) == {"zh", "en"}
    for language, found in facts["topics"].items():
        assert found["documents"] == sum(row["language"] == language for row in rows)
        assert math.isclose(found["coherence"], np.mean(
            [topic["coherence"] for topic in found["topics"]]), abs_tol=1e-5)
        subjects = list(map(set, report_corpus.SUBJECTS[language]))
        assert all(max(len(subject & set(topic["words"])) for subject in subjects) >= 8
                   for topic in found["topics"])


def test_numbers_do_not_depend_on_shards_or_workers(facts, tokenizer, tmp_path):
    def close(a, b, at=""):
        if isinstance(a, dict):
            assert a.keys() == b.keys(), at
            for key in a:
                close(a[key], b[key], f"{at}.{key}")
        elif isinstance(a, list):
            assert len(a) == len(b), at
            for i, (x, y) in enumerate(zip(a, b, strict=True)):
                close(x, y, f"{at}[{i}]")
        elif isinstance(a, float):
            assert math.isclose(a, b, rel_tol=1e-11), at
        else:
            assert a == b, at

    report_corpus.write(tmp_path / "corpus", shards=7)
    for name, options in (("one", ()), ("two", TWO_PROCESSES)):
        report.main([f"--corpus={tmp_path / 'corpus'}", f"--tokenizer={tokenizer}",
                     f"--output={tmp_path / name}", *options])
    for file in ("report.html", "report.json"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
    close(facts, json.loads((tmp_path / "one/report.json").read_text("utf-8")))


def test_texts_for_topics_do_not_depend_on_the_order_of_summaries():
    one, other = Summary(), Summary()
    one.topic_texts, other.topic_texts = {"en": [("b", "x")]}, {"en": [("a", "y")]}
    one.merge(other)
    assert one.topic_texts == {"en": [("a", "y"), ("b", "x")]}


@pytest.fixture
def prepared(tmp_path) -> tuple[RecipeConfig, Path]:
    """A recipe and the corpus that `prepare` made of it."""
    raw = tmp_path / "raw"
    raw.mkdir()
    for i in range(6):
        (raw / f"{i}.txt").write_text(f"Document {i} is long enough to be kept by the rules. " * 3)
    recipe = text_recipe(raw, shards=2)
    run(recipe, tmp_path / "out")
    return recipe, tmp_path / "out"


def test_prepare_writes_it_and_the_command_makes_it_again(prepared, tokenizer, capsys):
    recipe, out = prepared
    first = {name: (out / name).read_bytes() for name in ("report.html", "report.json")}
    assert json.loads(first["report.json"])["total"]["kept"] == 6
    assert report.main([f"--corpus={out}"]) == 0
    assert {name: (out / name).read_bytes() for name in first} == first
    before = (out / "manifest.json").read_bytes()
    assert report.main([f"--corpus={out}", f"--tokenizer={tokenizer}"]) == 0
    assert json.loads((out / "report.json").read_text())["total"]["tokens"] > 0
    # The corpus is still whole and the manifest knows its new files.
    manifest = json.loads((out / "manifest.json").read_text())
    assert {entry["file"]: entry["sha256"] for entry in manifest["outputs"]} == {
        name: digest for name, digest in contents(out).items() if name != "manifest.json"}
    capsys.readouterr()
    run(recipe, out)
    assert "nothing to do" in capsys.readouterr().out
    assert report.main([f"--corpus={out}"]) == 0
    assert (out / "manifest.json").read_bytes() == before


def test_the_page_says_when_and_how_long(prepared, monkeypatch):
    recipe, out = prepared
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    before = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    run(recipe, out.parent / "dated")
    now, then = (json.loads((folder / "manifest.json").read_text())
                 for folder in (out.parent / "dated", out))
    assert then["made"] == {"started": "1970-01-01T00:00:00Z", "seconds": None}
    started = datetime.datetime.fromisoformat(now["made"].pop("started"))
    assert before <= started <= datetime.datetime.now(datetime.UTC)
    assert 0 < now["made"].pop("seconds") < 600
    page = (out.parent / "dated/report.html").read_text("utf-8")
    assert started.strftime("%Y-%m-%d %H:%M:%S UTC") in page and ", took " in page
    assert report.main([f"--corpus={out.parent / 'dated'}"]) == 0
    assert (out.parent / "dated/report.html").read_text("utf-8") == page


@pytest.mark.parametrize(("seconds", "shown"), [
    (0, "0 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (3599, "59 min 59 s"), (7500, "2 h 5 min")])
def test_durations(seconds, shown):
    assert duration(seconds) == shown


@pytest.mark.parametrize(("pair", "share", "shown"), [
    ((10, 15), False, "+5 (+50.0 %)"), ((2000, 1000), False, "−1,000 (−50.0 %)"),
    ((10, 4000), False, "+3,990 (+39,900.0 %)"), ((0, 3), False, "+3"), ((3, 3), False, "="),
    ((None, 3), False, "–"),
    ((0.25, 0.2), True, "−5.0 pp"), ((0, 0.125), True, "+12.5 pp")])
def test_changes(pair, share, shown):
    assert change(pair, share) == shown


def test_a_comparison_with_another_corpus(prepared, facts, made, corpus, tmp_path):
    _, out = prepared
    assert report.main([f"--corpus={out}", f"--compare={made}"]) == 0
    now = json.loads((out / "report.json").read_text("utf-8"))
    found = now["comparison"]
    counts = {row["name"]: row["counts"] for row in found["total"]}
    for name in ("read", "kept", "dropped", "dead_letters", "characters", "bytes"):
        assert counts[name] == [facts["total"][name], now["total"][name]]
    assert {row["name"]: row["kept"] for row in found["sources"]} == {
        "s": [0, 6], **{entry["name"]: [entry["kept"], 0] for entry in facts["sources"]}}
    reasons = {(row["stage"], row["reason"]): row for row in found["reasons"]}
    assert reasons["dedup", "exact duplicate"]["documents"] == [7, 0]
    assert reasons["filter", "short lines"]["shares"] == [6 / facts["total"]["read"], 0]
    changes = [abs(row["shares"][1] - row["shares"][0]) for row in found["reasons"]]
    assert changes == sorted(changes, reverse=True)
    for rows in found["mixture"].values():
        assert math.isclose(sum(row["shares"][0] for row in rows), 1)
        assert math.isclose(sum(row["shares"][1] for row in rows), 1)
    assert "Compared with another corpus" in (out / "report.html").read_text("utf-8")
    assert "Compared with" not in (made / "report.html").read_text("utf-8")
    # Itself, by the path of its report: nothing differs.
    report.main([f"--corpus={corpus}", f"--compare={made / 'report.json'}",
                 f"--output={tmp_path / 'same'}"])
    same = json.loads((tmp_path / "same/report.json").read_text("utf-8"))["comparison"]
    assert all(then == new for row in same["sources"] for then, new in (row["read"], row["kept"]))
    assert all(row["shares"][0] == row["shares"][1] for row in same["reasons"])


@pytest.mark.parametrize(("content", "message"), [
    (None, "does not exist; give a corpus"), ("{", "no JSON"), ("[]", "no report of this version"),
    ('{"format": "maxlm corpus report 1"}', "make that report again")])
def test_what_cannot_be_compared_with_is_named(content, message, corpus, tmp_path):
    if content is not None:
        (tmp_path / "report.json").write_text(content)
    with pytest.raises(ConfigError, match=rf"--compare: .*report.json.*{message}"):
        report.main([f"--corpus={corpus}", f"--compare={tmp_path}", f"--output={tmp_path / 'o'}"])


def test_what_a_stopped_run_left_is_removed(prepared):
    _, out = prepared
    (out / "_temporary/parts").mkdir(parents=True)
    (out / "_temporary/made_by").write_text("data_beam.report\n")
    (out / "_temporary/parts/summary-00000.json").write_text("{")
    assert report.main([f"--corpus={out}"]) == 0
    assert not (out / "_temporary").exists()
    (out / "_temporary").mkdir()
    (out / "_temporary/thesis.tex").write_text("precious")
    with pytest.raises(ConfigError, match="_temporary exists and is not of this command"):
        report.main([f"--corpus={out}"])
    assert (out / "_temporary/thesis.tex").exists()


def test_mistakes_are_one_line(corpus, tmp_path):
    with pytest.raises(ConfigError, match=r"--corpus: .*nothing does not exist"):
        report.main([f"--corpus={tmp_path / 'nothing'}"])
    with pytest.raises(ConfigError, match="--tokenizer: no file"):
        report.main([f"--corpus={corpus}", "--tokenizer=nothing.model"])
    with pytest.raises(ConfigError, match="unknown option --tokeniser"):
        report.main([f"--corpus={corpus}", "--tokeniser=x"])
    with pytest.raises(ConfigError, match=r"--output: .* a file"):
        report.main([f"--corpus={corpus}", f"--output={corpus / 'manifest.json'}"])
    for alter, message in (
            (lambda manifest: manifest["sources"]["web"].pop("input_bytes"),
             r"another version of this program \(sources.web.input_bytes is missing\)"),
            (lambda manifest: manifest["sources"]["web"].update(kept=99),
             "the documents of source 'web' are not those of its manifest")):
        copy = tmp_path / "copy"
        shutil.copytree(corpus, copy)
        manifest = json.loads((copy / "manifest.json").read_text("utf-8"))
        alter(manifest)
        (copy / "manifest.json").write_text(json.dumps(manifest))
        with pytest.raises(ConfigError, match=message):
            report.main([f"--corpus={copy}", f"--output={tmp_path / 'out'}"])
        assert not (tmp_path / "out").exists()
        shutil.rmtree(copy)


@pytest.mark.parametrize("kind", ["documents", "dropped", "dead_letters", "samples"])
def test_each_file_that_it_reads_is_named_when_it_is_missing_cut_or_damaged(kind, corpus, tmp_path):
    copy = shutil.copytree(corpus, tmp_path / "copy")
    path = max((copy / kind).iterdir(), key=lambda path: path.stat().st_size)
    data = path.read_bytes()

    def message() -> str:
        with pytest.raises(ConfigError) as caught:
            report.main([f"--corpus={copy}"])
        return str(caught.value)

    path.write_bytes(b"x" * 20 + data[20:])
    assert message().startswith(f"--corpus: {path} is damaged or not "), message()
    path.write_bytes(data[:-1])
    assert f"{path} has {len(data) - 1} bytes instead of {len(data)}; remove" in message()
    path.unlink()
    assert f"--corpus: {path} is missing; remove the corpus and make it again" in message()
    path.mkdir()  # what cannot be opened, even by root
    (path / "x").write_text("x")
    assert message().startswith(f"--corpus: {path} ")


def test_a_closed_file_is_not_called_damaged():
    error = corpus_files.damaged("c/documents/d.parquet", PermissionError(13, "Permission denied"))
    assert error == "--corpus: c/documents/d.parquet cannot be read: Permission denied"


def test_an_empty_corpus_has_a_report(tmp_path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/a.txt").write_text("short")
    run(text_recipe(tmp_path / "raw"), tmp_path / "out")
    reader = read(tmp_path / "out")
    assert "Nothing of source s was kept." in "".join(reader.text["li"])
