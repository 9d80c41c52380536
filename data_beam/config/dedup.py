"""Which copies are dropped, and which documents must share a split."""

import dataclasses

from data_beam.config.checks import check_idle
from maxlm.config.schema import ConfigError, setting


@dataclasses.dataclass(frozen=True)
class MinHashConfig:
    """Near copies by the Jaccard similarity of their shingles, candidates by MinHash-LSH.

    Two documents of similarity s share a bucket with probability 1 - (1 - s^rows)^bands. Those that
    do are compared exactly, so a higher probability costs time but drops nothing wrongly.
    """

    enabled: bool = setting(False, "drop near copies")
    threshold: float = setting(
        0.7, "documents at least this similar (Jaccard, of shingle sets) are copies",
        above=0.0, maximum=1.0)
    permutations: int = setting(112, "length of a signature, at least bands x rows", minimum=1)
    bands: int = setting(
        0, "bands of the signature; 0 chooses bands and rows so that a pair at the threshold meets "
        "with probability 0.95 or more. FineWeb takes 14 bands of 8 rows: 0.56 at 0.7", minimum=0)
    rows: int = setting(0, "hashes of a band; 0 with bands 0", minimum=0)
    word_ngram: int = setting(5, "words of a shingle, in scripts that put spaces between words",
                              minimum=1)
    character_ngram: int = setting(
        5, "characters of a shingle, in scripts that do not (Chinese, Japanese, Thai, ...)",
        minimum=1)
    split_similarity: float = setting(
        0.5, "kept documents, code too, at least this similar share a split; 1 joins none",
        above=0.0, maximum=1.0)
    clustering: str = setting(
        "star", "star: a document is dropped only as a copy of one that is kept; component: of all "
        "documents that chains of copies link, one is kept (FineWeb)",
        choices=("star", "component"))
    containment: float = setting(
        0.0, "a document is also a copy when a longer one holds at least this share of its "
        "shingles, for example 0.6; 0 looks for none", minimum=0.0, maximum=1.0)
    code: bool = setting(False, "also source code, which otherwise is compared as a whole only")

    def check(self, path: str) -> None:
        if (self.bands == 0) != (self.rows == 0):
            raise ConfigError(f"{path}: set bands and rows, or leave both at 0")
        if self.bands * self.rows > self.permutations:
            raise ConfigError(
                f"{path}.permutations: {self.bands} bands of {self.rows} rows need "
                f"{self.bands * self.rows}, not {self.permutations}")
        if self.split_similarity > self.threshold and self.split_similarity < 1:
            raise ConfigError(
                f"{path}.split_similarity: {self.split_similarity:g} is above the threshold "
                f"{self.threshold:g}, over which documents are dropped; take a lower one, or 1")
        if self.containment and self.clustering == "component":
            raise ConfigError(
                f"{path}.clustering: 'component' with containment would drop documents that only "
                "quote the same text; take 'star', or leave containment at 0")


@dataclasses.dataclass(frozen=True)
class SimHashConfig:
    """SimHash (Charikar 2002; Manku et al. 2007) as a second source of candidates for near copies.

    The pairs that it finds are compared like those of MinHash, whose threshold and shingles hold.
    """

    enabled: bool = setting(False, "look for candidates by SimHash too; needs dedup.minhash")
    distance: int = setting(
        3, "bits of 64 in which two fingerprints may differ (Manku et al. take 3)",
        minimum=0, maximum=16)
    blocks: int = setting(
        6, "blocks of the fingerprint; documents that agree in blocks - distance of them are "
        "compared, so that none within the distance is missed (data-juicer takes 6)",
        minimum=1, maximum=24)

    def check(self, path: str) -> None:
        if self.blocks <= self.distance:
            raise ConfigError(f"{path}.blocks: {self.blocks} blocks may all differ when "
                              f"{self.distance} bits do; take {self.distance + 1} or more")


@dataclasses.dataclass(frozen=True)
class RepeatedTextConfig:
    """Lines or paragraphs in many documents, which are removed from all but the first."""

    enabled: bool = setting(False, "remove them")
    min_characters: int = setting(
        40, "shorter ones are kept; surrounding whitespace does not count", minimum=1)
    max_documents: int = setting(3, "a text in more documents is kept only in the first", minimum=1)


@dataclasses.dataclass(frozen=True)
class DedupConfig:
    """Copies. Of documents with equal text one is always kept: that of the source listed first."""

    minhash: MinHashConfig = setting(MinHashConfig(), "near copies")
    simhash: SimHashConfig = setting(SimHashConfig(), "more candidates for near copies")
    lines: RepeatedTextConfig = setting(RepeatedTextConfig(), "repeated lines")
    paragraphs: RepeatedTextConfig = setting(
        RepeatedTextConfig(min_characters=100), "repeated paragraphs (separated by empty lines)")
    max_edges_one_worker: int = setting(
        100_000_000, "with more pairs of copies than this, components are found by all "
        "workers in rounds instead of by one (24 bytes of memory a pair)", minimum=0)
    hot_bucket: int = setting(
        1000, "buckets of more documents are counted in the report", minimum=2)

    def check(self, path: str) -> None:
        if self.simhash.enabled and not self.minhash.enabled:
            raise ConfigError(f"{path}.simhash.enabled: its candidates are compared as "
                              f"{path}.minhash says; set {path}.minhash.enabled too")
        for name in ("minhash", "simhash", "lines", "paragraphs"):
            section = getattr(self, name)
            if not section.enabled:
                check_idle(section, f"{path}.{name}", f"{path}.{name}.enabled is False",
                           "set that", default=getattr(_DEFAULT, name))
        if not self.minhash.enabled:
            check_idle(self, path, f"{path}.minhash.enabled is False", "set that",
                       only=("max_edges_one_worker", "hot_bucket"))


_DEFAULT = DedupConfig()
