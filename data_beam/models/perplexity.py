"""Perplexity under an n-gram model of clean text, and the filter that uses it.

The method follows CCNet (Wenzek et al. 2020, arXiv 1911.00359): each line is a sentence, and

    perplexity = 10 ** (-sum(log10 p) / number of tokens, including the </s> of each line)

Thresholds are percentiles of clean documents held out from training, so a threshold has the same
meaning for every model: percentile 99 drops one clean document in a hundred.
"""

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from apache_beam.io.filesystems import FileSystems

from data_beam.base import files
from data_beam.base.characters import fold_width
from data_beam.base.filter import Filter
from data_beam.base.records import Document, Dropped
from data_beam.config import PerplexityConfig, PerplexityModelConfig
from data_beam.models.backoff_model import NgramModel
from data_beam.models.folder import KENLM, PIECES, Folder, description_path
from data_beam.models.units import UNITS, Tokens, token_names
from maxlm.config.schema import ConfigError

KIND = "maxlm perplexity model 1"
PERCENTILES = tuple(range(1, 100))
_SHAPE = {"language": str, "unit": str, "order": int, "percentiles": {str: float}, "reader": str}
_QUOTED_LINES = 200
_QUOTED_TOKENS = 5
_QUOTED_CHARACTERS = 80

Score = Callable[[str], tuple[float, int]]
"""Text -> sum of the base-10 log-probabilities of its tokens, number of tokens including each
</s>."""


def ngram_score(model: NgramModel, tokens: Tokens) -> Score:
    """A scoring function for a model stored as arrays."""

    def score(text: str) -> tuple[float, int]:
        ids = tokens(text)
        if not len(ids):
            return 0.0, 0
        values = model.log10(ids)
        return float(values.sum()), int((ids != 1).sum())

    return score


def kenlm_score(model: Any, unit: str, pieces: bytes) -> Score:
    """A scoring function that uses the `kenlm` module, for models in KenLM's binary formats."""
    names = token_names(unit, pieces)

    def score(text: str) -> tuple[float, int]:
        total, count = 0.0, 0
        for line in names(text):
            total += model.score(" ".join(line), bos=True, eos=True)
            count += len(line) + 1
        return total, count

    return score


def open_kenlm(path: str, field: str) -> Any:
    """Opens a model in one of KenLM's binary formats. Raises ConfigError if the module is not
    installed, or the file is not local or not a model."""
    try:
        kenlm: Any = importlib.import_module("kenlm")
    except ImportError:
        raise ConfigError(f"{field}: {path} is a binary KenLM model, which only the kenlm module "
                          "can read; pip install kenlm (LGPL, needs a C++ compiler), or give the "
                          "ARPA file of the model") from None
    if not files.is_local(path):
        raise ConfigError(f"{field}: {path} is a binary KenLM model, which can only be read from a "
                          "local disk")
    try:
        return kenlm.Model(path)
    except OSError as error:
        raise ConfigError(f"{field}: {path} is not a model that kenlm can read "
                          f"({' '.join(str(error).split())[:200]})") from None


def perplexity(total: float, count: int) -> float:
    """The perplexity of a text with this score; `count` is above 0."""
    # The exponent is bounded in case a model gives a token almost no probability.
    return 10 ** min(-total / count, 300.0)


def to_arrays(model: NgramModel) -> dict[str, np.ndarray]:
    """The arrays of a model by name, for `from_arrays`."""
    arrays = {"vocabulary": np.frombuffer(
        "\n".join(model.vocabulary).encode("utf-8", "surrogatepass"), np.uint8)}
    for name in ("begins", "words", "log_probabilities", "log_backoffs"):
        for i, array in enumerate(getattr(model, name)):
            arrays[f"{name}_{i}"] = array
    return arrays


def from_arrays(arrays: dict[str, np.ndarray], order: int) -> NgramModel:
    """A model from its arrays. Raises KeyError for a missing array and ValueError for wrong
    lengths."""
    vocabulary = arrays["vocabulary"].tobytes().decode("utf-8", "surrogatepass").split("\n")

    def all_of(name: str, count: int) -> tuple[np.ndarray, ...]:
        return tuple(arrays[f"{name}_{i}"] for i in range(count))

    model = NgramModel(
        tuple(vocabulary), all_of("begins", order - 1), all_of("words", order - 1),
        all_of("log_probabilities", order), all_of("log_backoffs", order - 1))
    sizes = model.sizes
    for i in range(order - 1):
        if (len(model.words[i]) != sizes[i + 1] or len(model.begins[i]) != sizes[i] + 1
                or len(model.log_backoffs[i]) != sizes[i] or len(vocabulary) != sizes[0]):
            raise ValueError(f"the arrays of order {i + 2} do not fit together")
    return model


