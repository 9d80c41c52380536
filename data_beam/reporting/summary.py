"""The summary of a shard for the report; summaries of shards are merged to that of the corpus.

It has counts, distributions, and samples: the documents with the smallest ids. Ids are hashes, so
this is a random choice, and the same for any number of shards. The size of a summary depends on the
numbers of sources, licences, languages and reasons, not on the number of documents.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from data_beam.reporting.distribution import Distribution

KEPT_SAMPLES = 3  # documents shown of each source
DROPPED_SAMPLES = 3  # dropped documents (or dead letters) shown of each stage and reason
CLUSTERS = 10  # largest clusters of near copies shown
MEMBERS = 12  # documents listed of a cluster
SHOWN_CHARACTERS = 1200  # shown of the text of a sample
LENGTH, LANGUAGE_SCORE = "characters", "language_score"  # distributions beside scores

Key = tuple[str, ...]
KEYS = ("source", "domain", "licence", "language", "split")
COUNTS = ("documents", "characters", "bytes", "tokens")


class Summary:
    """Of some documents of a corpus, and of dropped documents and dead letters."""

    def __init__(self) -> None:
        # COUNTS by the values of KEYS; `tokens` is 0 without a tokenizer.
        self.documents: dict[Key, list[int]] = {}
        # Distributions by ("source", its name) or ("language", its code), then by name.
        self.numbers: dict[Key, dict[str, Distribution]] = {}
        self.transforms: Counter[str] = Counter()  # documents by what changed their texts
        self.kept: dict[Key, list[dict[str, Any]]] = {}  # samples by source
        self.dropped: dict[Key, list[dict[str, Any]]] = {}  # samples by stage and reason
        self.dead_letters: dict[Key, list[dict[str, Any]]] = {}  # the same
        self.cluster_sizes: Counter[int] = Counter()  # of near copies, by number of documents
        self.clusters: list[dict[str, Any]] = []  # the largest of them
        self.topic_texts: dict[str, list[tuple[str, str]]] = {}  # (id, beginning) by language

    def count(self, key: Key, counts: Iterable[int]) -> None:
        """Adds COUNTS of documents that share the values of KEYS."""
        old = self.documents.get(key, [0] * len(COUNTS))
        self.documents[key] = [a + b for a, b in zip(old, counts, strict=True)]

    def add_numbers(self, group: Key, name: str, values: Iterable[float]) -> None:
        self.numbers.setdefault(group, {}).setdefault(name, Distribution()).add(
            np.fromiter(values, np.float64))

    def merge(self, other: "Summary") -> None:
        """Adds another summary. Only the last digits of means and variances depend on the order."""
        for key, counts in other.documents.items():
            self.count(key, counts)
        for group, named in other.numbers.items():
            for name, distribution in named.items():
                self.numbers.setdefault(group, {}).setdefault(
                    name, Distribution()).merge(distribution)
        self.transforms.update(other.transforms)
        self.cluster_sizes.update(other.cluster_sizes)
        for name, most in (("kept", KEPT_SAMPLES), ("dropped", DROPPED_SAMPLES),
                           ("dead_letters", DROPPED_SAMPLES)):
            mine = getattr(self, name)
            for key, rows in getattr(other, name).items():
                mine[key] = first_by_id([*mine.get(key, []), *rows], most)
        self.clusters = largest(self.clusters + other.clusters)
        for language, texts in other.topic_texts.items():
            self.topic_texts[language] = sorted(self.topic_texts.get(language, []) + texts)

    def distribution(self, kind: str, name: str) -> Distribution:
        """Of a name over all sources or all languages, merged in the order of their names."""
        whole = Distribution()
        for group in sorted(self.numbers):
            if group[0] == kind and name in self.numbers[group]:
                whole.merge(self.numbers[group][name])
        return whole

    def to_json(self) -> dict[str, Any]:
        """The content, for another process; dicts become lists of items."""
        return {**{name: list(value.items()) if isinstance(value, dict) else value
                   for name, value in vars(self).items()},
                "numbers": [(group, [(name, distribution.to_json())
                                     for name, distribution in named.items()])
                            for group, named in self.numbers.items()]}

    @staticmethod
    def from_json(value: dict[str, Any]) -> "Summary":
        result = Summary()
        for name in ("documents", "kept", "dropped", "dead_letters"):
            setattr(result, name, {tuple(key): content for key, content in value[name]})
        result.numbers = {
            tuple(group): {name: Distribution.from_json(item) for name, item in named}
            for group, named in value["numbers"]}
        result.transforms = Counter(dict(value["transforms"]))
        result.cluster_sizes = Counter(dict(value["cluster_sizes"]))
        result.clusters = value["clusters"]
        result.topic_texts = {language: [(id, text) for id, text in texts]
                              for language, texts in value["topic_texts"]}
        return result


def first_by_id(rows: Iterable[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: row["id"])[:most]


def largest(clusters: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The largest clusters; of equally large ones those with the smallest ids."""
    return sorted(clusters, key=lambda entry: (-entry["documents"], entry["cluster"]))[:CLUSTERS]
