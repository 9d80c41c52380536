"""Repairs of text: mojibake, invisible characters, line ends, normal forms, whitespace."""

import functools
import re
import unicodedata
from collections.abc import Iterable
from typing import Literal

import ftfy
import numpy as np

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]

# Only what damages text is repaired. Full-width punctuation, ligatures and curly quotes are the
# author's choice (and が must not become か), so those fixes are off; NFC is done below.
_FTFY = ftfy.TextFixerConfig(
    unescape_html=False, fix_encoding=True, fix_c1_controls=True, fix_surrogates=True,
    remove_terminal_escapes=False, fix_latin_ligatures=False, fix_character_width=False,
    uncurl_quotes=False, fix_line_breaks=False, remove_control_chars=False, normalization=None,
    explain=False)

# Control sequences (colours), strings (links, titles) to their end in the line, and character sets,
# of ECMA-48 (sections 5.4 and 5.6) and xterm. Other pairs of ESC and a character may be damage.
_TERMINAL_ESCAPE = re.compile(
    r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|[\]PX^_][^\x07\x1b\n]*+(?:\x07|\x1b\\)|[()][AB0-2]|[=>])")
# Zero-width space, word joiner, byte order mark and soft hyphen carry no text. ZWJ, ZWNJ and the
# direction marks (U+200C to U+200F) do, in Persian, Indic scripts and emoji.
_INVISIBLE = re.compile("[\u200b\u2060\ufeff\u00ad]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\x80-\x84\x86-\x9f\u206a-\u206f\ufff9-\ufffc]")
_LINE_END = re.compile("\r\n|[\r\x85\u2028\u2029\x0c]")
# Matches whole runs only, from their start: otherwise the time grows with the square of a run.
_TRAILING = re.compile(r"(?<![ \t\u3000])[ \t\u3000]++$", re.MULTILINE)
_BLANK_RUN = re.compile(r"\n{3,}")

MAX_MARK_RUN = 30
"""Combining marks in a row in the Stream-Safe Text Format (Unicode Standard Annex 15, section 13),
"significantly beyond what is required for any linguistic or technical usage"."""
_MARK_CODES = 0x20000
"""Combining marks are in planes 0 and 1; the others hold ideographs, tags and private use."""
_JOINER = "\u034f"  # combining grapheme joiner: invisible, ends a run of combining marks


def clean_code(text: str) -> tuple[str, tuple[str, ...]]:
    """Source code with LF line ends and one at the end; nothing else changes."""
    result = text.replace("\r\n", "\n").replace("\r", "\n")
    changed = ("line_ends",) if result != text else ()
    return (result.rstrip() + "\n" if result.strip() else ""), changed


def _fix_mojibake(text: str) -> str:
    """ftfy works line by line, and changes no line in ASCII."""
    return "\n".join(line if line.isascii() else ftfy.fix_text(line, _FTFY)
                     for line in text.split("\n"))


def clean_prose(text: str, fix_mojibake: bool, normalization: str) -> tuple[str, tuple[str, ...]]:
    """Repaired prose and the names of the repairs that changed it, in order.

    Removes terminal escape sequences, repairs mojibake (ftfy), makes line ends LF, removes control
    and zero-width characters, puts Unicode into `normalization` (`NFC`, `NFKC` or `none`), trims
    trailing spaces and runs of blank lines. Undamaged text changes only in whitespace, and in what
    NFKC replaces.
    """
    changed: list[str] = []

    def step(name: str, result: str) -> None:
        nonlocal text
        if result != text:
            changed.append(name)
            text = result

    if "\x1b" in text:
        step("terminal_escapes", _TERMINAL_ESCAPE.sub("", text))
    if fix_mojibake and not text.isascii():  # first: a C1 "line end" may be half a character
        step("mojibake", _fix_mojibake(text))
    step("line_ends", _LINE_END.sub("\n", text))
    step("control_characters", _CONTROL.sub("", text))
    if not text.isascii():
        step("invisible_characters", _INVISIBLE.sub("", text))
        if normalization in ("NFC", "NFKC"):
            form = "NFKC" if normalization == "NFKC" else "NFC"
            step(form, normalize(form, text))
    step("whitespace", _BLANK_RUN.sub("\n\n", _TRAILING.sub("", text)).strip("\n \t\u3000\v"))
    return text, tuple(changed)


@functools.cache
def _is_combining_mark() -> np.ndarray:
    """By code point, whether it is a mark with a combining class: [_MARK_CODES] bool."""
    return np.fromiter((unicodedata.combining(chr(code)) > 0 for code in range(_MARK_CODES)), bool,
                       _MARK_CODES)


def combining_mark_indices(text: str) -> np.ndarray:
    """Indices of the marks with a combining class: [marks] int."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    return np.flatnonzero(_is_combining_mark()[np.minimum(codes, _MARK_CODES - 1)])


def insert_joiners(text: str, indices: Iterable[int]) -> str:
    """The text with U+034F before each of the indices, which ascend."""
    cuts = list(indices)
    return _JOINER.join(text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True))


def stream_safe(text: str) -> str:
    """The text with U+034F behind each 30th mark of a run, for a library that normalises it.

    Python sorts the marks behind a character in time that grows with the square of their number:
    ten seconds for 100,000.
    """
    if text.isascii():
        return text
    marks = combining_mark_indices(text)
    if not (marks[MAX_MARK_RUN:] - marks[:-MAX_MARK_RUN] == MAX_MARK_RUN).any():
        return text
    number = np.arange(len(marks))
    first = np.concatenate([[True], np.diff(marks) > 1])  # of its run
    in_run = number - np.maximum.accumulate(np.where(first, number, 0))
    return insert_joiners(text, marks[(in_run > 0) & (in_run % MAX_MARK_RUN == 0)])


def normalize(form: Form, text: str) -> str:
    """The text in a normal form, in time linear in its length (see `stream_safe`)."""
    return unicodedata.normalize(form, stream_safe(text))
