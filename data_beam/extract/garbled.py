"""Text that is none: what is left of a document whose characters could not be told."""

import re

from data_beam.extract.errors import NoText

# (cid:123) is what some PDF tools write for a glyph without a character; private-use characters
# and U+FFFD are what others write, control characters (but ESC, of terminals) what some leave.
_GLYPH_NUMBER = re.compile(r"\(cid:\d+\)")
_NO_CHARACTER = re.compile("[\ufffd\ufffe\ue000-\uf8ff\U000f0000-\U0010ffff"
                           "\x00-\x08\x0e-\x1a\x1c-\x1f]+")
_EXCERPT = 80


def check(text: str, max_fraction: float, unmapped: int = 0) -> None:
    """Refuses a text in which too many characters are none.

    Args:
      text: as extracted.
      max_fraction: of the visible characters; a `(cid:N)` counts as long as it is, since it stands
        in the text that way.
      unmapped: characters that a PDF's fonts have no Unicode for, if that is known; they count
        where more than those seen in the text.

    Raises:
      NoText: `garbled text`, with the share and an excerpt.
    """
    first, garbled = -1, 0
    if "(cid:" in text:
        for found in _GLYPH_NUMBER.finditer(text):
            garbled += len(found.group())
            first = found.start() if first < 0 else first
    for found in _NO_CHARACTER.finditer(text):
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
