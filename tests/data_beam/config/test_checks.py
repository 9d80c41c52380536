"""Settings that contradict each other, or that nothing would read, are refused by name."""

import dataclasses

import pytest

from data_beam.config import (
    DecontaminateConfig,
    DedupConfig,
    ExtractConfig,
    FilterConfig,
    PerplexityConfig,
    PrivacyConfig,
    QualityConfig,
    SafetyConfig,
)
from data_beam.config.filters import filter_names
from maxlm.config.schema import ConfigError, build, to_plain

EVALUATION = {"sets": [{"name": "a", "root": "b", "pattern": "c", "fields": ["d"]}]}
OFF = {"require_end_mark": False}
MODEL = {"language": "zh", "model": "m"}


def error(section: type, values: dict) -> str:
    with pytest.raises(ConfigError) as caught:
        build(section, values, "config.it")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_minimum_above_its_maximum_is_an_error():
    """Of every pair in every filter: a new pair fails here until its `check` looks at it."""
    pairs = 0
    for name in filter_names():
        section = getattr(FilterConfig(), name)
        languages = [each for each in ("en", "zh") if hasattr(section, each)]
        fields = {field.name for field in dataclasses.fields(getattr(section, "en", section))}
        for low in sorted(field for field in fields if field.startswith("min_")):
            high = low.replace("min_", "max_", 1)
            for language in languages or [""] if high in fields else []:
                def values(*limits, low=low, high=high, language=language, name=name):
                    limits = dict(zip((low, high), limits, strict=True))
                    return {"rules": [name], name: {language: limits} if language else limits}

                path = f"config.it.{name}." + (f"{language}." if language else "")
                assert error(FilterConfig, values(9, 8)).startswith(
                    f"{path}{low}: 9 is above {high} (8), so nothing would pass")
                for good in ((9, 9), (None, 8), (9, None)):
                    build(FilterConfig, values(*good))
                pairs += 1
    assert pairs >= 6


@pytest.mark.parametrize("name, most, sizes", [
    ("max_top_ngram", 3, "2-, 3- and 4-grams"), ("max_duplicate_ngrams", 6, "5- to 10-grams")])
def test_more_values_than_n_grams_are_an_error(name, most, sizes):
    def values(count):
        return {"rules": ["gopher_repetition"],
                "gopher_repetition": {"zh": {name: [0.2] * count}}}

    assert error(FilterConfig, values(most + 2)) == (
        f"config.it.gopher_repetition.zh.{name}: {most + 2} values, but only {most} are used, "
        f"for {sizes}; remove the rest")
    for count in (0, 1, most):
        build(FilterConfig, values(count))


@pytest.mark.parametrize("rule", filter_names())
def test_thresholds_of_a_filter_that_is_not_applied_are_an_error(rule):
    section = getattr(FilterConfig(), rule)
    table = getattr(section, "zh", section)
    field = next(field for field in dataclasses.fields(table)
                 if isinstance(getattr(table, field.name), int | float)
                 and not isinstance(getattr(table, field.name), bool))
    value = getattr(table, field.name)
    other = dataclasses.replace(
        table, **{field.name: value + 1 if isinstance(value, int) else value / 2})
    if table is section:
        values, name = {rule: to_plain(other)}, f"{rule}.{field.name}"
    else:
        section = dataclasses.replace(section, zh=other)
        values, name = {rule: to_plain(section)}, f"{rule}.zh.{field.name}"
    assert error(FilterConfig, values) == (
        f"config.it.{name}: does nothing while config.it.rules does not list '{rule}'; add it "
        "there, or leave it out")
    build(FilterConfig, {**values, "rules": [rule]})


