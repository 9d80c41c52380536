"""Text to words and sentences: the units of most published thresholds.

English (and other languages with spaces) is cut as spaCy's rule-based English tokenizer does, which
datatrove uses, so that thresholds tuned there mean the same here: punctuation, contractions
(`do` `n't`) and hyphens between letters are words of their own; abbreviations, URLs and numbers
stay whole. It is an implementation of our own of the published rules; docs/filters.md has the
share of documents on which decisions differ. Chinese is cut by rjieba, the Rust form of jieba
(MIT, dictionary in the package).

Time is linear in the length of the text: a run of more than 200 characters without a space is cut
by one pass of a regular expression.
"""

import itertools
import re
import string
from collections.abc import Callable, Iterable
from unicodedata import category

from data_beam.base import word_lists

SENTENCE_ENDS = frozenset(
    ".!?。！？．｡﹒﹖﹗‼‽⁇⁈⁉"  # Latin and CJK
    "\u0589\u061d\u061e\u061f\u06d4\u0700\u0701\u0702\u07f9"  # Armenian, Arabic, Syriac, N'Ko
    "\u0964\u0965\u104a\u104b\u1362\u1367\u1368\u166e"  # Devanagari, Myanmar, Ethiopic, Canadian
    "\u17d4\u17d5\u1803\u1809\u1944\u1945\u2e2e\u2e3c\ua4ff\ua60e\ua60f\ua6f3\ua6f7"
    "\ua876\ua877\ua8ce\ua8cf\ua92f\ua9c8\ua9c9\uaa5d\uaa5e\uaa5f\uaaf0\uaaf1\uabeb")
"""Characters with Unicode's property Sentence_Terminal, without those of historic scripts."""

LINE_ENDS = {"en": tuple(SENTENCE_ENDS), "zh": (*SENTENCE_ENDS, "”", "’", "」", "』", "…", "；")}
"""What ends a line, by language. A Chinese sentence of speech ends with its closing quote."""

PUNCTUATION = frozenset(string.punctuation) | SENTENCE_ENDS | frozenset(
    "—”：％〈（━【「」，】；“《„’∶´–～«〉》）…►»、‘『』") | frozenset(
    chr(code) for code in [*range(32), *range(127, 160)])  # datatrove's set, without its symbols

_LONG = 200  # a longer run is no word; the rules of affixes would take quadratic time
_CACHED = 40  # longer runs are seldom met twice
_CACHE_ENTRIES = 200_000

_ICONS = (r"\u00a6\u00a9\u00ae\u00b0\u2100\u2101\u2103-\u2106\u2108\u2109\u2114\u2116\u2117\u211e-"
          r"\u2123\u2195-\u2199\u219c-\u21cd\u21d0\u21d1\u21d3\u21d5-\u21f3\u2300-\u2307\u230c-"
          r"\u2328\u232b-\u237b\u237d-\u23db\u23e2-\u249b\u249c-\u24e9\u2500-\u25b6\u25b8-\u25c0"
          r"\u25c2-\u25f7\u2600-\u266e\u2670-\u2767\u2794-\u27bf\u2800-\u28ff\u2b00-\u2bff"
          r"\ufffd\U0001f000-\U0001faff")
_QUOTES = "'\"”“`‘´’‚,„»«「」『』（）〔〕【】《》〈〉⟦⟧"
_PUNCTUATION = "…,:;!?¿؟¡()[]{}<>_#*&。？！，、；：～·।،۔؛٪"
_CURRENCY = "$£€¥฿₽﷼₴₩₪₫₭₮₱₹₺₿"
_ICON_SET = frozenset(chr(code) for code in [*range(0xa6, 0xb1), *range(0x2100, 0x2c00), 0xfffd,
                                             *range(0x1f000, 0x1fb00)]
                      if re.match(f"[{_ICONS}]", chr(code)))
_PREFIX = frozenset(_PUNCTUATION + _QUOTES + _CURRENCY + "§%=—–") | _ICON_SET
_SUFFIX = frozenset(_PUNCTUATION + _QUOTES + "—–") | _ICON_SET

_LETTER = r"[^\W\d_]"
_INFIX = re.compile(
    rf"\.\.+|…|[{_ICONS}]"
    r"|(?<=[0-9])[+\-*^](?=[0-9-])"
    rf"|(?<=[^\W\d_A-Z]|['\"”“`‘´’‚,„»«])\.(?=[A-Z'\"”“`‘´’‚,„»«])"
    rf"|(?<={_LETTER}),(?={_LETTER})"
    rf"|(?<=[^\W_])(?:---?|——|[-–—~])(?={_LETTER})"
    rf"|(?<=[^\W_])[:<>=/](?={_LETTER})")
