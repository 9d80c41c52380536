"""Repairs of text: what is damaged is repaired and recorded, and nothing else changes."""

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_beam.clean.repairs import clean_code, clean_prose, normalize


def clean(text: str) -> str:
    return clean_prose(text, fix_mojibake=True, normalization="NFC")[0]


@pytest.mark.parametrize("good", [
    "裡が、「全角」，。！？：；（）《》“”‘’……——ＡＢＣ１２３ ﾊﾝｶｸ",
    "が ぱ ヴ",  # must not become か + mark, nor lose it
    "می‌خواهم نمی‌توانم",  # ZWNJ
    "क्‍ष ශ්‍රී",  # ZWJ in Indic scripts
    "👨‍👩‍👧‍👦 👍🏽 🏳️‍🌈",  # ZWJ and variation selectors in emoji
    "\u200fעברית\u200e and العربية",  # direction marks
    "naïve café – “quoted” ‘so’ … ™ ½ 10³ µm ﬁ Ⅻ №",
    "<b>&amp; &lt;p&gt;</b> C:\\new\\table",
    "Ω≈ç√∫˜µ≤≥÷ ÁÉÍÓÚ",
    "tab\tinside and  two spaces",
])
def test_good_text_is_not_touched(good):
    assert clean_prose(good, True, "NFC") == (good, ())


@pytest.mark.parametrize("bad, repaired, name", [
    ("schÃ¶n", "schön", "mojibake"),
    ("茶的历史，起源于中国".encode().decode("latin-1"), "茶的历史，起源于中国", "mojibake"),
    ("It â€™s here", "It ’s here", "mojibake"),
    ("a\u200bb\ufeffc\u2060d\u00ade", "abcde", "invisible_characters"),
    ("か\u3099 e\u0301", "が é", "NFC"),
    ("a\x00b\x07c\x7fd\ufffcé", "abcdé", "control_characters"),
    ("a\r\nb\rc\u2028d\x0ce", "a\nb\nc\nd\ne", "line_ends"),
    ("  a  \n\n\n\n\nb\t\n\n", "a\n\nb", "whitespace"),
])
def test_damage_is_repaired_and_recorded(bad, repaired, name):
    assert clean_prose(bad, True, "NFC") == (repaired, (name,))


def test_repairs_can_be_switched_off():
    assert clean_prose("schÃ¶n e\u0301", False, "none") == ("schÃ¶n e\u0301", ())


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_repairs_never_fail_and_leave_no_control_character(text):
    result = clean(text)
    assert unicodedata.is_normalized("NFC", result)
    assert not set(result) & set("\r\0\x7f\u200b\ufeff\x85\u2028")
    assert result == result.strip("\n ")


def test_code_gets_line_ends_only():
    code = "\tx = 'schÃ¶n\u200b'  \r\n\r\n\r\n\r\ny = 1\r\n\r\n"
    assert clean_code(code) == ("\tx = 'schÃ¶n\u200b'  \n\n\n\ny = 1\n", ("line_ends",))
    assert clean_code(" \n") == ("", ())


@pytest.mark.parametrize("text", [
    "Total" + " " * 2_000_000 + "100", "Total" + "\t \u3000" * 700_000 + "100",
    "e" + "\u0301\u0323" * 500_000, "\u0f71" * 500_000 + "\u0f72" * 500_000,
    " \n" * 500_000, "\u3000" * 1_000_000], ids=lambda text: repr(text[:7]))
def test_long_runs_end_in_bounded_time(text):  # their squares take minutes or hours
    assert len(clean_prose(text, True, "NFC")[0]) <= 1.04 * len(text)


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_normal_forms_are_unicodes_own_up_to_30_marks(form):
    for text in ("e\u0301", "Việt Nam", "\uac00\u1100", "ﬁ①Ａ", "a" + "\u0323\u0301" * 15 + "b",
                 "\ud800 e\u0301", "\U0001d165\U0001d15e", "plain"):
        assert normalize(form, text) == unicodedata.normalize(form, text)


@pytest.mark.parametrize(("marks", "parts"), [(30, [30]), (31, [30, 1]), (60, [30, 30]),
                                              (61, [30, 30, 1])])
def test_longer_runs_are_parted(marks, parts):
    # UAX 15, D4: U+034F before each non-starter that would be the 31st.
    text = normalize("NFD", "xe" + "\u0301" * marks + "y" + "e\u0323\u0301")
    assert text.endswith("ye\u0323\u0301") and text.startswith("xe")
    assert [len(part) for part in text[2:-4].split("\u034f")] == parts


def test_no_marks_beyond_the_planes_that_are_looked_at():
    assert not any(unicodedata.combining(chr(code)) for code in range(0x20000, 0x110000))


@pytest.mark.parametrize("escaped, plain", [
    ("\x1b[31mred\x1b[0m and \x1b[1;38;5;200mbold\x1b[m", "red and bold"),
    ("\x1b[2K\x1b[?25l50 %\x1b[1A", "50 %"), ("茶\x1b[32m的\x1b[0m历史", "茶的历史"),
    ("\x1b]8;;http://e.org\x07link\x1b]8;;\x07", "link"),
    ("\x1b]0;title\x1b\\text", "text"), ("\x1b(Bline\x1b=", "line"),
    ("\x1bP1;2q#0\x1b\\picture", "picture"),
    ("[31m and ]8;; are no escapes", "[31m and ]8;; are no escapes"),
    ("a stray \x1bescape", "a stray escape"), ("\x1b]no end\nnext line", "]no end\nnext line"),
    ("\x1b[31", "[31"),
])
@pytest.mark.parametrize("fix_mojibake", [True, False])
def test_escape_sequences_of_terminals_go(escaped, plain, fix_mojibake):
    text, changed = clean_prose(escaped, fix_mojibake, "NFC")
    assert text == plain
    assert ("terminal_escapes" in changed) == (escaped.replace("\x1b", "") != plain)


@pytest.mark.parametrize("piece", ["\x1b[", "\x1b]", "\x1b]a", "\x1b[1", "\x1b[ ", "\x1bP\x1b]"])
def test_escape_sequences_take_linear_time(piece):
    begin = time.process_time()
    clean_prose(piece * 500_000, True, "NFC")
    assert time.process_time() - begin < 20
