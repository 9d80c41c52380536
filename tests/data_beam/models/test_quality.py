"""`data_beam.train_quality`, and the filter that drops documents with low scores."""

import gzip
import json
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.optimize
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from data_beam import train_quality
from data_beam.base.records import Document, Dropped
from data_beam.config import QualityConfig
from data_beam.filters.chain import make_filters
from data_beam.models.classifier import (
    HashedNgrams,
    OrdinalModel,
    QualityFilter,
    TextClassifier,
)
from data_beam.models.classifier_training import agreement, kappa, train
from maxlm.config.schema import ConfigError
from tests.data_beam.models.documents import document
from tests.data_beam.real_text import chinese, degraded, english
from tests.data_beam.runs import text_recipe

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "quality" / "logistic.json").read_text(
    encoding="utf-8"))


def rated(number: int, first: int = 0) -> list[dict]:
    """Texts in two languages, with a clean share of label / 5 and the rest degraded."""
    rows = []
    for i in range(first, first + number):
        language, texts = ("zh", chinese()) if i % 2 else ("en", english())
        text, label = texts[i // 2 % len(texts)], i // 2 % 6
        cut = len(text) * label // 5
        bad = degraded(text, language, random.Random(i).randrange(4), i)
        rows.append({"text": text[:cut] + "\n" + bad[cut:] if label < 5 else text, "label": label})
    return rows


def write(path: Path, rows: list) -> str:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows),
                    encoding="utf-8")
    return str(path)


def run(examples: str | Path, output: Path, *flags: str) -> dict:
    assert train_quality.main([f"--examples={examples}", f"--output={output}", "--held_out=0.25",
                               "--features=65536", *flags]) == 0
    return json.loads((output / "report.json").read_text())


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quality")
    run(write(folder / "rated.jsonl", rated(600)), folder / "model")
    return folder / "model"


@pytest.mark.parametrize("l2", GOLDEN["solutions"])
def test_two_labels_match_scikit_learns_logistic_regression(l2):
    expected = GOLDEN["solutions"][l2]
    found = train(scipy.sparse.csr_array(np.array(GOLDEN["x"])), np.array(GOLDEN["y"]), float(l2))
    np.testing.assert_allclose(found.weights, expected["weights"], atol=2e-6)
    np.testing.assert_allclose(found.thresholds, [expected["threshold"]], atol=2e-6)


def random_problem(seed: int, labels: list[int]) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    numbers = np.random.default_rng(seed)
    return (scipy.sparse.csr_array(numbers.normal(size=(50, 4))),
            np.array(labels)[numbers.integers(0, len(labels), 50)])


@pytest.mark.parametrize("labels", [[0, 1, 2, 3, 4, 5], [1, 4], [0, 2, 5]])
def test_training_minimises_the_loss(labels):
    x, y = random_problem(1, labels)
    found = train(x, y, 0.3)
    assert found.lowest == labels[0] and len(found.thresholds) == labels[-1] - labels[0]
    assert (np.diff(found.thresholds) >= -1e-6).all()  # ordered at the optimum

    def loss(parameters):  # by definition, term by term
        weights, thresholds = parameters[:4], parameters[4:]
        total = 0.15 * sum(weight**2 for weight in weights)
        for row, label in zip(x.toarray(), y, strict=True):
            for k, threshold in enumerate(thresholds, labels[0]):
                sign = 1 if label > k else -1
                total += np.log1p(np.exp(-sign * (row @ weights - threshold)))
        return total

    start = np.concatenate([found.weights, found.thresholds])
    other = scipy.optimize.minimize(loss, np.zeros_like(start), method="BFGS")
    np.testing.assert_allclose(start, other.x, atol=2e-3)
    assert loss(start) <= loss(other.x) + 1e-6