_URL = re.compile(
    r"(?:[\w+\-.]{2,}://)?(?:[^\s@]+@)?"
    r"(?:(?:[A-Za-z0-9\u00a1-\uffff](?:[A-Za-z0-9\u00a1-\uffff_-]{0,62}[A-Za-z0-9\u00a1-\uffff])?\.)"
    r"+[^\W\d_A-Z]{2,63}|\d{1,3}(?:\.\d{1,3}){3})(?::\d{2,5})?(?:[/?#]\S*)?")
_UNITS = """
km km² km³ m m² m³ dm dm² dm³ cm cm² cm³ mm mm² mm³ ha µm nm yd in ft kg g mg µg t lb oz m/s km/h
kmh mph hPa Pa mbar mb MB kb KB gb GB tb TB T G M K %
"""
_UNIT = "|".join(map(re.escape, sorted(_UNITS.split(), key=len, reverse=True)))
_TAIL = re.compile(
    rf"(?:(?<=[0-9])(?:{_UNIT}|[{_CURRENCY}]|\+)"
    r"|\.\.+|['’][sS]"
    r"|(?<=[0-9%²\-+" + re.escape(_PUNCTUATION + _QUOTES) + r"])\."
    r"|(?<=[^\W\d_A-Z])\.|(?<=[A-Z][A-Z])\.)\Z")
_ELLIPSIS = re.compile(r"\.\.+")

_FACE_MARKS = r"""
'' (-: (: (; (= )-: ): 8) 8-) :( :(( :) :)) :* :-( :-) :') :'( :-/ :/ :0 :1 :3 :> :D :O :P :X :] :o
:p :x :| :} ;) ;-) </3 <3 =( =) =/ =D =] =| [: [= ]= ^_^
"""
_ABBREVIATIONS = word_lists.read("data_beam.filters", "abbreviations.txt")["with punctuation"]
_WHOLE = frozenset(_FACE_MARKS.split()).union(
    _ABBREVIATIONS, (f"{letter}." for letter in string.ascii_lowercase))
"""Runs that are one word although they hold punctuation."""


_CONTRACTED = (
    ("ca could do does did had may might must need ought sha should wo would ai are is was were "
     "have has dare", "n't"),
    ("could might must should would i you we they who what when where why how there these those",
     "'ve"),
    ("i you he she it we they who what when where why how there that this these those", "'ll 'd"),
    ("you we they who what when where why how there these those", "'re"),
    ("he she it who what when where why how there that this let", "'s"),
    ("i", "'m"), ("can", "not"), ("gon", "na"), ("got", "ta"),
)


def _contractions() -> dict[str, tuple[str, ...]]:
    """English contractions, with and without apostrophe, and the words they are made of."""
    table: dict[str, tuple[str, ...]] = {}

    def add(*parts: str) -> None:
        for form in (parts, (parts[0].title(), *parts[1:])):
            table["".join(form)] = form
            table["".join(form).replace("'", "’")] = tuple(p.replace("'", "’") for p in form)
            bare = tuple(part.replace("'", "") for part in form)
            word = "".join(bare)
            if word.lower() not in {"ill", "its", "hell", "shell", "shed", "were", "well"}:
                table[word] = bare

    for bases, ends in _CONTRACTED:
        for base in bases.split():
            for end in ends.split():
                add(base, end)
    for word in ("lets", "Lets", "isnt"):
        table.pop(word, None)
    for hour in range(1, 13):
        for half in ("am", "pm", "a.m.", "p.m."):
            table[f"{hour}{half}"] = (str(hour), half)
    table["isnt"] = ("is", "nt")
    return table


_SPLIT = _contractions()


