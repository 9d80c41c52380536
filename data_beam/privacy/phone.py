"""Telephone numbers of China and North America, and international numbers with a country code.

The patterns are for running text: a number counts only if its format or a nearby word marks it as a
telephone number. Digits alone do not count.
"""

import re
from collections.abc import Iterator

from data_beam.base.characters import HAN
from data_beam.privacy.spans import Span

_LEFT = r"(?<![0-9_])(?<![0-9][.\-])"
_RIGHT = r"(?![0-9A-Za-z_])(?![.\-][0-9])"

_CHINA = r"(?:(?:\((?:\+|00)?86\)|(?:\+|00)?86)[ \-]?)"
# Ranges allocated by the Ministry of Industry and Information Technology, including machine
# numbers.
_MOBILE_PREFIX = (r"1(?:3[0-9]|4[014-9]|5[0-35-9]|6[2567]|7[0-8]|8[0-9]|9[0-35-9])")
_MOBILE = re.compile(rf"{_LEFT}({_CHINA}?){_MOBILE_PREFIX}([ \-]?)[0-9]{{4}}\2[0-9]{{4}}{_RIGHT}")
_AREA = r"(?:10|2[0-57-9]|[3-9][0-9]{2})"
_EXTENSION = r"(?: ?(?:-|转|ext\.? ?)[0-9]{1,5})?"
_SUBSCRIBER = rf"[2-8][0-9]{{2,3}}[ \-]?[0-9]{{4}}{_EXTENSION}{_RIGHT}"
_LANDLINE = re.compile(rf"{_LEFT}{_CHINA}?(?:\(0{_AREA}\)[ \-]?|0{_AREA}([ \-])){_SUBSCRIBER}")
_LANDLINE_ABROAD = re.compile(
    rf"{_LEFT}(?:\((?:\+|00)86\)|(?:\+|00)86)[ \-]?(?:\(0?{_AREA}\)|0?{_AREA})[ \-]?{_SUBSCRIBER}")

_NORTH_AMERICA = re.compile(
    rf"{_LEFT}(?:\+?1[ .\-])?(?:\([2-9][0-9]{{2}}\) ?[2-9][0-9]{{2}}[ .\-]"
    rf"|[2-9][0-9]{{2}}([.\-])[2-9][0-9]{{2}}\1)[0-9]{{4}}{_RIGHT}")

_INTERNATIONAL = re.compile(r"(?<![0-9A-Za-z_)\]+])\+[1-9][0-9 .\-()]{6,24}")
# Number of digits after the country code, from the national numbering plans. ITU-T E.164 allows 15
# digits in total.
_LENGTHS = {
    "1": (10, 10), "7": (10, 10), "20": (8, 10), "27": (9, 9), "30": (10, 10), "31": (9, 9),
    "32": (8, 9), "33": (9, 9), "34": (9, 9), "36": (8, 9), "39": (8, 11), "40": (9, 9),
    "41": (9, 9), "43": (7, 13), "44": (9, 10), "45": (8, 8), "46": (7, 10), "47": (8, 8),
    "48": (9, 9), "49": (7, 12), "52": (10, 10), "54": (10, 11), "55": (10, 11), "60": (8, 10),
    "61": (9, 9), "62": (8, 12), "63": (8, 10), "64": (8, 10), "65": (8, 8), "66": (8, 9),
    "81": (9, 10), "82": (8, 11), "84": (9, 10), "86": (9, 11), "90": (10, 10), "91": (10, 10),
    "92": (9, 10), "98": (10, 10), "852": (8, 8), "853": (8, 8), "886": (8, 9),
}
_OTHER_LENGTHS = (7, 12)
_CODES = re.compile(
    r"1|7|20|27|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]"
    r"|21[12368]|2[2-6][0-9]|29[01789]|35[0-9]|37[0-8]|38[0-35-79]|42[013]|50[0-9]|59[0-9]"
    r"|67[02-9]|68[0-35-9]|69[0-2]|85[02356]|870|88[06]|96[0-8]|97[0-7]|99[2-68]")