def test_the_score_is_the_expected_label():
    model = OrdinalModel(1, np.array([0.5, -1, 2], np.float32), np.array([-1.0, 0.0, 2.0]))
    z = 0.5 * 0.6 + 2 * 0.8
    score = model.score(np.array([0, 2]), np.array([0.6, 0.8], np.float32))
    above = [1 / (1 + np.exp(-(z - threshold))) for threshold in (-1, 0, 2)]
    # P(2), P(3), P(4) as differences; the mean of the labels.
    shares = [1 - above[0], above[0] - above[1], above[1] - above[2], above[2]]
    assert score == pytest.approx(sum(label * share for label, share in enumerate(shares, 1)))
    assert model.score(np.array([2]), np.array([1e6])) == 4
    assert model.score(np.array([1]), np.array([1e6])) == 1


def test_features_are_ngrams_of_chinese_characters_and_english_words():
    ngrams = HashedNgrams(2**18, 2)

    def buckets(text):
        return set(ngrams(text)[0].tolist())

    # n-grams depend on the order of tokens
    assert len(buckets("分久必合")) == 4 + 3
    assert buckets("分久") < buckets("分久必合")
    assert len(buckets("合必久分") & buckets("分久必合")) == 4
    assert len(buckets("The quick fox")) == 3 + 2
    assert buckets("the QUICK") < buckets("The quick fox")
    assert len(buckets("GPU显存16GB，")) == len(["gpu", "显", "存", "16gb", "，"]) + 4
    assert buckets("") == set() and buckets(" \t") == set()
    _, values = ngrams("a a a b")
    # a: 3 times, b once, "a a" twice, "a b" once.
    raw = np.array([1 + np.log(3), 1, 1 + np.log(2), 1])
    np.testing.assert_allclose(sorted(values), sorted(raw / np.linalg.norm(raw)), rtol=1e-6)


def test_buckets_are_deterministic_and_evenly_filled():
    assert HashedNgrams(2**18, 2)("天下大势 the end")[0].tolist() == [
        56741, 65890, 103930, 126509, 128704, 129254, 138653, 166335, 173531, 235511, 237618]
    words = " ".join(f"word{i}" for i in range(20_000))
    filled = np.bincount(HashedNgrams(64, 2)(words)[0], minlength=64)
    assert (filled == 1).all()
    found, _ = HashedNgrams(2**20, 2)(words)
    # 39,999 distinct n-grams have n(n-1)/2m = 763 expected collisions, with deviation 28.
    assert abs(39_999 - len(found) - 763) < 4 * 28
    assert abs(np.mean(found < 2**19) - 0.5) < 0.02


def test_agreement_matches_scikit_learn_and_hand_calculations():
    labels, rounded = np.array(GOLDEN["labels"]), np.array(GOLDEN["given"])
    assert kappa(labels, rounded, 6) == pytest.approx(GOLDEN["kappa"])
    found = agreement(labels, rounded.astype(float), 6, 2.0)
    assert found["f1"] == pytest.approx(GOLDEN["f1"], abs=1e-4)
    assert found["spearman"] == pytest.approx(GOLDEN["spearman"], abs=1e-4)
    assert found["accuracy"] == pytest.approx(np.mean(labels == rounded), abs=1e-4)
    found = agreement(np.array([0, 1, 1, 1]), np.array([0.4, 0.6, 0.3, 0.9]), 2, 0.5)
    assert found["confusion"] == [[1, 0], [1, 2]]
    assert (found["precision"], found["recall"], found["f1"]) == (1.0, 0.6667, 0.8)
    assert found["mean_absolute_error"] == pytest.approx((0.4 + 0.4 + 0.7 + 0.1) / 4, abs=1e-4)
    assert found["accuracy_of_the_commonest_label"] == 0.75
    same = agreement(np.array([3, 3]), np.array([3.0, 3.0]), 6, 2.0)
    assert (same["quadratic_weighted_kappa"], same["spearman"], same["accuracy"]) == (0, 0, 1)


