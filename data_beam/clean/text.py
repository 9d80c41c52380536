"""Repairs: mojibake, control and zero-width characters, line ends, normal forms, whitespace."""

import re

import ftfy

from data_beam.clean.normal_form import normalize

# Only what damages text is repaired. Full-width punctuation, ligatures and curly quotes are
# someone's choice (and が must not become か), so those fixes are off; NFC is done below.
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
# Only from the start of a run, and never less than all of it: else a run takes its square.
_TRAILING = re.compile(r"(?<![ \t\u3000])[ \t\u3000]++$", re.MULTILINE)
_BLANK_RUN = re.compile(r"\n{3,}")


def clean_code(text: str) -> tuple[str, tuple[str, ...]]:
    """Source code with LF line ends and one at the end; nothing else is touched."""
    result = text.replace("\r\n", "\n").replace("\r", "\n")
    changed = ("line_ends",) if result != text else ()
    return (result.rstrip() + "\n" if result.strip() else ""), changed


def _without_mojibake(text: str) -> str:
    """ftfy looks at one line after the other; those in ASCII have nothing for it."""
    return "\n".join(line if line.isascii() else ftfy.fix_text(line, _FTFY)
                     for line in text.split("\n"))


def clean_prose(text: str, fix_mojibake: bool, normalization: str) -> tuple[str, tuple[str, ...]]:
    """Repaired prose and the names of the repairs that changed it, in order.

    Terminals' escape sequences go; mojibake is repaired (ftfy); line ends become LF; control and
    zero-width characters go; Unicode is put into `normalization` (`NFC`, `NFKC` or `none`);
    trailing spaces and runs of blank lines are trimmed. Good text passes unchanged but for
    whitespace, and for what NFKC makes plain.
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
        step("mojibake", _without_mojibake(text))
    step("line_ends", _LINE_END.sub("\n", text))
    step("control_characters", _CONTROL.sub("", text))
    if not text.isascii():
        step("invisible_characters", _INVISIBLE.sub("", text))
        if normalization in ("NFC", "NFKC"):
            form = "NFKC" if normalization == "NFKC" else "NFC"
            step(form, normalize(form, text))
    step("whitespace", _BLANK_RUN.sub("\n\n", _TRAILING.sub("", text)).strip("\n \t\u3000\v"))
    return text, tuple(changed)
