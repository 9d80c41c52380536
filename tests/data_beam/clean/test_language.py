"""The language of a document: two votes, the threshold, the list of languages to keep."""

import dataclasses
import re
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_beam.base.records import Document, Dropped
from data_beam.clean.language import LanguageFilter, LanguageIdentifier, cld2_share
from data_beam.config import LanguageConfig, RecipeConfig
from maxlm.config.schema import ConfigError, build
from tests.data_beam.filters.cases import document

TEXTS = {
    "en": "The committee will publish its report on the history of the city next week. ",
    "zh": "委员会将于下周发表关于这座城市历史的报告，欢迎各界人士提出意见。",
    "de": "Der Ausschuss wird seinen Bericht über die Geschichte der Stadt veröffentlichen. ",
    "fr": "Le comité publiera son rapport sur l'histoire de la ville la semaine prochaine. ",
    "ja": "委員会は来週、この都市の歴史に関する報告書を発表する予定です。",
    "ru": "Комитет опубликует свой доклад об истории города на следующей неделе. ",
    "ar": "ستنشر اللجنة تقريرها عن تاريخ المدينة في الأسبوع المقبل. ",
    "he": "הוועדה תפרסם את הדוח שלה על ההיסטוריה של העיר בשבוע הבא. ",
    "ko": "위원회는 다음 주에 도시의 역사에 관한 보고서를 발표할 예정입니다. ",
}


def named(text, guess=None, **config):
    rule = LanguageFilter(LanguageConfig(**config))
    if guess:
        rule._identify = lambda text: guess  # in place of fastText
    result = rule(document(text, ""))
    assert isinstance(result, Document)
    return result.language, result.language_score


@pytest.mark.parametrize("language", TEXTS)
def test_both_models_name_nine_languages(language):
    text = TEXTS[language] * 5
    assert named(text)[0] == language
    name, score = named(text, second_vote="cld2")
    share = cld2_share(text, language)
    assert name == language and share is not None and share > 0.9
    assert score == pytest.approx((named(text)[1] + share) / 2, abs=1e-4)


def test_a_second_vote_decides_by_the_mean():
    text = TEXTS["en"] * 10
    share = cld2_share(text, "en")
    assert share == 0.99  # CLD2 never says 100 %
    # Contradicted: 0.9 becomes 0.45. Confirmed: 0.3 becomes 0.645.
    assert named(text, ("tr", 0.9), second_vote="cld2") == ("und", 0.45)
    assert named(text, ("en", 0.3), second_vote="cld2") == ("en", 0.645)
    assert named(text, ("en", 0.3)) == ("und", 0.3)
    assert named(text, ("tr", 0.9)) == ("tr", 0.9)
    # The threshold is that of the mean.
    assert named(text, ("tr", 0.9), second_vote="cld2", min_score=0.45) == ("tr", 0.45)
    assert named(text, ("en", 0.009), second_vote="cld2") == ("und", 0.4995)
    assert named(text, ("en", 0.01), second_vote="cld2") == ("en", 0.5)
    # No opinion is no vote.
    assert cld2_share("12 34", "en") is None
    assert named("12 34", ("en", 0.7), second_vote="cld2") == ("en", 0.7)
    assert named("", second_vote="cld2") == ("und", 0.0)


def test_half_of_a_text_in_another_language_is_half_a_vote():
    mixed = TEXTS["en"] * 10 + TEXTS["ru"] * 10
    share = cld2_share(mixed, "ru")
    assert share is not None and 0.4 < share < 0.7


def test_codes_that_cld2_does_not_have_are_compared_with_their_family():
    share = cld2_share(TEXTS["zh"] * 5, "yue")
    assert share is not None and share > 0.9
    traditional = "委員會將於下週發表關於這座城市歷史的報告，歡迎各界人士提出意見。" * 5
    assert cld2_share(TEXTS["zh"] * 5, "wuu") == cld2_share(traditional, "zh") == share


def test_only_listed_languages_are_kept():
    rule = LanguageFilter(LanguageConfig(languages=("en", "und")))
    for text in (TEXTS["en"] * 5, "12 34"):
        assert isinstance(rule(document(text, "")), Document)
    result = rule(document(TEXTS["de"] * 5, ""))
    assert isinstance(result, Dropped) and result.detail.startswith("de 0.")
    assert (result.stage, result.reason) == ("language", "other language")
    assert isinstance(LanguageFilter(LanguageConfig(languages=("en",)))(document("12 34", "")),
                      Dropped)


