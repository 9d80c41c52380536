"""Exact duplicates and the split, both by hashes alone."""

import hashlib
import itertools
import random

import pytest

from data_beam.base.files import shard_of
from data_beam.base.hashing import split_of
from data_beam.base.records import Origin
from data_beam.config import SplitConfig
from data_beam.dedup.exact import claim, drop_others, origin_of
from maxlm.config.schema import ConfigError, build


def test_the_same_copy_is_kept_in_every_order():
    order = ["curated", "web"]
    origins = [Origin("web", "a.txt"), Origin("curated", "z.txt", 2),
               Origin("curated", "z.txt", 10), Origin("curated", "zz.txt")]
    claims = [claim(origin, order.index(origin.source)) for origin in origins]
    for permuted in itertools.permutations(claims):
        dropped = dict(drop_others(("hash", permuted)))
        # First source of the recipe, smallest path, smallest record: 2, before 10 as a number.
        kept = origins[1].id
        assert dropped == {origin.id: {"detail": f"same text as {kept}"}
                           for origin in origins if origin.id != kept}


def test_ids_and_claims_name_their_document():
    for origin in (Origin("s", "p"), Origin("s", "p", 1)):
        assert origin_of(claim(origin, 3)) == origin
    # By hand: SHA-256 of the parts joined by NUL, first 32 digits.
    assert Origin("s", "a/b.txt", 7).id == hashlib.sha256(b"s\0a/b.txt\x007").hexdigest()[:32]
    ids = {Origin(s, p, r).id for s in ("a", "b") for p in ("x", "y") for r in (None, 1, 2)}
    assert len(ids) == 12


def test_split_shares_and_borders():
    generator = random.Random(0)
    hashes = [f"{generator.getrandbits(256):064x}" for _ in range(20_000)]
    splits = [split_of(h, validation=0.05, test=0.1) for h in hashes]
    # Binomial: three standard deviations of the counts.
    for name, share in (("test", 0.1), ("validation", 0.05), ("train", 0.85)):
        sigma = (share * (1 - share) * len(hashes)) ** 0.5
        assert abs(splits.count(name) - share * len(hashes)) < 3 * sigma
    # A larger share of validation takes from train only.
    moved = [(a, b) for a, b in zip(splits, (split_of(h, 0.2, 0.1) for h in hashes), strict=True)
             if a != b]
    assert set(moved) == {("train", "validation")}
    # Computed once: another process, another machine must agree.
    assert split_of("19" + "0" * 62, validation=0.05, test=0.1) == "test"  # 25/256 = 0.098
    assert split_of("1a" + "0" * 62, validation=0.05, test=0.1) == "validation"  # 26/256 = 0.102
    assert [shard_of(f"{n:016x}" + "f" * 16, 4) for n in range(6)] == [0, 1, 2, 3, 0, 1]
    assert split_of("0" * 64, 0.0, 0.0) == split_of("f" * 64, 0.5, 0.4) == "train"


def test_a_split_without_training_data_is_refused():
    with pytest.raises(ConfigError, match="nothing would be left to train on"):
        build(SplitConfig, {"validation": 0.6, "test": 0.4})
