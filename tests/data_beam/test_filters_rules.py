"""Which documents rule sets judge, by which table; rules of our own; any string gets a decision."""

import dataclasses
import re

import pytest
from data_beam.filters.rule_sets import NAMES, make_rule_sets
from hypothesis import given, settings
from hypothesis import strategies as st

from data_beam.base.records import Document, Dropped
from data_beam.config import FilterConfig, RecipeConfig, SourceConfig
from data_beam.config import rule_sets as tables
from data_beam.config.checks import LANGUAGES
from data_beam.config.filters import RULE_SETS
from data_beam.config.sources import InputConfig
from data_beam.filters.chain import judge, make_rules
from maxlm.config.schema import ConfigError, build
from tests.data_beam.filter_cases import document, outcome, reason

ALL = FilterConfig(rules=RULE_SETS)


def test_every_named_rule_set_exists_and_carries_its_name():
    assert NAMES == RULE_SETS
    assert [rule.stage for rule in make_rule_sets(ALL)] == list(RULE_SETS)
    assert make_rule_sets(FilterConfig()) == []  # off unless asked for


def test_rules_run_in_the_order_of_the_recipe():
    source = SourceConfig("a", "general", "MIT", (InputConfig("r", "*", "text"),))
    config = FilterConfig(rules=("fineweb", "c4"))
    rules = make_rules(RecipeConfig(sources=(source,), filters=config))
    assert [rule.stage for rule in rules][-2:] == ["fineweb", "c4"]
    line = "The committee will publish the report on the history of the city next week"
    text = "\n".join(f"{line}, part {i} of it." for i in range(9)) + f"\n{line}"
    *_, (stage, result) = judge(document(text), rules)
    assert stage == "c4" and isinstance(result, Document)
    assert result.text.count("\n") == 8 and result.transforms == ("c4:lines",)


