"""Augmentation: synonyms, templates, back-translation, and the cap on augmented text."""

import json
import sys
from collections.abc import Container, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_beam.augment.augmenter import (
    BUCKETS,
    Augmenter,
    TemplateDocuments,
    admitted_buckets,
    augmented_id,
    bucket_of,
)
from data_beam.augment.synonyms import Synonyms, load
from data_beam.augment.templates import generate
from data_beam.base.files import shard_of
from data_beam.base.records import DeadLetter, Document, Origin, text_sha256
from data_beam.config import AugmentConfig, InputConfig, SourceConfig
from data_beam.sinks.documents import corpus_row
from maxlm.config.schema import ConfigError, build

ALL = range(BUCKETS)
TERMS = {
    "heart attack": ["myocardial infarction"], "heart": ["cardiac muscle"], "drug": ["medicine"],
    "心脏病": ["心脏疾病"], "心脏": ["心"], "药": ["药物", "药品"], "CT": ["computed tomography"],
}


def document(text: str, path: str = "p", is_code: bool = False) -> Document:
    return Document(Origin("s", path), text, "domain", "MIT", "", "zh", 0.9, text_sha256(text),
                    "0" * 64, ("extract:html",), is_code, {"quality": 3.0}, "c1")


def augment(augmenter: Augmenter, original: Document, buckets: Container[int] = ALL) -> list:
    return list(augmenter.augment(original, corpus_row(original, "train"), buckets))


# Synonyms.

@pytest.mark.parametrize("text, expected", [
    ("A heart attack.", "A myocardial infarction."),  # the longest term
    ("Heart attack!", "Myocardial infarction!"), ("HEART ATTACK", "MYOCARDIAL INFARCTION"),
    ("The heart is", "The cardiac muscle is"), ("sweetheart hearts heart2 2heart", None),
    ("drug, drugs, DRUG, drug-free", "medicine, drugs, MEDICINE, medicine-free"),
    ("他得了心脏病，吃药。", "他得了心脏疾病，吃药品。"), ("心脏停了", "心停了"), ("心在跳", None),
    ("做CT检查", "做COMPUTED TOMOGRAPHY检查"), ("ACT and CTs", None), ("", None),
    ("İ ı drug", "İ ı medicine"),
])
def test_terms_are_replaced_by_synonyms(text, expected):
    replaced, count = Synonyms(TERMS).substitute(text, 1.0, "key")
    assert replaced.replace("药物", "药品") == (text if expected is None else expected)
    assert (count == 0) == (expected is None)


def test_share_and_choice_of_synonyms_depend_only_on_the_key():
    text = "drug " * 2000
    dictionary = Synonyms({"drug": ["a", "b", "c"]})
    once = dictionary.substitute(text, 0.3, "key")
    assert once == dictionary.substitute(text, 0.3, "key")
    assert once != dictionary.substitute(text, 0.3, "other")
    # Binomial: 600 of 2000, standard deviation 20.5; each of three synonyms 200, deviation 13.4.
    assert abs(once[1] - 600) < 4 * 20.5
    for synonym in "abc":
        assert abs(once[0].split().count(synonym) - 200) < 4 * 13.4


def test_dictionaries_in_both_formats(tmp_path):
    (tmp_path / "a.tsv").write_text("# terms\nC#\tCsharp\n\n心脏病\t心脏疾病\t冠心病\n", "utf-8")
    (tmp_path / "b.json").write_text(
        json.dumps({"C#": ["Csharp"], "心脏病": ["心脏疾病", "冠心病"]}))
    found = [list(load(str(tmp_path / name), "f").find("C#，心脏病"))
             for name in ("a.tsv", "b.json")]
    assert found[0] == found[1] == [(0, 2, ["Csharp"]), (3, 6, ["心脏疾病", "冠心病"])]


