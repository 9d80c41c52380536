"""Whether a checkpoint is of this run: each file that it reads, and the past of its mixture."""

import dataclasses
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from maxlm.config import (
    Config,
    ConfigError,
    DataConfig,
    EvalsConfig,
    MixtureStage,
    ModelConfig,
    RunConfig,
    ScheduleConfig,
    TokenSource,
    natures,
    to_plain,
)
from maxlm.data.corpus import file_sha256
from maxlm.data.evaluation_plan import EvaluationPlan
from maxlm.data.plan import Plan
from maxlm.training.checkpoint_reader import CheckpointError, Meta
from maxlm.training.resume import model_differences, refuse_other_run, start_notes
from tests import token_corpora

TRAIN = {"web": [[5, 9, 40, 3], [7, 2, 2, 17]], "code": [[100, 4], [6, 6, 6]], "law": [[3]]}
VALIDATION = {"web": [[9, 9, 4], [30]], "code": [[8]]}


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "tokens"
    token_corpora.random_split(path, "train", TRAIN)
    token_corpora.random_split(path, "validation", VALIDATION, seed=1)
    token_corpora.random_split(path, "test", VALIDATION, seed=2)
    return path


@pytest.fixture
def tokens(original, tmp_path):
    return Path(shutil.copytree(original, tmp_path / "tokens"))


def rewrite(tokens: Path, split: str, lengths: dict, seed: int) -> None:
    shutil.rmtree(tokens / split)
    token_corpora.random_split(tokens, split, lengths, seed=seed)


def config(path, evals: int = 1, **data) -> Config:
    return Config(run=RunConfig(steps=20), model=ModelConfig(vocab_size=400),
                  data=DataConfig(**{"tokens": str(path), "sequence_length": 16, "batch_size": 4,
                                     **data}),
                  schedule=ScheduleConfig(warmup_steps=1),
                  evals=EvalsConfig(every_steps=evals, batches=4))


def described(run: Config) -> dict:
    """What a run stores of its data, as maxlm.train does."""
    evaluation = EvaluationPlan(run.data, run.evals.split, run.evals.batches) if (
        run.evals.every_steps) else None
    return Plan.build(run.data, run.run.seed, run.run.steps).describe() | {
        "evaluation": evaluation and evaluation.describe()}


def meta(run: Config, plan: dict | None = None) -> Meta:
    return Meta(to_plain(run), plan or described(run), 0)


def refusal(saved: Meta, run: Config, step: int = 8, **settings) -> str:
    """What a resume of this run from that checkpoint is refused with; empty when it is not."""
    try:
        refuse_other_run(run, described(run), **settings)(step, saved)
    except CheckpointError as error:
        assert "\n" not in str(error) and len(str(error)) < 1200
        return str(error)
    return ""


def test_the_same_run_in_another_place_and_computed_otherwise(original, tokens):
    saved = meta(config(original))
    assert refusal(saved, config(tokens)) == ""
    same = dataclasses.replace(
        config(tokens, evals=5, workers=2, prefetch=9, verify=False, epochs=100),
        model=ModelConfig(vocab_size=400, remat="full"), run=RunConfig(steps=99))
    assert refusal(saved, same) == ""
    # Fields that are newer than the checkpoint.
    stored = to_plain(config(original))
    del stored["model"]["rope_theta"], stored["model"]["loss_chunk"], stored["telemetry"]
    assert refusal(Meta(stored, saved.plan, 0), config(original)) == ""
    stored["model"]["no_such"] = 1
    with pytest.raises(ConfigError, match=r"another version of maxlm \(config\.model\.no_such"):
        refuse_other_run(config(original), saved.plan)(8, Meta(stored, saved.plan, 0))


