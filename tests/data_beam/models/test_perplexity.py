"""`data_beam.train_perplexity`, and the filter that uses its models."""

import json
import sys

import numpy as np
import pytest

from data_beam import train_perplexity, train_tokenizer
from data_beam.base.records import Document, Dropped
from data_beam.config import PerplexityConfig, PerplexityModelConfig
from data_beam.filters.chain import make_filters
from data_beam.models.perplexity import PerplexityFilter, PerplexityModel
from maxlm.config.schema import ConfigError, build
from tests.data_beam.models.documents import document
from tests.data_beam.real_text import chinese, degraded, english
from tests.data_beam.runs import text_recipe
from tests.document_corpora import document as row
from tests.document_corpora import write_corpus


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """300 Chinese and 200 English documents; the tests use the remaining texts."""
    rows = [{**row(i, text, "zh"), "language": "zh"} for i, text in enumerate(chinese()[:300])]
    rows += [row(i, text, "en") for i, text in enumerate(english()[:200])]
    rows += [{**row(900 + i, f"validation {i}", "zh", split="validation"), "language": "zh"}
             for i in range(3)]
    return write_corpus(tmp_path_factory.mktemp("corpus") / "c", rows)


def train(corpus, output, *flags: str) -> None:
    assert train_perplexity.main([f"--corpus={corpus}", f"--output={output}",
                                  "--held_out=0.3", *flags]) == 0