# Toll-free numbers in China and North America, which belong to companies.
_TOLL_FREE = re.compile(r"(?:1?(?:400|8(?:00|33|44|55|66|77|88))[0-9]{7})\Z")

_CUE = re.compile(
    r"(?:(?<![A-Za-z])(?<![A-Za-z]\.)"  # `j.cell.2019.11.025` is part of a DOI
    r"(?:tel|telephone|phone|mobile|mob|(?P<cell>cell)|cellphone|fax|whatsapp)"
    r"(?: ?(?:no|nr|number|#))?\.? ?[:.#]?|(?:电话|手机|传真|热线|座机|联系方式|電話|手機|傳真)"
    r"(?:号码|号|號碼|號)?[是为為]?[:]?)[ \n\"']{0,3}[(+]?\Z", re.IGNORECASE)
_CONTEXT = re.compile(
    rf"[{HAN}]|(?<![A-Za-z])(?:tel|phone|telephone|mobile|cell|call|fax|whatsapp|contact|sms)",
    re.IGNORECASE)
_PHONE_WORD_BEFORE = re.compile(r"(?:\A|[^A-Za-z])(?:tel|phone|mobile|mob|cell|fax|qq|wechat|wx)\Z",
                    re.IGNORECASE)
_UNIT = re.compile(r" ?(?:元|万|亿|个|次|吨|米|公里|美元|%|字节|bytes)")
# `cell` has other meanings too: it must be followed by a colon or `number`, and then by a number in
# a format that only telephone numbers have.
_CELL = re.compile(r"cell(?: ?[:#]| (?:no|nr|number)\b)", re.IGNORECASE)
_CELL_NUMBER = re.compile(
    rf"[+(0]|{_MOBILE_PREFIX}[ \-]?[0-9]{{4}}[ \-]?[0-9]{{4}}{_RIGHT}"
    rf"|(?:1[ .\-]?)?[2-9][0-9]{{2}}[ .\-]?[2-9][0-9]{{2}}[ .\-]?[0-9]{{4}}{_RIGHT}"
    rf"|[2-9][0-9]{{2}}[.\-][0-9]{{4}}{_RIGHT}")
_MONTH, _DAY = "(?:0?[1-9]|1[0-2])", "(?:0?[1-9]|[12][0-9]|3[01])"
_NOT_A_PHONE = re.compile(
    rf"(?:19|20)[0-9]{{2}}(?: ?[.\-] ?| ){_MONTH}(?![0-9])"  # 2020-12-31, 2019.11-2020.05
    rf"|(?:{_DAY}[.\-]{_MONTH}|{_MONTH}[.\-]{_DAY})[.\-](?:19|20)[0-9]{{2}}(?![0-9.\-])"
    r"|(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])(?![0-9])"  # 20201231
    r"|(?:19|20)[0-9]{2} ?- ?(?:(?:19|20)[0-9]{2}|[0-9]{2})(?![0-9])"  # 2019-2020, 2019-20
    r"|(?:19|20)[0-9]{2} [0-9]{1,3}(?![0-9])"  # year and volume
    r"|[1-9][0-9]*00 ?- ?[1-9][0-9]*00(?![0-9.\-])")  # 4500-11000
_DECIMAL = re.compile(r"(?<![0-9.])(?:[0-9]+\.[0-9]{1,2}|[0-9]{1,2}\.[0-9]{3,})(?![0-9.])")
# Units and nouns that make an amount of the number before them. English ones count only after
# digits without separators.
_CHINESE_AMOUNT = re.compile(
    r" ?(?:元|万|亿|个|次|吨|米|公里|美元|%|‰|°|字节|bytes|台(?![湾灣北中南])|部(?![门門长長])|只|"
    r"隻|户(?![名口])|戶|件|名(?![称字稱])|位(?![于於置])|人(?![工民事力员])|条|條|份(?!额)|张(?=手|卡)|"
    r"款|年(?!轻)|页|頁|克|千克|毫)")
