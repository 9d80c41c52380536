"""Repairs of text, its language, and the rules that drop it."""

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_beam.clean.language import LanguageIdentifier
from data_beam.clean.normal_form import normalize
from data_beam.clean.text import clean_code, clean_prose
from data_beam.clean.width import width
from data_beam.config import FilterConfig, LanguageConfig
from data_beam.filters.basic import reason_to_drop


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


def test_languages_are_named_from_the_whole_text():
    identify = LanguageIdentifier()
    samples = {
        "en": "The committee will publish its report on the history of the city next week.",
        "zh": "委员会将于下周发表关于这座城市历史的报告，欢迎各界人士提出意见。",
        "de": "Der Ausschuss wird seinen Bericht über die Geschichte der Stadt veröffentlichen.",
        "ja": "委員会は来週、この都市の歴史に関する報告書を発表する予定です。",
        "hi": "समिति अगले सप्ताह शहर के इतिहास पर अपनी रिपोर्ट प्रकाशित करेगी।",
    }
    for language, text in samples.items():
        assert identify(text)[0] == language
    # The first 80 characters are English, the other 900 Chinese.
    name, score = identify("An English heading, one line before the " * 2 + samples["zh"] * 30)
    assert name == "zh" and 0.5 < score <= 1
    # A table drawn with dashes outweighed the text otherwise.
    assert identify(samples["zh"] * 5 + ("\n" + "-" * 300 + "+ | 5% | 10-20") * 40)[0] == "zh"
    assert identify("12 + 34 = 46\n\t*") == ("und", 0.0)
    assert identify("") == ("und", 0.0)


class _Guesses:
    """In place of fastText: it calls a page Catalan, as it did with one repeated page."""

    def detect(self, text, model, k):
        return [{"lang": "ca", "score": 0.495}, {"lang": "zh", "score": 0.3}][:k]


def test_a_text_in_han_characters_is_never_called_by_a_language_of_letters():
    identify = LanguageIdentifier()
    assert identify("天地玄黄" * 30)[0] == "zh"
    identify._detector = _Guesses()
    assert identify("茶的历史" * 100 + " tea")[0] == "zh"
    assert identify("tea and more tea 茶的历史") == ("ca", 0.495)
    strict = LanguageIdentifier(min_score=0.5)
    strict._detector = _Guesses()
    # What is left when the impossible is left out is Chinese, though it had 0.3 before.
    assert strict("茶的历史" * 100) == ("zh", 1.0)
    assert strict("tea and more tea") == ("und", 0.495)


@pytest.mark.parametrize("text, language", [
    ("委员会将于下周发表关于这座城市历史的报告，欢迎各界人士提出意见。\n" * 300, "zh"),
    ("第一条　为了规范，" * 40, "zh"),
    ("委员会将于下周发表报告 report 2026，欢迎各界人士提出意见 OK。" * 20, "zh"),
    ("The committee will publish its report on the history of the city.\n" * 300, "en"),
    ("委員会は来週、この都市の歴史に関する報告書を発表する予定です。" * 100, "ja"),
    # fastText says Japanese of these, which have no kana.
    ("春眠不觉晓，处处闻啼鸟。夜来风雨声，花落知多少。", "zh"),
    ("本品为白色结晶性粉末，无臭，味微苦。", "zh"),
    ("qx zv kj wq " * 40, "und"),
])
def test_languages_with_the_default_threshold(text, language):
    assert LanguageIdentifier(LanguageConfig().min_score)(text)[0] == language


RULES = FilterConfig(min_characters=10, short_line_width=30, max_short_line_fraction=0.67)


@pytest.mark.parametrize("text, reason", [
    ("", "empty after extraction"), (" ", "empty after extraction"),
    ("\n", "empty after extraction"), ("\u3000\t\n ", "empty after extraction"),
    ("word", "too short"), ("a b c d e f g h i", "too short"),
    ("x" * 10_000_000, None),
    ("\n".join(["Home"] * 20), "short lines"),
    ("\n".join(["首页", "关于我们", "联系方式", "新闻中心", "产品介绍"]), "short lines"),
])
def test_every_text_gets_a_decision(text, reason):
    failed = reason_to_drop(text, False, RULES)
    assert (failed and failed[0]) == reason


def test_the_share_of_short_lines_is_exact():
    long, short = "a line that is certainly longer than thirty columns", "short"
    # 2 of 3 is 0.667, under 0.67; 21 of 31 is 0.677, over it.
    assert reason_to_drop("\n\n".join([short] * 20 + [long] * 10), False, RULES) is None
    failed = reason_to_drop("\n\n".join([short] * 21 + [long] * 10), False, RULES)
    assert failed == ("short lines", "0.677 of the lines, more than 0.67")
    assert reason_to_drop("\n".join([short] * 21), True, RULES) is None  # code has short lines


def test_chinese_lines_are_measured_in_columns():
    # 16 Han characters are 32 columns: a sentence, not a menu entry.
    text = "\n".join(["天下大势分久必合合久必分周末七国"] * 10)
    assert reason_to_drop(text, False, RULES) is None
    assert width("中文ab") == 6 and width("e\u0301") == 1 and width("，") == 2


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
