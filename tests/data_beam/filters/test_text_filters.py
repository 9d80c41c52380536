"""Which documents filters judge and by which thresholds; every text gets a decision."""

import dataclasses
import importlib.metadata
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_beam import filters
from data_beam.base.records import Document, Dropped
from data_beam.config import FilterConfig, RecipeConfig, SourceConfig
from data_beam.config.filters import filter_names
from data_beam.config.sources import InputConfig
from data_beam.filters import chain
from data_beam.filters.text_filter import TextFilter, above
from data_beam.readers.listing import list_files
from data_beam.reporting.marks import find_marks
from data_beam.stages import stage_manifest
from maxlm.config.overrides import describe
from maxlm.config.schema import ConfigError, build, setting, to_plain
from tests.data_beam.filters.cases import document, make, outcome, reason
from tests.test_architecture import imports

ALL = make(*filter_names())


HERE = Path(__file__).parent
ROOT = HERE.parents[2]


def recipe(**sections) -> RecipeConfig:
    source = SourceConfig("a", "general", "MIT", (InputConfig(str(HERE), "cases.py", "text"),))
    return RecipeConfig(sources=(source,), **sections)


def test_filters_run_in_the_order_of_the_recipe():
    made = chain.make_filters(recipe(filters=FilterConfig(rules=("fineweb", "c4"))))
    assert [each.name for each in made] == ["filter", "language", "fineweb", "c4"]
    line = "The committee will publish the report on the history of the city next week"
    text = "\n".join(f"{line}, part {i} of it." for i in range(9)) + f"\n{line}"
    *_, (name, result) = chain.judge(document(text), made)
    assert name == "c4" and isinstance(result, Document)
    assert result.text.count("\n") == 8 and result.transforms == ("c4:lines",)


@pytest.fixture
def shouting() -> Iterator[type]:
    """One more filter, declared as all are."""
    before = dict(vars(FilterConfig))

    @dataclasses.dataclass(frozen=True)
    class ShoutingConfig:
        """Capitals, in any language with thresholds."""

        max_capitals: float = setting(0.5, "share of capitals", minimum=0.0)

    class ShoutingFilter(TextFilter):
        name = "shouting"
        settings = ShoutingConfig
        libraries = ("pytest",)
        highlights = (("capitals", "[A-Z]{2,}"),)

        @classmethod
        def files(cls, config):
            return [("config.filters.shouting", __file__)]

        def thresholds(self):
            return {"en": self._config}

        def failures(self, view, limits):
            share = sum(map(str.isupper, view.text)) / max(len(view.text), 1)
            yield above("capitals", share, limits.max_capitals)

    yield ShoutingFilter
    del TextFilter.by_name["shouting"], FilterConfig.__annotations__["shouting"]
    for name, value in dict(vars(FilterConfig)).items():
        if name not in before:
            delattr(FilterConfig, name)
        elif value is not before[name]:
            setattr(FilterConfig, name, before[name])
    assert "shouting" not in filter_names()


def test_one_class_adds_a_filter(shouting):
    """It is in the config, the chain, the fingerprints and the highlights of the report."""
    plain = to_plain(recipe())
    assert plain["filters"]["shouting"] == {"max_capitals": 0.5}
    assert "--config.filters.shouting.max_capitals=0.5" in describe(RecipeConfig)
    config = build(FilterConfig, {"rules": ["shouting"], "shouting": {"max_capitals": 0.2}})
    assert config.shouting.max_capitals == 0.2 and config != FilterConfig(rules=("shouting",))
    assert dataclasses.replace(config, rules=()).shouting == config.shouting
    for values, message in (({"shouting": {"max_capitals": -1}}, "must be at least 0"),
                            ({"shouting": {"max_capitals": 0.2}}, "does not list 'shouting'"),
                            ({"rules": ["shoutin"]}, "did you mean 'shouting'?")):
        with pytest.raises(ConfigError, match=re.escape(message)):
            build(FilterConfig, values)

    on, off = recipe(filters=config), recipe()
    made = chain.make_filters(on)
    assert [each.name for each in made] == ["filter", "language", "shouting"]
    *_, (_, result) = chain.judge(document("READ THIS NOW. " * 9), made)
    assert isinstance(result, Dropped) and (result.stage, result.reason) == ("shouting", "capitals")
    assert isinstance(made[-1](document("Read this now. " * 9)), Document)

    assert __file__ in stage_manifest.loaded_files(on)["filter"]
    assert __file__ not in stage_manifest.loaded_files(off)["filter"]
    assert "pytest" in stage_manifest.libraries()
    listing = list_files(on)
    prints = [stage_manifest.fingerprints(each, listing) for each in (
        on, recipe(filters=dataclasses.replace(config, rules=())), off)]
    assert len({each["filter"] for each in prints}) == 3

    assert find_marks("Now READ it", "shouting", "capitals", "0.5, limit 0.2", plain) == [(4, 8)]
    assert find_marks("Now READ it", "c4", "capitals", "0.5, limit 0.2", plain) == []


