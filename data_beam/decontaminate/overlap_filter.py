"""Documents that contain parts of evaluation sets.

A match in a question is evidence of contamination. An answer or a choice alone is not: a set phrase
of 13 to 20 tokens is in one of 2 to 20 % of clean documents of its kind. So a match in another
field needs the question of the same item in the same document, or twice the length of an n-gram
(26 words, 40 characters), where the rate no longer falls with the length: what is left is copied
text and not chance (docs/decontamination.md has the numbers).
"""

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from data_beam.base.filter import Filter
from data_beam.base.records import Document, Dropped, Origin, text_sha256
from data_beam.config.decontaminate import DecontaminateConfig
from data_beam.decontaminate import evaluation_sets, matching
from data_beam.decontaminate.matching import Match, mostly_unspaced, tokens
from maxlm.config.schema import ConfigError

_EXCERPT = 80
_NAMED = 5  # items named in the detail or the transforms of one document
_CHECKED = 100  # items of each set that are planted at start
_ALONE = 2  # an answer alone is evidence from so many n-grams on

Owner = tuple[str, int]  # set and number of an item


@dataclasses.dataclass(frozen=True)
class SetCounts:
    """What is searched for of one evaluation set."""

    items: int  # in its files
    too_short: int  # items of which no text has enough words or characters
    texts: int  # fields and elements of lists that are searched for


@dataclasses.dataclass(frozen=True)
class _Text:
    """A text that is searched for, and the items that have it."""

    field: str
    question: bool
    unit: str
    n: int
    owners: list[Owner]


