"""Identity numbers, passport numbers and licence plates."""

import datetime
import re
from collections.abc import Iterator

from data_beam.privacy.spans import Span

_RESIDENT = re.compile(
    r"(?<![0-9])(?<![0-9]\.)([1-9][0-9]{5})([ \-]?)((?:19|20)[0-9]{6})\2([0-9]{3}[0-9Xx])"
    r"(?![0-9A-Za-z])")
_RESIDENT_OLD = re.compile(r"(?<![0-9])(?<![0-9]\.)[1-8][0-9]{14}(?![0-9A-Za-z])")
_OLD_CONTEXT = re.compile(r"身份证|身份號|公民身份")
# GB/T 2260: provinces, autonomous regions, municipalities; 71, 81, 82 Taiwan, Hong Kong, Macau, and
# 83 their residents' permits. A foreigner's permanent residence card has 9 and then the province.
_PROVINCES = frozenset(map(str, (
    11, 12, 13, 14, 15, 21, 22, 23, 31, 32, 33, 34, 35, 36, 37, 41, 42, 43, 44, 45, 46,
    50, 51, 52, 53, 54, 61, 62, 63, 64, 65, 71, 81, 82, 83)))
_WEIGHTS = tuple(2**(17 - i) % 11 for i in range(17))
_CHECK_CHARACTERS = "10X98765432"
_LAST_YEAR = 2049  # fixed, so that the result does not depend on the date of the run

_SSN = re.compile(r"(?<![0-9A-Za-z_])(?<![0-9][.\-])([0-9]{3})([ \-])([0-9]{2})\2([0-9]{4})"
                  r"(?![0-9A-Za-z_])(?![.\-][0-9])")
_SSN_BARE = re.compile(r"(?<![0-9A-Za-z_.\-])([0-9]{3})()([0-9]{2})([0-9]{4})(?![0-9A-Za-z_])")
_SSN_REACH = 30
_SSN_CONTEXT = re.compile(r"ssn|social security", re.IGNORECASE)

_PASSPORT_WORD = re.compile(r"(?i:passport)|护照|護照")
_PASSPORT = re.compile(r"(?<![0-9A-Za-z])(?:[A-Z]{1,2}[0-9]{6,8}|[0-9]{9})(?![0-9A-Za-z])")
_PASSPORT_REACH = 40
# Permits to travel between the mainland, Hong Kong, Macau and Taiwan, in old and new forms. The
# permit of Hong Kong and Macau residents may end with two digits for the issue number.
_PERMIT_WORD = re.compile(r"通行[证證]|回[乡鄉][证證]|台胞[证證]|臺胞[證证]|(?i:travel permit)")
_PERMIT = re.compile(r"(?<![0-9A-Za-z])(?:[CWTL][0-9]{8}|C[A-Z][0-9]{7}|[HM][0-9]{8}(?:[0-9]{2})?)"
                     r"(?![0-9A-Za-z])")

_PLATE_PROVINCES = "京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼"
_PLATE = re.compile(
    rf"[{_PLATE_PROVINCES}][A-HJ-NP-Z](?:[·•. \-]?)"
    r"((?:[A-HJ-NP-Z][A-HJ-NP-Z0-9][0-9]{4}|[0-9]{5}[A-HJ-K])"  # new energy
    r"|[A-HJ-NP-Z0-9]{4}[A-HJ-NP-Z0-9挂学警港澳])(?![0-9A-Za-z])")
_CONTEXT_REACH = 20


def mod11_2(number: str) -> bool:
    """Whether the last of 18 characters (17 ASCII digits and one of 0-9, X, x) is the check
    character of the other 17.

    ISO/IEC 7064 MOD 11-2 as applied by GB 11643-1999: the sum of the digits, weighted by powers of
    two modulo 11 and including the check character, is 1 modulo 11. X stands for ten.
    """
    total = sum((ord(digit) - 48) * weight
                for digit, weight in zip(number[:17], _WEIGHTS, strict=True))
    return _CHECK_CHARACTERS[total % 11] == number[17].upper()


def _is_date(digits: str) -> bool:
    """Whether YYYYMMDD is a valid date from 1900 to `_LAST_YEAR`."""
    try:
        day = datetime.date(int(digits[:4]), int(digits[4:6]), int(digits[6:]))
    except ValueError:
        return False
    return 1900 <= day.year <= _LAST_YEAR


def resident_ids(text: str, start: int, stop: int) -> Iterator[Span]:
    """PRC resident identity numbers (GB 11643-1999) in a window: a province code of GB/T 2260, a
    valid date of birth, and a valid check character. The form used before 1999 has 15 digits and no
    check character; it counts only if a word such as 身份证 occurs within the 20 characters
    before."""
    for match in _RESIDENT.finditer(text, start, stop):
        region, _, birth, rest = match.groups()
        province = region[1:3] if region[0] == "9" else region[:2]
        if province in _PROVINCES and _is_date(birth) and mod11_2(region + birth + rest):
            yield Span(*match.span(), "resident_id")
    for match in _RESIDENT_OLD.finditer(text, start, stop):
        before = text[max(0, match.start() - _CONTEXT_REACH):match.start()]
        if (match[0][:2] in _PROVINCES and _is_date("19" + match[0][6:12])
                and _OLD_CONTEXT.search(before)):
            yield Span(*match.span(), "resident_id")


def ssns(text: str, start: int, stop: int) -> Iterator[Span]:
    """US social security numbers in a window: 3-2-4 digits separated by hyphens. With spaces or
    without separators the number counts only after `SSN` or `social security`. No group is all
    zeros; the area is below 900 and not 666."""
    for pattern in (_SSN, _SSN_BARE):
        for match in pattern.finditer(text, start, stop):
            area, separator, group, serial = match.groups()
            before = text[max(0, match.start() - _SSN_REACH):match.start()]
            if (area not in ("000", "666") and area < "900" and group != "00" and serial != "0000"
                    and (separator == "-" or _SSN_CONTEXT.search(before))):
                yield Span(*match.span(), "ssn")


def passports(text: str) -> Iterator[Span]:
    """Passport numbers at most 40 characters after `passport` or 护照: one or two letters (PRC: E,
    G, D, S, P, H, M) and 6 to 8 digits, or 9 digits. Also travel permit numbers at most 40
    characters after 通行证, 回乡证 or a similar word: C, W, H, M, T or L and 8 digits."""
    for words, number in ((_PASSPORT_WORD, _PASSPORT), (_PERMIT_WORD, _PERMIT)):
        for word in words.finditer(text):
            for match in number.finditer(text, word.end(), word.end() + _PASSPORT_REACH):
                if not text[match.end():match.end() + 1].isdigit():  # else cut by the range
                    yield Span(*match.span(), "passport")


def plates(text: str) -> Iterator[Span]:
    """PRC licence plates: province, city letter, and five characters with at least three digits
    (the last may be 挂, 学, 警, 港 or 澳), or six characters for new-energy cars (GA 36-2018)."""
    if text.isascii():
        return
    for match in _PLATE.finditer(text):
        if sum("0" <= character <= "9" for character in match[1]) >= 3:
            yield Span(*match.span(), "plate")