@pytest.mark.parametrize("values, message", [
    ({"languages": ["cn"]}, "'cn' is not a language code of lid.176"),
    ({"languages": ["EN"]}, "'EN'"), ({"languages": ["eng"]}, "did you mean 'en'?"),
    ({"languages": ["zh-cn"]}, "did you mean 'zh'?"), ({"second_vote": "langid"}, "none, cld2")])
def test_mistakes_in_the_section(values, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        build(LanguageConfig, values, "config.language")


@given(st.text(alphabet=st.characters(), max_size=300))
@settings(max_examples=60, deadline=None)
def test_any_string_has_a_language(text):
    rule = LanguageFilter(LanguageConfig(second_vote="cld2", languages=("en", "und")))
    result = rule(document(text.encode("utf-8", "ignore").decode("utf-8"), ""))
    assert isinstance(result, Document | Dropped)
    cld2_share(text, "en")


@pytest.mark.parametrize("unit", ["x", "字", "\n", "word ", "\x00", "\ufffe", "🏳️‍🌈", " "])
def test_long_texts_take_bounded_time(unit):
    LanguageFilter(LanguageConfig(second_vote="cld2"))(document(unit * (500_000 // len(unit)), ""))


def test_a_source_may_know_its_language():
    """As the recipe says, even where every model would say something else; code has its own."""
    keeps_english = LanguageFilter(LanguageConfig(languages=("en",)))
    assert keeps_english(document(TEXTS["de"] * 5, "en")) == dataclasses.replace(
        document(TEXTS["de"] * 5, "en"), language_score=None)
    assert isinstance(keeps_english(document(TEXTS["en"] * 5, "de")), Dropped)
    code = dataclasses.replace(document("print(1)", "python"), is_code=True)
    assert keeps_english(code) is code
    with pytest.raises(ConfigError, match=r"sources\[0\].language: 'eng' is not a language code"):
        build(RecipeConfig, {"sources": [{
            "name": "s", "domain": "d", "licence": "l", "language": "eng",
            "inputs": [{"root": "/r", "pattern": "*", "format": "text"}]}]})


def test_languages_are_named_from_the_whole_text():
    identify = LanguageIdentifier()
    # The first 80 characters are English, the other 900 Chinese.
    name, score = identify("An English heading, one line before the " * 2 + TEXTS["zh"] * 30)
    assert name == "zh" and 0.5 < score <= 1
    # A table drawn with dashes outweighed the text otherwise.
    assert identify(TEXTS["zh"] * 5 + ("\n" + "-" * 300 + "+ | 5% | 10-20") * 40)[0] == "zh"
    assert identify("12 + 34 = 46\n\t*") == ("und", 0.0)
    assert identify("") == ("und", 0.0)


def test_a_text_in_han_characters_is_never_called_by_a_language_of_letters():
    # In place of fastText, which once called a page of Han characters Catalan.
    guesses = [{"lang": "ca", "score": 0.495}, {"lang": "zh", "score": 0.3}]
    detector = SimpleNamespace(detect=lambda text, model, k: guesses[:k])
    identify, strict = LanguageIdentifier(), LanguageIdentifier(min_score=0.5)
    assert identify("天地玄黄" * 30)[0] == "zh"
    identify._detector = strict._detector = detector
    assert identify("茶的历史" * 100 + " tea")[0] == "zh"
    assert identify("tea and more tea 茶的历史") == ("ca", 0.495)
    # What is left when the impossible is left out is Chinese, though it had 0.3 before.
    assert strict("茶的历史" * 100) == ("zh", 1.0)
    assert strict("tea and more tea") == ("und", 0.495)


@pytest.mark.parametrize("text, language", [
    (TEXTS["zh"] * 300, "zh"), (TEXTS["en"] * 300, "en"), (TEXTS["ja"] * 100, "ja"),
    ("第一条　为了规范，" * 40, "zh"),
    ("委员会将于下周发表报告 report 2026，欢迎各界人士提出意见 OK。" * 20, "zh"),
    # fastText says Japanese of these, which have no kana.
    ("春眠不觉晓，处处闻啼鸟。夜来风雨声，花落知多少。", "zh"),
    ("本品为白色结晶性粉末，无臭，味微苦。", "zh"),
    ("qx zv kj wq " * 40, "und"),
])
def test_languages_with_the_default_threshold(text, language):
    assert LanguageIdentifier(LanguageConfig().min_score)(text)[0] == language