@pytest.mark.parametrize(("split", "lengths", "seed", "words"), [
    # other text of the same lengths
    ("validation", VALIDATION, 7, [
        "source 'web': web-00000-of-00002.array_record has another checksum",
        "source 'code': code-00000-of-00001.array_record has another checksum"]),
    # one document more
    ("validation", {**VALIDATION, "code": [[8, 5]]}, 1, [
        "source 'code': 1 documents, 8 tokens in the checkpoint, 2 documents, 13 tokens now"]),
    # other shards
    ("validation", {**VALIDATION, "web": [[9, 9, 4, 30]]}, 1, [
        "web-00000-of-00001.array_record is new", "web-00000-of-00002.array_record is gone"]),
    ("validation", {**VALIDATION, "law": [[6]]}, 1, [
        "split 'validation', source 'law': added (1 documents, 6 tokens)"]),
    ("validation", {"web": VALIDATION["web"]}, 1, [
        "split 'validation', source 'code': removed (1 documents, 8 tokens)"]),
    ("train", TRAIN, 7, [
        "split 'train', source 'law': law-00000-of-00001.array_record has another checksum"]),
    ("train", {**TRAIN, "law": [[3, 3]]}, 0, [
        "split 'train', source 'law': 1 documents, 3 tokens in the checkpoint, "
        "2 documents, 6 tokens now"]),
    ("train", {**TRAIN, "books": [[8]]}, 0, [
        "split 'train', source 'books': added (1 documents, 8 tokens)"]),
    ("train", {"web": TRAIN["web"], "code": TRAIN["code"]}, 0, [
        "split 'train', source 'law': removed (1 documents, 3 tokens)"]),
])
def test_a_split_that_changed_is_refused_and_the_difference_named(
        original, tokens, split, lengths, seed, words):
    rewrite(tokens, split, lengths, seed)
    message = refusal(meta(config(original)), config(tokens))
    for word in words:
        assert word in message
    other = "train" if split == "validation" else "validation"
    assert f"split {other!r}" not in message  # the difference, and nothing else
    accepted = refusal(meta(config(original)), config(tokens), new_evaluation_set=True)
    assert accepted == ("" if split == "validation" else message)


def test_sources_without_a_difference_are_not_listed(original, tokens):
    rewrite(tokens, "train", {**TRAIN, "books": [[8]]}, 0)
    message = refusal(meta(config(original)), config(tokens))
    assert not any(name in message for name in ("'web'", "'code'", "'law'"))
    mixture = tuple(TokenSource(path=str(tokens), source=name) for name in ("web", "code"))
    more = (*mixture, TokenSource(path=str(tokens), source="law"))
    message = refusal(meta(config(tokens, tokens=mixture, evals=0)),
                      config(tokens, tokens=more, evals=0))
    assert "source 'law': added" in message and str(tokens) not in message
    assert "To change the mixture after step 8" in message


@pytest.mark.parametrize(("split", "name"), [
    ("validation", "web-00001-of-00002.index.parquet"),
    ("train", "law-00000-of-00001.index.parquet")])
def test_an_index_is_part_of_the_run(original, tokens, split, name):
    """The same text with another index; the manifest has its checksum."""
    index, manifest = tokens / split / name, tokens / split / "manifest.json"
    old = file_sha256(index)
    table = pq.read_table(index)
    pq.write_table(table.replace_schema_metadata({"written": "again"}), index)
    manifest.write_text(manifest.read_text().replace(old, file_sha256(index)))
    message = refusal(meta(config(original)), config(tokens))
    assert f"split {split!r}" in message and f"{name} has another checksum" in message


@pytest.mark.parametrize(("changed", "words"), [
    ({"split": "test"}, "config.evals.split: checkpoint 'validation', this run 'test'"),
    ({"batches": 1}, "rows that are scored (config.evals.batches): checkpoint 5, this run 4"),
])
def test_other_rows_of_the_same_files_are_another_evaluation_set(original, changed, words):
    run = config(original)
    other = dataclasses.replace(run, evals=dataclasses.replace(run.evals, **changed))
    assert words in refusal(meta(run), other)
    assert refusal(meta(run), other, new_evaluation_set=True) == ""


def test_more_batches_than_the_split_has_rows_score_the_same(original):
    run = config(original)
    assert refusal(meta(run), dataclasses.replace(
        run, evals=dataclasses.replace(run.evals, batches=50))) == ""


