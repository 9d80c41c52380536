"""Ranges of scripts written without spaces, and the foldings under which texts are compared.

The ranges are the inside of a character class of a regular expression: `re.compile(f"[{HAN}]")`.
"""

import re

HAN_RANGES = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF))
"""Unified ideographs with their extensions, and compatibility ideographs: first and last."""
HAN = "".join(f"{chr(first)}-{chr(last)}" for first, last in HAN_RANGES)
HIRAGANA_KATAKANA = "\u3040-\u30ff"  # both blocks of kana, with their marks

_MARKS = "！（），：；？"  # the full-width signs that Chinese is written with
_TO_ASCII = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_FULL_WIDTH = re.compile("[\uff01-\uff5e]+")
_FULL_WIDTH_NO_MARKS = re.compile(
    f"[{''.join(chr(code) for code in _TO_ASCII if chr(code) not in _MARKS)}]+")


def fold_width(text: str, marks: bool = False) -> str:
    """The text with full-width letters, digits and signs as ASCII; every position stays. With
    `marks` also ！（），：；？, with which Chinese is written."""
    if text.isascii():
        return text
    encoded = text.encode("utf-8", "surrogatepass")  # thirty times faster to search than the text
    if b"\xef\xbc" not in encoded and b"\xef\xbd" not in encoded:  # U+FF00 to U+FF7F
        return text
    pattern = _FULL_WIDTH if marks else _FULL_WIDTH_NO_MARKS
    return pattern.sub(lambda match: match[0].translate(_TO_ASCII), text)


def fold_case(text: str) -> str:
    """The text in the form in which words are compared without case.

    Unicode's case folding (`STRASSE` and `straße` are equal), and İ, I, ı and i are one letter, so
    that Turkish words in capitals equal those in small letters.
    """
    if text.isascii():
        return text.lower()
    return text.casefold().replace("i\u0307", "i").replace("ı", "i")
