"""Documents that hold parts of evaluation sets."""

import dataclasses
from collections.abc import Iterable

import numpy as np

from data_beam.base.filter import Filter
from data_beam.base.records import Document, Dropped, Origin, text_sha256
from data_beam.config.decontaminate import DecontaminateConfig
from data_beam.decontaminate import evaluation_sets
from data_beam.decontaminate.index import Lengths, Match, NgramIndex
from data_beam.decontaminate.tokens import spans, tokens
from maxlm.config.schema import ConfigError

_EXCERPT = 80
_NAMED = 5
"""Items named in the detail or the transforms of one document."""
_CHECKED = 100
"""Items of each set that are planted at start."""


@dataclasses.dataclass(frozen=True)
class SetCounts:
    """What is searched for of one evaluation set."""

    items: int
    """In its files."""
    too_short: int
    """Of them not searched for, as each of their texts has too few words or characters."""
    texts: int
    """Fields and elements of lists that are searched for."""


class DecontaminateFilter(Filter):
    """Drops documents, or takes out passages, by n-grams shared with evaluation sets.

    The share of a document's tokens that lie in such n-grams becomes the score
    `decontaminate/overlap`.

    Attributes:
      counts: by set.

    Raises:
      ConfigError: a set that cannot be read or holds nothing to search for.
      RuntimeError: an item planted in a text is not found, so that the rule does not work.
    """

    name = "decontaminate"
    section = "decontaminate"
    libraries = ("xxhash",)

    @classmethod
    def is_enabled(cls, config: DecontaminateConfig) -> bool:
        return bool(config.sets)

    @classmethod
    def files(cls, config: DecontaminateConfig) -> list[tuple[str, str]]:
        return evaluation_sets.all_paths(config)

    def __init__(self, config: DecontaminateConfig):
        super().__init__(config)
        self._owners: list[tuple[str, int]] = []
        """By text: set and number of its item."""
        texts: list[str] = []
        self.counts: dict[str, SetCounts] = {}
        items_by_set: dict[str, int] = {}
        for number, each in enumerate(config.sets):
            items = evaluation_sets.read(each, f"config.decontaminate.sets[{number}]")
            items_by_set[each.name] = len(items)
            for item in items:
                self._owners += [(each.name, item.number)] * len(item.texts)
                texts += item.texts
        self._index = NgramIndex(map(tokens, texts), Lengths(
            config.words, config.min_words, config.characters, config.min_characters))
        self._count(items_by_set)
        self._check_planted(texts)

    def notes(self) -> list[str]:
        """What is searched for, a line a set."""
        return [f"{name}: {counts.items:,} items, {counts.texts:,} texts of them searched for"
                + (f"; {counts.too_short:,} items are too short" if counts.too_short else "")
                for name, counts in self.counts.items()]

    def _count(self, items_by_set: dict[str, int]) -> None:
        searched: dict[str, set[int]] = {}
        texts: dict[str, int] = {}
        for (name, item), too_short in zip(self._owners, self._index.too_short, strict=True):
            if not too_short:
                searched.setdefault(name, set()).add(item)
                texts[name] = texts.get(name, 0) + 1
        for number, (name, items) in enumerate(items_by_set.items()):
            found = len(searched.get(name, ()))
            if not found:
                raise ConfigError(
                    f"config.decontaminate.sets[{number}]: none of the {items} items of "
                    f"{name!r} has {self._config.min_words} words or {self._config.min_characters} "
                    "characters in one field; name longer fields or lower min_words and "
                    "min_characters")
            self.counts[name] = SetCounts(items, items - found, texts[name])

    def _check_planted(self, texts: list[str]) -> None:
        """Items of each set, planted between other words and in other punctuation, must be found,
        and a document that is nothing but the item must not be kept as it is."""
        for name, counts in self.counts.items():
            searched = [i for i, owner in enumerate(self._owners)
                        if owner[0] == name and not self._index.too_short[i]]
            for i in searched[::max(1, counts.texts // _CHECKED)]:
                item = f"set {name!r}, item {self._owners[i][1]}"
                text = texts[i].upper() if texts[i].isascii() else texts[i]
                planted = f"some words。\n {text.replace(' ', ' / ')}, 甲乙丙丁 and more"
                if not self._index.find(tokens(planted)):
                    raise RuntimeError(f"decontaminate: {item} was planted and not found")
                alone = Document(Origin("self-check", ""), texts[i], "", "", "", "", None,
                                 text_sha256(texts[i]), "", ())
                outcome = self(alone)
                if isinstance(outcome, Document) and outcome.text == texts[i]:
                    raise RuntimeError(f"decontaminate: {item} alone would be kept")

    def __call__(self, document: Document) -> Document | Dropped:
        text = document.text
        found = tokens(text)
        matches = self._index.find(found)
        if not matches:
            return document
        overlap = _covered(matches, len(found)).mean()
        if overlap <= self._config.max_overlap:
            return document.with_scores(**{"decontaminate/overlap": float(overlap)})
        owners = self._named(matches)
        if self._config.action == "drop":
            return self._dropped(document, overlap, owners, matches)
        passages = 0
        while matches:
            # Pieces that come together may make another match, so until there is none.
            text, taken = self._without(text, matches, len(found))
            passages += taken
            found = tokens(text)
            matches = self._index.find(found)
        removed = 1 - len(text) / len(document.text)
        if removed > self._config.max_removed or not text:
            return self._dropped(document, overlap, owners, self._index.find(
                tokens(document.text)))
        return document.with_scores(**{"decontaminate/overlap": float(overlap)}).with_text(
            text, f"decontaminate:passages={passages}", *(f"decontaminate:{o}" for o in owners))

    def _named(self, matches: list[Match]) -> list[str]:
        """`mmlu item 12` of the first items found, and how many more."""
        names = list(dict.fromkeys(
            f"{name} item {item}" for name, item in
            (self._owners[match.text] for match in sorted(matches, key=lambda m: m.start))))
        more = [f"{len(names) - _NAMED} more items"] if len(names) > _NAMED else []
        return names[:_NAMED] + more

    def _dropped(self, document: Document, overlap: float, owners: list[str],
                 matches: list[Match]) -> Dropped:
        first = min(matches, key=lambda match: match.start)
        places = list(spans(document.text))
        start, end = places[first.start][0], places[first.start + first.length - 1][1]
        excerpt = " ".join(document.text[start:end].split())[:_EXCERPT]
        return Dropped(document.origin, self.name, "evaluation overlap",
                       f"{overlap:.3f} of it in {', '.join(owners)}: {excerpt!r}")

    def _without(self, text: str, matches: list[Match], count: int) -> tuple[str, int]:
        """The text without matches and `window` characters (and the words they cut) around them,
        and the number of passages taken out. Pieces become paragraphs."""
        places = list(spans(text))
        covered = _covered(matches, count)
        edges = np.flatnonzero(np.diff(covered.astype(np.int8), prepend=0, append=0))
        cuts: list[list[int]] = []
        for first, behind in edges.reshape(-1, 2):
            start = max(0, places[first][0] - self._config.window)
            end = min(len(text), places[behind - 1][1] + self._config.window)
            cuts.append([start, end])
        starts = np.array([place[0] for place in places])
        ends = np.array([place[1] for place in places])
        merged: list[list[int]] = []
        for start, end in cuts:
            # No word is cut in two: one that straddles an edge goes.
            inside = int(np.searchsorted(ends, start, side="right"))
            start = min(start, int(starts[inside]))
            inside = int(np.searchsorted(starts, end)) - 1
            end = max(end, int(ends[inside]))
            if merged and start <= merged[-1][1]:
                merged[-1][1] = max(end, merged[-1][1])
            else:
                merged.append([start, end])
        return _joined(text, merged), len(merged)


def _covered(matches: Iterable[Match], count: int) -> np.ndarray:
    """[count] bool: the tokens inside matches."""
    covered = np.zeros(count, bool)
    for match in matches:
        covered[match.start:match.start + match.length] = True
    return covered


def _joined(text: str, cuts: list[list[int]]) -> str:
    pieces, position = [], 0
    for start, end in [*cuts, [len(text), len(text)]]:
        pieces.append(text[position:start].strip())
        position = end
    return "\n\n".join(piece for piece in pieces if piece)
