"""Bank cards."""

import re
from collections.abc import Iterator

from data_beam.privacy.spans import Span

_BARE = re.compile(r"(?<![0-9A-Za-z_])(?<![0-9][.\-])[2-9][0-9]{12,18}(?![0-9A-Za-z_])"
                   r"(?!\.[0-9])(?!-[0-9])")
_GROUPED = re.compile(
    r"(?<![0-9A-Za-z_])(?<![0-9][.\-])(?<![0-9]{4}[ ])"
    r"(?:[2-9][0-9]{3}([ \-])[0-9]{4}\1[0-9]{4}\1[0-9]{4}(?:\1[0-9]{1,3})?"
    r"|3[0-9]{3}([ \-])[0-9]{6}\2[0-9]{4,5}"  # American Express, Diners Club
    r"|62[0-9]{4}([ \-])[0-9]{10,13})"
    r"(?![0-9A-Za-z_])(?!-[0-9])(?! [0-9]{4}(?![0-9]))(?!\.[0-9])")
_SEPARATOR = re.compile("[ -]")
_WORDS = re.compile(r"card|visa|卡", re.IGNORECASE)
_CONTEXT_CHARACTERS = 20

# Issuer ranges (lowest and highest first digits) and the lengths of their numbers.
_ISSUERS: tuple[tuple[str, str, tuple[int, ...]], ...] = (
    ("4", "4", (13, 16, 19)),  # Visa
    ("51", "55", (16,)), ("2221", "2720", (16,)),  # Mastercard
    ("34", "34", (15,)), ("37", "37", (15,)),  # American Express
    ("300", "305", (14,)), ("36", "36", (14,)), ("38", "39", (14, 16)),  # Diners Club
    ("3528", "3589", (16, 17, 18, 19)),  # JCB
    ("6011", "6011", (16, 19)), ("644", "649", (16, 19)), ("65", "65", (16, 19)),  # Discover
    ("62", "62", (16, 17, 18, 19)),  # UnionPay
    ("9558", "9559", (16, 17, 18, 19)),  # older debit cards of Chinese banks
    ("5018", "5018", (16, 18, 19)), ("5020", "5020", (16, 18, 19)), ("5038", "5038", (16, 18, 19)),
    ("6304", "6304", (16, 18, 19)), ("6759", "6759", (16, 18, 19)),
    ("6761", "6763", (16, 18, 19)),  # Maestro
)

_DIGIT_SUMS_OF_DOUBLES = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)  # by digit d: the sum of the digits of 2 d


def luhn(digits: str) -> bool:
    """Whether the last of some ASCII digits is the check digit of the others (ISO/IEC 7812-1, annex
    B). Every second digit from the right is doubled and replaced by the sum of its digits. The
    total must be a multiple of 10."""
    values = [int(digit) for digit in reversed(digits)]
    return (sum(values[::2]) + sum(_DIGIT_SUMS_OF_DOUBLES[v] for v in values[1::2])) % 10 == 0


def is_card(digits: str) -> bool:
    """Whether a number (ASCII digits) has an issuer's prefix, one of the issuer's lengths, and a
    valid Luhn digit."""
    known = any(low <= digits[:len(low)] <= high and len(digits) in lengths
                for low, high, lengths in _ISSUERS)
    return known and luhn(digits) and len(set(digits)) > 1


def cards(text: str, start: int, stop: int) -> Iterator[Span]:
    """Bank card numbers in a window: 13 to 19 digits, ungrouped or in the groups printed on cards.

    A number of 13 digits (an old Visa card, but also an article code) counts only if a word such
    as `card` or 卡 occurs within the 20 characters before it.
    """
    for pattern in (_BARE, _GROUPED):
        for match in pattern.finditer(text, start, stop):
            digits = _SEPARATOR.sub("", match[0])
            before = text[max(0, match.start() - _CONTEXT_CHARACTERS):match.start()]
            if is_card(digits) and (len(digits) > 13 or _WORDS.search(before)):
                yield Span(*match.span(), "card")
