"""The language of a document: two votes, the threshold, the list of languages to keep."""

import re

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_beam import prepare
from data_beam.base.records import Document, Dropped
from data_beam.clean.language import LanguageFilter, LanguageIdentifier, cld2_share
from data_beam.config import InputConfig, LanguageConfig, RecipeConfig, SourceConfig
from data_beam.runners import beam_options
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


class _Guess:
    """In place of fastText."""

    def __init__(self, language, score):
        self._guess = language, score

    def __call__(self, text):
        return self._guess


def named(text, guess=None, **config):
    rule = LanguageFilter(LanguageConfig(**config))
    if guess:
        rule._identify = _Guess(*guess)
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


@pytest.mark.parametrize("code, text", [("yue", "zh"), ("wuu", "zh")])
def test_codes_that_cld2_does_not_have_are_compared_with_their_family(code, text):
    share = cld2_share(TEXTS[text] * 5, code)
    assert share is not None and share > 0.9
    traditional = "委員會將於下週發表關於這座城市歷史的報告，歡迎各界人士提出意見。" * 5
    assert cld2_share(traditional, "zh") == share


def test_only_listed_languages_are_kept():
    rule = LanguageFilter(LanguageConfig(languages=("en", "zh")))
    for language, text in TEXTS.items():
        result = rule(document(text * 5, ""))
        if language in ("en", "zh"):
            assert isinstance(result, Document) and result.language == language
        else:
            assert isinstance(result, Dropped)
            assert (result.stage, result.reason) == ("language", "other language")
            assert result.detail.startswith(language)
    assert isinstance(rule(document("12 34", "")), Dropped)
    both = LanguageFilter(LanguageConfig(languages=("en", "und")))
    assert isinstance(both(document("12 34", "")), Document)


@pytest.mark.parametrize("code, message", [
    ("cn", "'cn' is not a language code of lid.176"), ("eng", "did you mean 'en'?"), ("EN", "'EN'"),
    ("zh-cn", "did you mean 'zh'?")])
def test_an_unknown_code_is_an_error(code, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        build(LanguageConfig, {"languages": [code]}, "config.language")


def test_an_unknown_second_vote_is_an_error():
    with pytest.raises(ConfigError, match="none, cld2"):
        build(LanguageConfig, {"second_vote": "langid"}, "config.language")


@given(st.text(alphabet=st.characters(), max_size=300))
@settings(max_examples=300, deadline=None)
def test_any_string_has_a_language(text):
    rule = LanguageFilter(LanguageConfig(second_vote="cld2", languages=("en", "und")))
    result = rule(document(text.encode("utf-8", "ignore").decode("utf-8"), ""))
    assert isinstance(result, Document | Dropped)
    cld2_share(text, "en")


@pytest.mark.parametrize("unit", ["x", "字", "\n", "word ", "\x00", "\ufffe", "🏳️‍🌈", " "])
def test_long_texts_take_bounded_time(unit):
    LanguageFilter(LanguageConfig(second_vote="cld2"))(document(unit * (500_000 // len(unit)), ""))


def test_a_source_may_know_its_language(tmp_path):
    """As the recipe says, even where every model would say something else; code has its own."""
    (tmp_path / "a.txt").write_text(TEXTS["de"] * 5, "utf-8")
    (tmp_path / "b.py").write_text("def f(x):\n    return x + 1\n" + "print(f(1), f(2))\n" * 3)

    def recipe(language: str, *keep: str) -> RecipeConfig:
        return RecipeConfig(
            sources=(SourceConfig("s", "general", "MIT", (
                InputConfig(str(tmp_path), "*.txt", "text"),
                InputConfig(str(tmp_path), "*.py", "python")), language=language),),
            language=LanguageConfig(languages=keep), shards=1)

    def made(output: str, recipe: RecipeConfig) -> dict[str, tuple[str, float | None]]:
        prepare.prepare(recipe, str(tmp_path / output), beam_options.pipeline_options([]))
        rows = pq.read_table(tmp_path / output / "documents").to_pylist()
        return {row["path"]: (row["language"], row["language_score"]) for row in rows}

    assert made("en", recipe("en")) == {"a.txt": ("en", None), "b.py": ("python", None)}
    found = made("found", recipe(""))
    assert found["a.txt"][0] == "de" and found["a.txt"][1] > 0.9
    assert made("dropped", recipe("en", "zh")).keys() == {"b.py"}
    with pytest.raises(ConfigError, match=r"sources\[0\].language: 'eng' is not a language code"):
        build(RecipeConfig, {"sources": [{
            "name": "s", "domain": "d", "licence": "l", "language": "eng",
            "inputs": [{"root": "/r", "pattern": "*", "format": "text"}]}]})


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