def test_a_trained_model_separates_clean_and_degraded_text(model):
    report = json.loads((model / "report.json").read_text())
    assert sum(report["labels"]) == 600
    assert report["trained_on"] + report["held_out"]["documents"] == 600
    assert 110 < report["held_out"]["documents"] < 190
    assert report["held_out"]["quadratic_weighted_kappa"] > 0.7
    assert report["held_out"]["f1"] > 0.8
    classify = TextClassifier(str(model), "quality", "field")
    quality_filter = QualityFilter(QualityConfig(str(model), 2.0))
    for language, texts in (("zh", chinese()[400:440]), ("en", english()[300:340])):
        clean = [classify(text) for text in texts]
        bad = [classify(degraded(text, language, i, i)) for i, text in enumerate(texts)]
        assert np.mean(clean) - np.mean(bad) > 2
        outcomes = [quality_filter(document(text, language)) for text in texts]
        assert sum(isinstance(outcome, Document) for outcome in outcomes) >= 36
    outcome = quality_filter(document(texts[0], "en"))
    assert isinstance(outcome, Document) and outcome.scores["quality"] == clean[0]
    assert min(clean + bad) >= 0 and max(clean + bad) <= 5


def test_the_filter_drops_below_the_threshold_and_skips_code(model):
    text = degraded(chinese()[400], "zh", 1, 5)
    score = TextClassifier(str(model), "quality", "field")(text)
    outcome = QualityFilter(QualityConfig(str(model), score + 0.01))(document(text))
    assert isinstance(outcome, Dropped)
    assert (outcome.stage, outcome.reason) == ("quality", "quality too low")
    assert outcome.detail == f"{score:.2f}, less than {score + 0.01:g}"
    assert isinstance(QualityFilter(QualityConfig(str(model), score))(document(text)), Document)
    code = document("x = 1\n", "python", is_code=True)
    assert QualityFilter(QualityConfig(str(model), 5.0))(code) is code


@settings(max_examples=80, deadline=None)
@given(st.text(st.characters(codec=None) | st.sampled_from("天地 \n\tab1")))
def test_every_text_has_a_score_in_range(text):
    ngrams = HashedNgrams(256, 3)
    model = OrdinalModel(0, np.linspace(-9, 9, 256, dtype=np.float32), np.arange(-2.0, 3.0))
    assert 0 <= model.score(*ngrams(text)) <= 5


def test_training_is_deterministic_and_skipped_if_done(model, tmp_path, capsys):
    examples = write(tmp_path / "rated.jsonl", rated(600))
    run(examples, tmp_path / "m")
    for name in ("model.npz", "model.json", "report.json"):
        assert (tmp_path / "m" / name).read_bytes() == (model / name).read_bytes()
    before = (tmp_path / "m" / "model.npz").stat().st_mtime_ns
    capsys.readouterr()
    run(examples, tmp_path / "m")
    shown = capsys.readouterr().out
    assert "nothing to do" in shown and "quadratic weighted kappa" in shown
    assert (tmp_path / "m" / "model.npz").stat().st_mtime_ns == before


def test_examples_in_all_formats_give_the_same_model(tmp_path):
    rows = rated(60)
    plain = run(write(tmp_path / "plain.jsonl", rows), tmp_path / "plain")
    (tmp_path / "packed").write_bytes(gzip.compress((tmp_path / "plain.jsonl").read_bytes()))
    assert run(tmp_path / "packed", tmp_path / "gzip") == plain
    pq.write_table(pa.Table.from_pylist(
        [{"body": row["text"], "stars": float(row["label"])} for row in rows]), tmp_path / "p")
    assert run(tmp_path / "p", tmp_path / "parquet", "--text_field=body",
               "--label_field=stars") == plain
    assert (tmp_path / "parquet" / "model.npz").read_bytes() == (
        tmp_path / "plain" / "model.npz").read_bytes()


def test_equal_texts_are_in_the_same_part(tmp_path):
    rows = [{"text": f"text number {i % 10}", "label": i % 2} for i in range(100)]
    report = run(write(tmp_path / "r.jsonl", rows), tmp_path / "m", "--seed=3")
    assert report["held_out"]["documents"] % 10 == 0


