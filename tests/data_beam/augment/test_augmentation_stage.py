"""Licence, decontamination, privacy and augmentation in complete runs of `prepare`."""

import collections
import importlib
import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from data_beam import prepare
from data_beam.augment.augmenter import BUCKETS
from data_beam.base.records import Document, Origin, text_sha256
from data_beam.base.stage_context import StagePaths
from data_beam.config import (
    AugmentConfig,
    DecontaminateConfig,
    EvaluationSetConfig,
    FilterConfig,
    InputConfig,
    LicenceConfig,
    PrivacyConfig,
    RecipeConfig,
    SourceConfig,
    SplitConfig,
)
from data_beam.readers.listing import list_files
from data_beam.runners import beam_options
from data_beam.sinks import documents
from data_beam.stages import corpus_manifest, stage_manifest, start
from data_beam.stages.augmentation import ShardAugmenter
from data_beam.stages.stage_manifest import STAGES
from maxlm.config.schema import ConfigError, build, to_plain

QUESTION = "Which of the two rivers that meet below the old town carries more water in summer?"
TRANSLATOR = '''
def paraphrase(paragraphs):
    if "fail" in paragraphs[0]:
        raise RuntimeError("no")
    return [p.replace("physician", "medical practitioner") for p in paragraphs]
'''


