"""How many tokens a tokenizer needs for a text.

Fertility is tokens per word (Rust et al. 2021, arXiv:2012.15613): all tokens of a text divided by
its words. Words are separated by white space, with the punctuation beside them; in Chinese they are
rjieba's segments without white space and punctuation. For other languages written without spaces
words are not counted.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import rjieba

from data_beam.tokenizer.training import han_share
from maxlm.data.tokenizer import Tokenizer

GROUPS = {"sources": "source", "domains": "domain", "languages": "language"}
"""Part of a report -> column that it groups by."""
_COLUMNS = (("chars/token", "characters_per_token", "{:.2f}"),
            ("tokens/word", "tokens_per_word", "{:.2f}"),
            ("bytes/token", "bytes_per_token", "{:.2f}"),
            ("byte pieces", "byte_share", "{:.2%}"),
            ("unknown", "unknown_share", "{:.2%}"))
_WITHOUT_SPACES = ("ja", "th", "lo", "km", "my", "bo", "dz")


def count_words(text: str, language: str) -> int | None:
    """Words of a text; None where they cannot be counted.

    Args:
      text: any.
      language: code such as "zh" or "en", the programming language of source code, or "und", where
        a text that is mostly Han counts as Chinese.
    """
    base = language.partition("-")[0].partition("_")[0].lower()
    if base in ("zh", "cmn", "yue", "wuu") or (base == "und" and han_share([text]) > 0.5):
        return sum(any(map(str.isalnum, word)) for word in rjieba.cut(text))
    return None if base in _WITHOUT_SPACES else len(text.split())


@dataclasses.dataclass
class Counts:
    """Sums over documents.

    Attributes:
      word_tokens: tokens of the documents whose words are counted.
      byte_pieces: tokens that are parts of a character.
    """

    documents: int = 0
    characters: int = 0
    bytes: int = 0
    tokens: int = 0
    words: int = 0
    word_tokens: int = 0
    byte_pieces: int = 0
    unknown: int = 0

    def add(self, other: "Counts") -> None:
        for field in dataclasses.fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))

    def entry(self) -> dict[str, Any]:
        """The sums and their ratios, rounded to four digits; None for a ratio over nothing."""

        def ratio(value: int, over: int) -> float | None:
            return round(value / over, 4) if over else None

        return {
            "documents": self.documents, "characters": self.characters, "bytes": self.bytes,
            "tokens": self.tokens, "words": self.words, "byte_pieces": self.byte_pieces,
            "unknown": self.unknown,
            "characters_per_token": ratio(self.characters, self.tokens) or 0.0,
            "bytes_per_token": ratio(self.bytes, self.tokens) or 0.0,
            "tokens_per_word": ratio(self.word_tokens, self.words),
            "byte_share": ratio(self.byte_pieces, self.tokens) or 0.0,
            "unknown_share": ratio(self.unknown, self.tokens) or 0.0,
        }


def count_document(tokenizer: Tokenizer, text: str, language: str) -> Counts:
    """The counts of one document."""
    ids = tokenizer.encode(text)
    words = count_words(text, language)
    return Counts(
        documents=1, characters=len(text), bytes=len(text.encode()), tokens=len(ids),
        words=words or 0, word_tokens=0 if words is None else len(ids),
        byte_pieces=sum(map(tokenizer.is_byte, ids)), unknown=ids.count(tokenizer.unk_id))


def fertility(tokenizer: Tokenizer, rows: Iterable[dict[str, Any]], most_bytes: int
              ) -> dict[str, dict[str, dict[str, Any]]]:
    """Counts and ratios of a tokenizer by source, domain and language, and over all.

    Args:
      tokenizer: of either kind.
      rows: documents with text, source, domain and language.
      most_bytes: a group takes no further document once it has this many bytes.

    Returns:
      {"all": {"all": entry}, "sources": {name: entry}, "domains": ..., "languages": ...}, see
      `Counts.entry`.
    """
    groups: dict[str, dict[str, Counts]] = {"all": {"all": Counts()}, **{
        part: {} for part in GROUPS}}
    for row in rows:
        wanting = [group for part, column in GROUPS.items()
                   if (group := groups[part].setdefault(row[column] or "und", Counts())
                       ).bytes < most_bytes]
        if wanting:
            counts = count_document(tokenizer, row["text"], row["language"] or "und")
            for group in (groups["all"]["all"], *wanting):
                group.add(counts)
    return {part: {name: counts.entry() for name, counts in sorted(found.items())}
            for part, found in groups.items()}


def table(reports: Mapping[str, Mapping[str, Any]], parts: Iterable[str]) -> Iterator[str]:
    """Lines of a table: the groups of each part, and below each group one line a tokenizer.

    Args:
      reports: name of a tokenizer -> what `fertility` returned for it on the same rows. A single
        tokenizer may be called "".
      parts: of the reports, in their order.
    """
    wide = max(map(len, reports))
    head = " ".join(f"{title:>11}" for title, _, _ in _COLUMNS)
    first = next(iter(reports.values()))
    for part in parts:
        yield f"{part:<20} {'':<{wide}} {head}"
        for group in first[part]:
            for number, (name, report) in enumerate(reports.items()):
                entry = report[part][group]
                cells = " ".join(
                    f"{'-' if entry[key] is None else form.format(entry[key]):>11}"
                    for _, key, form in _COLUMNS)
                yield f"{group if number == 0 else '':<20} {name:<{wide}} {cells}"