def test_evaluations_may_begin_and_pause(original, tokens):
    rewrite(tokens, "validation", VALIDATION, 7)
    assert refusal(meta(config(original, evals=0)), config(tokens)) == ""
    assert refusal(meta(config(original)), config(tokens, evals=0)) == ""


@pytest.mark.parametrize(("fields", "words"), [
    ({"batch_size": 8}, "config.data.batch_size: checkpoint 4, this run 8"),
    ({"sequence_length": 8}, "config.data.sequence_length: checkpoint 16, this run 8"),
    ({"packing": "best_fit"}, "config.data.packing: checkpoint 'concat', this run 'best_fit'"),
    ({"split": "test"}, "config.data.split: checkpoint 'train', this run 'test'"),
])
def test_other_rows_of_training_are_refused(original, fields, words):
    message = refusal(meta(config(original)), config(original, **fields), new_evaluation_set=True)
    assert words in message and "source '" not in message and "config.data.stages" not in message


# The fields of the network. Weights with other values of them do not fit, or mean something else.
NETWORK = {f"model.{name}" for name in (
    "vocab_size", "num_layers", "embed_dim", "num_heads", "num_kv_heads", "head_dim", "mlp_dim",
    "tie_embeddings", "rope_theta", "norm_epsilon", "init_std", "groups", "positions", "norm",
    "feed_forward", "activation", "logit_cap", "attention_scale", "segment_bias")}
# Fields of the rows. That of the tokens themselves is compared by their files.
ROWS = {"run.seed": 1, "data.split": "test", "data.sequence_length": 8, "data.batch_size": 8,
        "data.packing": "best_fit"}


def changed(run: Config, name: str, value) -> Config:
    section, field = name.split(".")
    return dataclasses.replace(run, **{section: dataclasses.replace(
        getattr(run, section), **{field: value})})


@pytest.mark.parametrize("name", list(natures(Config)))
def test_which_fields_are_refused(original, name):
    """Every field: those of the network and of the rows are refused by name, all others are not."""
    run = config(original)
    if name in ROWS:
        message = refusal(meta(run), changed(run, name, ROWS[name]))
        assert message.count("config.") == 1 and f"config.{name}: checkpoint " in message
        return
    section, field = name.split(".")
    value = getattr(getattr(run, section), field)
    other = not value if isinstance(value, bool) else 2 * value + 1 if isinstance(
        value, (int, float)) else "another"
    lines = model_differences(run, changed(run, name, other))
    assert lines == ([f"config.{name}: checkpoint {to_plain(value)!r}, this run {other!r}"]
                     if name in NETWORK else [])


def test_another_seed_and_another_format_of_the_order(original):
    run = config(original)
    assert "config.run.seed: checkpoint 0, this run 3" in refusal(
        meta(run), dataclasses.replace(run, run=RunConfig(steps=20, seed=3)))
    old = described(run) | {"hash": "of an older version"}
    del old["format"], old["evaluation"], old["stages"], old["seed"]
    message = refusal(meta(run, old), run)
    assert "data order has format 1, this version of maxlm makes format 2" in message


def test_weights_to_start_from_go_with_any_data_of_their_tokenizer(original):
    run = config(original)
    plan = {"hash": None, "tokenizer_sha256": described(run)["tokenizer_sha256"]}
    assert refusal(meta(run, plan), run, step=0) == ""
    assert "made with tokenizer" in refusal(meta(run, plan | {"tokenizer_sha256": "f" * 64}), run)


# -- stages of the mixture ------------------------------------------------------------------------


def weights(path, **shares):
    return tuple(TokenSource(path=str(path), source=name, weight=weight)
                 for name, weight in shares.items())


def staged(path, first, **stages):
    """config with stages: after_4=mixture."""
    return config(path, evals=0, tokens=first, stages=tuple(
        MixtureStage(after_step=int(name.removeprefix("after_")), tokens=mixture)
        for name, mixture in stages.items()))


