"""Words, sentences and n-grams: what the thresholds of the rule sets count."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_beam.filters.ngram_counts import WordNgrams, character_hashes, repeated
from data_beam.filters.segmentation import (
    chinese_words,
    count_sentences,
    spaced_words,
)
from data_beam.filters.text_filter import View, excerpt, view_of
from tests.data_beam.filters.cases import later_copies


@pytest.mark.parametrize("text, words", [
    ("Plain words, and a full stop.", "Plain words , and a full stop ."),
    ("Don't, can't, won't: it's we'll they're I'm you'd.",
     "Do n't , ca n't , wo n't : it 's we 'll they 're I 'm you 'd ."),
    ("dont cannot its ill were", "do nt can not its ill were"),
    ("e.g. the U.S. and Mr. Smith, i.e. 3.5 a.m.", "e.g. the U.S. and Mr. Smith , i.e. 3.5 a.m."),
    ("(well-known) state-of-the-art", "( well - known ) state - of - the - art"),
    ("https://a.org/x-y?z=1 me@x.org www.a.org.", "https://a.org/x-y?z=1 me@x.org www.a.org ."),
    ("5km 10% $3.50 20€ 7pm 1-2 3*4", "5 km 10 % $ 3.50 20 € 7 pm 1 - 2 3 * 4"),
    ("x=y a/b foo:bar a,b os.Path end.Start", "x = y a / b foo : bar a , b os . Path end . Start"),
    ("wait... what… \"quoted\" 'so' “fine”",
     "wait ... what … \" quoted \" ' so ' “ fine ”"),
    ("__init__ **kwargs f(x): [1]", "_ _ init _ _ * * kwargs f(x ): [ 1 ]"),
    ("USA. word. A. (x).", "USA . word . A. ( x ) ."),
    ("John's dogs' 90's", "John 's dogs ' 90 's"),
    ("word—word a – b", "word — word a – b"),
    ("", ""), (" \n\t\u3000", ""), ("word", "word"),
])
def test_english_words_by_hand(text, words):
    assert spaced_words(text) == words.split()


@pytest.mark.parametrize("text, words", [
    ("委员会将于下周发表报告，欢迎。", "委员会 将 于 下周 发表 报告 ， 欢迎 。"),
    ("他说：“你好！”……", "他 说 ： “ 你好 ！ ” … …"),
    ("第1.5条 AB-12 ---- x_y", "第 1.5 条 AB - 12 ---- x _ y"),
    ("", ""), (" \n\u3000", ""),
])
def test_chinese_words_by_hand(text, words):
    assert chinese_words(text) == words.split()


@given(st.text(max_size=300))
@settings(max_examples=300, deadline=None)
def test_no_visible_character_is_lost(text):
    for words in (spaced_words(text), chinese_words(text)):
        assert "".join("".join(words).split()) == "".join(text.split())
        assert all(word and not word.isspace() for word in words)


def test_sentences_are_counted_like_spacys():
    for text, count in (
            ("One. Two! Three?", 3), ("Mr. Smith is e.g. here! ok? \"Yes.\" end", 4),
            ("no end", 1), ("", 0), ("...", 1), ("What?! (Really.) Yes", 3), ("v1.2 is ok.", 1)):
        assert count_sentences(spaced_words(text)) == count, text
    assert count_sentences(chinese_words("他说：“你好！”她笑了。真的吗？")) == 3
    assert count_sentences(chinese_words("没有句号")) == 1


WORDS = st.lists(st.sampled_from(["a", "b", "ab", "ba", "字", "x" * 50, "\ud800"]), max_size=60)


@given(WORDS, st.integers(1, 6))
@settings(max_examples=300, deadline=None)
def test_ngrams_equal_those_of_strings(words, n):
    for gap, joint in ((0, ""), (1, " ")):
        ngrams = WordNgrams(words, gap)
        strings = [joint.join(words[i:i + n]) for i in range(len(words) - n + 1)]
        hashes = ngrams.hashes(n)
        assert ngrams.lengths(n).tolist() == [len(s) for s in strings]
        # The same partition: equal hashes exactly where strings are equal.
        assert len(set(hashes.tolist())) == len(set(strings))
        assert len(set(zip(hashes.tolist(), strings, strict=True))) == len(set(strings))
        counts = Counter(strings)
        indices, _ = repeated(hashes)
        assert indices.tolist() == [i for i, s in enumerate(strings) if counts[s] > 1]
        index, characters, copies = ngrams.top(n)
        if strings:
            assert (strings[index], copies) == counts.most_common(1)[0]
            assert characters == len(strings[index])
        else:
            assert copies == 0


@given(WORDS, st.integers(1, 6))
@settings(max_examples=300, deadline=None)
def test_both_definitions_of_duplicate_ngrams(words, n):
    assert WordNgrams(words, 0).later_copies(n)[0] == later_copies(words, n)
    grams = list(zip(*[words[i:] for i in range(n)], strict=False))
    counts = Counter(grams)
    sizes = [sum(map(len, gram)) for gram in grams]
    repeated_size = sum(s for s, gram in zip(sizes, grams, strict=True) if counts[gram] > 1)
    assert WordNgrams(words, 1).every_copy(n)[:2] == (repeated_size, sum(sizes))


def test_long_texts_use_the_larger_table_of_powers():
    words = [f"w{i % 1000}" for i in range(60_000)]  # 4,096 characters many times over
    hashes = WordNgrams(words, 1).hashes(3)
    assert len(set(hashes.tolist())) == 1000 and (hashes[:1000] == hashes[1000:2000]).all()


def test_character_ngrams():
    text = "天地玄黄，宇宙洪荒。天地玄黄"
    strings = [text[i:i + 4] for i in range(len(text) - 3)]
    hashes = character_hashes(text, 4).tolist()
    assert len(set(hashes)) == len(set(strings)) and hashes[0] == hashes[-1]
    assert len(character_hashes("ab", 3)) == 0


def test_filters_share_a_view():
    first = view_of("one two", "en")
    assert view_of("one two", "en") is first and first.words is view_of("one two", "en").words
    assert view_of("one two", "zh") is not first
    assert View("a\n \nb", "en").lines == ["a", "b"]
    assert excerpt("a\nb " * 100) == "'" + ("a b " * 20)[:79] + "…'"
    assert len(excerpt("字" * 500)) == 82