def write_inputs(root: Path) -> None:
    rows = []
    for number in range(60):
        rows.append({"text": f"Patient {number} saw the physician about a fever. The physician "
                             f"gave him a drug, number {number * 7919}, and he slept. "
                             f"病人{number}服用了药物，感觉好多了，第{number * 31}天出院。",
                     "licence": "CC BY 4.0"})
    rows[3]["licence"] = "GPL-3.0-only"
    rows[4]["licence"] = "who knows"
    rows[5]["text"] += " " + QUESTION
    rows[6]["text"] += " 联系人邮箱zhang@example.com，电话13912345678。"
    rows[8]["text"] = "mail li@example.com"  # too short to be kept
    rows[7]["text"] = "fail " + rows[7]["text"]
    (root / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (root / "set.jsonl").write_text(json.dumps({"question": QUESTION}), encoding="utf-8")
    (root / "terms.tsv").write_text(
        "fever\thigh temperature\ndrug\tmedicine\n药物\t药品\n", encoding="utf-8")
    (root / "facts.json").write_text(json.dumps({
        "fields": {"drug": "text", "use": "text"},
        "templates": {"en": ["{drug} is used against {use}."], "zh": ["{drug}可以治疗{use}。"]},
        "records": [{"drug": "aspirin", "use": "fever"}, {"drug": "布洛芬", "use": "疼痛"}]}))
    (root / "stage_translator.py").write_text(TRANSLATOR)


def make_recipe(root: Path, **augment) -> RecipeConfig:
    recipe = RecipeConfig(
        sources=(
            SourceConfig("rows", "domain", "MIT", (InputConfig(
                str(root), "rows.jsonl", "jsonl", licence_field="licence"),)),
            SourceConfig("same", "domain", "CC0-1.0", (InputConfig(
                str(root), "rows.jsonl", "jsonl", exclude=("nothing",)),)),
        ),
        filters=FilterConfig(min_characters=30),
        licence=LicenceConfig(allow=("CC-BY", "CC0"), unknown="quarantine"),
        decontaminate=DecontaminateConfig(sets=(EvaluationSetConfig(
            "rivers", str(root), "set.jsonl", "jsonl", ("question",)),)),
        privacy=PrivacyConfig(enabled=True), split=SplitConfig(validation=0.2, test=0.1), shards=3,
        augment=AugmentConfig(
            max_share=augment.pop("max_share", 0.4), synonyms=str(root / "terms.tsv"),
            synonym_copies=2, templates=str(root / "facts.json"), template_source="rows",
            back_translation="stage_translator:paraphrase", **augment))
    return build(RecipeConfig, to_plain(recipe))


@pytest.fixture
def inputs(tmp_path, monkeypatch) -> Path:
    write_inputs(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def run(recipe: RecipeConfig, output: Path, *stages: str) -> dict:
    manifest = prepare.prepare(recipe, str(output), beam_options.pipeline_options([]),
                               stages or STAGES)
    return manifest or {}


def rows_of(folder: Path) -> list[dict]:
    return pq.read_table(folder).to_pylist()


def test_samples_and_details_of_dropped_documents_are_masked(inputs):
    """A quote that is cut inside a number too."""
    question = "Which elderly man of the waterside quarter under old towers has number"
    with open(inputs / "rows.jsonl", "a", encoding="utf-8") as handle:
        handle.write("\n" + json.dumps(
            {"text": f"{question} 11010519491231002X?", "licence": "CC0-1.0"}))
    (inputs / "set.jsonl").write_text(json.dumps({"question": f"{question} 11010519491231002X?"}))
    run(make_recipe(inputs), inputs / "a", "extract", "filter")
    folder = inputs / "a/stages/filter"
    shown = "".join(path.read_text("utf-8") for path in (folder / "samples").iterdir())
    dropped = rows_of(folder / "dropped")
    assert "[EMAIL]" in shown + str(dropped) and "li@example.com" not in shown + str(dropped)
    details = [row["detail"] for row in dropped if row["stage"] == "decontaminate"]
    assert details and all(f"{question} [ID]'" in detail for detail in details), details


def test_a_run_with_all_features(inputs):
    manifest = run(make_recipe(inputs), inputs / "a")
    rows = rows_of(inputs / "a" / "documents")
    augmented = [row for row in rows if dict(row["scores"]).get("augmented")]
    assert all(row["split"] == "train" for row in augmented)
    kinds = collections.Counter(
        next(t for t in row["transforms"] if t.startswith("augment:")).split("=")[0]
        for row in augmented)
    assert set(kinds) == {"augment:synonyms", "augment:templates", "augment:back_translation"}
    by_id = {row["id"]: row for row in rows}
    assert len(by_id) == len(rows)
    for row in augmented:
        origin = next((t[13:] for t in row["transforms"] if t.startswith("augment:from=")), None)
        if origin is not None:
            assert by_id[origin]["split"] == "train" and by_id[origin]["source"] == row["source"]
            assert by_id[origin]["text"] != row["text"]
    for source, least in (("rows", 0.3), ("same", 0.0)):
        own = sum(len(row["text"]) for row in rows
                  if row["source"] == source and row["split"] == "train" and row not in augmented)
        extra = sum(len(row["text"]) for row in augmented if row["source"] == source)
        # Less than the cap, because back-translations are counted with their maximum length.
        assert least * (own + extra) <= extra <= 0.4 * (own + extra)
        assert manifest["sources"][source]["kept"] == sum(r["source"] == source for r in rows)
    dead = [json.loads(line) for path in sorted((inputs / "a" / "dead_letters").iterdir())
            for line in path.read_text("utf-8").splitlines()]
    assert manifest["total"]["augmented"] == len(augmented) + len(dead)
    assert [(d["stage"], d["reason"]) for d in dead] in (
        [], [("augment", "back-translation failed")])
    for path in (inputs / "a" / "documents").iterdir():
        ids = pq.read_table(path, columns=["id"])["id"].to_pylist()
        assert ids == sorted(ids)


def test_only_training_documents_are_augmented(inputs):
    recipe = make_recipe(inputs)
    text = "The physician gave the drug against the fever."
    document = Document(Origin("rows", "p"), text, "domain", "MIT", "", "en", 0.9,
                        text_sha256(text), "0" * 64, ())
    many = range(10**9)  # no template document is in shard 0
    augmenter = ShardAugmenter(recipe, StagePaths("", (), "", "", "", many))
    buckets = {source.name: frozenset(range(BUCKETS)) for source in recipe.sources}
    for split in ("train", "validation", "test"):
        row = documents.corpus_row(document, split)
        rows = list(augmenter.rows(0, [(document, row)], buckets))
        assert row in rows and (len(rows) > 2) == (split == "train")


@pytest.mark.parametrize("section, field, name, first", [
    ("privacy", "name_recogniser", "edited_names:function", "filter"),
    ("augment", "back_translation", "edited_translator:function", "finish"),
    ("augment", "synonyms", "terms.tsv", "finish")])
def test_an_edited_function_or_dictionary_reruns_its_stage(inputs, section, field, name, first):
    module, is_function, _ = name.partition(":")
    plain = to_plain(make_recipe(inputs))
    plain[section][field] = name if is_function else str(inputs / name)
    recipe, found = build(RecipeConfig, plain), []
    listing = list_files(recipe)
    for edit in ("def function(x): return []", "def function(x): return [ ]"):
        (inputs / (f"{module}.py" if is_function else name)).write_text(edit)
        importlib.invalidate_caches()
        found.append((stage_manifest.fingerprints(recipe, listing),
                      corpus_manifest.identity(recipe, listing)))
    (before, loaded_before), (after, loaded_after) = found
    redone = [stage for stage in STAGES if before[stage] != after[stage]]
    assert redone == list(STAGES[STAGES.index(first):])
    assert loaded_before["loaded"] != loaded_after["loaded"]
    assert module not in sys.modules  # not imported: loading a model may take long


@pytest.mark.parametrize("section, field, value, message", [
    ("licence", "allow", ("MTI",), "config.licence.allow[0]: 'MTI' is no SPDX identifier"),
    ("augment", "synonyms", "no_such_file.tsv", "config.augment.synonyms: no_such_file.tsv does"),
    ("augment", "templates", "broken.json", "is not valid JSON"),
    ("augment", "back_translation", "stage_translator:nothing", "config.augment.back_translation"),
])
def test_invalid_settings_raise_before_anything_is_read(inputs, section, field, value, message):
    plain = to_plain(make_recipe(inputs))
    (inputs / "broken.json").write_text("{")
    plain[section][field] = str(inputs / value) if value == "broken.json" else value
    for run in (
            lambda recipe, output: prepare.prepare(
                recipe, output, beam_options.pipeline_options([])),
            start.show):
        with pytest.raises(ConfigError) as caught:
            run(build(RecipeConfig, plain), str(inputs / "a"))
        assert message in str(caught.value)
        assert not (inputs / "a").exists()


def test_the_dry_run_shows_the_evaluation_sets_and_outcomes(inputs, capsys):
    start.show(make_recipe(inputs), str(inputs / "a"))
    shown = capsys.readouterr().out
    assert "language, decontaminate, privacy\n      rivers: 1 items, 1 texts" in shown
    assert "privacy (pii/email 1, pii/phone 1, privacy:email=1, privacy:phone=1)" in shown
    assert "dropped by decontaminate: evaluation overlap" in shown


PRIVATE = "call 13800138000 or mail zhang@qq.com"
LEAKING_TRANSLATOR = f"""
def paraphrase(paragraphs):
    if "number 7919," in paragraphs[0]:
        return [p[:60] + {QUESTION!r} for p in paragraphs]
    return [p.replace("physician", "{PRIVATE}", 1) for p in paragraphs]
"""


@pytest.mark.parametrize("action", ["placeholder", "drop"])
def test_augmented_documents_pass_the_filters(inputs, action):
    """Templates, dictionary and translator all insert a question of the evaluation set and personal
    data, in English and Chinese."""
    (inputs / "terms.tsv").write_text(
        f"fever\t{PRIVATE}\ndrug\t{QUESTION}\n药物\t药物（电话13912345678）\n", encoding="utf-8")
    (inputs / "facts.json").write_text(json.dumps({
        "fields": {"drug": "text"},
        "templates": {"en": [f"{{drug}}: {QUESTION} So {PRIVATE}."],
                      "fr": [f"{{drug}}, {PRIVATE}"], "zh": ["{drug}请打电话13912345678。"]},
        "records": [{"drug": "aspirin"}, {"drug": "布洛芬"}]}))
    (inputs / "leaking_translator.py").write_text(LEAKING_TRANSLATOR)
    plain = to_plain(make_recipe(inputs, max_share=0.9))
    plain["augment"] |= {"back_translation": "leaking_translator:paraphrase", "synonym_share": 0.4}
    plain["privacy"] |= {"phone": action, "email": action}
    plain["split"] = {"validation": 0.0, "test": 0.0}
    run(build(RecipeConfig, plain), inputs / "a")
    rows, all_dropped = rows_of(inputs / "a/documents"), rows_of(inputs / "a/dropped")
    for forbidden in (QUESTION, "13800138000", "13912345678", "zhang@"):
        assert not any(forbidden in row["text"] for row in rows)
        assert forbidden == QUESTION or forbidden not in str(all_dropped)
    augmented = [row for row in rows if dict(row["scores"]).get("augmented")]
    replaced = [row for row in augmented if "[PHONE]" in row["text"]]
    for kind in ("synonyms", "templates", "back_translation"):
        assert any(t.startswith(f"augment:{kind}") for row in replaced
                   for t in row["transforms"]) == (action == "placeholder"), kind
    for row in replaced:
        assert dict(row["scores"])["pii/phone"] >= 1.0 and row["sha256"] == text_sha256(row["text"])
        assert any(t.startswith("privacy:phone=") for t in row["transforms"])
    read = {Origin(row["source"], str(inputs / "rows.jsonl"), row["record"]).id for row in rows}
    dropped = [row for row in all_dropped if row["path"] == "facts.json"]
    assert {(row["stage"], row["reason"]) for row in dropped} == {
        ("decontaminate", "evaluation overlap"),
        *([("privacy", "personal data")] if action == "drop" else [])}
    assert len(dropped) == (2 if action == "placeholder" else 6)
    assert not {row["id"] for row in dropped} & read


def test_a_filter_that_fails_on_an_augmented_document_gives_a_dead_letter(inputs):
    (inputs / "picky_names.py").write_text("def find(text):\n    if 'aspirin' in text:\n"
                                           "        raise RuntimeError('no')\n    return []\n")
    plain = to_plain(make_recipe(inputs, max_share=0.9))
    plain["privacy"]["name_recogniser"] = "picky_names:find"
    manifest = run(build(RecipeConfig, plain), inputs / "a")
    assert manifest["sources"]["rows"]["dead_letters"]["privacy"] == {"failed": 2}


def test_an_unknown_template_source_raises(inputs):
    plain = to_plain(make_recipe(inputs))
    plain["augment"]["template_source"] = "row"
    with pytest.raises(ConfigError, match="no source 'row'; did you mean 'rows'"):
        build(RecipeConfig, plain)
