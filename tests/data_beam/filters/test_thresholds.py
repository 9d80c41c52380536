"""Every rule exactly at its threshold, where it keeps, and just over it, where it drops."""

import dataclasses
import math
import re
import string
from collections import Counter

import pytest

from data_beam import filters
from data_beam.base.records import Document, Dropped
from data_beam.filters import nemo
from data_beam.filters.roots import stop_words
from data_beam.filters.segmentation import chinese_words
from tests.data_beam.filters.cases import outcome, reason


def numbered(count, width=5):
    """Different words of `width` letters."""
    letters = string.ascii_lowercase
    return ["".join(letters[(i // 26**k) % 26] for k in range(width)) for i in range(count)]


def at_and_over(name, at, over, rule, language="en", **sections):
    assert reason(rule, at, language, **sections) is None
    assert reason(rule, over, language, **sections) == name


def test_gopher_where_generated_documents_do_not_reach():
    many = "the with " * 50_000
    at_and_over("too many words", many, f"{many}the", "gopher_quality")
    tens = ["the", "with", *numbered(60, 10), "x" * 13, "x" * 20]  # 3 + 4 + 13 + 20 = 40
    at_and_over("words too long", " ".join(tens), " ".join([*tens, "x" * 11]), "gopher_quality")
    lines = [*(f"- {word} {word[::-1]} the with here" for word in numbered(9)),
             "and the last line of it has no bullet"]
    at_and_over("bullet lines", "\n".join(lines), "\n".join([*lines, *lines[:2]]), "gopher_quality")
    # Three copies of 11 characters are 33: of 207 under 0.16, of 206 over.
    words, gram = numbered(28), "ab cd ef gh"
    text = " ".join([gram, *words[:9], gram, *words[9:18], gram, *words[18:]]).ljust(207, "z")
    at_and_over("top 4-gram", text, text[:-1], "gopher_repetition")


def test_words_of_chinese_with_letters():
    """147 words of 200 have a letter: exactly 0.735. One more mark, and it is less."""
    marked = "委员会的报告在城市，" * 28 + "委员会的报告在城市发表会议" + "，" * 25
    words = chinese_words(marked)
    assert len(words) == 200 and sum(word.isalnum() for word in words) == 147
    at_and_over("words without letters", marked, marked + "，", "gopher_quality", "zh")


def test_c4_lines():
    """What it takes out of a text, drops a text for, and counts as words."""
    good = "\n".join(["One two three four five."] * 5)

    def kept(line, preset):
        result = outcome("c4", f"{good}\n{line}", c4=filters.C4Config(preset=preset))
        return result.text if isinstance(result, Document) else result.reason

    for preset in ("tfds", "datatrove"):
        for line in ("it goes on and on...", "Please turn on JavaScript now.", "Two words.",
                     "By this you accept our Privacy Policy now.", "x" * 1001 + " is too long."):
            assert kept(line, preset) == good, line
        assert kept(f"{'x' * 1000} is not too long.", preset).endswith("long.")
        assert kept("The function {{ returns it here.", preset) == "curly bracket"
        assert kept("function {{ returns", preset) == good  # that line was dropped before
        assert kept("This is Lorem Ipsum dolor sit.", preset) == "lorem ipsum"
        assert kept("As it was shown before [12] by them.[edit]", preset).endswith(
            "shown before  by them.")
    # Words are counted with citations in one, without in the other.
    assert kept("Only four words here [1] .", "tfds").endswith("here  .")
    assert kept("Only three words [1].", "tfds") == good
    assert kept("A b [1].", "datatrove").endswith("A b .")


def test_c4_takes_out_chinese_lines_on_cookies():
    good = "\n".join(["委员会将于下周发表关于这座城市历史的报告。"] * 5)
    result = outcome("c4", f"{good}\n本网站使用Cookie来改善您的体验。", "zh")
    assert isinstance(result, Document) and result.text == good


@pytest.mark.parametrize("preset, end, expected", [
    ("datatrove", " ab.", "short lines"), ("paper", " ab.", None), ("paper", " a.", "short lines")])
def test_a_line_of_30_characters_is_short_for_datatrove_only(preset, end, expected):
    text = "\n".join(f"{i:02}{' ab' * 8}{end}" for i in range(100))
    assert reason("fineweb", text, fineweb=filters.FineWebConfig(preset=preset)) == expected


def test_fineweb_line_feeds_at_their_threshold():
    """3 line feeds on 10 words are 0.3, on 9 more."""
    section = filters.FineWebConfig(en=filters.FineWebThresholds(
        min_end_mark_lines=None, max_short_lines=None, max_duplicate_line_characters=None))
    at_and_over("newlines", "a b c d\ne f\ng h\ni .", "a b c d\ne f\ng h\n.", "fineweb",
                fineweb=section)
    assert reason("fineweb", " \n\t\n") == reason("fineweb", "") == "empty"


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
    text = "".join(chr(0x4e00 + i) for i in range(24)) + "天地玄黄宇宙" * 10
    assert share(list(text), 5) < 0.8 and reason("ngram_repetition", text, "zh") is None
    assert reason("ngram_repetition", text + "天地玄黄宇宙" * 7, "zh") == "repeated n-grams"


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