@pytest.mark.parametrize("name, content, message", [
    ("a.tsv", "heart\n", "line 1: 'heart' has no synonym other than itself"),
    ("a.tsv", "heart\tHeart\n", "no synonym other than itself"),
    ("a.tsv", "heart\ta\n\nHeart\tb\n", "line 3: 'Heart' is given twice"),
    ("a.tsv", "# nothing\n", "contains no term"), ("a.txt", "x", "must end in .tsv or .json"),
    ("a.json", "[", "is not valid JSON"), ("a.json", "[]", "must contain an object"),
    ("a.json", '{"a": "b"}', "'a' must have a list of strings"),
    ("a.json", "{}", "contains no term"),
    ("a.tsv", None, "cannot be read"), ("a.tsv", b"\xff\t\xfe", "is not UTF-8"),
])
def test_an_invalid_dictionary_raises_at_start(tmp_path, name, content, message):
    if content is not None:
        data = content if isinstance(content, bytes) else content.encode()
        (tmp_path / name).write_bytes(data)
    with pytest.raises(ConfigError) as caught:
        Augmenter(AugmentConfig(synonyms=str(tmp_path / name)))
    assert message in str(caught.value)
    assert str(caught.value).startswith("config.augment.synonyms: ")


@pytest.fixture
def dictionary(tmp_path) -> str:
    path = tmp_path / "terms.json"
    path.write_text(json.dumps(TERMS), encoding="utf-8")
    return str(path)


def test_copies_are_marked_and_have_their_own_ids(dictionary):
    original = document("他得了心脏病，每天吃药，药很苦，药很贵，药不多。")
    augmenter = Augmenter(AugmentConfig(synonyms=dictionary, synonym_copies=3))
    rows = augment(augmenter, original)
    assert len(rows) == 3 == len({row["text"] for row in rows} - {original.text})
    row = corpus_row(original, "train")
    for number, copy in enumerate(rows, 1):
        assert copy["id"] == augmented_id(original.origin.id, "synonyms", number)
        assert len(copy["id"]) == 32 and int(copy["id"], 16) >= 0
        assert shard_of(copy["id"], 7) == shard_of(original.origin.id, 7)
        assert copy["sha256"] == text_sha256(copy["text"])
        assert copy["scores"] == [("augmented", 1.0), ("quality", 3.0)]
        first, made, origin = copy["transforms"]
        assert (first, origin) == ("extract:html", f"augment:from={original.origin.id}")
        assert made.startswith("augment:synonyms=")
        changed = {"id", "text", "sha256", "scores", "transforms"}
        assert {k: v for k, v in copy.items() if k not in changed} == {
            k: v for k, v in row.items() if k not in changed}
    assert [(p.id, p.characters) for p in augmenter.planned(original)] == [
        (copy["id"], len(copy["text"])) for copy in rows]
    again = Augmenter(AugmentConfig(synonyms=dictionary, synonym_copies=3))
    assert augment(again, original) == rows


def test_only_documents_in_admitted_buckets_are_created(dictionary):
    """None of code and of texts without terms."""
    augmenter = Augmenter(AugmentConfig(synonyms=dictionary, synonym_copies=5))
    assert augment(augmenter, document("他在跑步")) == []
    assert augment(augmenter, document("heart drug " * 9, is_code=True)) == []
    original = document("药，" * 50)
    ids = [row["id"] for row in augment(augmenter, original)]
    buckets = {bucket_of(ids[1]), bucket_of(ids[3])}
    assert [row["id"] for row in augment(augmenter, original, buckets)] == [
        id for id in ids if bucket_of(id) in buckets]


# The cap.

def test_the_cap_by_hand():
    # 800 original characters and a share of 0.2 allow 200. 90 + 110 fit; 10 more do not.
    assert admitted_buckets(800, {5: 90, 9: 300, 11: 110, 12: 10}, 0.2) == {5, 11}
    assert admitted_buckets(0, {1: 1}, 0.5) == frozenset()
    assert admitted_buckets(100, {}, 0.5) == frozenset()
    assert admitted_buckets(100, {3: 100}, 0.5) == {3}


@given(st.integers(0, 10_000), st.dictionaries(st.integers(0, 4095), st.integers(1, 500)),
       st.floats(0.01, 0.9))