@pytest.mark.parametrize("section, values, field, fix", [
    (FilterConfig, {"same_as": ["fr=en"]}, "same_as", "list the filters"),
    (FilterConfig, {"other_languages": "keep"}, "other_languages", "list the filters"),
    (FilterConfig, {"max_short_line_fraction": 1.0, "short_line_width": 20}, "short_line_width",
     "lower that"),
    (DedupConfig, {"minhash": {"threshold": 0.8}}, "minhash.threshold", "minhash.enabled"),
    (DedupConfig, {"simhash": {"distance": 2}}, "simhash.distance", "simhash.enabled"),
    (DedupConfig, {"lines": {"max_documents": 9}}, "lines.max_documents", "lines.enabled"),
    (DedupConfig, {"paragraphs": {"min_characters": 50}}, "paragraphs.min_characters",
     "paragraphs.enabled"),
    (DedupConfig, {"hot_bucket": 5}, "hot_bucket", "minhash.enabled"),
    (DedupConfig, {"max_edges_one_worker": 5}, "max_edges_one_worker", "minhash.enabled"),
    (QualityConfig, {"min_score": 3}, "min_score", "name the model's folder"),
    (PerplexityConfig, {"other_languages": "drop"}, "other_languages", "name the models"),
    (PerplexityConfig, {"models": [{**MODEL, "max_percentile": 90, "max_perplexity": 100}]},
     "models[0].max_percentile", "choose one"),
    (SafetyConfig, {"max_toxicity": 0.4}, "max_toxicity", "config.it.model"),
    (SafetyConfig, {"model": "m", "keyword_saturation": 0.1}, "keyword_saturation",
     "config.it.keywords"),
    (SafetyConfig, {"model": "m", "max_keyword_lines": 0.1}, "max_keyword_lines",
     "config.it.keywords"),
    (ExtractConfig, {"html": "trafilatura", "max_link_density": 0.5}, "max_link_density",
     "resiliparse"),
    (ExtractConfig, {"boilerplate_lines": False, "max_boilerplate_characters": 9},
     "max_boilerplate_characters", "boilerplate_lines"),
    (DecontaminateConfig, {**EVALUATION, "window": 50}, "window", "'remove'"),
    (DecontaminateConfig, {**EVALUATION, "max_removed": 0.1}, "max_removed", "'remove'"),
    (PrivacyConfig, {"enabled": True, "drop_over": 3}, "drop_over", "give it to one"),
    (PrivacyConfig, {"enabled": True, "name": "drop"}, "name", "name the function"),
])
def test_what_nothing_reads_is_an_error(section, values, field, fix):
    message = error(section, values)
    assert message.startswith(f"config.it.{field}: does nothing while ") and fix in message


def over_the_defaults(rule: str, values: dict) -> dict:
    """A section as flags change it: what they do not name has the values of its language."""
    plain = to_plain(getattr(FilterConfig(), rule))
    return {**plain, **{name: {**plain[name], **value} if isinstance(value, dict) else value
                        for name, value in values.items()}}


@pytest.mark.parametrize("rule, values, field, reason", [
    ("fineweb", {"zh": {"short_line_length": 20}}, "zh.short_line_length",
     "max_short_lines is None"),
    ("fineweb", {"en": {"short_line_length": 20, "max_short_lines": None}}, "en.short_line_length",
     "max_short_lines is None"),
    ("fineweb", {"paper": {"short_line_length": 20}}, "paper.short_line_length",
     "preset is 'datatrove'"),
    ("fineweb", {"preset": "paper", "en": {"short_line_length": 20}}, "en.short_line_length",
     "preset is 'paper'"),
    ("gopher_quality", {"zh": {"min_stop_words": None, "stop_words": ["的"]}}, "zh.stop_words",
     "min_stop_words is None"),
    ("gopher_quality", {"en": {"min_stop_words": None, "stop_words": ["the"]}}, "en.stop_words",
     "min_stop_words is None"),
    ("ngram_repetition", {"zh": {"max_repeated": 1.0, "window": 9}}, "zh.window",
     "max_repeated is 1"),
    ("ngram_repetition", {"en": {"max_repeated": 1.0, "unit": "characters"}}, "en.unit",
     "max_repeated is 1"),
    ("c4", {"en": OFF, "zh": OFF, "end_marks": "paper"}, "end_marks", "require_end_mark are False"),
    ("c4", {"en": OFF, "zh": OFF, "more_end_marks": [":"]}, "more_end_marks", "are False"),
    ("entropy", {"zh": {"min_bits": None, "max_bits": None, "min_characters": 9}},
     "zh.min_characters", "min_bits and max_bits are None"),
    ("chat_log", {"max_chat_lines": 1.0, "min_lines": 9}, "min_lines", "max_chat_lines is 1"),
])
def test_what_serves_a_threshold_that_is_off_is_an_error(rule, values, field, reason):
    message = error(FilterConfig, {"rules": [rule], rule: over_the_defaults(rule, values)})
    assert message.startswith(f"config.it.{rule}.{field}: does nothing while config.it.{rule}.")
    assert f"{reason}; " in message and message.endswith(", or leave it out")


@pytest.mark.parametrize("rule, values", [
    ("fineweb", {"zh": {"short_line_length": 20, "max_short_lines": 0.6}}),
    ("fineweb", {"en": {"short_line_length": 20}}),
    ("c4", {"en": OFF, "end_marks": "paper"}), ("c4", {"more_end_marks": [":"]}),
    ("fineweb", {"preset": "paper", "paper": {"short_line_length": 20}}),
    ("gopher_quality", {"zh": {"min_stop_words": None}, "en": {"min_stop_words": None}}),
    ("ngram_repetition", {"zh": {"max_repeated": 1.0}, "en": {"window": 9}}),
    ("entropy", {"zh": {"min_bits": None, "min_characters": 9}}),
    ("entropy", {"zh": {"min_bits": None, "max_bits": None}}),
    ("chat_log", {"max_chat_lines": 1.0}),
])
def test_thresholds_may_be_off_or_their_fields_set(rule, values):
    for section in (values, over_the_defaults(rule, values)):
        build(FilterConfig, {"rules": [rule], rule: section}, "config.it")
