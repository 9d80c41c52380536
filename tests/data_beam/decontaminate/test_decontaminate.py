"""Decontamination: n-grams against a naive search, both actions, files, the self-check."""

import gzip
import itertools
import json
import re
import unicodedata
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from data_beam.base.records import Document, Dropped, Origin, text_sha256
from data_beam.clean.repairs import clean_prose
from data_beam.config.decontaminate import DecontaminateConfig, EvaluationSetConfig
from data_beam.decontaminate import matching, overlap_filter
from data_beam.decontaminate.evaluation_sets import read
from data_beam.decontaminate.matching import NgramIndex, mostly_unspaced, spans, tokens
from data_beam.decontaminate.overlap_filter import DecontaminateFilter, SetCounts
from maxlm.config.schema import ConfigError, build

QUESTION = ("A farmer has 17 sheep, and all but 9 of them run away during the night; how many "
            "sheep are left on the farm in the morning?")
CHINESE = ("一个农夫有十七只羊，除了九只以外，其余的羊都在夜里跑掉了，"
           "请问第二天早上农场里还剩下几只羊？")
FILLER = "Tea was first grown in the hills of the south and was carried north by traders. " * 5
CHINESE_FILLER = "茶树最早生长在南方的山里，后来由商人沿着河流运往北方，成为人们日常的饮料。" * 5


def document(text: str) -> Document:
    return Document(Origin("s", "p"), text, "general", "MIT", "", "en", 0.9, text_sha256(text),
                    "0" * 64, ("extract:html",))


def make(folder: Path, rows: list, fields=("question",), questions=(), **settings_
         ) -> DecontaminateFilter:
    (folder / "set.jsonl").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return load(folder, {"fields": fields, "questions": questions}, **settings_)


def load(folder: Path, changes: dict, **settings_) -> DecontaminateFilter:
    """With a set whose file is already there."""
    return DecontaminateFilter(build(DecontaminateConfig, {"sets": [
        {"name": "sheep", "root": str(folder), "pattern": "set.jsonl", "fields": ["question"],
         **changes}], **settings_}, "config.decontaminate"))


# Tokens.

@pytest.mark.parametrize("text, expected", [
    ("Hello, World_wide 3.5", ["hello", "world", "wide", "3", "5"]),
    ("茶的历史2024年ABC", ["茶", "的", "历", "史", "2024", "年", "abc"]),
    ("ＡＢＣ１２３ Ünïcode", ["abc123", "ünïcode"]),
    ("がギ 한국어 말", ["が", "ギ", "한국어", "말"]),
    ("", []), ("。，！ \n", []), ("ไทย", ["ไ", "ท", "ย"]), ("ที่นี่", ["ที่", "นี่"]),
    ("0\u3099a\u0e31", ["0\u3099a\u0e31"]), ("हिन्दी में", ["हिन्दी", "में"]),
    ("ọ́dún", ["ọ́dún"]), ("\U0001e900\U0001e944x", [
        "\U0001e922\U0001e944x"]), ("㍿x3½", ["株", "式", "会", "社", "x31", "2"]),
    ("\uf900x \uf900 \uff76", ["\u8c48", "x", "\u8c48", "\u30ab"]),
    ("J\u030c \u0301a İI", ["ǰ", "a", "i\u0307i"]), ("sha\x00pe\x7fs", ["shapes"]),
])
def test_tokens(text, expected):
    assert tokens(text) == expected
    assert len(list(spans(text))) == len(expected)


ANYTHING = st.text(max_size=80) | st.text(max_size=40, alphabet=(
    "aZ9_ \n，。é茶がｶﾞﾟกำ\u0e31ิ말ㅏㄳㄱ\u1100\u1161\u11a8ᅟ㍿½´ﷺΣİ\U0001e900\U0001e944"
    "\u0301\u0323\u0338\u3099\u093f\u00ad\u200b\u200d\ufe0f\ufeff\x00\x0b\ufffc\U000e0100"))


def reads_as(place: str, token: str) -> bool:
    """Whether a place holds the token: exactly, or among others in a piece that NFKC changes."""
    return tokens(place) == [token] or (
        token in tokens(place) and not unicodedata.is_normalized("NFKC", place))