def _cut(run: str) -> tuple[str, ...]:
    """The words of a run of characters without a space."""
    if run.isalpha() and run not in _SPLIT and run not in _WHOLE:
        return (run,)
    if len(run) > _LONG:
        return tuple(re.findall(r"\w+|[^\w\s]", run))
    start, end = 0, len(run)
    before: list[str] = []
    after: list[str] = []
    while start < end:
        rest = run[start:end]
        if rest in _WHOLE or rest in _SPLIT:
            break
        dots = _ELLIPSIS.match(rest)
        if dots:
            prefix = dots.end()
        else:
            plus = rest[0] == "+" and not rest[1:2].isdigit()
            prefix = 1 if plus or rest[0] in _PREFIX else 0
        if prefix and (rest[prefix:] in _WHOLE or rest[prefix:] in _SPLIT):
            before.append(rest[:prefix])
            start += prefix
            break
        suffix = 0
        if prefix < len(rest):
            tail = _TAIL.search(rest, max(prefix, len(rest) - 16))
            if tail:
                suffix = len(rest) - tail.start()
            elif rest[-1] in _SUFFIX:
                suffix = 1
        if suffix and (rest[:-suffix] in _WHOLE or rest[:-suffix] in _SPLIT):
            prefix = 0
        if not prefix and not suffix:
            break
        if prefix:
            before.append(rest[:prefix])
            start += prefix
        if suffix and start <= end - suffix:
            after.append(rest[len(rest) - suffix:])
            end -= suffix
    middle = run[start:end]
    if not middle:
        words = before
    elif middle in _SPLIT:
        words = [*before, *_SPLIT[middle]]
    elif middle in _WHOLE or middle.isalnum() or _URL.fullmatch(middle):
        words = [*before, middle]
    else:
        words = before
        position = 0
        for infix in _INFIX.finditer(middle):
            if infix.start() > position:
                words.append(middle[position:infix.start()])
            if infix.end() < len(middle) or infix.start() > 0:
                words.append(infix.group())
                position = infix.end()
        if position < len(middle):
            words.append(middle[position:])
    return _joined((*words, *reversed(after)))


def _joined(words: tuple[str, ...]) -> tuple[str, ...]:
    """Neighbours that make a known form are one word, as in spaCy: `):` of `f(x):` is a face."""
    if len(words) < 2:
        return words
    result: list[str] = []
    i = 0
    while i < len(words):
        size = next((n for n in (3, 2) if "".join(words[i:i + n]) in _WHOLE), 1)
        result.append("".join(words[i:i + size]))
        i += size
    return tuple(result)


class _Cache(dict[str, tuple[str, ...]]):
    """Run -> its words; emptied when full."""

    def __missing__(self, run: str) -> tuple[str, ...]:
        words = _cut(run)
        if len(run) <= _CACHED:
            if len(self) >= _CACHE_ENTRIES:
                self.clear()
            self[run] = words
        return words


_runs = _Cache()


def spaced_words(text: str) -> list[str]:
    """The words of a text in a language that writes spaces between them."""
    return list(itertools.chain.from_iterable(map(_runs.__getitem__, text.split())))


_SURROGATE = re.compile("[\ud800-\udfff]")
_LATIN = re.compile(r"[a-zA-Z0-9]+(?:\.[0-9]+)?%?|[+#&._%-]+|\S")


def chinese_words(text: str) -> list[str]:
    """The words of a Chinese text, without whitespace.

    Those of rjieba, with its model for words out of the dictionary; `AB-12`, which it keeps whole,
    is three words, as in jieba.
    """
    import rjieba  # its dictionary takes a second to load
    try:
        pieces = rjieba.cut(text)
    except UnicodeEncodeError:  # a lone surrogate, which no clean text holds
        pieces = rjieba.cut(_SURROGATE.sub("\ufffd", text))
    words: list[str] = []
    for word in pieces:
        if word.isalnum():
            words.append(word)
        else:
            words.extend(_LATIN.findall(word))
    return words


WORDS: dict[str, Callable[[str], list[str]]] = {"en": spaced_words, "zh": chinese_words}
"""How a text is cut into words, by the language whose thresholds judge it."""


def is_punctuation(word: str) -> bool:
    """Whether a word is made only of punctuation."""
    return word[0] in PUNCTUATION and PUNCTUATION.issuperset(word)


def count_sentences(words: Iterable[str]) -> int:
    """Sentences in a list of words: one begins at the start, and after closing marks.

    A mark ends a sentence when it is a word of its own, so that the points of `e.g.` and `3.5` do
    not; quotes and brackets after it belong to it (the rule of spaCy's sentencizer, as datatrove).
    """
    count = 0
    ended = True
    for word in words:
        if word in SENTENCE_ENDS:
            count = count or 1
            ended = True
        elif ended and (count == 0 or any(category(mark)[0] != "P" for mark in word)):
            count += 1
            ended = False
    return count
