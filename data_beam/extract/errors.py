"""The two ways in which a record has no text, and the check for text of undecoded characters."""

import re

from data_beam.base.records import ReasonedError

# What a document whose characters could not be decoded leaves: (cid:123) is what some PDF tools
# write for a glyph without a character, private-use characters and U+FFFD what others write,
# control characters (except ESC, of terminals) what some leave.
_GLYPH_NUMBER = re.compile(r"\(cid:\d+\)")
_NO_CHARACTER = re.compile("[\ufffd\ufffe\ue000-\uf8ff\U000f0000-\U0010ffff"
                           "\x00-\x08\x0e-\x1a\x1c-\x1f]+")
_EXCERPT = 80


class ExtractionError(ReasonedError):
    """The record is not in the format its input claims; becomes a dead letter."""


class NoText(ReasonedError):
    """The record is in its format, but holds no usable text; becomes a dropped document."""


def check_garbled(text: str, max_fraction: float, unmapped: int = 0) -> None:
    """Raises NoText (`garbled text`, with the share and an excerpt) if more than `max_fraction` of
    the visible characters are undecoded; a `(cid:N)` counts with its whole length. `unmapped` are
    the characters for which a PDF's fonts have no Unicode, if known; the larger of this number and
    that of the text counts."""
    first, garbled = -1, 0
    for pattern in (_GLYPH_NUMBER, _NO_CHARACTER):
        for found in pattern.finditer(text):
            garbled += len(found.group())
            first = found.start() if first < 0 else min(first, found.start())
    garbled = max(garbled, unmapped)
    if not garbled:
        return
    visible = sum(map(len, text.split()))
    if garbled > max_fraction * visible:
        begin = max(0, first - 10)
        raise NoText("garbled text", f"{garbled / max(visible, 1):.3f} of the characters: "
                                     f"{' '.join(text[begin:begin + _EXCERPT].split())!r}")