@settings(max_examples=500, deadline=None)
@given(ANYTHING)
@example("\u3400\u1161\u0300\u0316")  # marks that change places
def test_spans_are_those_of_the_tokens(text):
    places, found = list(spans(text)), tokens(text)
    assert len(places) == len(found)
    assert all(reads_as(text[start:end], token)
               for (start, end), token in zip(places, found, strict=True))
    assert all(a <= c and b <= d and a < b for (a, b), (c, d) in itertools.pairwise(places))


@settings(max_examples=500, deadline=None)
@given(ANYTHING, st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
def test_neither_the_form_nor_cleaning_changes_tokens(text, form):
    """Cleaning without mojibake and terminal escapes, which evaluation items do not have."""
    text = text.replace("\x1b", "")
    assert tokens(unicodedata.normalize(form, text)) == tokens(text)
    assert tokens(clean_prose(text, False, "NFC")[0]) == tokens(text)


def test_pieces_normalised_alone_begin_where_nothing_joins_what_is_before():
    """All characters: marks, and what becomes a mark or the second part of a Hangul syllable."""
    joins = re.compile(matching._JOINING).fullmatch
    for character in map(chr, (*range(0xd800), *range(0xe000, 0x32000), *range(0xe0000, 0xe0200))):
        first = unicodedata.normalize("NFKD", character)[0]
        if (unicodedata.category(first)[0] == "M" or unicodedata.combining(first)
                or "\u1160" <= first <= "\u11ff" or "\ud7b0" <= first <= "\ud7ff"):
            assert joins(character) or matching._INVISIBLE.match(character), hex(ord(character))


@pytest.mark.parametrize("unit", ["\u0301\u0323", "\u0301\u0323\u200b", "\uff9e\u0323",
                                  "\U0001e944\U0001e94a", "\u0e33\u0323", "ㅏ", "𝐇", "\ufe0f"])
def test_long_runs_of_marks_take_linear_time(unit):
    """Marks are put into order by insertion: what is quadratic would run into the time limit."""
    text = "e" + unit * 200_000
    assert len(list(spans(text))) == len(tokens(text)) >= 1
    text = "one " + "e" + "\u0301\u0323" * 50 + " two"
    assert [text[start:end] for start, end in spans(text)] == text.split()


@pytest.mark.parametrize("text, expected", [
    (CHINESE, True), (QUESTION, False), ("用 Python 写一个 HTTP 服务器", True), ("", False),
    ("What does 茶 mean?", False), ("解 x 1 + x 2 = 1 4", False), ("求方程 x^2 = 1 4 的根", True)])
def test_the_kind_of_script(text, expected):
    assert mostly_unspaced(tokens(text)) == mostly_unspaced(tokens(text.replace(" ", ""))) \
        == expected


# The index.

def naive(texts: list[list[str]], found: list[str], lengths: DecontaminateConfig
          ) -> set[tuple[int, int]]:
    """(start, length) of every n-gram of the texts in `found`, by comparing all with all."""
    result = set()
    for text in texts:
        n, fewest = ((lengths.characters, lengths.min_characters) if mostly_unspaced(text)
                     else (lengths.words, lengths.min_words))
        if len(text) < fewest:
            continue
        n = min(n, len(text))
        grams = {tuple(text[i:i + n]) for i in range(len(text) - n + 1)}
        result |= {(i, n) for i in range(len(found) - n + 1) if tuple(found[i:i + n]) in grams}
    return result


WORDS = st.sampled_from(["a", "b", "c", "茶", "羊"])


@settings(max_examples=300, deadline=None)
@given(st.lists(st.lists(WORDS, max_size=12), max_size=5), st.lists(WORDS, max_size=40),
       st.integers(2, 5), st.integers(1, 2), st.integers(2, 5), st.integers(1, 2))
def test_the_index_finds_what_a_naive_search_finds(texts, found, n, fewest, m, fewest_m):
    lengths = DecontaminateConfig((), n, fewest, m, fewest_m)
    got = NgramIndex(texts, lengths).find(found)
    assert {(match.start, match.length) for match in got} == naive(texts, found, lengths)
    for match in got:
        part = found[match.start:match.start + match.length]
        text = texts[match.text]
        assert part in [text[i:i + match.length] for i in range(len(text) - match.length + 1)]


def test_equal_hashes_of_windows_are_not_taken_for_equal_words(monkeypatch):
    monkeypatch.setattr(matching, "_window_hashes",
                        lambda hashes, _: iter([(2, np.ones(len(hashes) - 1, np.uint64))]))
    lengths = DecontaminateConfig((), 2, 2, 2, 2)
    assert NgramIndex([["a", "b"]], lengths).find(["c", "d", "e"]) == []


# The rule.

def test_a_document_with_a_question_is_dropped(tmp_path):
    apply = make(tmp_path, [{"question": "short"}, {"question": QUESTION}])
    assert apply.counts == {"sheep": SetCounts(items=2, too_short=1, texts=1)}
    assert apply.notes() == ["sheep: 2 items, 1 texts of them searched for; 1 items are too short"]
    text = FILLER + QUESTION + " " + FILLER
    outcome = apply(document(text))
    assert isinstance(outcome, Dropped)
    assert (outcome.stage, outcome.reason) == ("decontaminate", "evaluation overlap")
    overlap = len(tokens(QUESTION)) / len(tokens(text))
    assert outcome.detail == (f"{overlap:.3f} of it in sheep item 2: 27 words of question: 'A "
                              "farmer has 17 sheep, and all but 9 of them run away during the "
                              "night; how many'")
    clean = document(FILLER)
    assert apply(clean) is clean


VIETNAMESE = ("Một người nông dân có mười bảy con cừu, tất cả trừ chín con đều bỏ chạy trong đêm; "
              "hỏi sáng hôm sau còn lại bao nhiêu con?")
KOREAN = "농부에게 양이 열일곱 마리 있는데 밤사이에 아홉 마리를 빼고 모두 달아났다면"
FORMS = [
    (unicodedata.normalize("NFD", VIETNAMESE), VIETNAMESE),
    ("".join(f"{c}\u2060" for c in CHINESE), CHINESE),
    (QUESTION.replace("farm", "f\x00a\u200cr\u00adm\ufe0f"), QUESTION),
    (unicodedata.normalize("NFD", KOREAN), KOREAN),
]


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("item, text", FORMS)
def test_the_form_of_an_item_and_invisible_characters_do_not_matter(tmp_path, item, text, swap):
    """Items do not pass through cleaning; documents of code do not either."""
    item, text = (text, item) if swap else (item, text)
    outcome = make(tmp_path, [{"question": item}])(document(FILLER + text + " " + FILLER))
    assert isinstance(outcome, Dropped) and outcome.reason == "evaluation overlap"
    assert ascii(text[:20])[1:-1].replace("\\", "") in ascii(outcome.detail).replace("\\", "")
    remove = make(tmp_path, [{"question": item}], action="remove", window=0, max_removed=0.9)
    outcome = remove(document(f"Vấn đề e\u0301\u00ad: {text} Then o\u0302\u00ad㍿."))
    assert isinstance(outcome, Document)
    first, last = outcome.text.split("\n\n")
    assert first == "Vấn đề e\u0301\u00ad:"
    assert last.lstrip("\u2060？? ") == "Then o\u0302\u00ad㍿."


@pytest.mark.parametrize("count, unit, finds", [
    (7, "word", False), (8, "word", True), (12, "word", True), (12, "字", False), (13, "字", True),
])
def test_short_items_are_searched_for_as_a_whole_or_not_at_all(tmp_path, count, unit, finds):
    short = " ".join(tokens(QUESTION)[:count]) if unit == "word" else (
        "".join(tokens(CHINESE)[:count]))
    apply = make(tmp_path, [{"question": QUESTION}, {"question": short}])
    assert apply.counts["sheep"].too_short == (not finds)
    assert isinstance(apply(document(f"{FILLER}{short} {CHINESE_FILLER}")), Dropped) == finds


def test_a_little_overlap_can_be_allowed(tmp_path):
    apply = make(tmp_path, [{"question": QUESTION}], max_overlap=0.3)
    clean = document(FILLER + QUESTION)
    share = len(tokens(QUESTION)) / len(tokens(clean.text))
    assert 0.2 < share < 0.3
    assert apply(clean) == clean.with_scores(
        **{"decontaminate/overlap": pytest.approx(share, abs=1e-12)})
    assert isinstance(apply(document(FILLER[:200] + QUESTION)), Dropped)


@pytest.mark.parametrize("question, filler", [(QUESTION, FILLER), (CHINESE, CHINESE_FILLER)])
def test_passages_are_removed_with_what_stands_around_them(tmp_path, question, filler):
    apply = make(tmp_path, [{"question": question}], action="remove", window=20)
    text = filler + question + filler + question + filler
    outcome = apply(document(text))
    assert isinstance(outcome, Document)
    pieces = outcome.text.split("\n\n")
    assert len(pieces) == 3 and text.startswith(pieces[0])
    assert text.strip().endswith(pieces[2])
    # 20 characters (the question mark is one), the word they cut, and the space beside it.
    assert all(-1 <= len(filler) - 20 - len(piece) <= 12 for piece in (pieces[0], pieces[2]))
    assert not {"farmer", "sheep", "羊"} & set(tokens(outcome.text))
    assert set(tokens(outcome.text)) <= set(tokens(filler))  # no half words
    assert outcome.transforms == (
        "extract:html", "decontaminate:passages=2", "decontaminate:sheep item 1")
    assert apply(outcome) is outcome


def test_pieces_that_come_together_are_searched_again(tmp_path):
    first, second = tokens(QUESTION)[:13], ["alpha", *"bcdefghijklm"]
    apply = make(tmp_path, [{"question": " ".join(first)}, {"question": " ".join(second)}],
                 action="remove", window=0, max_removed=0.9)
    text = FILLER + " ".join(second[:6] + first + second[6:]) + ". " + FILLER
    outcome = apply(document(text))
    assert isinstance(outcome, Document)
    assert set(tokens(outcome.text)) <= set(tokens(FILLER))
    assert outcome.transforms[1] == "decontaminate:passages=2"


def test_a_document_that_would_lose_most_of_itself_is_dropped(tmp_path):
    for max_removed, kept in ((0.5, False), (0.99, True)):
        apply = make(tmp_path, [{"question": QUESTION}], action="remove", window=20,
                     max_removed=max_removed)
        outcome = apply(document(FILLER[:100] + QUESTION))
        assert isinstance(outcome, Document) == kept
    assert isinstance(apply(document(QUESTION)), Dropped)  # nothing would be left


def test_many_items_are_named_by_the_first_ones(tmp_path):
    rows = [{"question": f"{QUESTION} {i} {i} {i}"} for i in range(9)]
    outcome = make(tmp_path, rows)(document(" ".join(row["question"] + " x" for row in rows)))
    assert isinstance(outcome, Dropped)
    # Of the words that all share only the first item is named.
    assert "sheep item 1, sheep item 2, sheep item 3, sheep item 4, sheep item 5, 4 more items" in (
        outcome.detail)


# What counts as evidence: a question, or an answer that is long or beside its question.

PHRASES = {
    "en": "in accordance with the laws and regulations in force at the time of the signing of this "
          "agreement and of every later one that the two parties may come to enter into",
    "zh": "中华人民共和国全国人民代表大会常务委员会关于修改有关法律问题的决定"
          "自公布之日起施行原有规定同时废止",
    "ja": "この法律は公布の日から起算して六月を超えない範囲内において"
          "政令で定める日から施行するものとする",
}


@pytest.mark.parametrize("language, length, asked, kept", [
    ("en", 12, "", True), ("en", 25, "", True), ("en", 26, "", False),
    ("zh", 13, "", True), ("zh", 39, "", True), ("zh", 40, "", False),
    ("ja", 13, "", True), ("ja", 39, "", True), ("ja", 40, "", False),
    ("en", 12, QUESTION, False), ("zh", 15, CHINESE, False), ("ja", 13, CHINESE, False),
    # A question too short to be searched for counts beside an answer, if it is half as long as one
    # that is, and the two together are as long as an n-gram.
    ("en", 9, "Which rule applies?", True), ("en", 9, "Which rule applies here?", False),
    ("en", 8, "Which rule applies here?", True), ("zh", 13, "下列正确的是", True),
    ("zh", 13, "下列说法正确的是", False), ("zh", 20, "下列说法正确", True),
])
def test_an_answer_alone_is_no_evidence(tmp_path, language, length, asked, kept):
    joint, filler = (" ", FILLER) if language == "en" else ("", CHINESE_FILLER)
    whole = PHRASES[language]
    phrase = " ".join(whole.split()[:length]) if joint else whole[:length]
    item = {"question": asked or CHINESE, "choices": ["四只", phrase], "answer": phrase}
    other = {"question": "下列哪一项不属于中国古代四大发明", "choices": [phrase], "answer": 1}
    apply = make(tmp_path, [other, item], ("question", "choices", "answer"))
    text = f"{filler}{phrase}。{filler}"
    outcome = apply(document(f"{text} {asked}。{filler}"))
    assert isinstance(outcome, Document) == kept
    if asked and not kept:
        assert isinstance(outcome, Dropped) and "in sheep item 2: " in outcome.detail
        assert apply(document(text)) == document(text)
    elif not kept:
        assert isinstance(outcome, Dropped)
        unit = "words" if language == "en" else "characters"
        assert f": {length} {unit} of choices: '{phrase[:10]}" in outcome.detail
    else:  # with both as questions, every field alone is evidence
        both = make(tmp_path, [other, item], ("question", "choices"),
                    questions=("question", "choices"))
        assert isinstance(both(document(text)), Dropped)


def test_an_answer_beside_its_question_is_removed_too(tmp_path):
    phrase = " ".join(PHRASES["en"].split()[:12])
    apply = make(tmp_path, [{"question": QUESTION, "answer": phrase}], ("question", "answer"),
                 action="remove", window=0, max_removed=0.9)
    alone = document(f"{FILLER}{phrase}. {FILLER}")
    assert apply(alone) == alone
    outcome = apply(document(f"{FILLER}{QUESTION} {FILLER}{phrase}. {FILLER}"))
    assert isinstance(outcome, Document) and phrase not in outcome.text
    assert "decontaminate:passages=2" in outcome.transforms


@pytest.mark.parametrize("text, changed", [
    ("若等差数列的前n项和满足2n=14，求这个数列的首项与公差各是多少", ["2n=1\n4", "2 n = 1 4"]),
    ("患者男性，28岁，突发胸痛2小时，既往体健，应当首先做哪一项检查", ["2 8 岁", "2\u30008岁"]),
    ("用Python编写HTTP服务器时，监听8080端口需要调用哪一个函数", ["Py thon", "PYTH\nON"]),
    ("細胞内のATP合成酵素が1分子のATPを作るのに必要なプロトンの数は", ["A T P", "A\nTP"]),
    ("设x1与x2是方程2x^2-4x+1=0的两个根，求x1^3+x2^3的值", ["x 1 与 x 2", "4 x + 1"]),
    ("2n=14的被子植物有", ["2n=1 4", "2 n\n=14"]),
])
@pytest.mark.parametrize("swap", [False, True])
def test_white_space_does_not_matter_in_texts_without_spaces(tmp_path, text, changed, swap):
    for part in changed:
        at = re.search(r"\s*".join(re.escape(c) for c in "".join(part.split())), text, re.I)
        assert at
        spaced = text[:at.start()] + part + text[at.end():]
        item, there = (spaced, text) if swap else (text, spaced)
        apply = make(tmp_path, [{"question": item}], characters=30, min_characters=8)
        outcome = apply(document(f"{CHINESE_FILLER}{there}？{CHINESE_FILLER}"))
        assert isinstance(outcome, Dropped), there  # shorter than an n-gram: all of it is compared
        shown = re.sub(r"\s", "", outcome.detail).casefold()
        assert re.sub(r"\s", "", there).casefold().rstrip("？") in shown
        other = there.replace("4", "5").replace("8", "9").replace("T", "X")
        assert isinstance(apply(document(f"{CHINESE_FILLER}{other}？")), Document)


# Evaluation files.

def test_formats_give_the_same_items(tmp_path):
    rows = [{"question": QUESTION, "choices": ["nine sheep", "eight", 7], "answer": None},
            {"question": CHINESE, "choices": [], "answer": 9}]
    lines = "\n".join(json.dumps(row) for row in rows).encode()
    (tmp_path / "a.jsonl").write_bytes(lines + b"\n\n")
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(lines))
    (tmp_path / "c.json").write_text(json.dumps(rows))
    pyarrow.parquet.write_table(pa.Table.from_pylist(
        [{**row, "choices": list(map(str, row["choices"]))} for row in rows]), tmp_path / "d.pq")
    (tmp_path / "e.txt").write_text(f"{QUESTION}\n\n \n{CHINESE}\n", encoding="utf-8")
    expected = [(QUESTION, "nine sheep", "eight", "7"), (CHINESE, "9")]
    for name, format in (("a.jsonl", "jsonl"), ("b.jsonl.gz", "jsonl"), ("c.json", "json"),
                         ("d.pq", "parquet")):
        items = read(EvaluationSetConfig("x", str(tmp_path), name, format,
                                         ("question", "choices", "answer")), "f")
        assert [item.texts for item in items] == expected
        assert [item.number for item in items] == [1, 2]
    items = read(EvaluationSetConfig("x", str(tmp_path), "e.txt", "text"), "f")
    assert [item.texts[0].strip() for item in items] == [QUESTION, CHINESE]
    items = read(EvaluationSetConfig("x", str(tmp_path), "*.jsonl*", "jsonl", ("question",)), "f")
    assert [item.number for item in items] == [1, 2, 3, 4]


