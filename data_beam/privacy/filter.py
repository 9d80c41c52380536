"""The privacy filter: replaces personal data by placeholders, or drops the document."""

import collections
import string
from collections.abc import Callable, Iterator
from typing import Any

from data_beam.base import user_function
from data_beam.base.filter import Filter
from data_beam.base.records import Document, Dropped
from data_beam.config import PrivacyConfig
from data_beam.privacy.card import cards
from data_beam.privacy.email import emails
from data_beam.privacy.identity import passports, plates, resident_ids, ssns
from data_beam.privacy.ip import ipv4, ipv6
from data_beam.privacy.phone import phones
from data_beam.privacy.spans import Span, number_windows, to_ascii, without_overlaps
from maxlm.config.schema import ConfigError

PLACEHOLDERS = {
    "resident_id": "[ID]", "card": "[CARD]", "email": "[EMAIL]", "ip": "[IP]", "phone": "[PHONE]",
    "ssn": "[ID]", "passport": "[PASSPORT]", "plate": "[PLATE]", "name": "[NAME]",
}  # in order of priority among equally long spans: check digits come first
_PRIORITY = {kind: rank for rank, kind in enumerate(PLACEHOLDERS)}

_PROBE = "Ada Lovelace wrote to 张伟 in London."
_EXCERPT = 80
_PIECE = 5
"""The fewest consecutive characters of an item that are masked in a quote. Fewer may be shown, like
the last four digits of a card on a receipt."""
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def find(text: str, private_addresses: bool = False) -> list[Span]:
    """Spans found by all recognisers except the one for names, without overlaps, in text order."""
    readable = to_ascii(text)

    def candidates() -> Iterator[Span]:
        if "@" in readable or "at" in readable or "AT" in readable:
            yield from emails(readable)
        for start, stop in number_windows(readable):
            yield from resident_ids(readable, start, stop)
            yield from cards(readable, start, stop)
            yield from phones(readable, start, stop)
            yield from ssns(readable, start, stop)
            yield from ipv4(readable, start, stop, private_addresses)
        yield from ipv6(readable, private_addresses)
        yield from passports(readable)
        yield from plates(readable)

    return without_overlaps(candidates(), _PRIORITY)


def replace(text: str, spans: list[Span]) -> str:
    """The text with placeholders for the spans."""
    parts, position = [], 0
    for span in spans:
        parts += [text[position:span.start], PLACEHOLDERS[span.kind]]
        position = span.end
    return "".join(parts) + text[position:]


class PrivacyFilter(Filter):
    """Replaces, counts, or drops for personal data.

    What is found is counted in `scores` by kind (`pii/email`), what is replaced noted in
    `transforms` (`privacy:email=2`). A second run over its own output changes nothing, names apart,
    which are up to the user's recogniser.

    A document on which the user's recogniser fails, or answers with other than spans, is an error
    (and so a dead letter). Raises ConfigError if it cannot be loaded, or fails on a sentence.
    """

    name = "privacy"
    section = "privacy"

    @classmethod
    def is_enabled(cls, config: PrivacyConfig) -> bool:
        return config.enabled

    @classmethod
    def functions(cls, config: PrivacyConfig) -> list[str]:
        return [config.name_recogniser] if config.name_recogniser else []

    def __init__(self, config: PrivacyConfig):
        super().__init__(config)
        self._actions: dict[str, str] = {kind: getattr(config, kind) for kind in PLACEHOLDERS}
        self._recognise: Callable[[str], Any] | None = None
        if config.name_recogniser:
            self._recognise = user_function.load(
                config.name_recogniser, "config.privacy.name_recogniser")
            try:
                self._names(_PROBE)
            except RuntimeError as error:
                raise ConfigError(str(error)) from error

    def _names(self, text: str) -> list[Span]:
        if self._recognise is None:
            return []
        name = f"config.privacy.name_recogniser: {self._config.name_recogniser!r}"
        try:
            found = list(self._recognise(text))
        except (Exception, SystemExit) as error:
            raise RuntimeError(f"{name} raised {type(error).__name__}: {error}") from error
        spans = []
        for item in found:
            if not (isinstance(item, (tuple, list)) and len(item) == 2
                    and all(isinstance(place, int) for place in item)
                    and 0 <= item[0] < item[1] <= len(text)):
                raise RuntimeError(f"{name} returned {item!r} for {len(text)} characters; it must "
                                   "return (start, end) pairs within the text")
            spans.append(Span(item[0], item[1], "name"))
        return spans

    def _redact(self, text: str, names: list[Span]
                ) -> tuple[str, collections.Counter[str], list[Span]]:
        """The text with placeholders, the number of items replaced by kind, and the spans kept."""
        replaced: collections.Counter[str] = collections.Counter()
        while True:
            # A replacement may turn the text beside it into a match, so repeat.
            spans = find(text, self._config.private_addresses)
            if names:
                spans, names = without_overlaps([*spans, *names], _PRIORITY), []
            new = [span for span in spans if self._actions[span.kind] != "keep"]
            if not new:
                return text, replaced, spans
            replaced.update(span.kind for span in new)
            text = replace(text, new)

    def masked(self, text: str) -> str:
        """The text as it may appear in a report: with placeholders for everything except names."""
        return self._redact(text, [])[0]

    def masked_quote(self, quote: str, text: str) -> str:
        """The detail of an outcome, which may quote the text, as it may appear in a report. A quote
        may be cut inside an item, so parts of items of `_PIECE` characters or more are masked
        too."""
        if not any(mark in quote for mark in "'\":"):
            return self.masked(quote)  # only numbers, no quoted text
        kinds = {}
        for span in find(text, self._config.private_addresses):
            if self._actions[span.kind] != "keep":
                item = _comparable(" ".join(text[span.start:span.end].split()))
                for i in range(len(item) - _PIECE + 1):
                    kinds[item[i:i + _PIECE]] = span.kind
        normalised, pieces = _comparable(quote), list[Span]()
        for i in range(len(normalised) - _PIECE + 1):
            kind = kinds.get(normalised[i:i + _PIECE])
            if kind and pieces and i <= pieces[-1].end:  # the same or an adjacent item
                pieces[-1] = Span(pieces[-1].start, i + _PIECE, pieces[-1].kind)
            elif kind:
                pieces.append(Span(i, i + _PIECE, kind))
        return self.masked(replace(quote, pieces))

    def __call__(self, document: Document) -> Document | Dropped:
        text, replaced, spans = self._redact(document.text, self._names(document.text))
        found = replaced + collections.Counter(span.kind for span in spans)
        if not found:
            return document
        to_drop = {kind: count for kind, count in sorted(found.items())
                   if self._actions[kind] == "drop"}
        if sum(to_drop.values()) > self._config.drop_over:
            counts = ", ".join(f"{kind}={count}" for kind, count in to_drop.items())
            return Dropped(document.origin, self.name, "personal data",
                           f"{counts}: {_excerpt(text, next(iter(to_drop)))!r}")
        document = document.with_scores(
            **{f"pii/{kind}": float(count) for kind, count in sorted(found.items())})
        if not replaced:
            return document
        return document.with_text(text, *(f"privacy:{kind}={count}"
                                          for kind, count in sorted(replaced.items())))


def _comparable(text: str) -> str:
    """The text in ASCII and lower case. Positions do not change."""
    return to_ascii(text).translate(_LOWER)


def _excerpt(text: str, kind: str) -> str:
    """The text around the first placeholder of a kind; personal data does not appear in it."""
    place = text.find(PLACEHOLDERS[kind])
    start = max(0, place - _EXCERPT // 2)
    return " ".join(text[start:start + _EXCERPT].split())
