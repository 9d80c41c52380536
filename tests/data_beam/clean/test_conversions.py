"""Cleaning that a recipe chooses: Unicode form, width, Chinese script, hard-wrapped lines."""

import dataclasses
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_beam.base.records import Document, Origin, Record
from data_beam.clean.conversions import clean, rejoin
from data_beam.config import CleanConfig, InputConfig, RecipeConfig, SourceConfig
from data_beam.extract.document import process
from maxlm.config.schema import ConfigError, build


def test_nothing_is_converted_unless_asked():
    text = "ＡＢＣ１２３，漢語裡的資訊！ﾊﾝｶｸ ﬁ ² が"
    assert clean(text, CleanConfig()) == (text, ())


@pytest.mark.parametrize("text, folded", [
    ("１９９８年１月，ＡＢＣ公司", "1998年1月，ABC公司"), ("增长３．５％", "增长3.5%"),
    ("－４℃～＋８℃", "-4℃～+8℃"), ("电话０１０－８８８８／６６６６", "电话010-8888/6666"),
    ("ａ＝ｂ＊２，Ｃ：＼ｘ＿ｙ", "a=b*2，C：\\x_y"),
    ("＃１＠Ａ＆Ｂ＄５｜＾｀｛｝＜＞＂＇", "#1@A&B$5|^`{}<>\"'"),
    # Punctuation of Chinese, then what is no full-width form of ASCII.
    ("，。！？：；（）「」《》［注］……——～、",) * 2,
    ("￥１００￡￠　ﾊﾝｶｸｶﾞ が", "￥100￡￠　ﾊﾝｶｸｶﾞ が"),
])
def test_full_width_forms_are_folded_and_the_punctuation_of_chinese_is_not(text, folded):
    assert clean(text, CleanConfig(fold_width=True)) == (
        folded, ("fold_width",) if folded != text else ())


def test_compatibility_form():
    assert clean("ﬁ ² Ⅻ ｶﾞ Ａ，", CleanConfig(normalization="NFKC")) == ("fi 2 XII ガ A,", ("NFKC",))
    for text in ("が", "か\u3099"):  # never か alone
        assert clean(text, CleanConfig(normalization="NFKC"))[0] == "が"


@pytest.mark.parametrize("script, text, converted", [
    ("t2s", "漢語裡的資訊，「滑鼠」與軟體。", "汉语里的资讯，「滑鼠」与软体。"),
    ("tw2sp", "滑鼠與軟體", "鼠标与软件"),
    ("s2t", "头发和发展，后面和皇后", "頭髮和發展，後面和皇后"),
    ("s2twp", "鼠标和软件里的信息", "滑鼠和軟體裡的資訊"),
])
def test_chinese_scripts(script, text, converted):
    assert clean(text, CleanConfig(script=script)) == (converted, (f"opencc:{script}",))
    # What is not Chinese in the other script stays, and is not recorded.
    for other in ("plain English", "naïve café", "中文", "が ぱ", "می‌خواهم", "👨‍👩‍👧"):
        assert clean(other, CleanConfig(script=script)) == (other, ())


JAPANESE, KOREAN = "図書館で勉強", "大韓民國의 國會는 立法府이다"
CHINESE_WITH_KANA = "漢語裡的資訊，日語的「の」字在臺灣的招牌上很常見，意思是「的」。學習的人很多。"


@pytest.mark.parametrize("text, language, converts", [
    (JAPANESE, "", False), (JAPANESE, "ja", False),
    ("図書館で勉強する学生は国語辞典を広げた。", "", False),
    ("東京大學國語國文學會", "ja", False),  # no kana: only its language tells
    (KOREAN, "", False), (KOREAN, "ko", False), ("國會의 會議", "", False),
    ("漢語", "", True), ("漢語", "zh", True), ("漢語", "yue", True), ("漢語", "en", False),
    (CHINESE_WITH_KANA, "", True), (CHINESE_WITH_KANA, "zh", True),
    (JAPANESE + "，漢語", "zh", True), (CHINESE_WITH_KANA, "ja", False),  # mixed: by its language
])
def test_scripts_are_converted_in_chinese_documents_only(text, language, converts):
    result, changed = clean(text, CleanConfig(script="t2s"), language)
    assert (changed == ("opencc:t2s",)) == (result != text) == converts


def test_a_source_that_names_its_language_decides_what_is_converted():
    text, simplified = "東京大學國語國文學會", "东京大学国语国文学会"
    record = Record(Origin("s", "p"), text, "text", "general", "CC0-1.0", "", "", ())
    for language, expected in (("ja", text), ("zh", simplified), ("", simplified)):
        source = SourceConfig("s", domain="general", licence="CC0-1.0", language=language,
                              inputs=(InputConfig(root="raw", pattern="*", format="text"),))
        recipe = RecipeConfig(sources=(source,), clean=CleanConfig(script="t2s"))
        document = process(record, recipe)
        assert isinstance(document, Document)
        assert (document.text, document.language) == (expected, language)