IGNORED = {"apache_beam", "ml_collections", "maxlm", "zstandard", *sys.stdlib_module_names}
"""Imports that decide nothing about a text; stages follow numpy and pyarrow anyway."""


def imported_packages(module: str, seen: set[str]) -> set[str]:
    """Names at the root that a module of data_beam and those that it imports import."""
    path = ROOT / (module.replace(".", "/") + ".py")
    if module in seen or not path.exists() or module.startswith("data_beam.config"):
        return set()
    seen.add(module)
    found = set()
    for name in imports(path):
        root = name.partition(".")[0]
        found |= imported_packages(name, seen) if root == "data_beam" else {root}
    return found - IGNORED


@pytest.mark.parametrize("name", chain.all_filters())
def test_every_library_that_a_filter_imports_is_declared(name):
    """So that no fingerprint of a stage can miss one."""
    judge = chain.all_filters()[name]
    needed = imported_packages(judge.__module__, set())
    distributions = importlib.metadata.packages_distributions()
    declared = {*stage_manifest._LIBRARIES}.union(*(
        each.libraries for each in chain.all_filters().values()
        if each.__module__ == judge.__module__))
    assert not [package for package in needed
                if not declared.intersection(distributions.get(package, [package]))]


def test_two_filters_of_one_name_are_an_error():
    for name in ("c4", "rules"):
        with pytest.raises(ValueError, match=f"config.filters.{name} exists already"):
            type("Other", (TextFilter,), {"name": name, "settings": filters.C4Config})