@pytest.mark.parametrize("values, message", [
    ({"rules": ["gopher_qualty"]}, "did you mean 'gopher_quality'?"),
    ({"rules": ["c4", "c4"]}, "'c4' is there twice"),
    ({"same_as": ["fr"]}, "'fr' is not LANGUAGE=TABLE"),
    ({"same_as": ["fr=de"]}, "tables: en, zh"),
    ({"same_as": ["xx=en"]}, "'xx' is no language code"),
    ({"same_as": ["zh=en"]}, "'zh' has a table already"),
    ({"same_as": ["ja=en"]}, "the words of 'ja' are not cut like those of 'en'"),
    ({"same_as": ["fr=zh"]}, "not cut like those of 'zh'"),
    ({"other_languages": "pass"}, "not one of drop, keep"),
    ({"gopher_quality": {"zh": {"min_word": 3}}}, "did you mean 'min_words'?"),
    ({"gopher_quality": {"de": {}}}, "no such field"),
    ({"gopher_quality": {"en": {"stop_words": []}}}, "fewer than min_stop_words"),
    ({"gopher_repetition": {"en": {"max_top_ngram": [-0.1]}}}, "must not be negative"),
    ({"c4": {"preset": "allenai"}}, "not one of tfds, datatrove"),
])
def test_a_mistake_in_the_recipe_is_named(values, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        build(FilterConfig, values, "config.filters")


def test_a_language_without_thresholds_meets_a_named_policy():
    text = "Der Ausschuss wird seinen Bericht über die Geschichte der Stadt veröffentlichen. " * 20
    for rule in (name for name in RULE_SETS if name != "chat_log"):
        dropped = outcome(rule, text, "de")
        assert isinstance(dropped, Dropped)
        assert (dropped.reason, dropped.detail) == ("no thresholds for its language", "de")
        assert reason(rule, text, "und") == "no thresholds for its language"
        assert outcome(rule, text, "de", other_languages="keep") == document(text, "de")
    # Only by name is it judged by another language's table.
    assert reason("gopher_quality", "kurz", "de", same_as=("de=en",)) == "too few words"
    assert reason("gopher_quality", "短", "yue") == "too few words"


def test_off_means_off():
    none = tables.GopherQualityTable(
        min_words=None, max_words=None, min_mean_word_length=None, max_mean_word_length=None,
        max_symbol_ratio=None, max_bullet_lines=None, max_ellipsis_lines=None,
        min_words_with_letter=None, min_stop_words=None)
    for text in ("", "# # ...", "- a\n- b", "x" * 5000):
        assert reason("gopher_quality", text, gopher_quality=tables.GopherQualityConfig(en=none)
                      ) is None


def test_source_code_passes_by():
    code = dataclasses.replace(document("x = 1\n" * 500, "python"), is_code=True)
    for rule in make_rule_sets(ALL):
        assert rule(code) is code


def test_english_rules_are_not_applied_to_chinese():
    """Trap 49: terminal punctuation, stop words and word length have their Chinese form."""
    text = "\n".join(
        f"{subject}将于下周在{place}发表报告，并和{guest}讨论这座城市的历史。{place}的居民说：“我们很欢迎！”"
        for subject, place, guest in zip(
            ["委员会", "研究所", "博物馆", "出版社", "建筑师", "图书馆", "老教授"],
            ["学校", "广场", "河边", "新城", "市政厅", "公园", "码头"],
            ["记者", "学生", "工人", "作家", "医生", "农民", "艺术家"], strict=True))
    for rule in ("gopher_quality", "fineweb", "c4", "chinese_web_text", "entropy"):
        assert reason(rule, text, "zh") is None, rule
    assert reason("gopher_quality", text, "en") is not None
    assert reason("c4", text, "en") is not None


CHINESE_LINE = "第{}天，主人公走过了第{}条街，遇到了{}个陌生人，谈起了{}年前的旧事。"
ENGLISH_LINE = "On day {} the hero crossed street {} and met {} strangers, all {} years old."


def novel(chapters, end, sentence=CHINESE_LINE):
    return "\n\n".join(
        "\n".join([f"第{i}回", *(sentence.format(i, j, i * j, i + j) for j in range(16)), end])
        for i in range(1, chapters + 1))


ENDING = "欲知后事如何，且听下回分解。"
SITE = "Read the newest chapters of this novel first at our friendly web site!"


def test_the_same_chapter_ending_through_a_novel_is_caught():
    assert reason("repeated_sentences", novel(20, ENDING), "zh") == "repeated sentence"
    assert reason("repeated_sentences", novel(19, ENDING), "zh") is None
    result = outcome("repeated_sentences", novel(25, ENDING), "zh")
    assert isinstance(result, Dropped) and "25 copies" in result.detail and "欲知" in result.detail
    english = novel(22, SITE, ENGLISH_LINE)
    assert reason("repeated_sentences", english) == "repeated sentence"
    # Rules on shares hardly see it: one sentence of 17 is this one.
    assert novel(22, SITE, ENGLISH_LINE).count(SITE) / english.count("\n") < 0.1


def test_repeated_endings_can_be_removed_instead():
    remove = tables.RepeatedSentencesConfig(action="remove")
    result = outcome("repeated_sentences", novel(20, ENDING), "zh", repeated_sentences=remove)
    assert isinstance(result, Document)
    assert result.text.count("且听下回分解") == 1
    assert result.transforms == ("repeated_sentences:removed",)
    everything_else = novel(20, ENDING).replace(ENDING + "\n\n", "\n\n").replace("\n\n\n", "\n\n")
    assert "".join(result.text.replace(ENDING, "").split()) == "".join(
        everything_else.replace(ENDING, "").split())
    glued = novel(20, ENDING).replace("旧事。\n" + ENDING, "旧事。" + ENDING)
    result = outcome("repeated_sentences", glued, "zh", repeated_sentences=remove)
    assert isinstance(result, Document) and result.text.count("且听下回分解") == 1


POEM = "\n\n".join(
    f"{verse}\n{verse[::-1]}\n我们走在大路上，意气风发斗志昂扬。" for verse in
    [f"第{c}朵花开在山坡上" for c in "甲乙丙丁戊己庚辛壬癸子丑寅卯辰巳午未申酉戌亥"])
WHO = ("县级人民政府", "生产经营单位", "行政主管部门", "学校和家庭", "社会组织", "公民")
WHAT = ("加强安全管理", "建立健全制度", "公开有关信息", "接受群众监督", "开展宣传教育",
        "保护青少年")
LAW = "\n".join(f"第{i * 6 + k}条　{who}应当依照本法第{i * 6 + k + 3}条的规定，{what}。"
                for i, who in enumerate(WHO) for k, what in enumerate(WHAT, 1))
TRADES = ("miller", "baker", "tinker", "sailor", "joiner", "weaver", "fisher", "farmer", "hunter",
          "carter", "smith", "mason", "cooper", "potter", "thatcher", "dyer", "glover", "hatter",
          "turner", "roper", "tanner", "sawyer")
SONG = "\n\n".join(
    f"The {trade} went down to the river today,\nand {trade}s never came home that way.\n"
    "Row on, row on, my brothers, and sing till the morning comes again!" for trade in TRADES)


@pytest.mark.parametrize("text, language", [(POEM, "zh"), (LAW, "zh"), (SONG, "en")])
def test_poems_songs_and_statutes_stay(text, language):
    assert reason("repeated_sentences", text, language) is None
    assert reason("ngram_repetition", text, language) is None
    assert reason("entropy", text, language) is None
    assert reason("chat_log", text, language) is None


def test_a_clause_that_some_chapters_of_a_code_repeat_stays():
    """Criminal law says 21 times that a unit is fined too, but not in its general part."""
    clause = "单位犯前款罪的，对单位判处罚金，并对其直接负责的主管人员依照前款的规定处罚。"
    general = "\n".join(f"第{i}条　总则的第{i}项规定适用于{i * 7}种情形。" for i in range(1, 400))
    crime = "分则的具体罪名及其刑罚由本条规定，" * 20
    special = "\n".join(f"第{i}条　{crime}{i}。\n{clause}" for i in range(400, 422))
    assert special.count(clause) == 22
    assert reason("repeated_sentences", special, "zh") == "repeated sentence"
    assert reason("repeated_sentences", general + "\n" + special, "zh") is None


CHATS = [
    "\n".join(f"[12:{m:02}] <ann> did you see message {m}?" for m in range(10, 20)),
    "\n".join(f"12:{m:02}:05 ann: did you see message {m}?" for m in range(10, 20)),
    "\n".join(f"<bob> answer {m}" for m in range(10)) + "\n*** ann has joined #room",
    "\n".join(f"张三 2023-05-01 12:{m:02}:00\n今天吃第{m}家饭馆" for m in range(10, 20)) +
    "\n李四(12345678) 9:30:00",
    "\n".join(f"[2023-05-01 12:{m:02}] 张三：第{m}条消息" for m in range(10, 20)),
]
NO_CHATS = [
    "HAMLET. To be, or not to be.\nOPHELIA. Good my lord,\nHAMLET. I humbly thank you.\n" * 5,
    "记者：您好。\n教授：您好，很高兴见到大家。\n记者：请谈谈历史。\n教授：那就从头说起。\n" * 5,
    "At 12:30 the train left.\nIt was late.\nThe next left at 13:05.\nWe waited.\nIt came.",
    "[1] Knuth, D.\n[2] Turing, A.\n[3] Shannon, C.\n[4] Hopper, G.\n[5] Lamport, L.",
    "<p> text </p>\n" * 9,
]


@pytest.mark.parametrize("text", CHATS)
def test_chat_logs_are_dropped(text):
    result = outcome("chat_log", text, "und")
    assert isinstance(result, Dropped) and result.reason == "chat lines"


@pytest.mark.parametrize("text", NO_CHATS)
def test_other_dialogues_stay(text):
    assert reason("chat_log", text) is None


def test_chat_lines_at_the_threshold():
    chat, prose = "[12:30] <ann> hello", "A line of prose."
    assert reason("chat_log", "\n".join([chat, prose] * 5)) is None
    assert reason("chat_log", "\n".join([chat, prose] * 5 + [chat])) == "chat lines"
    assert reason("chat_log", "\n".join([chat] * 4)) is None  # too few lines


EDGES = ["", " ", "\n", "\u3000\t\n ", "word", "字", ".", "…", "{", "\x00", "\ud800", "a\n" * 10,
         "。" * 60, "# " * 100, "٪" * 10, "🏳️‍🌈" * 9]


@pytest.mark.parametrize("language", ["en", "zh", "de", "und", ""])
@pytest.mark.parametrize("text", EDGES)
def test_the_edges_get_a_decision(text, language):
    for rule in make_rule_sets(ALL):
        assert isinstance(rule(document(text, language)), Document | Dropped)


@given(st.text(max_size=400), st.sampled_from(["en", "zh"]),
       st.integers(1, 40))
@settings(max_examples=150, deadline=None)
def test_any_string_gets_a_decision(text, language, times):
    every = FilterConfig(
        rules=RULE_SETS, gopher_repetition=tables.GopherRepetitionConfig(counting="every"),
        chinese_web_text=tables.ChineseWebTextConfig(min_characters=0),
        repeated_sentences=tables.RepeatedSentencesConfig(
            action="remove",
            en=tables.RepeatedSentencesTable(min_characters=1, min_copies=2, min_distance=0),
            zh=tables.RepeatedSentencesTable(min_characters=1, min_copies=2, min_distance=0)))
    for config in (ALL, every):
        for rule in make_rule_sets(config):
            result = rule(document(text * times, language))
            assert isinstance(result, Document | Dropped)
            if isinstance(result, Dropped):
                assert result.stage == rule.stage and result.reason


UNITS = {
    "one word": "x", "brackets": "(", "points": ".", "quotes": "'", "han": "字", "spaces": " ",
    "one line": "word and ", "lines": "a\n", "url": "http://a.", "at": "@", "times": "12:30",
    "hyphens": "a-", "sentences": "One more. ", "numbers": "1 2 3 4 5 6 7 8 9 0 ",
    "apostrophes": "n't", "angles": "<a", "citations": "[1]",
}


def every_rule(text, language):
    for rule in make_rule_sets(ALL):
        assert isinstance(rule(document(text, language)), Document | Dropped)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", UNITS)
def test_time_is_bounded(name, language):
    """A quarter of a megabyte of anything; what is quadratic would run into the tests' time limit.
    """
    every_rule(UNITS[name] * (250_000 // len(UNITS[name])), language)


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", UNITS)
def test_ten_megabytes_of_anything(name, language):
    every_rule(UNITS[name] * (10_000_000 // len(UNITS[name])), language)


def test_codes():
    assert len(LANGUAGES) == 177 and {"en", "zh", "yue", "wuu", "und", "ja"} <= LANGUAGES