class PerplexityModel:
    """A model written by `data_beam.train_perplexity`: the language of its clean text, and the
    perplexity of clean held-out documents by percentile, 1 to 99. Raises ConfigError, which names
    the setting `field`, if there is no model, a damaged model, or a model of another kind."""

    def __init__(self, path: str, field: str):
        folder = Folder(path, KIND, field, _SHAPE)
        description = folder.description
        self.language: str = description["language"]
        try:
            self.percentiles = {p: description["percentiles"][str(p)] for p in PERCENTILES}
            unit = UNITS[UNITS.index(description["unit"])]
            pieces = folder.read(PIECES) if unit == "piece" else b""
            if description["reader"] == "kenlm":
                folder.read(KENLM)
                self.score = kenlm_score(
                    open_kenlm(FileSystems.join(path, KENLM), field), unit, pieces)
            else:
                model = from_arrays(folder.arrays(), description["order"])
                self.score = ngram_score(model, Tokens(unit, model.vocabulary, pieces))
        except (KeyError, ValueError) as error:
            if isinstance(error, ConfigError):
                raise
            raise ConfigError(f"{field}: {path} is damaged or not a {KIND} ({error}); remove the "
                              "folder and train again") from None

    def perplexity(self, text: str) -> float | None:
        """The perplexity of a text; None if the text has no tokens."""
        total, count = self.score(text)
        return perplexity(total, count) if count else None

    def unlikeliest_line(self, text: str) -> str:
        """The line with the highest perplexity, shortened for quoting; "" if there is none.
        Considers lines of 5 tokens or more among the first 200 lines."""
        worst, quoted = 0.0, ""
        for line in text.split("\n", _QUOTED_LINES)[:_QUOTED_LINES]:
            total, count = self.score(line)
            if count > _QUOTED_TOKENS and -total / count > worst:
                worst, quoted = -total / count, line
        return " ".join(quoted[:10 * _QUOTED_CHARACTERS].split())[:_QUOTED_CHARACTERS]


class PerplexityFilter(Filter):
    """Scores a document by the model of its language and drops it outside the model's cuts.

    Reasons: `perplexity too high`, `perplexity too low`, `no perplexity model` (for languages
    without one, where the recipe says so), `nothing to score`.
    """

    name = "perplexity"
    section = "perplexity"
    libraries = ("sentencepiece", "kenlm")

    @classmethod
    def is_enabled(cls, config: PerplexityConfig) -> bool:
        return bool(config.models)

    @classmethod
    def files(cls, config: PerplexityConfig) -> list[tuple[str, str]]:
        return [(f"config.perplexity.models[{i}].model", description_path(entry.model))
                for i, entry in enumerate(config.models)]

    def __init__(self, config: PerplexityConfig):
        super().__init__(config)
        self._models: dict[str, tuple[PerplexityModel, PerplexityModelConfig]] = {}
        for i, entry in enumerate(config.models):
            field = f"config.perplexity.models[{i}]"
            model = PerplexityModel(entry.model, f"{field}.model")
            if model.language != entry.language:
                raise ConfigError(f"{field}.language: {entry.language!r}, but {entry.model} is a "
                                  f"model of {model.language!r}")
            self._models[entry.language] = model, entry

    def __call__(self, document: Document) -> Document | Dropped:
        if document.is_code:
            return document
        if document.language not in self._models:
            if self._config.other_languages == "keep":
                return document
            return Dropped(document.origin, self.name, "no perplexity model",
                           f"language {document.language}")
        model, entry = self._models[document.language]
        text = fold_width(document.text)
        value = model.perplexity(text)
        if value is None:
            return Dropped(document.origin, self.name, "nothing to score")
        low = model.percentiles[entry.min_percentile] if entry.min_percentile else 0.0
        high, name = float("inf"), ""
        if entry.max_perplexity:
            high, name = entry.max_perplexity, "the limit of the recipe"
        elif entry.max_percentile:
            high = model.percentiles[entry.max_percentile]
            name = f"percentile {entry.max_percentile} of clean {entry.language}"
        if value > high:
            quoted = model.unlikeliest_line(text)
            return Dropped(document.origin, self.name, "perplexity too high",
                           f"{value:.1f}, more than {high:.1f} ({name})"
                           + (f"; unlikeliest: {quoted!r}" if quoted else ""))
        if value < low:
            return Dropped(
                document.origin, self.name, "perplexity too low",
                f"{value:.1f}, less than {low:.1f} (percentile {entry.min_percentile} of clean "
                f"{entry.language})")
        return document.with_scores(perplexity=value)


def percentile_cuts(values: Sequence[float]) -> dict[str, float]:
    """Percentiles 1 to 99 by linear interpolation, as stored in model.json."""
    cuts = np.percentile(np.array(values, np.float64), PERCENTILES)
    return {str(p): round(float(cut), 4) for p, cut in zip(PERCENTILES, cuts, strict=True)}