@pytest.fixture(scope="module")
def models(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    train(corpus, folder / "zh", "--language=zh")
    train(corpus, folder / "en", "--language=en", "--prune=0,0,1")
    return folder


def perplexity_filter(models, **fields) -> PerplexityFilter:
    entries = [{"language": language, "model": str(models / language), **fields}
               for language in ("zh", "en")]
    return PerplexityFilter(build(PerplexityConfig, {"models": entries}, "config.perplexity"))


def test_percentiles_are_those_of_the_held_out_documents(models):
    model = PerplexityModel(str(models / "zh"), "field")
    made = json.loads((models / "zh" / "model.json").read_text(encoding="utf-8"))
    texts = set(chinese()[:300])
    values = {text: model.perplexity(text) for text in texts}
    # Training documents have a far lower perplexity than held-out ones.
    held_out = sorted(values.values())[made["trained_on"]["documents"]:]
    assert len(held_out) == made["held_out"]["documents"]
    np.testing.assert_allclose(
        [made["percentiles"][str(p)] for p in (1, 50, 99)],
        [np.percentile(held_out, p) for p in (1, 50, 99)], atol=1e-3)


@pytest.mark.parametrize("language", ["zh", "en"])
def test_clean_text_is_kept_and_degraded_text_is_dropped(models, language):
    judge = perplexity_filter(models, max_percentile=90)
    texts = chinese()[300:400] if language == "zh" else english()[200:300]
    clean = [judge(document(text, language)) for text in texts]
    kept = [outcome for outcome in clean if isinstance(outcome, Document)]
    assert len(kept) >= 0.8 * len(texts)
    assert all(outcome.scores["perplexity"] > 1 for outcome in kept)
    for kind in (1, 3):  # not menus of known words, which other filters drop, nor shuffled words
        bad = [judge(document(degraded(text, language, kind, i), language))
               for i, text in enumerate(texts[:30])]
        dropped = [outcome for outcome in bad if isinstance(outcome, Dropped)]
        assert len(dropped) >= 28, kind
        assert {outcome.reason for outcome in dropped} == {"perplexity too high"}
    model = PerplexityModel(str(models / language), "field")
    ratios = [model.perplexity(degraded(text, language, 2, i)) / model.perplexity(text)
              for i, text in enumerate(texts[:30])]
    assert np.median(ratios) > 1.5 and np.mean(np.array(ratios) > 1) > 0.9


def test_perplexity_follows_the_formula(models):
    model = PerplexityModel(str(models / "zh"), "field")
    text = "话说天下大势，分久必合，合久必分。\n\n周末七国分争，并入于秦。"
    total, count = model.score(text)
    assert count == 17 + 1 + 12 + 1
    parts = [model.score(line) for line in text.split("\n") if line]
    assert total == pytest.approx(sum(part[0] for part in parts))
    assert model.perplexity(text) == pytest.approx(10 ** (-total / count))
    assert model.perplexity(" \n\t") is None


def test_reasons_and_details(models):
    text = chinese()[300]
    value = perplexity_filter(models)._models["zh"][0].perplexity(text)
    outcome = perplexity_filter(models, max_perplexity=value * 0.99)(document(text))
    assert isinstance(outcome, Dropped) and outcome.stage == "perplexity"
    assert outcome.reason == "perplexity too high"
    assert outcome.detail.startswith(f"{value:.1f}, more than {value * 0.99:.1f} (the limit of the "
                                     "recipe); unlikeliest: ")
    outcome = perplexity_filter(models, max_perplexity=value * 1.01)(document(text))
    assert isinstance(outcome, Document)
    nonsense = "话说天下大势，分久必合，合久必分。\n龘靐齉爩麤龗灪厵爨癵籱饢驫鲡鹂鸾"
    outcome = perplexity_filter(models, max_percentile=50)(document(nonsense))
    assert isinstance(outcome, Dropped) and "龘靐齉爩" in outcome.detail
    assert "percentile 50 of clean zh" in outcome.detail
    outcome = perplexity_filter(models, max_percentile=0, min_percentile=90)(document(chinese()[1]))
    assert isinstance(outcome, Dropped) and outcome.reason == "perplexity too low"
    assert isinstance(perplexity_filter(models, max_percentile=0)(document(nonsense)), Document)
    assert perplexity_filter(models)(document(" \n")).reason == "nothing to score"


def test_languages_without_a_model_are_kept_or_dropped(models):
    other = document("Der Ausschuss wird seinen Bericht nächste Woche veröffentlichen.", "de")
    assert perplexity_filter(models)(other) is other
    strict = PerplexityFilter(PerplexityConfig(
        (PerplexityModelConfig("zh", str(models / "zh")),), "drop"))
    outcome = strict(other)
    assert isinstance(outcome, Dropped)
    assert (outcome.reason, outcome.detail) == ("no perplexity model", "language de")
    code = document("x = 1\n" * 50, "python", is_code=True)
    assert strict(code) is code


def test_a_recipe_enables_the_filter_and_checks_the_models(models, tmp_path):
    def names(*entries):
        return [each.name for each in make_filters(text_recipe(
            tmp_path, perplexity=PerplexityConfig(tuple(
                PerplexityModelConfig(language, str(model)) for language, model in entries))))]

    assert "perplexity" not in names()
    assert "perplexity" in names(("zh", models / "zh"))
    for language, model, message in (
            ("zh", tmp_path / "none", "model: .* does not exist"),
            ("en", models / "zh", "language: 'en', but .* is a model of 'zh'")):
        with pytest.raises(ConfigError, match=rf"config\.perplexity\.models\[0\]\.{message}"):
            names((language, model))


def test_invalid_settings_raise():
    def check(message, **values):
        with pytest.raises(ConfigError, match=message):
            build(PerplexityConfig, values, "config.perplexity")

    entry = {"language": "zh", "model": "M"}
    check("the language 'zh' has two models", models=[entry, entry])
    check("min_percentile: 50 leaves nothing under max_percentile 50",
          models=[{**entry, "min_percentile": 50, "max_percentile": 50}])
    check("model: must not be empty", models=[{**entry, "model": ""}])
    check("other_languages: 'kepp' is not one of keep, drop", other_languages="kepp")


def test_training_is_deterministic_and_skipped_if_done(corpus, models, tmp_path, capsys):
    train(corpus, tmp_path / "zh", "--language=zh")
    for name in ("model.npz", "model.json"):
        assert (tmp_path / "zh" / name).read_bytes() == (models / "zh" / name).read_bytes()
    assert sorted(path.name for path in (tmp_path / "zh").iterdir()) == ["model.json", "model.npz"]
    capsys.readouterr()
    before = (tmp_path / "zh" / "model.npz").stat().st_mtime_ns
    train(corpus, tmp_path / "zh", "--language=zh")
    assert "nothing to do" in capsys.readouterr().out
    assert (tmp_path / "zh" / "model.npz").stat().st_mtime_ns == before
    with pytest.raises(ConfigError, match="made with another order"):
        train(corpus, tmp_path / "zh", "--language=zh", "--order=3")


def test_a_written_arpa_file_can_be_imported(corpus, models, tmp_path):
    train(corpus, tmp_path / "arpa", "--language=zh", "--arpa")
    file = tmp_path / "arpa" / "model.arpa"
    assert file.read_bytes().startswith(b"\\data\\\nngram 1=")
    train(corpus, tmp_path / "again", "--language=zh", f"--import_model={file}")
    one, other = (PerplexityModel(str(folder), "field")
                  for folder in (models / "zh", tmp_path / "again"))
    assert one.percentiles == pytest.approx(other.percentiles, abs=1e-3)
    assert one.perplexity(chinese()[310]) == pytest.approx(other.perplexity(chinese()[310]))
    with pytest.raises(ConfigError, match="is neither an ARPA file nor a KenLM binary file"):
        train(corpus, tmp_path / "bad", "--language=zh", f"--import_model={__file__}")
    assert not (tmp_path / "bad").exists()


def test_tokenizer_pieces_as_unit(corpus, tmp_path):
    tokenizer = tmp_path / "t" / "tokenizer.model"
    assert train_tokenizer.main([f"--corpus={corpus}", f"--output={tokenizer.parent}",
                                 "--vocab_size=4500"]) == 0
    train(corpus, tmp_path / "m", "--language=zh", "--unit=piece", f"--tokenizer={tokenizer}")
    assert (tmp_path / "m" / "tokenizer.model").read_bytes() == tokenizer.read_bytes()
    tokenizer.unlink()  # the model has its own copy
    model = PerplexityModel(str(tmp_path / "m"), "field")
    clean = chinese()[320]
    assert model.perplexity(degraded(clean, "zh", 2, 0)) > 2 * model.perplexity(clean)
    (tmp_path / "m" / "tokenizer.model").unlink()
    with pytest.raises(ConfigError, match=r"tokenizer\.model is missing"):
        PerplexityModel(str(tmp_path / "m"), "field")


def test_a_kenlm_binary_needs_the_kenlm_module(corpus, tmp_path, monkeypatch):
    file = tmp_path / "zh.bin"
    file.write_bytes(b"mmap lm http://kheafield.com/code format version 5\n\0" + b"\0" * 100)
    monkeypatch.setitem(sys.modules, "kenlm", None)  # as if not installed
    with pytest.raises(ConfigError, match="which only the kenlm module can read; pip install"):
        train(corpus, tmp_path / "m", "--language=zh", f"--import_model={file}")


def test_empty_lines_separate_documents_of_text_files(tmp_path):
    texts = chinese()[:120]
    (tmp_path / "clean.txt").write_text(
        "\n\n".join("".join(text.split()) for text in texts), encoding="utf-8")
    flags = ["--language=zh", f"--text={tmp_path / 'clean.txt'}", f"--output={tmp_path / 'm'}"]
    assert train_perplexity.main([*flags, "--held_out=0.2"]) == 0
    made = json.loads((tmp_path / "m" / "model.json").read_text(encoding="utf-8"))
    assert made["trained_on"]["documents"] + made["held_out"]["documents"] == 120
    (tmp_path / "bad.txt").write_bytes("天下".encode("gbk"))
    with pytest.raises(ConfigError, match=r"--text: .*bad\.txt is not UTF-8"):
        train_perplexity.main([flags[0], f"--text={tmp_path / 'bad.txt'}",
                               f"--output={tmp_path / 'n'}"])


@pytest.mark.parametrize("flags, message", [
    ([], "--corpus: give either --corpus or --text"),
    (["--corpus=c", "--text=a"], "--corpus: give either --corpus or --text"),
    (["--corpus=none"], "--corpus: none does not exist"),
    (["--text=none"], "--text: none does not exist"),
    (["--corpus={}", "--language=de"], "no training documents in 'de'; its languages: en, zh"),
    (["--corpus={}", "--held_out=0.01"], "documents are held out, percentiles need 10"),
    (["--corpus={}", "--held_out=1"], "--held_out: must be above 0 and below 1, got 1"),
    (["--corpus={}", "--order=1"], "--order: must be from 2 to 10, got 1"),
    (["--corpus={}", "--prune=1"], "--prune: must begin with 0, not decrease"),
    (["--corpus={}", "--prune=0,2,1"], "--prune: must begin with 0, not decrease"),
    (["--corpus={}", "--prune=x"], "--prune: expected numbers like 0,0,1, got 'x'"),
    (["--corpus={}", "--unit=piece"], "--tokenizer: must be given for --unit=piece"),
    (["--corpus={}", "--unit=piece", "--tokenizer={}/manifest.json"], "not a SentencePiece model"),
    (["--corpus={}", "--sample_bytes=nan"], "--sample_bytes: must be a number of at least 1"),
    (["--corpus={}", "--import_model=none"], "--import_model: none does not exist"),
    (["--corpus={}", "--language=Chinese"], "--language: 'Chinese' is not a code"),
])
def test_invalid_flags_raise(corpus, tmp_path, flags, message):
    flags = ["--language=zh", *(flag.format(corpus) for flag in flags)]
    with pytest.raises(ConfigError, match=message):
        train_perplexity.main([*flags, f"--output={tmp_path / 'm'}"])
    assert not (tmp_path / "m").exists()