@pytest.mark.parametrize("content, changes, message", [
    ("", {}, "the set 'sheep' has no item"),
    ("\n\n", {}, "the set 'sheep' has no item"),
    (None, {}, "no file matches"),
    ('{"question": "a"', {}, "set.jsonl, line 1: is not valid JSON"),
    ('{"qestion": "a"}', {}, "has no field 'question'; did you mean 'qestion'?"),
    ('"question"', {}, "must be an object with question"),
    ("\xff".encode("latin-1"), {}, "is not UTF-8"),
    ('{"question": "too short"}', {}, "none of the 1 items of 'sheep' has 8 words"),
    ('{"question": "。，！"}', {}, "none of the 1 items"),
    ('{"question": 1}', {"format": "json"}, "must hold a JSON array"),
    ("x", {"format": "parquet"}, "is not a Parquet file"),
    (b"\x1f\x8b\x08\0", {}, "truncated gzip"),
    ("x", {"fields": []}, "config.decontaminate.sets[0].fields: format 'jsonl' needs at least one"),
    ("x", {"format": "text"}, "format 'text' has no fields"),
    ("x", {"name": " "}, "config.decontaminate.sets[0].name"),
    ("[" * 100_000, {"format": "json"}, "set.jsonl"),
])
def test_an_evaluation_set_that_cannot_be_used_is_an_error_at_start(
        tmp_path, content, changes, message):
    if content is not None:
        data = content if isinstance(content, bytes) else content.encode()
        (tmp_path / "set.jsonl").write_bytes(data)
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, changes)
    assert message in str(caught.value) and "config.decontaminate.sets[0]" in str(caught.value)


@pytest.mark.parametrize("fields, message", [
    ({"words": 5}, "config.decontaminate.min_words: must be at most config.decontaminate.words"),
    ({"characters": 5}, "config.decontaminate.min_characters"),
    ({"action": "remove"}, "config.decontaminate.sets: is empty"),
    ({"sets": [{"name": "a", "root": "r", "pattern": "p", "fields": ["q"]}] * 2},
     "'a' is used twice"),
])
def test_mistakes_in_the_section(fields, message):
    with pytest.raises(ConfigError) as caught:
        build(DecontaminateConfig, fields, "config.decontaminate")
    assert message in str(caught.value)


@pytest.mark.parametrize("owner, name, broken, message", [
    (NgramIndex, "find", lambda self, found: [], "set 'sheep', item 1 was planted and not found"),
    (overlap_filter, "_runs", lambda matches, count: np.zeros(count, int), "alone would be kept")])
def test_the_self_check_stops_the_start(tmp_path, monkeypatch, owner, name, broken, message):
    monkeypatch.setattr(owner, name, broken)
    with pytest.raises(RuntimeError, match=message):
        make(tmp_path, [{"question": QUESTION}])
