"""Every rule exactly at its threshold, where it keeps, and just over it, where it drops."""

import dataclasses
import math
import re
import string
from collections import Counter

import pytest

from data_beam import filters
from data_beam.base.records import Document, Dropped
from data_beam.config import FilterConfig
from data_beam.filters import nemo
from data_beam.filters.roots import stop_words
from data_beam.filters.segmentation import chinese_words
from tests.data_beam.filters.cases import document, outcome, reason


def numbered(count, width=5):
    """Different words of `width` letters."""
    letters = string.ascii_lowercase
    return ["".join(letters[(i // 26**k) % 26] for k in range(width)) for i in range(count)]


def filler(count):
    """Words that pass all of Gopher's quality rules, two of them stop words."""
    return ["the", "with", *numbered(count - 2)]


def at_and_over(name, at, over, rule, language="en", **sections):
    assert reason(rule, at, language, **sections) is None
    assert reason(rule, over, language, **sections) == name


def test_gopher_quality_at_its_thresholds():
    at_and_over("too few words", " ".join(filler(50)), " ".join(filler(49)), "gopher_quality")
    at_and_over("too many words", "the with " * 50_000, "the with " * 50_000 + "the",
                "gopher_quality")
    shorts = ["the", "with"] + ["ab", "cd"] * 29  # 3 + 4 + 58 * 2 = 123 characters in 60 words
    assert reason("gopher_quality", " ".join(shorts)) == "words too short"
    at_and_over("words too short", " ".join(["the", "abc"] * 30 + ["and"]),
                " ".join(["the", "abc"] * 30 + ["to"]), "gopher_quality")
    tens = ["the", "with", *numbered(60, 10), "x" * 13, "x" * 20]  # 3 + 4 + 13 + 20 = 40
    assert sum(map(len, tens)) == 10 * len(tens) == 640
    at_and_over("words too long", " ".join(tens), " ".join([*tens, "x" * 11]), "gopher_quality")
    # 10 hashes on 90 words: 100 words in all, 0.1. An 11th makes 11/101.
    at_and_over("hashes", " ".join(filler(90) + ["#"] * 10), " ".join(filler(90) + ["#"] * 11),
                "gopher_quality")
    at_and_over("ellipses", " ".join(["..."] * 6 + ["…"] * 4 + filler(90)),
                " ".join(["..."] * 7 + ["…"] * 4 + filler(90)), "gopher_quality")
    lines = [*(f"- {word} {word[::-1]} the with here" for word in numbered(9)),
             "and the last line of it has no bullet"]
    at_and_over("bullet lines", "\n".join(lines), "\n".join([*lines, lines[0], lines[1]]),
                "gopher_quality")
    lines = [" ".join([word] * 12) + end for word, end in zip(
        ["the", "with", *numbered(8)], ["..."] * 2 + [" …"] + [" ."] * 7, strict=True)]
    at_and_over("ellipsis lines", "\n".join(lines), "\n".join([*lines, lines[0]]), "gopher_quality")
    at_and_over("words without letters", " ".join(filler(80) + ["12"] * 20),
                " ".join(filler(80) + ["12"] * 21), "gopher_quality")
    at_and_over("few stop words", " ".join(["of", "and", *numbered(60)]),
                " ".join(["of", "of", *numbered(60)]), "gopher_quality")


def test_gopher_quality_in_chinese():
    """Measured on words of rjieba, with thresholds and stop words of FineWeb-2."""
    sentence = "委员会将于下周发表关于这座城市历史的报告，欢迎各界人士在会上提出意见。"
    good = sentence * 10
    assert reason("gopher_quality", good, "zh") is None
    assert reason("gopher_quality", good, "wuu") is None  # same_as
    # English thresholds would have dropped it: words of 1.8 characters, none of the stop words.
    assert reason("gopher_quality", good, "en") is not None
    assert reason("gopher_quality", sentence, "zh") == "too few words"
    no_stop_words = "委员会发表报告，" * 40
    assert reason("gopher_quality", no_stop_words, "zh") == "few stop words"
    # 147 words of 200 have a letter: exactly 0.735. One more mark, and it is less.
    marked = "委员会的报告在城市，" * 28 + "委员会的报告在城市发表会议" + "，" * 25
    words = chinese_words(marked)
    assert len(words) == 200 and sum(word.isalnum() for word in words) == 147
    at_and_over("words without letters", marked, marked + "，", "gopher_quality", "zh")


def test_gopher_repetition_at_its_thresholds():
    lines = [" ".join(numbered(60, 4)[k:k + 8]) for k in range(0, 56, 8)]
    # 3 of 10 lines were seen before: 0.30. Short ones, so that their characters stay under 0.20.
    for joint, name in (("\n", "lines"), ("\n\n", "paragraphs")):
        at = joint.join([*lines[:6], *["xy"] * 4])
        assert reason("gopher_repetition", at) is None
        assert reason("gopher_repetition", joint.join([at, "xy"])) == f"duplicate {name}"
    # One copy of 20 characters in a text of 100: exactly 0.20; in 99 it is over.
    copy = "abcdefghijklmnopqrst"
    for joint, name in (("\n", "line"), ("\n\n", "paragraph")):
        rest = 100 - 2 * len(copy) - 4 * len(joint)
        others = ["z" * (rest - 2), "y", "x"]
        text = joint.join([copy, *others, copy])
        assert len(text) == 100
        off = filters.GopherRepetitionThresholds(max_top_ngram=(), max_duplicate_ngrams=())
        section = filters.GopherRepetitionConfig(en=off)
        at_and_over(f"duplicate {name} characters", text, text.replace("z", "", 1),
                    "gopher_repetition", gopher_repetition=section)


@pytest.mark.parametrize("n, limit", [
    (2, 0.20), (3, 0.18), (4, 0.16), (5, 0.15), (6, 0.14), (7, 0.13), (8, 0.12), (9, 0.11),
    (10, 0.10)])
def test_ngrams_at_their_thresholds(n, limit):
    gram = ["ab", "cd", "ef", "gh", "ij", "kl", "mn", "op", "qr", "st"][:n]
    is_top = n < 5
    # Three copies of the most frequent n-gram, with spaces; or one later copy, without them.
    counted = 3 * len(" ".join(gram)) if is_top else 2 * n
    size = round(counted / limit + 0.499)  # so many characters make the share of the limit
    words = iter(numbered(400, 6))
    pieces = [*gram, next(words), *gram] + ([next(words), *gram] if is_top else [])
    while len(" ".join(pieces)) + 7 <= size - 7:
        pieces.append(next(words))
    text = " ".join(pieces)
    text += " " + "z" * (size - len(text) - 1)
    assert len(text) == size and counted / size <= limit < counted / (size - 1)
    tops = tuple(limit if k == n else 9.0 for k in (2, 3, 4))
    duplicates = tuple(limit if k == n else 9.0 for k in range(5, 11))
    section = filters.GopherRepetitionConfig(en=filters.GopherRepetitionThresholds(
        max_top_ngram=tops, max_duplicate_ngrams=duplicates))
    at_and_over(f"top {n}-gram" if is_top else f"duplicate {n}-grams", text, text[:-1],
                "gopher_repetition", gopher_repetition=section)


def test_gopher_repetition_in_chinese():
    good = ("委员会将于下周发表关于这座城市历史的报告，欢迎各界人士在会上提出意见。专家认为"
            "修桥很难，需要更多资金与技术。市民则希望能早日看到结果！记者了解到，去年春天开始的调查共访问三千名"
            "居民，其中多数支持扩建图书馆。")
    assert reason("gopher_repetition", good, "zh") is None
    assert reason("gopher_repetition", good * 5, "zh") == "duplicate 5-grams"
    assert reason("gopher_repetition", "天地玄黄宇宙洪荒" * 20, "zh") == "top 2-gram"
    lines = ["委员会将于下周发表报告。", "桥梁的修建工作已完成。", "真的欢迎人士提出意见吗？",
             "他明天去学校上课学习。", "大家都认为决定正确！"]
    # 2 of 7 lines seen before are 0.2857, under 0.287; 2 of 6 are over.
    for count, right in ((7, None), (6, "duplicate lines")):
        text = "\n".join([*lines[:count - 3], *["好。"] * 3])
        section = filters.GopherRepetitionConfig(zh=dataclasses.replace(
            FilterConfig().gopher_repetition.zh, max_top_ngram=(), max_duplicate_ngrams=()))
        assert reason("gopher_repetition", text, "zh", gopher_repetition=section) == right


def test_c4_at_its_thresholds():
    five = "One two three four five."
    presets = {name: filters.C4Config(preset=name) for name in ("tfds", "datatrove")}

    def kept(text, preset):
        result = outcome("c4", text, c4=presets[preset])
        return result.text if isinstance(result, Document) else result.reason

    few = "too few sentences"
    for line, count, preset, expected in (
            (five, 3, "tfds", None), (five, 2, "tfds", few),
            ("One two three four.", 9, "tfds", few), ("One two.", 9, "datatrove", few),
            ("One two three.", 5, "datatrove", None), ("One two three.", 4, "datatrove", few)):
        text = "\n".join([line] * count)
        assert kept(text, preset) == (expected or text)
    good = "\n".join([five] * 5)
    for preset in presets:
        for line in ("no mark at the end of this", "it goes on and on...",
                     "Please turn on JavaScript now.",
                     "By this you accept our Privacy Policy now.",
                     "x" * 1001 + " is too long a word.", "Two words."):
            assert kept(f"{good}\n{line}", preset) == good, line
        assert kept(f"{good}\n{'x' * 1000} is not too long.", preset).endswith("long.")
        assert kept(f"{good}\nThe function {{ returns it here.", preset) == "curly bracket"
        assert kept(f"{good}\nfunction {{ returns", preset) == good  # that line was dropped before
        assert kept(f"{good}\nThis is Lorem Ipsum dolor sit.", preset) == "lorem ipsum"
        assert kept(f"{good}\nAs it was shown before [12] by them.[edit]", preset).endswith(
            "shown before  by them.")
    # Words are counted with citations in one, without in the other.
    assert kept(f"{good}\nOnly four words here [1] .", "tfds").endswith("here  .")
    assert kept(f"{good}\nOnly three words [1].", "tfds") == good
    assert kept(f"{good}\nA b [1].", "datatrove").endswith("A b .")
    result = outcome("c4", f"{good}\nno mark")
    assert isinstance(result, Document) and result.transforms == ("c4:lines",)
    assert result.sha256 and outcome("c4", good) == document(good)


def test_c4_in_chinese():
    """。！？” end a line; a word is a word, not a run between spaces."""
    lines = ["委员会将于下周发表关于这座城市历史的报告。", "真的要欢迎各界人士提出意见吗？",
             "他高兴地说：“我们明天就去学校！”", "大家都觉得这个决定非常正确！",
             "桥梁的修建工作已经完成……"]
    good = "\n".join(lines)
    result = outcome("c4", good + "\n首页 关于我们\n本网站使用Cookie来改善您的体验。\n好的。", "zh")
    assert isinstance(result, Document) and result.text == good
    assert reason("c4", "\n".join(lines[:4]), "zh") == "too few sentences"
    assert reason("c4", good, "en") == "too few sentences"  # one word a line, for English


@pytest.mark.parametrize("text, reasons", [
    # 3 of 25 lines end with a mark: 0.12. 67 of 100 lines have 29 or 30 characters. 10 characters
    # of 100 in a line seen before. All lines end with a mark but for the first document's.
    ("\n".join(["x" * 39 + "."] + ["y" * 38 + f"{i:02d}" for i in range(22)] + ["z" * 39 + "."]
               + ["u" * 39 + "."]), (None, "few lines end with a mark")),
    ("\n".join(f"a {i:02d} b c d e f g h i j k l m." for i in range(67)) + "\n"
     + "\n".join(f"a {i:02d} b c d e f g h i j k l m nn." for i in range(33)),
     (None, "short lines")),
    ("\n".join(f"a {i:02d} b c d e f g h i j k l mm." for i in range(67)) + "\n"
     + "\n".join(f"a {i:02d} b c d e f g h i j k l m nn." for i in range(33)), (None, None)),
    ("a b c d e.\n" + " ".join("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN") + ".\na b c d e.",
     ("duplicate line characters", "duplicate line characters")),
    ("a b c d e.\n" + " ".join("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNO") + ".\na b c d e.",
     ("duplicate line characters", None)),
])
def test_fineweb_at_its_thresholds(text, reasons):
    """Of datatrove, without the one on line feeds, and of the paper."""
    for preset, expected in zip(("datatrove", "paper"), reasons, strict=True):
        section = filters.FineWebConfig(preset=preset, en=filters.FineWebThresholds(
            max_newlines_per_word=None if preset == "datatrove" else 0.3))
        assert reason("fineweb", text, fineweb=section) == expected


def test_fineweb_line_feeds_at_their_threshold():
    """3 line feeds on 10 words are 0.3, on 9 more."""
    section = filters.FineWebConfig(en=filters.FineWebThresholds(
        min_end_mark_lines=None, max_short_lines=None, max_duplicate_line_characters=None))
    at_and_over("newlines", "a b c d\ne f\ng h\ni .", "a b c d\ne f\ng h\n.", "fineweb",
                fineweb=section)
    assert reason("fineweb", " \n\t\n") == reason("fineweb", "") == "empty"


def test_fineweb_in_chinese():
    body = ["委员会将于下周发表关于这座城市历史的报告" + w for w in numbered(9)]
    for mark in "。！？”…":  # one of ten lines is 0.1, under 0.106; two are enough
        assert reason("fineweb", "\n".join([*body, "欢迎提出意见" + mark]), "zh") == \
            "few lines end with a mark"
        two = [*body[:8], "欢迎各界人士提出意见" + mark, "欢迎市民提出其他意见" + mark]
        assert reason("fineweb", "\n".join(two), "zh") is None


def test_nemo_at_its_thresholds():
    def drop(text, **on):
        off = dict.fromkeys(field.name for field in dataclasses.fields(filters.NemoConfig))
        return reason("nemo", text, nemo=filters.NemoConfig(**{**off, **on}))

    for field, name, bad, limit in (
            ("max_non_alphanumeric", "not alphanumeric", "%", 0.25),
            ("max_digits", "digits", "7", 0.15), ("max_whitespace", "whitespace", " ", 0.25),
            ("max_non_alphanumeric", "not alphanumeric", " ", 0.25),
            ("max_parentheses", "parentheses", "(", 0.1),
            ("max_parentheses", "parentheses", "]", 0.1)):
        count = round(100 * limit)
        good = "a" * (100 - count)
        assert drop(good[:-1] + bad * count + "a", **{field: limit}) is None
        assert drop(good[:-2] + bad * (count + 1) + "a", **{field: limit}) == name
    assert drop("a?!,.\n" * 20, max_non_alphanumeric=0.0) is None
    url = "http://a.example.org"
    assert len(url) == 20
    assert drop(url + "#" + "a" * 79, max_urls=0.2) is None  # a fragment is no part of it
    assert drop(url + "#" + "a" * 78, max_urls=0.2) == "URLs"
    page = ["our Privacy Policy", "see the terms of use", "one", "two", "three"]
    assert drop("\n\n".join(page), max_boilerplate=0.4) is None
    assert drop("\n\n".join(page[:4]), max_boilerplate=0.4) == "boilerplate"
    assert drop("one\n\nLorem ipsum dolor", max_boilerplate=0.4) == "boilerplate"
    lines = ["it ends."] * 3 + ["it does not"] * 17
    assert drop("\n".join(lines), max_unterminated=0.85) is None
    assert drop("\n".join([*lines, "x"]), max_unterminated=0.85) == "unterminated"
    assert reason("nemo", "12345 " * 100) == "digits"  # with its own thresholds
    assert reason("nemo", "123。" * 100, "zh") is None  # made for English


def test_nemo_counts_of_a_url_what_its_own_expression_counts():
    theirs = re.compile("http[s]?://(?:[a-zA-Z]|[0-9]|[$-_@.&+]|[!*\\\\(\\\\),]"
                        "|(?:%[0-9a-fA-F][0-9a-fA-F]))+")  # regex_url of NeMo Curator's constants
    for character in map(chr, range(0x250)):
        for url in (f"https://a.org/b{character}c", f"http://{character}"):
            assert nemo._URL.findall(url) == theirs.findall(url), repr(character)
    line = "See the manual at https://example.org/docs/en/stable/reference/index.html for more.\n"
    assert sum(map(len, theirs.findall(line))) / len(line) > 0.2
    assert reason("nemo", line * 6) == "URLs"


def naive_13grams(text):
    text = text.strip().lower()
    for space in " \n\t":
        text = text.replace(space, "")
    counts = Counter(text[i:i + 13] for i in range(len(text) - 12))
    return sum(1 for n in counts.values() if n > 1) / sum(counts.values()) if counts else 0.0


def test_chinese_web_text_at_its_thresholds():
    han = "".join(chr(0x4e00 + 7 * i) for i in range(500))

    def drop(text, **settings):
        return reason("chinese_web_text", text, "zh",
                      chinese_web_text=filters.ChineseWebTextConfig(**settings))

    assert drop(han[:201]) is None and drop(han[:200]) == "too short"
    lines = "\n".join(han[9 * i:9 * i + 9] for i in range(25)) + "长"
    assert len(lines) / 25 == 10
    assert drop(lines) is None and drop(lines[:-1]) == "short lines"
    mixed = han[:90] + "".join(numbered(42))
    assert drop(mixed) is None and drop(mixed + "x") == "little Han"
    # A text twice: a little under half of its 13-grams are different ones that come again.
    for text in (han[:300] + han[:300], han[:400] + han[:200], han[:30] * 20):
        share = naive_13grams(text)
        assert drop(text, max_repeated_13grams=share) is None
        assert drop(text, max_repeated_13grams=share - 1e-9) == "repetition"
    assert drop("漢語裡" + han[:300], simplified_only=True) == "not simplified"
    simple = "委员会将于下周发表报告，" * 20
    assert drop(simple, simplified_only=True, max_repeated_13grams=None) is None
    assert reason("chinese_web_text", "plain English", "en") is None  # made for Chinese


def test_roots():
    # 40 of 100 characters are no letters; of ten words three are stop words.
    text = "the and with " + " ".join(["lorem"] * 7)
    letters = 3 + 3 + 4 + 35
    at = text + "1" * 10 + "," * 11
    assert len(at) == 75 and letters / len(at) == 0.6
    at_and_over("special characters", at, at + "!", "roots")
    assert reason("roots", text) is None
    assert reason("roots", text + " lorem") == "few stop words"  # 3 of 11
    assert reason("roots", "The AND With " + " ".join(["lorem"] * 7)) is None
    good = "委员会将于下周发表关于这座城市的历史的报告，我们都很欢迎。"
    assert reason("roots", good, "zh") is None
    assert reason("roots", "委员会发表报告，城市历史研究所出版地图。", "zh") == "few stop words"
    assert reason("roots", good + "12345，。！？；—— …… （）", "zh") == "special characters"
    words = [word for word in chinese_words(good) if word.isalnum()]
    share = sum(word in stop_words("zh") for word in words) / len(words)
    for limit, right in ((share, None), (share + 1e-9, "few stop words")):
        section = filters.RootsConfig(zh=filters.RootsThresholds(min_stop_words=limit))
        assert reason("roots", good, "zh", roots=section) == right


def test_ngram_repetition():
    def share(tokens, n):
        counts = Counter(tuple(tokens[i:i + n]) for i in range(len(tokens) - n + 1))
        return sum(c for c in counts.values() if c > 1) / sum(counts.values())

    for words in ("a b c d e f", "a b c d e f a b c d e g", "a b c a b c a b c d", "a " * 20):
        text = words.strip()
        exact = share(text.split(), 5)
        for limit, right in ((exact, None), (exact - 1e-9, "repeated n-grams")):
            if limit >= 0:
                section = filters.NgramRepetitionConfig(
                    en=filters.NgramRepetitionThresholds(max_repeated=limit))
                assert reason("ngram_repetition", text, ngram_repetition=section) == right
    # In characters, for Chinese.
    once = "".join(chr(0x4e00 + i) for i in range(24))
    text = once + "天地玄黄宇宙" * 17
    exact = share(list(text), 5)
    assert exact > 0.8 and reason("ngram_repetition", text, "zh") == "repeated n-grams"
    assert reason("ngram_repetition", once + once, "zh") is not None  # all but four of them
    assert reason("ngram_repetition", once + "天地玄黄宇宙" * 10, "zh") is None
    assert share(list(once + "天地玄黄宇宙" * 10), 5) < 0.8
    assert reason("ngram_repetition", "天地 玄黄\n宇宙" * 100, "zh") == "repeated n-grams"
    assert reason("ngram_repetition", "the same five words again " * 100) == "repeated n-grams"
    assert reason("ngram_repetition", "four words are few") is None


def test_entropy():
    section = filters.EntropyConfig(en=filters.EntropyThresholds(min_bits=2.0, max_bits=3.0,
                                                          min_characters=8))
    assert reason("entropy", "abcd" * 10, entropy=section) is None  # exactly 2 bits
    assert reason("entropy", "abc" * 10, entropy=section) == "low entropy"
    assert reason("entropy", "abcdefgh " * 10, entropy=section) is None  # exactly 3 bits
    assert reason("entropy", "abcdefghi" * 10, entropy=section) == "high entropy"
    assert reason("entropy", "a" * 7, entropy=section) is None  # too short to tell
    result = outcome("entropy", "abc" * 10, entropy=section)
    assert isinstance(result, Dropped) and result.detail == f"{math.log2(3):.4g}, limit 2"
    assert reason("entropy", "ab" * 1000) == "low entropy"
    assert reason("entropy", "哈" * 1000, "zh") == "low entropy"
    sentence = "委员会将于下周发表关于这座城市历史的报告，欢迎各界人士提出意见。"
    assert reason("entropy", sentence * 9, "zh") is None
