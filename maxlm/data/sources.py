"""Which sources take part in a run, and what share of its rows each gets."""

import dataclasses
from collections.abc import Sequence
from fractions import Fraction

from maxlm.config import ConfigError, DataConfig, TokenSource
from maxlm.data.corpus import SourceEntry, TokenCorpus
from maxlm.data.mixture import largest_remainder

# Shares of rows are kept as whole numbers of a period. Where every source is read in proportion to
# its own rows (one directory without weights), a period is one epoch of all, and so exact, as long
# as the table of it stays small.
PERIOD = 2**16
EXACT_PERIOD = 2**18
# A corpus of more rows whose smallest source has fewer rows of a period than this gets the longest
# period, which takes a second to lay out: rounding changes a share by at most 1/16 then, as far as
# the period reaches.
FEW_ROWS = 8


def _entries(data: DataConfig) -> tuple[TokenSource, ...]:
    if isinstance(data.tokens, str):
        if not data.tokens:
            raise ConfigError("config.data.tokens: must be set to a directory that "
                              "python -m data_beam.tokenize wrote")
        return (TokenSource(path=data.tokens),)
    if not data.tokens:
        raise ConfigError("config.data.tokens: the list is empty")
    return data.tokens


@dataclasses.dataclass(frozen=True)
class ChosenSource:
    """A source of a corpus that takes part, with its share of the tokens."""

    label: str
    corpus: TokenCorpus
    entry: SourceEntry
    weight: Fraction
    field: str
    """What the user set, for messages."""


def choose_sources(data: DataConfig, split: str, *, skip_empty: bool = False,
                   split_field: str = "config.data.split") -> list[ChosenSource]:
    """The sources of the configuration that hold tokens, in its order.

    Args:
      data: the section of the configuration.
      split: which split of the corpora.
      split_field: where the user set it, for messages.
      skip_empty: leave entries without a token in this split out, as long as one has some.

    Raises:
      ConfigError: nothing to read, a source listed twice, two tokenizers.
    """
    corpora: dict[str, TokenCorpus] = {}
    chosen: list[ChosenSource] = []
    labels: dict[str, int] = {}
    seen: set[tuple[str, str]] = set()
    for number, entry in enumerate(_entries(data)):
        single = isinstance(data.tokens, str)
        field = "config.data.tokens" if single else f"config.data.tokens[{number}]"
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
            continue
        if not tokens:
            what = f"source {entry.source!r}" if entry.source else f"{entry.path!r}"
            raise ConfigError(f"{field}: {what} holds no tokens in split {split!r}")
        for source in sources:
            if (entry.path, source.name) in seen:
                raise ConfigError(f"{field}: source {source.name!r} of {entry.path!r} is listed "
                                  "twice; add the weights and list it once")
            seen.add((entry.path, source.name))
            # Two corpora may each have a source of one name.
            labels[source.name] = labels.get(source.name, 0) + 1
            label = source.name if labels[source.name] == 1 else (
                f"{source.name}#{labels[source.name]}")
            chosen.append(ChosenSource(label, corpus, source,
                                  Fraction(entry.weight) * Fraction(source.tokens, tokens),
                                  field))
    if not chosen:
        raise ConfigError(f"config.data.tokens: no source holds tokens in split {split!r}")
    return chosen


def rows_of_period(chosen: Sequence[ChosenSource], rows: Sequence[int]) -> list[int]:
    """Rows of each source in a period of the mixture.

    Weights are shares of tokens. Rows of a source may be padded, so its share of rows is its
    weight over its tokens in a row.

    Args:
      chosen: the sources.
      rows: rows of one epoch of each, at least 1.

    Raises:
      ConfigError: a weight is finer than a period can hold.
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
