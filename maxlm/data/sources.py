"""The sources of each mixture of a run, and each source's share of the rows."""

import dataclasses
from collections.abc import Sequence
from fractions import Fraction

from maxlm.config import ConfigError, DataConfig, TokenSource
from maxlm.data.corpus import SourceEntry, TokenCorpus
from maxlm.data.mixture import largest_remainder

# Shares are whole numbers of rows in a period. If every source is read in proportion to its own
# rows (one directory without weights), the period is one epoch of all sources and the shares are
# exact, up to a period of EXACT_PERIOD rows.
PERIOD = 2**16
EXACT_PERIOD = 2**18
# A larger corpus whose smallest source would get fewer rows than this in a period of PERIOD has a
# period of EXACT_PERIOD, which takes a second to compute. From this many rows on, rounding changes
# a share by at most 1/16.
FEW_ROWS = 8


@dataclasses.dataclass(frozen=True)
class ChosenSource:
    """A source of a corpus that takes part in a mixture, with its share of the tokens."""

    label: str
    corpus: TokenCorpus
    entry: SourceEntry
    weight: Fraction
    field: str
    """Name of the setting, for messages."""


@dataclasses.dataclass(frozen=True)
class StageSources:
    """The mixture of the steps after `after_step`, up to the next stage."""

    after_step: int
    sources: list[ChosenSource]


def choose_sources(data: DataConfig, split: str, *, skip_empty: bool = False,
                   split_field: str = "config.data.split") -> list[StageSources]:
    """The sources with tokens of each mixture, in the order of the configuration.

    A source that is in several mixtures has the same label in each.

    Args:
      data: the section of the configuration.
      split: which split of the corpora.
      split_field: name of the setting, for messages.
      skip_empty: leave out entries without tokens in this split instead of raising.

    Raises:
      ConfigError: no tokens to read, a source listed twice, two tokenizers.
    """
    corpora: dict[str, TokenCorpus] = {}
    labels: dict[tuple[str, str], str] = {}  # of a path and a name in it
    mixtures = [(0, "config.data.tokens", data.tokens)] + [
        (stage.after_step, f"config.data.stages[{i}].tokens", stage.tokens)
        for i, stage in enumerate(data.stages)]
    stages = []
    for after_step, field, tokens in mixtures:
        if not tokens:
            raise ConfigError(f"{field}: must be set to a directory that python -m "
                              "data_beam.tokenize wrote" if isinstance(tokens, str) else
                              f"{field}: the list is empty")
        entries = [(field, TokenSource(path=tokens))] if isinstance(tokens, str) else [
            (f"{field}[{number}]", entry) for number, entry in enumerate(tokens)]
        chosen: dict[str, ChosenSource] = {}
        for place, entry in entries:
            for source in _sources(entry, place, split, split_field, corpora, skip_empty):
                name = source.entry.name
                same_name = sum(other == name for _, other in labels)
                label = labels.setdefault(
                    (entry.path, name), f"{name}#{same_name + 1}" if same_name else name)
                if label in chosen:
                    raise ConfigError(f"{place}: source {name!r} of {entry.path!r} is listed "
                                      "twice; add the weights and list it once")
                chosen[label] = dataclasses.replace(source, label=label)
        stages.append(StageSources(after_step, list(chosen.values())))
    if not any(stage.sources for stage in stages):
        raise ConfigError(f"config.data.tokens: no source holds tokens in split {split!r}")
    return stages


def distinct_sources(stages: Sequence[StageSources]) -> list[ChosenSource]:
    """Each source once, in order of first use."""
    return list({c.label: c for stage in stages for c in stage.sources}.values())


def _sources(entry: TokenSource, field: str, split: str, split_field: str,
             corpora: dict[str, TokenCorpus], skip_empty: bool) -> list[ChosenSource]:
    """The sources of one entry of a mixture; its weight is divided in proportion to tokens."""
    if entry.path not in corpora:
        corpora[entry.path] = TokenCorpus.open(entry.path, split, field, split_field)
    corpus = corpora[entry.path]
    first = next(iter(corpora.values()))
    if corpus.tokenizer_sha256 != first.tokenizer_sha256:
        raise ConfigError(f"{field}.path: {entry.path!r} was made with another tokenizer than "
                          f"{str(first.directory.parent)!r}; tokenize both with the same")
    if entry.source is None:
        sources = [source for source in corpus.sources if source.tokens]
    else:
        sources = [corpus.source(entry.source)]
    tokens = sum(source.tokens for source in sources)
    if not tokens and skip_empty:
        return []
    if not tokens:
        what = f"source {entry.source!r}" if entry.source else f"{entry.path!r}"
        raise ConfigError(f"{field}: {what} holds no tokens in split {split!r}")
    return [ChosenSource(source.name, corpus, source,
                         Fraction(entry.weight) * Fraction(source.tokens, tokens), field)
            for source in sources]


def rows_of_period(chosen: Sequence[ChosenSource], rows: Sequence[int]) -> list[int]:
    """Rows of each source in a period of the mixture.

    Weights are shares of tokens. Rows may be padded, so a source's share of rows is its weight
    divided by its tokens per row.

    Args:
      chosen: the sources.
      rows: rows of one epoch of each, at least 1.

    Raises:
      ConfigError: a weight is too small for a period.
    """
    shares = [c.weight * count / c.entry.tokens for c, count in zip(chosen, rows, strict=True)]
    proportional = len({share / count for share, count in zip(shares, rows, strict=True)}) == 1
    if proportional and sum(rows) <= EXACT_PERIOD:
        return list(rows)
    total = sum(shares)
    for c, share in zip(chosen, shares, strict=True):
        if share * PERIOD < total and not proportional:
            raise ConfigError(
                f"{c.field}: source {c.label!r} would get {float(share / total):.1e} of the rows; "
                f"the least a mixture can hold is 1/{PERIOD}: raise its weight or leave it out")
    fine = not proportional or min(shares) * PERIOD >= FEW_ROWS * total
    return largest_remainder(shares, PERIOD if fine else EXACT_PERIOD)
