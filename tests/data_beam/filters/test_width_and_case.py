"""Full-width forms count as ASCII, and words are compared without case."""

import pytest

from data_beam.base.characters import fold_case, fold_width
from data_beam.base.records import Document, Dropped
from data_beam.clean.language import LanguageFilter
from data_beam.config import FilterConfig, LanguageConfig, SafetyConfig
from data_beam.config.filters import filter_names
from data_beam.filters import GopherQualityConfig, GopherQualityThresholds
from data_beam.filters.basic import BasicFilter
from data_beam.models.safety import SafetyFilter
from tests.data_beam.filters.cases import document, generated, make, outcome, reason

_WIDE = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}
_WIDE_CHINESE = {code: to for code, to in _WIDE.items() if chr(code) not in "!(),:;?"}
STATUTE = "\n".join(
    f"第{i}条 自1998年1月{i}日起，凡占地{i}50.5%以上、投资{i}00万元者（含A-{i}类），"
    f"应当依照本法第{i + 3}条缴纳{i}2000元！"
    for i in range(1, 12))
CHINESE = [
    STATUTE, "1998 10 25 3.14 50% 7-8 2000\n" * 20, "ABC 公司 2023年12月 增长5.2%，\n" * 9,
    "[12:30] <ann> 你好\n" * 9, "模板里写着{name}，没有人替换它。" * 9,
    "# 标题 ... 的 #\n- 和 ...\n" * 30, "委员会发表报告A-1。" * 40, "www.a.com看第12章。\n" * 99]


def test_every_position_stays():
    text = "".join(map(chr, range(0x20, 0x30000)))
    for marks, plain in ((True, ""), (False, "！（），：；？")):
        folded = fold_width(text, marks)
        assert len(folded) == len(text)
        changed = {a: b for a, b in zip(text, folded, strict=True) if a != b}
        assert changed == {chr(to): chr(code) for code, to in _WIDE.items() if chr(to) not in plain}


@pytest.mark.parametrize("name", filter_names())
def test_wide_texts_have_the_decisions_of_ascii(name):
    """And what a filter keeps of a text, it keeps as it is written."""
    (judge,) = make(name)
    reasons = set()
    for texts, language, table in (([generated(seed) for seed in range(60)], "en", _WIDE),
                                   (CHINESE, "zh", _WIDE_CHINESE)):
        for text in texts:
            plain, wide = (judge(document(each, language)) for each in (
                text, text.translate(table)))
            if isinstance(plain, Document):
                assert isinstance(wide, Document), (name, text)
                assert wide.text == plain.text.translate(table)
                reasons.add(None)
            else:
                assert isinstance(wide, Dropped) and wide.reason == plain.reason, (name, text)
                assert wide.detail.partition(" '")[0] == plain.detail.partition(" '")[0]
                reasons.add(plain.reason)
    assert len(reasons) > 1 or name in ("repeated_sentences", "entropy"), reasons


def test_the_other_filters_too():
    basic = BasicFilter(FilterConfig())
    lines = "\n".join(["A line with 12 words, or so."] * 6)  # 28 columns; full-width it has 50
    for text in (lines, lines.translate(_WIDE_CHINESE)):
        result = basic(document(text))
        assert isinstance(result, Dropped) and result.reason == "short lines"
    name = LanguageFilter(LanguageConfig(second_vote="cld2"))
    english = "The committee will publish its report on the history of the city next week. " * 5
    named = [name(document(text, "")) for text in (english, english.translate(_WIDE_CHINESE))]
    assert named[0].language == named[1].language == "en"  # type: ignore[union-attr]
    assert named[0].language_score == named[1].language_score  # type: ignore[union-attr]
    safe = SafetyFilter(SafetyConfig(default_keywords=True, keyword_saturation=0.01))
    for text in ("free porn videos", "ｆｒｅｅ ＰＯＲＮ ｖｉｄｅｏｓ"):
        assert isinstance(safe(document(text)), Dropped)


BODY = " ".join(f"lantern{i} harbour{i} sailor{i}" for i in range(20)).translate(
    {ord(str(i)): "abcdefghij"[i] for i in range(10)})


@pytest.mark.parametrize("words, stop_words", [
    ("DASS STRASSE", ("daß", "straße")), ("daß straße", ("DASS", "Strasse")),
    ("ΟΔΟΣ και", ("οδος", "ΚΑΙ")), ("ile gibi", ("İLE", "GİBİ"))])
def test_stop_words_of_the_recipe_are_compared_without_case(words, stop_words):
    section = GopherQualityConfig(en=GopherQualityThresholds(stop_words=stop_words))
    assert reason("gopher_quality", f"{words} {BODY}", gopher_quality=section) is None


def test_capitals_pass_like_small_letters():
    """A title-case or upper-case article has the same stop words and policy phrases."""
    article = "it was the best of times and we were with them in the city that they built. " * 9
    policy = "by using the site you accept our privacy policy and the terms of use.\n\n"
    for change in (str.lower, str.title, str.upper, lambda text: text.upper().replace("I", "İ")):
        for name in ("gopher_quality", "roots"):
            assert reason(name, change(article)) is None, (name, change)
        assert reason("nemo", change(policy) * 6) == "boilerplate"
        assert reason("c4", change(policy) * 6) == "too few sentences"
        kept = outcome("c4", change(article) + "\n" + change("please enable javascript now."))
        assert isinstance(kept, Document) and kept.text == change(article).strip()


def test_foldings_of_letters():
    assert fold_case("The STRASSE İI ıi ΣΑΣ ﬁ") == fold_case("tHE straße iı Iİ σας fi")
    assert fold_case("中文 e\u0301") == "中文 e\u0301"