_ENGLISH_AMOUNT = re.compile(
    r"(?: ?(?:[KMG]B|m[glm]|kg|km|cm|USD|EUR)| (?:[a-z]+ )?(?:units|copies|users|subscribers|"
    r"customers|people|persons|cells|reads|molecules|pages|dollars|euros|items|times|downloads|"
    r"devices|handsets|phones|minutes|years|messages|employees|transcripts|particles|genes|"
    r"connections|accounts|owners|households)| per (?:second|minute|hour|day|week|month|year|cell|"
    r"unit|user)|/[a-zμµ]+)(?![A-Za-z])")
_DIGITS_AFTER_CUE = re.compile(r"[+(]?[0-9][0-9 .\-()]{5,22}")
# Separates the numbers of a list after one cue: optional brackets with a note, then punctuation, a
# conjunction or whitespace.
_BETWEEN = re.compile(
    r"(?: ?\([^()0-9\n]{1,16}\))?[ \t]*"
    r"(?:(?:[、,;/|\\&·•]|或者?|和|及|与|與|(?:and|or)\b)\s{0,4}|\s{1,4}){1,2}(?=[+(]?[0-9])")
_DIGITS = re.compile("[0-9]+")
_CONTEXT_CHARACTERS = 30


def _continues_a_word(text: str, start: int) -> bool:
    """Whether the number continues a word (`x13800138000`) other than `tel` and the like."""
    before = text[start - 1:start]
    return (before.isascii() and before.isalpha()
            and not _PHONE_WORD_BEFORE.search(text[max(0, start - 9):start]))


def _is_toll_free(number: str) -> bool:
    """Whether a number is toll-free, and so belongs to a company."""
    return bool(_TOLL_FREE.match("".join(_DIGITS.findall(number))))


def _is_amount(text: str, start: int, end: int) -> bool:
    """Whether the text after a number shows that the number is an amount."""
    return bool(_CHINESE_AMOUNT.match(text, end)
                or (text[start] in "123456789" and text[start:end].isdigit()
                    and _ENGLISH_AMOUNT.match(text, end)))


def _is_followed_by_alphanumeric(text: str, end: int) -> bool:
    after = text[end:end + 1]
    return after.isascii() and after.isalnum()


def _has_context(text: str, start: int, end: int) -> bool:
    """Whether Han characters or a word for telephones occur nearby."""
    before = text[max(0, start - _CONTEXT_CHARACTERS):start]
    return bool(_CONTEXT.search(f"{before}\n{text[end:end + _CONTEXT_CHARACTERS]}"))


def _mainland(text: str, start: int, stop: int) -> Iterator[Span]:
    for match in _MOBILE.finditer(text, start, stop):
        left, right = match.span()
        code, separator = match.group(1, 2)
        is_amount = match[0].endswith("0000000") or _UNIT.match(text, right)
        if not is_amount and not _continues_a_word(text, left) and (
                code or separator == "-" or _has_context(text, left, right)):
            yield Span(left, right, "phone")
    for match in _LANDLINE.finditer(text, start, stop):
        if not _continues_a_word(text, match.start()) and (
                match[1] != " " or _has_context(text, *match.span())):
            yield Span(*match.span(), "phone")
    for match in _LANDLINE_ABROAD.finditer(text, start, stop):
        yield Span(*match.span(), "phone")