def test_the_cap_is_not_exceeded_and_every_skipped_bucket_is_too_large(own, sizes, cap):
    admitted = admitted_buckets(own, sizes, cap)
    total = sum(sizes[bucket] for bucket in admitted)
    assert total <= cap * (own + total) * (1 + 1e-9)
    left = int(own * cap / (1 - cap)) - total
    assert all(sizes[bucket] > left for bucket in set(sizes) - admitted)
    assert admitted == admitted_buckets(own, dict(reversed(sizes.items())), cap)


def test_ids_spread_evenly_over_buckets():
    counts = [0] * 16
    for number in range(8000):
        counts[bucket_of(augmented_id(f"{number:032x}", "synonyms", 1)) % 16] += 1
    assert all(abs(count - 500) < 5 * 21.7 for count in counts)  # binomial, deviation 21.7


# Templates.

TABLE = {
    "fields": {"drug": "text", "uses": "list", "dose": "number"},
    "templates": {"en": ["{drug} is used against {uses}.", "The dose of {drug} is {dose} mg."],
                  "zh": ["{drug}用于治疗{uses}。"]},
    "records": [{"drug": "aspirin", "uses": ["fever", "pain"], "dose": 500},
                {"drug": "布洛芬", "uses": ["发热", "疼痛"]}],
}
SOURCE = SourceConfig("med", "domain", "CC0-1.0", (InputConfig("r", "*", "text"),))


def table(folder: Path, **changes) -> str:
    path = folder / "facts.json"
    path.write_text(json.dumps({**TABLE, **changes}), encoding="utf-8")
    return str(path)


def test_records_fill_the_sentences_whose_fields_they_have(tmp_path):
    documents = {(d.record, d.language): d for d in generate(table(tmp_path), "f")}
    assert set(documents) == {(1, "en"), (1, "zh"), (2, "en"), (2, "zh")}
    sentences = ["aspirin is used against fever, pain.", "The dose of aspirin is 500 mg."]
    assert documents[1, "en"].text in (" ".join(sentences), " ".join(reversed(sentences)))
    assert documents[1, "en"].sentences == 2
    assert documents[2, "en"].text == "布洛芬 is used against 发热, 疼痛."
    assert documents[2, "zh"].text == "布洛芬用于治疗发热、疼痛。"


def test_rows_of_templates(tmp_path):
    config = AugmentConfig(templates=table(tmp_path), template_source="med")
    rows = list(TemplateDocuments(config, (SOURCE,)).rows())
    assert len(rows) == 4 == len({row["id"] for row in rows})
    assert [row["id"] for row in rows] == sorted(row["id"] for row in rows)
    for row in rows:
        assert set(row) == set(corpus_row(document("x"), "train"))
        assert (row["source"], row["domain"], row["licence"], row["split"], row["path"]) == (
            "med", "domain", "CC0-1.0", "train", "facts.json")
        assert row["scores"] == [("augmented", 1.0)]
        assert row["transforms"][0].startswith("augment:templates=")


@pytest.mark.parametrize("changes, message", [
    ({"templates": {"en": ["{drugs} is"]}},
     "names a field that is not in fields; did you mean 'drug'?"),
    ({"templates": {"en": ["no field"]}}, "has no {field}"),
    ({"templates": {"en": []}}, "must give a list of sentences"), ({"templates": []}, "must give"),
    ({"records": []}, "records must be a list of objects"),
    ({"records": [{"drg": "a"}]},
     "record 1: has a field 'drg' that is not in fields; did you mean 'drug'?"),
    ({"records": [{"drug": 5}]}, "record 1: drug must be a text, got 5"),
    ({"records": [{"drug": "a", "uses": []}]}, "record 1: uses must be a list, got []"),
    ({"records": [{"drug": "a", "dose": True}]}, "record 1: dose must be a number"),
    ({"records": [{"drug": ""}]}, "record 1: drug must be a text"),
    ({"records": [{"dose": 5}]}, "record 1: lacks fields of every template"),
    ({"fields": {"drug": "string"}}, "text, number or list"),
    ({"more": 1}, "must contain an object"),
])
def test_an_invalid_table_raises_at_start(tmp_path, changes, message):
    with pytest.raises(ConfigError) as caught:
        generate(table(tmp_path, **changes), "config.augment.templates")
    assert message in str(caught.value)
    assert str(caught.value).startswith("config.augment.templates: ")


