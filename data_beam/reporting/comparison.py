"""What changed between the reports of two corpora: counts, shares and reasons."""

from collections.abc import Mapping
from typing import Any

from apache_beam.io.filesystems import FileSystems

from data_beam.base import json_files
from data_beam.reporting.facts import FORMAT
from maxlm.config.schema import ConfigError

_TOTALS = ("read", "kept", "dropped", "dead_letters", "characters", "dropped_characters", "bytes",
           "tokens")
_SHAPE = {"format": str, "made": dict, "total": dict, "recipe_sha256": str,
          "sources": [{"name": str, "read": int, "kept": int}],
          "funnel": [{"stage": str, "reasons": [{"reason": str, "documents": int}]}],
          "mixture": {name: {"rows": [{"bytes": int}]}
                      for name in ("language", "licence", "domain")}}


def read_facts(corpus: str) -> dict[str, Any]:
    """report.json of another corpus, to compare with. Raises ConfigError if there is none, or it is
    damaged or of another version."""
    path = corpus if corpus.endswith(".json") else FileSystems.join(corpus, "report.json")
    if not FileSystems.exists(path):
        raise ConfigError(f"--compare: {path} does not exist; give a corpus, or make its report "
                          f"with python -m data_beam.report --corpus={corpus}")
    fix = "make that report again with python -m data_beam.report"
    try:
        facts = json_files.read(path, _SHAPE)
    except json_files.NotThisKind as error:
        raise ConfigError(f"--compare: {path} is no report of this version ({error}); {fix}"
                          ) from None
    if facts["format"] != FORMAT:
        raise ConfigError(f"--compare: {path} has the format {facts['format']!r} and not "
                          f"{FORMAT!r}; {fix}")
    return facts


def compare(now: Mapping[str, Any], then: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Pairs [then, now] of counts in the facts of two corpora, and of shares where corpora differ
    in size. `name` is that of the other corpus, for the page."""
    sources = [{entry["name"]: entry for entry in facts["sources"]} for facts in (then, now)]
    reasons = [{(stage["stage"], row["reason"]): row["documents"] for stage in facts["funnel"]
                for row in stage["reasons"]} for facts in (then, now)]
    read = [facts["total"]["read"] for facts in (then, now)]
    return {
        "with": name, "made": then["made"], "recipe_sha256": then["recipe_sha256"],
        "total": [{"name": key, "counts": [facts["total"].get(key) for facts in (then, now)]}
                  for key in _TOTALS],
        "sources": [{"name": key, **{count: [of.get(key, {}).get(count, 0) for of in sources]
                                     for count in ("read", "kept")}}
                    for key in dict.fromkeys([*sources[1], *sources[0]])],
        "reasons": sorted(
            ({"stage": stage, "reason": reason,
              "documents": (pair := [of.get((stage, reason), 0) for of in reasons]),
              "shares": [count / max(1, of) for count, of in zip(pair, read, strict=True)]}
             for stage, reason in dict.fromkeys([*reasons[1], *reasons[0]])),
            key=lambda row: (-abs(row["shares"][1] - row["shares"][0]), row["stage"],
                             row["reason"])),
        "mixture": {key: _shares(then, now, key) for key in ("language", "licence", "domain")}}


def _shares(then: Mapping[str, Any], now: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """Shares of the bytes of text by the values of a column, the largest change first."""
    found = []
    for facts in (then, now):
        rows = facts["mixture"][key]["rows"]
        total = sum(row["bytes"] for row in rows)
        found.append({row[key]: row["bytes"] / max(1, total) for row in rows})
    names = dict.fromkeys([*found[1], *found[0]])
    return sorted(({"name": name, "shares": [of.get(name, 0.0) for of in found]}
                   for name in names),
                  key=lambda row: (-abs(row["shares"][1] - row["shares"][0]), row["name"]))