class DecontaminateFilter(Filter):
    """Drops documents, or removes passages, by n-grams shared with evaluation sets; `counts` are by
    set.

    The share of a document's tokens that are in such n-grams becomes the score
    `decontaminate/overlap`. Raises ConfigError for a set that cannot be read or has nothing to
    search for, and RuntimeError if an item planted in a text is not found, so the filter does not
    work.
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
        self._texts: list[_Text] = []
        self._short: dict[Owner, list[list[str]]] = {}  # questions that only count beside an answer
        self.counts: dict[str, SetCounts] = {}
        items = {each.name: evaluation_sets.read(each, f"config.decontaminate.sets[{number}]")
                 for number, each in enumerate(config.sets)}
        raw: list[str] = []
        self._index = matching.NgramIndex(self._searched_for(items, raw), config)
        self._count({name: len(those) for name, those in items.items()})
        self._check_planted(raw)

    def notes(self) -> list[str]:
        """What is searched for, a line a set."""
        return [f"{name}: {counts.items:,} items, {counts.texts:,} texts of them searched for"
                + (f"; {counts.too_short:,} items are too short" if counts.too_short else "")
                for name, counts in self.counts.items()]

    def _searched_for(self, items: dict[str, list[evaluation_sets.Item]], raw: list[str]
                      ) -> Iterator[list[str]]:
        """Tokens of each text that is searched for; the text itself goes to `raw`. Questions come
        first, because of equal n-grams the index names the first text."""
        questions = {each.name: set(each.questions or each.fields[:1] or ("",))
                     for each in self._config.sets}
        every = [((name, item.number), field, text, field in questions[name])
                 for name, those in items.items() for item in those
                 for field, text in zip(item.fields, item.texts, strict=True)]
        asked: set[Owner] = set()
        known: dict[str, list[Owner]] = {}  # an answer of many items is one text
        for owner, field, text, question in sorted(every, key=lambda each: not each[3]):
            if not question and text in known:
                known[text].append(owner)
                continue
            found = tokens(text)
            n, fewest = matching.lengths(found, self._config)
            if question and len(found) < fewest:
                if 2 * len(found) >= fewest:
                    self._short.setdefault(owner, []).append(found)
                continue
            short = max(map(len, self._short.get(owner, ())), default=-n)
            if question:
                asked.add(owner)
            elif len(found) < fewest or not (
                    owner in asked or len(found) >= _ALONE * n or short + len(found) >= n):
                continue
            unit = "characters" if mostly_unspaced(found) else "words"
            self._texts.append(_Text(field, question, unit, n, [owner]))
            if not question:
                known[text] = self._texts[-1].owners
            raw.append(text)
            yield found

    def _count(self, items_by_set: dict[str, int]) -> None:
        owners = [owner for text in self._texts for owner in text.owners]
        texts = Counter(name for name, _ in owners)
        searched = Counter(name for name, _ in set(owners))
        for number, (name, items) in enumerate(items_by_set.items()):
            found = searched[name]
            if not found:
                raise ConfigError(
                    f"config.decontaminate.sets[{number}]: none of the {items} items of "
                    f"{name!r} has {self._config.min_words} words or {self._config.min_characters} "
                    "characters in its question; name longer fields, or other questions, or lower "
                    "min_words and min_characters")
            self.counts[name] = SetCounts(items, items - found, texts[name])

    def _check_planted(self, raw: list[str]) -> None:
        """Items of each set, planted between other words and in other punctuation, must be found,
        and a document that is nothing but a question must not be kept unchanged."""
        for name, counts in self.counts.items():
            mine = [i for i, text in enumerate(self._texts) if text.owners[0][0] == name]
            for i in mine[::max(1, counts.texts // _CHECKED)]:
                item = f"set {name!r}, item {self._texts[i].owners[0][1]}"
                text = raw[i].upper() if raw[i].isascii() else raw[i]
                planted = f"some words。\n {text.replace(' ', ' / ')}, 甲乙丙丁 and more"
                if not self._index.find(tokens(planted)):
                    raise RuntimeError(f"decontaminate: {item} was planted and not found")
                alone = Document(Origin("self-check", ""), raw[i], "", "", "", "", None,
                                 text_sha256(raw[i]), "", ())
                outcome = self(alone)
                if self._texts[i].question and (
                        isinstance(outcome, Document) and outcome.text == raw[i]):
                    raise RuntimeError(f"decontaminate: {item} alone would be kept")

    def _evidence(self, found: list[str]) -> list[tuple[Match, Owner]]:
        """The matches in the tokens of a document that count, each with its item."""
        matches = self._index.find(found)
        if all(self._texts[match.text].question for match in matches):
            return [(match, self._texts[match.text].owners[0]) for match in matches]
        asked = {self._texts[match.text].owners[0] for match in matches
                 if self._texts[match.text].question}
        runs = _runs([m for m in matches if not self._texts[m.text].question], len(found))
        words, characters = f" {' '.join(found)} ", "".join(found)

        def beside_question(owner: Owner, match: Match) -> bool:
            return owner in asked or any(
                len(short) + match.length >= self._texts[match.text].n
                and ("".join(short) in characters if mostly_unspaced(short)
                     else f" {' '.join(short)} " in words)
                for short in self._short.get(owner, ()))

        evidence = []
        for match in matches:
            text = self._texts[match.text]
            owners = text.owners if text.question else [
                owner for owner in text.owners if beside_question(owner, match)]
            if not owners and runs[match.start] >= _ALONE * text.n:
                owners = text.owners
            evidence += [(match, owner) for owner in owners[:1]]
        return evidence

    def __call__(self, document: Document) -> Document | Dropped:
        text = document.text
        found = tokens(text)
        first = evidence = self._evidence(found)
        if not evidence:
            return document
        overlap = (_runs([match for match, _ in evidence], len(found)) > 0).mean()
        if overlap <= self._config.max_overlap:
            return document.with_scores(**{"decontaminate/overlap": float(overlap)})
        named = self._named(evidence)
        if self._config.action == "drop":
            return self._dropped(document, overlap, named, evidence, len(found))
        passages, count = 0, len(found)
        while evidence:
            # Pieces that are joined may make another match, so this repeats until there is none.
            text, removed = self._without(text, [match for match, _ in evidence], len(found))
            passages += removed
            found = tokens(text)
            evidence = self._evidence(found)
        lost = 1 - len(text) / len(document.text)
        if lost > self._config.max_removed or not text:
            return self._dropped(document, overlap, named, first, count)
        return document.with_scores(**{"decontaminate/overlap": float(overlap)}).with_text(
            text, f"decontaminate:passages={passages}", *(f"decontaminate:{o}" for o in named))

    @staticmethod
    def _named(evidence: list[tuple[Match, Owner]]) -> list[str]:
        """`mmlu item 12` of the first items found, and how many more."""
        ordered = sorted(evidence, key=lambda each: each[0].start)
        names = list(dict.fromkeys(f"{name} item {item}" for _, (name, item) in ordered))
        more = [f"{len(names) - _NAMED} more items"] if len(names) > _NAMED else []
        return names[:_NAMED] + more

    def _dropped(self, document: Document, overlap: float, named: list[str],
                 evidence: list[tuple[Match, Owner]], count: int) -> Dropped:
        """Tells the longest part: its length, the field it is from, and its beginning."""
        runs = _runs([match for match, _ in evidence], count)
        first = min((match for match, _ in evidence),
                    key=lambda match: (-runs[match.start], match.start))
        length, text = int(runs[first.start]), self._texts[first.text]
        places = list(matching.spans(document.text))
        excerpt = " ".join(document.text[
            places[first.start][0]:places[first.start + length - 1][1]].split())[:_EXCERPT]
        of = f" of {text.field}" if text.field else ""
        return Dropped(document.origin, self.name, "evaluation overlap",
                       f"{overlap:.3f} of it in {', '.join(named)}: {length} {text.unit}{of}: "
                       f"{excerpt!r}")

    def _without(self, text: str, matches: list[Match], count: int) -> tuple[str, int]:
        """The text without matches and `window` characters (and the words they cut) around them,
        and the number of passages removed. Pieces become paragraphs."""
        starts, ends = np.array(list(matching.spans(text))).T
        covered = (_runs(matches, count) > 0).astype(np.int8)
        edges = np.flatnonzero(np.diff(covered, prepend=0, append=0))
        cuts: list[list[int]] = []
        for first, behind in edges.reshape(-1, 2):
            start = max(0, starts[first] - self._config.window)
            end = min(len(text), ends[behind - 1] + self._config.window)
            # No word is cut in two: one that crosses an edge is removed.
            start = min(start, starts[np.searchsorted(ends, start, side="right")])
            end = max(end, ends[np.searchsorted(starts, end) - 1])
            if cuts and start <= cuts[-1][1]:
                cuts[-1][1] = max(end, cuts[-1][1])
            else:
                cuts.append([start, end])
        borders = [0, *itertools.chain.from_iterable(cuts), len(text)]
        pieces = [text[start:end].strip()
                  for start, end in zip(borders[::2], borders[1::2], strict=True)]
        return "\n\n".join(filter(None, pieces)), len(cuts)


def _runs(matches: Iterable[Match], count: int) -> np.ndarray:
    """[count] int64: of each token, how many in a row are inside matches; 0 outside."""
    covered = np.zeros(count + 2, np.int8)
    for match in matches:
        covered[match.start + 1:match.start + match.length + 1] = 1
    edges = np.flatnonzero(np.diff(covered))
    runs = np.zeros(count, np.int64)
    for start, end in edges.reshape(-1, 2).tolist():
        runs[start:end] = end - start
    return runs