def _international_end(number: str) -> int | None:
    """Length of the number at the start of `+49 30 ...`, which ends with a digit group."""
    code = digits = ""
    best = None
    groups = 0
    for count, group in enumerate(_DIGITS.finditer(number), 1):
        digits += group[0]
        if len(digits) > 15:
            break
        if not code:
            found = _CODES.match(digits)
            if not found:
                return None
            code = found[0]
        low, high = _LENGTHS.get(code, _OTHER_LENGTHS)
        national = digits[len(code):]
        if code == "1" and not re.match("[2-9][0-9]{2}[2-9]", national):
            continue
        if low <= len(national) <= high:
            best, groups = group.end(), count
    # A single dot is a decimal point.
    return None if groups <= 2 and "." in number[:best] else best


def _international(text: str, start: int, stop: int) -> Iterator[Span]:
    for match in _INTERNATIONAL.finditer(text, start, stop):
        length = _international_end(match[0])
        if length is not None:
            end = match.start() + length
            if not (_is_followed_by_alphanumeric(text, end) or _is_toll_free(match[0][:length])):
                yield Span(match.start(), end, "phone")


def _listed(text: str, start: int, cell: bool) -> tuple[int, int | None]:
    """End of the digit groups at `start`, and end of the telephone number among them or None. A
    telephone number has 7 to 15 digits and is not a date, year range, decimal number or amount. If
    the cue was `cell`, it must have a format that only telephone numbers have."""
    match = _DIGITS_AFTER_CUE.match(text, start)
    if not match:
        return start, None
    stop = match.start() + len(match[0].rstrip(" .-("))
    if (_NOT_A_PHONE.match(match[0]) or _DECIMAL.search(match[0])
            or (cell and not _CELL_NUMBER.match(match[0]))):
        return stop, None
    digits, end = 0, None
    for group in _DIGITS.finditer(match[0]):
        digits += group.end() - group.start()
        if digits > 15 or (end and "(" in match[0][end - match.start():group.start()]):
            break
        if digits >= 7:
            end = match.start() + group.end()
    if (end is None or _is_followed_by_alphanumeric(text, end)
            or _is_amount(text, match.start(), end)):
        return stop, None
    return end, end


def _after_cues(text: str, start: int, stop: int) -> Iterator[Span]:
    """Numbers after a cue, single or in a list: `Tel: 020 7946 0958`, `电话62345678、62345679`."""
    for match in _DIGITS_AFTER_CUE.finditer(text, start, stop):
        cue = _CUE.search(text[max(0, match.start() - 24):match.start()])
        if not cue or (cue["cell"] and not _CELL.match(cue[0])):
            continue
        first = match.start()
        while True:
            next_search, end = _listed(text, first, bool(cue["cell"]))
            if end is None:
                break
            if not _is_toll_free(text[first:end]):
                yield Span(first + (text[first] == "(" and ")" not in text[first:end]), end,
                           "phone")
            separator = _BETWEEN.match(text, next_search)
            if not separator:
                break
            first = separator.end()


def phones(text: str, start: int, stop: int) -> Iterator[Span]:
    """Telephone numbers in a window.

    - PRC mobile numbers: 11 digits of an allocated range, optionally grouped 3-4-4, optionally with
      +86. Without +86 or hyphens, Han characters or a word such as `tel` must be within 30 of it.
    - PRC landlines: area code and subscriber number, separated by a hyphen, by brackets or, near
      Han characters, by a space; optionally with an extension.
    - North American numbers in their usual groups, and numbers with + and an assigned country code
      that have as many digits as that country uses.
    - 7 to 15 digits directly after a cue such as `Tel:` or `电话`, except dates, years and amounts
      (`1234567 units`), also in a list. After `cell:` only in a format of telephone numbers.

    Service numbers (400-..., 1-800-..., 95588) belong to companies and do not count.
    """
    yield from _mainland(text, start, stop)
    for match in _NORTH_AMERICA.finditer(text, start, stop):
        if not _continues_a_word(text, match.start()) and not _is_toll_free(match[0]):
            yield Span(*match.span(), "phone")
    yield from _international(text, start, stop)
    yield from _after_cues(text, start, stop)
