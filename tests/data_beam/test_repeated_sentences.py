"""Chapter endings with addresses and numbers: where a sentence ends, and what removal leaves."""

import pytest
from data_beam.filters.rule_sets import make_rule_sets
from hypothesis import given
from hypothesis import strategies as st

from data_beam.base.records import Document, Dropped, Origin, text_sha256
from data_beam.config import rule_sets as tables
from data_beam.config.filters import FilterConfig
from data_beam.filters import repeated_sentences

ENGLISH = [
    "Read more at www.example.com for the latest chapters of this book",
    "Visit www.royalroad.com to read more stories like this one, for free!",
    "Please vote for this story on Royalroad.com, it costs you $0.00 only.",
    "…and if you want to read more of it, please click www.webnovel.com for visiting.",
    "The author's page is http://www.example.com/read.php?id=3&page=2 and it is free!",
    "(This was stolen from www.example.com/books; please report it to its author.)",
]
CHINESE = [
    "请记住本站域名 m.xs.cc 谢谢。",
    "一秒记住【笔趣阁】www.biquge.com，更新快，无弹窗！",
    "更多精彩内容请访问 www.example.com 网站。",
    "欲知后事如何，且听下回分解。",
    "请记住本书首发域名：www。biquge。com，谢谢！",
    "请记住本站网址：www.笔趣阁.com 谢谢。",
    "（本章未完，请点击下一页继续阅读。）",
    "【更多精彩内容请访问 www.example.com 网站！】",
]
ENDINGS = [(each, "en") for each in ENGLISH] + [(each, "zh") for each in CHINESE]
LINES = {
    "en": "On day {} of year {} the caravan counted {} camels and walked for {} hours.",
    "zh": "那一年第{}天，商队在河边数了{}头骆驼，走了{}里路，又讲了{}件旧事。",
}


def chapters(language: str) -> list[str]:
    return ["\n".join([f"{i}", *(LINES[language].format(i, j, i * j, i + j) for j in range(20))])
            for i in range(1, 41)]


def outcome(text: str, language: str, action: str = "drop") -> Document | Dropped:
    rule, = make_rule_sets(FilterConfig(
        rules=("repeated_sentences",),
        repeated_sentences=tables.RepeatedSentencesConfig(action=action)))
    return rule(Document(Origin("s", "p"), text, "general", "MIT", "", language, 0.9,
                         text_sha256(text), "0" * 64, ()))


@pytest.mark.parametrize("ending, language", ENDINGS)
def test_an_ending_with_an_address_is_caught(ending, language):
    for between in ("\n", " ", ""):  # on a line of its own, or at the end of the last one
        text = "\n\n".join(chapter + between + ending for chapter in chapters(language))
        result = outcome(text, language)
        assert isinstance(result, Dropped) and "40 copies" in result.detail, between


@pytest.mark.parametrize("ending, language", ENDINGS)
@pytest.mark.parametrize("before, after", [
    ("\n", ""), (" ", ""), ("\n\n", ""), ("\n", "\nThen? 后来呢？"), ("\n\u3000\u3000", "")])
def test_removal_leaves_the_first_copy_and_nothing_of_the_others(ending, language, before, after):
    parts = chapters(language)
    result = outcome("\n\n".join(part + before + ending + after for part in parts), language,
                     "remove")
    assert isinstance(result, Document)
    assert result.text == "\n\n".join(
        part + (before + ending if i == 0 else "") + after for i, part in enumerate(parts))


def test_spaces_before_the_next_sentence_of_a_line_go_too():
    ending = ENGLISH[1]
    parts = [part.replace("\n", f"\n{ending} ", 1) for part in chapters("en")]
    result = outcome("\n\n".join(parts), "en", "remove")
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
    assert [text[start:end] for start, end in repeated_sentences._sentences(text)] == expected


@given(st.text(alphabet="aZ9走.。…?!/\n \"”“()（）", max_size=40))
def test_sentences_are_the_whole_text(text):
    places = list(repeated_sentences._sentences(text))
    assert "".join(text[start:end] for start, end in places) == text
    assert all(start < end for start, end in places)
    assert all("\n" not in text[start:end - 1] for start, end in places)


@pytest.mark.parametrize("unit", [
    ".", "a.", "走.", "… ", "a。", "?a", ". ", "“", ".“", "a.\n", "/?a", "ab.Cd"])
def test_time_is_bounded(unit):
    """Megabytes of marks; what is quadratic would run into the tests' time limit."""
    assert isinstance(outcome(unit * (2_000_000 // len(unit)), "zh", "remove"), Document | Dropped)
