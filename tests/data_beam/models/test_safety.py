"""Keywords in Chinese and English, the safety classifier, and the filter that combines them."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_beam import train_quality
from data_beam.base.records import Document, Dropped
from data_beam.config import KeywordListConfig, RecipeConfig, SafetyConfig
from data_beam.filters.chain import loaded_files
from data_beam.models.classifier import TextClassifier
from data_beam.models.keywords import DEFAULT_EN, DEFAULT_ZH, Keywords, read_list
from data_beam.models.safety import SafetyFilter
from maxlm.config.schema import ConfigError, build
from tests.data_beam.models.documents import document
from tests.data_beam.real_text import chinese, degraded, english
from tests.data_beam.runs import text_recipe

DEFAULT = Keywords([*DEFAULT_ZH, *DEFAULT_EN])


def found(keywords: Keywords, text: str) -> list[str]:
    text = text.lower()
    return [text[start:end] for start, end in keywords.find(text)]


def test_han_keywords_match_inside_a_run_of_characters():
    assert found(DEFAULT, "本站提供六合彩开奖，真人荷官在线") == ["六合彩", "真人荷官"]
    assert found(Keywords(["加vx"]), "请加VX领取") == ["加vx"]
    assert found(Keywords(["博彩", "博彩网站"]), "某博彩网站") == ["博彩网站"]  # the longest


def test_english_keywords_match_whole_words():
    keywords = Keywords(["cunt", "ass", "sex", "cock", "casino bonus", "c++ porn"])
    assert found(keywords, "Scunthorpe and Essex pass: assess the class of a cocktail.") == []
    assert found(keywords, "An ass! Casino\n  BONUS, casino-bonus.") == ["ass", "casino\n  bonus"]
    assert found(keywords, "(sex) sex_ed sex2") == ["sex"]
    assert found(keywords, "of C++ porn and C++ porno") == ["c++ porn"]
    assert found(Keywords(["porn"]), "这里有porn视频") == []  # \w matches Han characters
    assert found(Keywords(["porn"]), "这里有 porn 视频") == ["porn"]


@pytest.mark.parametrize("text", [
    "这座城市的特色情怀令人难忘。", "剧中角色情感细腻。", "红色情怀代代相传", "富有感情色彩的词语",
    "公安机关严厉打击卖淫嫖宿", "Scunthorpe United of Lincolnshire", "Essex, Middlesex and Sussex",
    "specialist, socialist", "The buyer nowadays reads", "pornichet.fr",
])
def test_harmless_text_that_contains_a_keyword_does_not_match(text):
    assert [word for word in found(DEFAULT, text) if "嫖" not in word] == []


def test_custom_harmless_phrases():
    keywords = Keywords(["赌场", "!赌场经济学", "casino", "!Casino Royale"])
    assert found(keywords, "赌场经济学与澳门赌场") == ["赌场"]
    assert found(keywords, "Casino  Royale, a casino") == ["casino"]
    assert found(Keywords([]), "anything") == []


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text("ab赌c ", min_size=1, max_size=5), max_size=6), st.text("ab赌c \n."))
def test_keywords_match_like_a_naive_search(entries, text):
    words = {" ".join(entry.split()) for entry in entries} - {""}

    def words_at(start: int, inside: bool) -> list[int]:
        ends = []
        for word in words:
            if ("赌" in word) != inside:
                continue
            at, fits = start, True
            for number, part in enumerate(word.split(" ")):
                if number:
                    begin = at
                    while at < len(text) and text[at].isspace():
                        at += 1
                    fits &= at > begin
                fits &= text.startswith(part, at)
                at += len(part)
            before, after = text[start - 1:start] if start else "", text[at:at + 1]
            if fits and (inside or not (before.isalnum() or after.isalnum())):
                ends.append(at)
        return ends

    expected = []
    for inside in (True, False):
        start = 0
        while start < len(text):
            ends = words_at(start, inside)
            if ends:
                expected.append((start, max(ends)))
            start = max(ends, default=start + 1)
    assert Keywords(entries).find(text) == sorted(expected)


def safety_filter(**fields) -> SafetyFilter:
    return SafetyFilter(build(SafetyConfig, fields, "config.safety"))


def test_toxicity_is_the_share_of_characters_and_is_stored_as_a_score():
    text = "今天天气很好，六合彩开奖。" + "他说起了往事。" * 27  # 3 of 13 + 189 characters
    outcome = safety_filter(default_keywords=True, keyword_saturation=0.5)(document(text))
    assert isinstance(outcome, Document)
    assert outcome.scores["toxicity"] == pytest.approx(3 / 202 / 0.5)
    clean = safety_filter(default_keywords=True)(document("今天天气很好。"))
    assert isinstance(clean, Document) and clean.scores == {"toxicity": 0}
    outcome = safety_filter(default_keywords=True, keyword_saturation=0.01)(document(text))
    assert isinstance(outcome, Dropped)
    assert (outcome.stage, outcome.reason) == ("safety", "toxic")
    assert outcome.detail.startswith("1.000, more than 0.5 (1.49% of the characters in "
                                     "keywords): '今天天气很好，六合彩开奖。")
    kept = safety_filter(default_keywords=True, keyword_saturation=0.01, max_toxicity=1.0)(
        document(text))
    assert isinstance(kept, Document) and kept.scores["toxicity"] == 1


def test_share_of_lines_with_keywords():
    long = "长长的一行字，讲的是别的事情，一点也不短。" * 10
    text = "\n\n".join([f"六合彩{long}", f"色情，色情{long}", long])
    judge = safety_filter(default_keywords=True, max_toxicity=1.0)
    outcome = judge(document(text))
    assert isinstance(outcome, Dropped) and outcome.reason == "lines with keywords"
    assert outcome.detail.startswith("2 of 3 lines, more than 0.5: '六合彩长长的")
    assert isinstance(judge(document(f"{text}\n{long}")), Document)  # 2 of 4 is not more than half
    assert isinstance(judge(document(f"六合彩{long}")), Document)  # fewer than 3 lines
    assert isinstance(safety_filter(default_keywords=True, max_toxicity=1.0, max_keyword_lines=1.0)(
        document(text)), Document)


def test_lists_apply_to_their_language(tmp_path):
    (tmp_path / "zh.txt").write_text("# 一行一词\n坏词  # 很坏\n\n!坏词典\n", encoding="utf-8-sig")
    (tmp_path / "all.txt").write_text("spam word\n", encoding="utf-8")
    assert read_list(str(tmp_path / "zh.txt"), "f") == ["坏词", "!坏词典"]
    judge = safety_filter(keywords=[{"language": "zh", "file": str(tmp_path / "zh.txt")},
                           {"language": "*", "file": str(tmp_path / "all.txt")}])

    def toxicity(text: str, language: str) -> float:
        outcome = judge(document(text, language))
        return 1.0 if isinstance(outcome, Dropped) else outcome.scores["toxicity"]

    assert toxicity("坏词", "zh") == 1 and toxicity("坏词典", "zh") == 0
    assert toxicity("坏词", "ja") == 0
    assert toxicity("Spam  word", "zh") == 1 and toxicity("Spam word", "de") == 1


@pytest.mark.parametrize("content, message", [
    ("坏".encode("gbk"), "is not UTF-8"),
    (b"# nothing\n!harmless\n", "contains no keyword"),
    (b"", "contains no keyword"),
    (b"a " * 200, "has a keyword of 399 characters"),
])
def test_invalid_lists_raise(tmp_path, content, message):
    (tmp_path / "list").write_bytes(content)
    with pytest.raises(ConfigError, match=r"config\.safety\.keywords\[0\]\.file: .*" + message):
        safety_filter(keywords=[{"language": "zh", "file": str(tmp_path / "list")}])
    with pytest.raises(ConfigError, match=r"\.keywords\[0\]\.file: .* does not exist"):
        safety_filter(keywords=[{"language": "zh", "file": str(tmp_path / "none")}])


def test_a_list_of_ten_thousand_keywords():
    words = [f"坏词{chr(0x4E00 + i)}{chr(0x4E00 + i * 7 % 20000)}" for i in range(5000)]
    words += [f"bad{i}word" for i in range(5000)]
    keywords = Keywords(words)
    text = "\n".join([*chinese()[:20], *english()[:20], words[77], f"a {words[7000]} b"]).lower()
    assert found(keywords, text) == [words[77], words[7000]]


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("safety")
    rows = []
    for language, texts in (("zh", chinese()[:120]), ("en", english()[:120])):
        rows += [{"text": text, "label": 0} for text in texts]
        rows += [{"text": degraded(text, language, 1, i), "label": 1}
                 for i, text in enumerate(texts[:60])]
    (folder / "rated.jsonl").write_text(
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    assert train_quality.main([f"--examples={folder / 'rated.jsonl'}", "--task=safety",
                               f"--output={folder / 'model'}", "--features=65536"]) == 0
    return folder / "model"


def test_toxicity_is_the_maximum_of_classifier_and_keywords(model):
    report = json.loads((model / "report.json").read_text())
    assert report["task"] == "safety" and report["labels"] == [240, 120]
    assert report["held_out"]["f1"] > 0.9
    classify = TextClassifier(str(model), "safety", "field")
    clean, bad = chinese()[500], degraded(chinese()[500], "zh", 1, 999)
    assert classify(clean) < 0.5 < classify(bad)
    both = safety_filter(model=str(model), default_keywords=True)
    outcome = both(document(clean))
    assert isinstance(outcome, Document)
    assert outcome.scores["toxicity"] == pytest.approx(classify(clean))
    outcome = safety_filter(model=str(model))(document(bad))
    assert isinstance(outcome, Dropped) and outcome.reason == "toxic"
    assert outcome.detail == \
        f"{classify(bad):.3f}, more than 0.5 (classifier {classify(bad):.3f})"
    by_keywords = both(document(clean + "六合彩" * 100))
    assert isinstance(by_keywords, Dropped) and by_keywords.detail.startswith(
        "1.000, more than 0.5 (classifier 0.") and "% of the characters in keywords" in \
        by_keywords.detail


def recipe(**fields) -> RecipeConfig:
    return text_recipe(Path("r"), safety=SafetyConfig(**fields))


def test_model_and_keyword_files_are_part_of_the_runs_identity(model, tmp_path):
    (tmp_path / "list").write_text("word")
    found = recipe(model=str(model), keywords=(KeywordListConfig("*", str(tmp_path / "list")),))
    assert SafetyFilter.files(found.safety) == [
        ("config.safety.model", str(model / "model.json")),
        ("config.safety.keywords[0].file", str(tmp_path / "list"))]
    before = loaded_files(found)
    (tmp_path / "list").write_text("another")
    assert loaded_files(found) != before
    assert SafetyFilter.files(recipe().safety) == []