def test_the_future_of_the_mixture_is_free(tokens):
    first, then = weights(tokens, web=0.7, code=0.3), weights(tokens, web=0.3, code=0.7)
    plain, more = staged(tokens, first), staged(tokens, first, after_8=then)
    for saved, run in (
            (plain, more), (more, plain),
            (plain, staged(tokens, first, after_8=weights(tokens, law=1.0))),
            (more, staged(tokens, first, after_9=then)),
            (more, staged(tokens, first, after_8=then, after_10=first)),
            (staged(tokens, first, after_3=then), staged(tokens, first, after_3=then,
                                                         after_30=first))):
        assert refusal(meta(saved), run) == ""


def test_a_source_that_was_not_read_yet_may_change(original, tokens):
    rewrite(tokens, "train", {**TRAIN, "law": [[3, 9]]}, 0)
    # web and code come first from the generator, so their documents are the same
    runs = [staged(path, weights(path, web=1.0), after_8=weights(path, law=1.0))
            for path in (original, tokens)]
    assert refusal(meta(runs[0]), runs[1], step=8) == ""
    assert "source 'law'" in refusal(meta(runs[0]), runs[1], step=9)


@pytest.mark.parametrize(("saved", "run", "words"), [
    ({"web": 0.7, "code": 0.3}, {"web": 0.6, "code": 0.4}, [
        "config.data.tokens: weight of source 'web': checkpoint 0.7, this run 0.6",
        "weight of source 'code': checkpoint 0.3, this run 0.4",
        "To change the mixture after step 8"]),
    ({"web": 0.5, "code": 0.5}, {"code": 0.5, "web": 0.5}, [
        "order of the sources: checkpoint web, code, this run code, web"]),
    ({"web": 0.5, "code": 0.25, "law": 0.25}, {"web": 0.75, "code": 0.25}, [
        "source 'law': removed"]),
])
def test_another_past_of_the_mixture_is_refused(tokens, saved, run, words):
    message = refusal(meta(staged(tokens, weights(tokens, **saved))),
                      staged(tokens, weights(tokens, **run)))
    for word in words:
        assert word in message


def test_another_stage_in_the_past_is_refused(tokens):
    first, then = weights(tokens, web=0.7, code=0.3), weights(tokens, web=0.3, code=0.7)
    plain, four = staged(tokens, first), staged(tokens, first, after_4=then)
    assert "after_step 4 lies before the checkpoint of step 8" in refusal(meta(plain), four)
    assert "changed its mixture after step 4, this config does not" in refusal(meta(four), plain)
    other = staged(tokens, first, after_4=weights(tokens, web=0.4, code=0.6))
    assert ("mixture after step 4: weight of source 'web': checkpoint 0.3, this run 0.4"
            in refusal(meta(four), other))
    assert refusal(meta(four), other, step=4) == ""  # the stage has not begun


# -- what is noted at start -----------------------------------------------------------------------


def test_notes_of_a_new_run_and_of_one_that_goes_on(original, tokens):
    run = config(original)
    plan = described(run)
    lines, row = start_notes(0, plan, {})
    planned = {source["name"]: source["epochs"] for source in plan["sources"]}
    assert lines[0].startswith("epochs planned: ") and "law " in lines[0]
    assert row == {"step": 0, "eval/set": plan["evaluation"]["hash"][:12],
                   **{f"data/{name}/planned_epochs": epochs for name, epochs in planned.items()}}
    assert start_notes(8, plan, plan) == (lines, {})
    longer = described(dataclasses.replace(run, run=RunConfig(steps=40)))
    _, row = start_notes(8, longer, plan)
    assert row["step"] == 9 and set(row) == {"step", *(f"data/{n}/planned_epochs" for n in planned)}
    rewrite(tokens, "validation", VALIDATION, 7)
    changed = described(config(tokens))
    lines, row = start_notes(8, changed, plan)
    assert row == {"step": 9, "eval/set": changed["evaluation"]["hash"][:12],
                   "eval/previous_set": plan["evaluation"]["hash"][:12]}
    assert "from step 9 on" in lines[-1] and "split 'validation'" in lines[-1]
