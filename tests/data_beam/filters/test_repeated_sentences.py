"""A sentence that ends every chapter: when it is found, where it ends, and what removal leaves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_beam.base.records import Document, Dropped
from data_beam.filters import RepeatedSentencesConfig
from data_beam.filters.repeated_sentences import _sentences
from tests.data_beam.filters.cases import outcome, reason

NAME = "repeated_sentences"
REMOVE = RepeatedSentencesConfig(action="remove")

ENDINGS = [(ending, "en") for ending in (
    "Read more at www.example.com for the latest chapters of this book",
    "Visit www.royalroad.com to read more stories like this one, for free!",
    "Please vote for this story on Royalroad.com, it costs you $0.00 only.",
    "…and if you want to read more of it, please click www.webnovel.com for visiting.",
    "The author's page is http://www.example.com/read.php?id=3&page=2 and it is free!",
    "(This was stolen from www.example.com/books; please report it to its author.)",
)] + [(ending, "zh") for ending in (
    "请记住本站域名 m.xs.cc 谢谢。",
    "一秒记住【笔趣阁】www.biquge.com，更新快，无弹窗！",
    "更多精彩内容请访问 www.example.com 网站。",
    "欲知后事如何，且听下回分解。",
    "请记住本书首发域名：www。biquge。com，谢谢！",
    "请记住本站网址：www.笔趣阁.com 谢谢。",
    "（本章未完，请点击下一页继续阅读。）",
    "【更多精彩内容请访问 www.example.com 网站！】",
)]
LINES = {
    "en": "On day {} of year {} the caravan counted {} camels and walked for {} hours.",
    "zh": "那一年第{}天，商队在河边数了{}头骆驼，走了{}里路，又讲了{}件旧事。",
}


def chapters(language: str) -> list[str]:
    return ["\n".join([f"{i}", *(LINES[language].format(i, j, i * j, i + j) for j in range(20))])
            for i in range(1, 41)]


def test_copies_of_another_width_are_copies():
    """Removal takes them out of the text as it is written."""
    narrow = "请访问网址 www.xs1.cc 看第12章。"
    wide = "请访问网址 ｗｗｗ．ｘｓ１．ｃｃ 看第１２章。"
    parts = chapters("zh")
    text = "\n\n".join(f"{part}\n{(narrow, wide)[i % 2]}" for i, part in enumerate(parts))
    result = outcome(NAME, text, "zh")
    assert isinstance(result, Dropped) and "40 copies" in result.detail
    text = "\n\n".join(f"{part}Ｎｏ．{i}！\n{(narrow, wide)[i % 2]}"
                       for i, part in enumerate(parts))
    result = outcome(NAME, text, "zh", repeated_sentences=REMOVE)
    assert isinstance(result, Document)
    assert (result.text.count(narrow), wide in result.text) == (1, False)
    assert result.text.count("Ｎｏ．") == 40


@pytest.mark.parametrize("ending, language", ENDINGS)
def test_an_ending_right_behind_the_last_sentence_is_caught(ending, language):
    result = outcome(NAME, "\n\n".join(part + ending for part in chapters(language)), language)
    assert isinstance(result, Dropped) and "40 copies" in result.detail


@pytest.mark.parametrize("ending, language", ENDINGS)
@pytest.mark.parametrize("before, after", [
    ("\n", ""), (" ", ""), ("\n\n", ""), ("\n", "\nThen? 后来呢？"), ("\n\u3000\u3000", "")])
def test_removal_leaves_the_first_copy_and_nothing_of_the_others(ending, language, before, after):
    parts = chapters(language)
    result = outcome(NAME, "\n\n".join(part + before + ending + after for part in parts),
                     language, repeated_sentences=REMOVE)
    assert isinstance(result, Document) and result.transforms == ("repeated_sentences:removed",)
    assert result.text == "\n\n".join(
        part + (before + ending if i == 0 else "") + after for i, part in enumerate(parts))


def test_spaces_before_the_next_sentence_of_a_line_go_too():
    ending = ENDINGS[1][0]
    parts = [part.replace("\n", f"\n{ending} ", 1) for part in chapters("en")]
    result = outcome(NAME, "\n\n".join(parts), repeated_sentences=REMOVE)
    assert isinstance(result, Document)
    assert result.text == "\n\n".join([parts[0], *chapters("en")[1:]])


@pytest.mark.parametrize("text, expected", [
    ("One. Two.Three www.a.com! Four", ["One.", " Two.", "Three www.a.com!", " Four"]),
    ("The end.The next at www.Example.com, or Example.Com too.It’s he.I am",
     ["The end.", "The next at www.Example.com, or Example.Com too.", "It’s he.", "I am"]),
    ("It costs $0.50. Or 3.", ["It costs $0.50.", " Or 3."]),
    ('He said: "Go." She (he?) went.)', ['He said: "Go."', " She (he?)", " went.)"]),
    ("Wait...what? Really?He", ["Wait...", "what?", " Really?", "He"]),
    ("a.com/?id=3 b.org/x?y=1&z?", ["a.com/?id=3 b.org/x?y=1&z?"]),
    ("他走了.她来了.\"好\".谁?我.", ["他走了.", "她来了.\"", "好\".", "谁?", "我."]),
    ("他说：“走。”她走了……是吗？！", ["他说：“走。”", "她走了……", "是吗？！"]),
    ("看第1.5章.下一章在笔趣阁.com哦.", ["看第1.5章.", "下一章在笔趣阁.com哦."]),
    ("学Python。Java也学。", ["学Python。", "Java也学。"]),
    ("走吧！www.a.com，好。", ["走吧！", "www.a.com，好。"]),
    ("完。）\n…… 又及\n\n终", ["完。）", "\n", "…… 又及\n", "\n", "终"]),
    ("走了.“好”.——完", ["走了.", "“好”.", "——完"]),
    ("", []), ("。", ["。"]), ("\n", ["\n"]),
])
def test_where_sentences_end(text, expected):
    assert [text[start:end] for start, end in _sentences(text)] == expected


@given(st.text(alphabet="aZ9走.。…?!/\n \"”“()（）", max_size=40))
def test_sentences_are_the_whole_text(text):
    places = list(_sentences(text))
    assert "".join(text[start:end] for start, end in places) == text
    assert all(start < end for start, end in places)
    assert all("\n" not in text[start:end - 1] for start, end in places)


@pytest.mark.parametrize("unit", [
    ".", "a.", "走.", "… ", "a。", "?a", ". ", "“", ".“", "a.\n", "/?a", "ab.Cd"])
def test_time_is_bounded(unit):
    """Megabytes of marks; what is quadratic would run into the tests' time limit."""
    assert isinstance(outcome(NAME, unit * (2_000_000 // len(unit)), "zh",
                              repeated_sentences=REMOVE), Document | Dropped)


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
def test_poems_songs_and_statutes_are_kept(text, language):
    for name in (NAME, "ngram_repetition", "entropy", "chat_log"):
        assert reason(name, text, language) is None


def test_a_clause_that_some_chapters_of_a_code_repeat_is_kept():
    """Criminal law says 21 times that a unit is fined too, but not in its general part."""
    clause = "单位犯前款罪的，对单位判处罚金，并对其直接负责的主管人员依照前款的规定处罚。"
    general = "\n".join(f"第{i}条　总则的第{i}项规定适用于{i * 7}种情形。" for i in range(1, 400))
    crime = "分则的具体罪名及其刑罚由本条规定，" * 20
    special = "\n".join(f"第{i}条　{crime}{i}。\n{clause}" for i in range(400, 422))
    assert special.count(clause) == 22
    assert reason(NAME, special, "zh") == "repeated sentence"
    assert reason(NAME, general + "\n" + special, "zh") is None