@pytest.mark.parametrize("values, message", [
    ({"script": "ts"}, "did you mean 't2s'"), ({"normalization": "NFD"}, "NFC, NFKC, none")])
def test_mistakes_in_the_section(values, message):
    with pytest.raises(ConfigError, match=message):
        build(CleanConfig, values, "config.clean")


def test_changes_are_recorded_in_their_order():
    text, changed = clean("schÃ¶n ＡＢ\r\n漢語 e\u0301", CleanConfig(fold_width=True, script="t2s"))
    assert text == "schön AB\n汉语 é"
    assert changed == ("mojibake", "line_ends", "NFC", "fold_width", "opencc:t2s")


ENGLISH = ("The committee will publish its report on the history of the city next week, and all "
           "who have something to say about it are invited to the meeting. It was known before. ")
CHINESE = ("委员会将于下周发表关于这座城市历史的报告，欢迎各界人士在会上提出意见。"
           "专家认为修桥很难，需要更多资金与技术。")


@pytest.mark.parametrize("columns", [48, 60, 72, 80, 100])
def test_wrapped_lines_are_joined(columns):
    paragraphs = [ENGLISH.strip() + f" Part {i} ends here." for i in range(6)]
    wrapped = "\n\n".join(textwrap.fill(p, columns) for p in paragraphs)
    assert rejoin(wrapped) == "\n\n".join(paragraphs)
    text, changed = clean(wrapped, CleanConfig(rejoin_lines=True))
    assert text == "\n\n".join(paragraphs) and changed == ("rejoined_lines",)
    assert clean(wrapped, CleanConfig())[1] == ()


def test_wrapped_chinese_is_joined_without_spaces():
    text = CHINESE * 4
    for columns in (24, 36, 40):
        assert rejoin("\n".join(text[i:i + columns] for i in range(0, len(text), columns))) == text


def test_what_stands_beside_wrapped_text_stays():
    wrapped = textwrap.fill(ENGLISH * 3, 70)
    for block in ("- one item\n- another", "1. first\n2. second", "    code = 1\n    more = 2",
                  "| a | b |\n| c | d |", "# Heading\n\nshort", "第一条　总则\n第二条　适用范围"):
        assert rejoin(f"{wrapped}\n\n{block}").split("\n\n", 1)[1] == block
    hyphens = (ENGLISH + "A self-governing, well-informed and far-reaching body of wise men. "
               ) * 4
    assert rejoin(textwrap.fill(hyphens, 61)) == hyphens.strip()


POEM = "\n".join(["Tyger Tyger, burning bright,", "In the forests of the night;",
                  "What immortal hand or eye,", "Could frame thy fearful symmetry?"] * 4)


@pytest.mark.parametrize("text", [
    "", "one line", "a\nb\nc\nd\ne\nf", POEM, "\n".join([ENGLISH.strip()] * 9),
    "\n".join(f"name {i}: {'x' * (i % 7)}" for i in range(40)),
    "床前明月光，\n疑是地上霜。\n举头望明月，\n低头思故乡。\n" * 3,
    "\n".join(f"第{i}条　{CHINESE[:36]}" for i in range(20)),
    "word\n" * 100, "x" * 10_000,
    # Every other line is full, as in a dialogue or a glossary: half of the breaks are no wraps.
    "\n".join(["Entry and its whole explanation on one line of sixty columns", "short"] * 12),
])
def test_other_lines_are_not_joined(text):
    assert rejoin(text) == text


@given(st.text(max_size=500), st.sampled_from([
    CleanConfig(), CleanConfig(normalization="NFKC", fold_width=True, script="t2s",
                               rejoin_lines=True),
    CleanConfig(normalization="none", script="s2twp", rejoin_lines=True, fix_mojibake=False)]))
@settings(max_examples=300, deadline=None)
def test_any_text_can_be_cleaned(text, config):
    result, changed = clean(text, config)
    # Nothing is lost but whitespace when lines are joined.
    before, _ = clean(text, dataclasses.replace(config, rejoin_lines=False))
    assert "".join(result.split()) == "".join(before.split())
    assert all(isinstance(name, str) for name in changed)


@pytest.mark.parametrize("unit", ["x", "字", "\n", "a\n", "ＡＢ", "漢", "word ", "-\n", "。\n"])
def test_long_texts_take_bounded_time(unit):
    config = CleanConfig(normalization="NFKC", fold_width=True, script="t2s", rejoin_lines=True)
    clean(unit * (100_000 // len(unit)), config)