# Back-translation.

TRANSLATOR = """
def swap(paragraphs):
    return [p.replace("很", "非常") for p in paragraphs]

def short(paragraphs):
    return paragraphs if len(paragraphs) == 2 else ["x" for p in paragraphs]

def same(paragraphs):
    return paragraphs

def fewer(paragraphs):
    return paragraphs[:-1]

def text(paragraphs):
    return "text"

def raising(error, if_holds):
    def function(paragraphs):
        if if_holds in paragraphs[0]:
            raise error
        return paragraphs
    return function

fails = raising(RuntimeError("out of memory"), "茶")
exits = raising(SystemExit(3), "茶")
always_fails = raising(KeyError("model"), "")
"""


@pytest.fixture
def translator(tmp_path, monkeypatch) -> Iterator[str]:
    name = f"translator_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(TRANSLATOR, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield name
    sys.modules.pop(name, None)


def test_back_translation_keeps_empty_lines(translator):
    original = document("今天天气很好。\n\n我们很高兴去公园。\n")
    augmenter = Augmenter(AugmentConfig(back_translation=f"{translator}:swap"))
    [row] = augment(augmenter, original)
    assert row["text"] == "今天天气非常好。\n\n我们非常高兴去公园。\n"
    assert row["transforms"][1:] == ["augment:back_translation",
                                     f"augment:from={original.origin.id}"]
    [planned] = augmenter.planned(original)
    assert planned.id == row["id"] == augmented_id(original.origin.id, "back_translation", 1)
    assert planned.characters == int(1.5 * len(original.text))
    assert augment(augmenter, document("x = '很'", is_code=True)) == []
    assert list(augmenter.planned(document("x", is_code=True))) == []
    assert augment(augmenter, original, ()) == []


def test_unchanged_or_short_back_translations_are_not_kept(translator):
    for function in ("short", "same"):
        augmenter = Augmenter(AugmentConfig(back_translation=f"{translator}:{function}"))
        assert augment(augmenter, document("今天天气很好，我们去公园。")) == []


def test_a_failing_translator_gives_a_dead_letter(translator):
    for function, detail in (("fails", "RuntimeError: out of memory"), ("exits", "SystemExit: 3")):
        augmenter = Augmenter(AugmentConfig(back_translation=f"{translator}:{function}"))
        assert augment(augmenter, document("茶很好")) == [DeadLetter(
            Origin("s", "p"), "augment", "back-translation failed", detail)]


@pytest.mark.parametrize("function, message", [
    ("fewer", "must return a list of 2 texts"), ("text", "must return a list of 2 texts"),
    ("always_fails", "raised KeyError: 'model'"), ("nothing", "has no function 'nothing'"),
])
def test_an_invalid_translator_raises_at_start(translator, function, message):
    with pytest.raises(ConfigError) as caught:
        Augmenter(AugmentConfig(back_translation=f"{translator}:{function}"))
    assert message in str(caught.value)
    assert str(caught.value).startswith("config.augment.back_translation: ")


@pytest.mark.parametrize("fields, message", [
    ({"templates": "x"}, "config.augment.template_source: must be set"),
    ({"template_source": "x"}, "config.augment.template_source: must be set"),
    ({"synonym_copies": 2}, "config.augment.synonyms: is empty"),
    ({"max_share": 0.5}, "config.augment.max_share: does nothing"),
    ({"max_share": 1.0, "synonyms": "x"}, "config.augment.max_share: must be at most 0.9"),
])
def test_invalid_settings_raise(fields, message):
    with pytest.raises(ConfigError) as caught:
        build(AugmentConfig, fields, "config.augment")
    assert message in str(caught.value)
