"""Rule sets on one text, for tests."""

from data_beam.filters.rule_sets import make_rule_sets

from data_beam.base.records import Document, Dropped, Origin
from data_beam.config import FilterConfig


def document(text, language="en"):
    return Document(Origin("s", "p"), text, "general", "MIT", "", language, 1.0, "", "", ())


def outcome(rule, text, language="en", **sections):
    """What a rule set makes of a text; `sections` are settings of the filters."""
    (made,) = make_rule_sets(FilterConfig(rules=(rule,), **sections))
    return made(document(text, language))


def reason(rule, text, language="en", **sections):
    """Why a rule set drops a text, or None."""
    result = outcome(rule, text, language, **sections)
    return result.reason if isinstance(result, Dropped) else None