@pytest.mark.parametrize("values, message", [
    ({"rules": ["gopher_qualty"]}, "did you mean 'gopher_quality'?"),
    ({"rules": ["c4", "c4"]}, "'c4' is there twice"),
    ({"same_as": ["fr"]}, "'fr' is not LANGUAGE=THRESHOLDS"),
    ({"same_as": ["fr=de"]}, "thresholds for en, zh"),
    ({"same_as": ["xx=en"]}, "'xx' is not a language code"),
    ({"same_as": ["zh=en"]}, "'zh' has thresholds already"),
    ({"same_as": ["ja=en"]}, "the words of 'ja' are not cut like those of 'en'"),
    ({"same_as": ["ja=zh"]}, "the words of 'ja' are not cut like those of 'zh'"),
    ({"same_as": ["yue=en"]}, "the words of 'yue' are not cut like those of 'en'"),
    ({"same_as": ["fr=zh"]}, "not cut like those of 'zh'"),
    ({"other_languages": "pass"}, "not one of drop, keep"),
    ({"gopher_quality": {"zh": {"min_word": 3}}}, "did you mean 'min_words'?"),
    ({"gopher_quality": {"de": {}}}, "no such field"),
    ({"gopher_quality": {"en": {"stop_words": []}}}, "fewer than min_stop_words"),
    ({"gopher_quality": {"en": {"stop_words": ["The", "the"]}}}, "fewer than min_stop_words"),
    ({"gopher_repetition": {"en": {"max_top_ngram": [-0.1]}}}, "must not be negative"),
    ({"c4": {"preset": "allenai"}}, "not one of tfds, datatrove"),
    ({"rules": ["c4"], "c4": {"more_end_marks": [""]}}, "must not be empty"),
])
def test_a_mistake_in_the_recipe_is_named(values, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        build(FilterConfig, values, "config.filters")


def test_a_language_without_thresholds_meets_a_named_policy():
    text = "Der Ausschuss wird seinen Bericht über die Geschichte der Stadt veröffentlichen. " * 20
    for name in (name for name in filter_names() if name != "chat_log"):
        dropped = outcome(name, text, "de")
        assert isinstance(dropped, Dropped)
        assert (dropped.reason, dropped.detail) == ("no thresholds for its language", "de")
        assert reason(name, text, "und") == "no thresholds for its language"
        assert outcome(name, text, "de", other_languages="keep") == document(text, "de")
    # Only by name is it judged by the thresholds of another language.
    assert reason("gopher_quality", "kurz", "de", same_as=("de=en",)) == "too few words"
    assert reason("gopher_quality", "短", "yue") == "too few words"


def test_off_means_off():
    thresholds = filters.GopherQualityThresholds
    none = thresholds(**{field.name: None for field in dataclasses.fields(thresholds)
                         if field.name != "stop_words"})
    for text in ("", "# # ...", "- a\n- b", "x" * 5000):
        assert reason("gopher_quality", text, gopher_quality=filters.GopherQualityConfig(en=none)
                      ) is None


def test_source_code_is_kept():
    code = dataclasses.replace(document("x = 1\n" * 500, "python"), is_code=True)
    for each in ALL:
        assert each(code) is code


CHATS = [
    "\n".join(f"[12:{m:02}] <ann> did you see message {m}?" for m in range(10, 20)),
    "\n".join(f"12:{m:02}:05 ann: did you see message {m}?" for m in range(10, 20)),
    "\n".join(f"<bob> answer {m}" for m in range(10)) + "\n*** ann has joined #room",
    "\n".join(f"张三 2023-05-01 12:{m:02}:00\n今天吃第{m}家饭馆" for m in range(10, 20)) +
    "\n李四(12345678) 9:30:00",
    "\n".join(f"[2023-05-01 12:{m:02}] 张三：第{m}条消息" for m in range(10, 20)),
    "［１２：３０］ ＜ａｎｎ＞ ｈｅｌｌｏ\n" * 5,
]
NO_CHATS = [
    "HAMLET. To be, or not to be.\nOPHELIA. Good my lord,\nHAMLET. I humbly thank you.\n" * 5,
    "记者：您好。\n教授：您好，很高兴见到大家。\n记者：请谈谈历史。\n教授：那就从头说起。\n" * 5,
    "At 12:30 the train left.\nIt was late.\nThe next left at 13:05.\nWe waited.\nIt came.",
    "[1] Knuth, D.\n[2] Turing, A.\n[3] Shannon, C.\n[4] Hopper, G.\n[5] Lamport, L.",
    "<p> text </p>\n" * 9,
    "\n".join(["[12:30] <ann> hello", "A line of prose."] * 5),  # exactly at the threshold
    "\n".join(["[12:30] <ann> hello"] * 4),  # too few lines
]


@pytest.mark.parametrize("text, expected", [
    *((text, "chat lines") for text in CHATS), *((text, None) for text in NO_CHATS),
    (NO_CHATS[-2] + "\n[12:30] <ann> hello", "chat lines")])
def test_chat_logs_are_dropped_and_other_dialogues_kept(text, expected):
    for language in ("und", "en", "zh"):
        assert reason("chat_log", text, language) == expected


EDGES = ["", " ", "\n", "\u3000\t\n ", "word", "字", ".", "…", "{", "\x00", "\ud800", "a\n" * 10,
         "。" * 60, "# " * 100, "٪" * 10, "🏳️‍🌈" * 9, "Ａ" * 90, "İ" * 90]


@pytest.mark.parametrize("language", ["en", "zh", "de", "und", ""])
@pytest.mark.parametrize("text", EDGES)
def test_the_edges_get_a_decision(text, language):
    for each in ALL:
        assert isinstance(each(document(text, language)), Document | Dropped)


SENSITIVE = filters.RepeatedSentencesThresholds(min_characters=1, min_copies=2, min_distance=0)
OTHERS = make(
    *filter_names(), gopher_repetition=filters.GopherRepetitionConfig(counting="every"),
    c4=filters.C4Config(end_marks="paper"), fineweb=filters.FineWebConfig(preset="paper"),
    chinese_web_text=filters.ChineseWebTextConfig(min_characters=0),
    repeated_sentences=filters.RepeatedSentencesConfig("remove", SENSITIVE, SENSITIVE))


@given(st.text(max_size=400), st.sampled_from(["en", "zh"]), st.integers(1, 40))
@settings(max_examples=150, deadline=None)
def test_any_string_gets_a_decision(text, language, times):
    for each in (*ALL, *OTHERS):
        result = each(document(text * times, language))
        assert isinstance(result, Document | Dropped)
        if isinstance(result, Dropped):
            assert result.stage == each.name and result.reason


UNITS = {
    "one word": "x", "brackets": "(", "points": ".", "quotes": "'", "han": "字", "spaces": " ",
    "one line": "word and ", "lines": "a\n", "url": "http://a.", "at": "@", "times": "12:30",
    "hyphens": "a-", "sentences": "One more. ", "numbers": "1 2 3 4 5 6 7 8 9 0 ",
    "apostrophes": "n't", "angles": "<a", "citations": "[1]", "notes": ".[a]\n", "wide": "１［",
}


@pytest.mark.parametrize("size", [250_000, pytest.param(10_000_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", UNITS)
def test_time_is_bounded(name, language, size):
    """A quarter of a megabyte, and ten: quadratic time would run into the tests' time limit."""
    for each in ALL:
        assert isinstance(each(document(UNITS[name] * (size // len(UNITS[name])), language)),
                          Document | Dropped)