@pytest.mark.parametrize("rows, flags, message", [
    ([], [], "contains no examples"),
    ([{"text": "a", "label": 6}], [], "line 1: label must be a whole number from 0 to 5, got 6"),
    ([{"text": "a", "label": 2}, {"text": "b", "label": -1}], [], "line 2: .* got -1"),
    ([{"text": "a", "label": 2.5}], [], r"got 2\.5"),
    ([{"text": "a", "label": True}], [], "got True"),
    ([{"text": "a", "label": "3"}], [], "got '3'"),
    ([{"text": "a", "label": None}], [], "got None"),
    ([{"text": "a", "label": 2}], ["--task=safety"], "a whole number from 0 to 1, got 2"),
    ([{"text": " \n", "label": 2}], [], "line 1: text must be a string with a visible character"),
    ([{"text": 3, "label": 2}], [], "line 1: text must be a string"),
    ([{"texts": "a", "label": 2}], [], "line 1 has no 'text'; did you mean 'texts'?"),
    ([{"text": "a"}], [], "line 1 has no 'label'"),
    (["a"], [], "line 1 is not a JSON object"),
    ([{"text": f"t{i}", "label": 3} for i in range(30)], [], r"have the labels \[3\]"),
    ([{"text": "t", "label": 3}] * 30, [], "is held out|two different labels are needed"),
    ([{"text": "a", "label": 2}], ["--held_out=1"], "--held_out: must be above 0 and below 1"),
    ([{"text": "a", "label": 2}], ["--l2=0"], "--l2: must be above 0 and below inf, got 0"),
    ([{"text": "a", "label": 2}], ["--threshold=5"], "--threshold: must be above 0 and below 5"),
    ([{"text": "a", "label": 2}], ["--features=1000"], "--features: must be a power of two"),
    ([{"text": "a", "label": 2}], ["--features=nan"], "--features: must be a power of two"),
    ([{"text": "a", "label": 2}], ["--ngrams=0"], "--ngrams: must be from 1 to 8, got 0"),
])
def test_invalid_examples_and_flags_raise(tmp_path, rows, flags, message):
    with pytest.raises(ConfigError, match=message):
        run(write(tmp_path / "r.jsonl", rows), tmp_path / "m", *flags)
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("content, message", [
    (b'{"text": "a", "label": 1}\n{"text": ', "line 2 is not JSON"),
    (b'{"text": "\xff", "label": 1}', "line 1 is not JSON"),
    (b"PAR1 and no more", "is a damaged Parquet file"),
    (gzip.compress(b'{"text": "a", "label": 1}')[:-3], "is damaged"),
])
def test_damaged_files_raise(tmp_path, content, message):
    (tmp_path / "r").write_bytes(content)
    with pytest.raises(ConfigError, match=f"--examples: .*r,? ?{message}"):
        run(tmp_path / "r", tmp_path / "m")
    with pytest.raises(ConfigError, match=r"--examples: .*none does not exist"):
        run(tmp_path / "none", tmp_path / "m")


def test_a_recipe_enables_the_filter_and_checks_the_model(model, tmp_path):
    def filters(**fields):
        return make_filters(text_recipe(tmp_path, quality=QualityConfig(**fields)))

    assert "quality" not in [each.name for each in filters()]
    assert "quality" in [each.name for each in filters(model=str(model))]
    with pytest.raises(ConfigError, match=r"config\.quality\.model: .* does not exist"):
        filters(model=str(tmp_path / "none"))
    for name in ("model.json", "model.npz"):
        (tmp_path / name).write_bytes((model / name).read_bytes())
    description = json.loads((tmp_path / "model.json").read_text())
    (tmp_path / "model.json").write_text(json.dumps({**description, "features": 1024}))
    with pytest.raises(ConfigError, match="weights for 1024 features; train it again"):
        filters(model=str(tmp_path))
