"""`python -m data_beam.check_splits`: silent on a good corpus, and no planted leak escapes it."""

import itertools
import json
import random
from pathlib import Path

import numpy as np
import pytest

from data_beam import check_splits
from data_beam.check_splits import LeakFinder, find_leaks
from data_beam.config import DedupConfig
from data_beam.dedup.signatures import jaccard, shingles
from maxlm.config.schema import ConfigError
from tests.data_beam.dedup.cases import NEAR, joined, recipe, run, words, write


def texts(han: bool) -> list[str]:
    """Pairs and more of edited copies, at all similarities."""
    generator = random.Random(1)
    made = [words(generator, 150, han) for _ in range(60)]
    for _ in range(120):
        copy = list(generator.choice(made))
        for _ in range(generator.randrange(1, 15)):
            copy[generator.randrange(len(copy))] = words(generator, 1, han)[0]
        made.append(copy)
    return [joined(copy, han) for copy in made]


def row(number: int, text: str, split: str) -> dict:
    return {"id": f"{number:032x}", "split": split, "source": "s", "path": "p", "record": number,
            "text": text, "sha256": f"of {text}"}


@pytest.mark.parametrize("han", [False, True], ids=["words", "chinese"])
def test_leaks_are_all_similar_pairs_across_splits(han):
    rows = [row(i, text, ("train", "train", "validation", "test")[i % 4])
            for i, text in enumerate(texts(han))]
    sets = [np.unique(shingles(r["text"])) for r in rows]
    truth = {(a["id"], b["id"]): jaccard(sets[i], sets[j])
             for (i, a), (j, b) in itertools.combinations(enumerate(rows), 2)
             if a["split"] != b["split"] and jaccard(sets[i], sets[j]) >= 0.7}
    leaks, finder = find_leaks(lambda: iter(rows), 0.7, 128, 5, 5)
    assert finder.probability > 0.999 and len(truth) > 20
    assert {(leak.first["id"], leak.second["id"]): leak.similarity for leak in leaks} == truth
    assert [leak.similarity for leak in leaks] == sorted(truth.values(), reverse=True)


def test_equal_texts_too_short_for_a_shingle_are_leaks():
    rows = [row(1, "好", "train"), row(2, "好", "test"), row(3, "坏", "train"), row(4, "", "test")]
    leaks, _ = find_leaks(lambda: iter(rows), 0.7, 128, 5, 5)
    assert [(leak.first["id"][-1], leak.second["id"][-1]) for leak in leaks] == [("1", "2")]
    finder = LeakFinder([row(1, "a b c d e f", "test")], 0.7, 128)
    assert list(finder.check(row(2, "nothing of the kind, and more", "train"))) == []
    assert [leak.similarity for leak in finder.check(row(2, "A, b; c d e f.", "train"))] == [1.0]


@pytest.fixture(scope="module")
def corpora(tmp_path_factory) -> tuple[Path, Path]:
    """A corpus with near copies left in, and one without."""
    root = tmp_path_factory.mktemp("raw")
    write(root, texts(False) + texts(True))
    return run(recipe(root, DedupConfig()), root / "leaky"), run(recipe(root, NEAR), root / "clean")


def test_the_command(corpora, capsys):
    leaky, clean = corpora
    assert check_splits.main([f"--corpus={clean}"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["leaks"] == 0 and json.loads(out)["pairs"] == []
    assert err.count("\n") == 1 and "no near copies across splits" in err
    assert check_splits.main([f"--corpus={leaky}", "--show=2"]) == 1
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert report["leaks"] > 20 and len(report["pairs"]) == 2
    assert f"{report['leaks']} near copies across splits at similarity 0.7" in err
    for pair in report["pairs"]:
        assert pair["first"]["split"] != pair["second"]["split"] and pair["similarity"] >= 0.7
    assert set(report["documents"]) == {"train", "validation", "test"}
    # At 0.55, above what splits are joined at, there is still no leak in the clean one.
    assert check_splits.main([f"--corpus={clean}", "--threshold=0.55"]) == 0


def test_mistakes_are_named(tmp_path):
    for arguments, text in (
            ([f"--corpus={tmp_path / 'no'}"], "does not exist"),
            (["--corpus=x", "--threshold=0"], "--threshold: must be above 0"),
            (["--corpus=x", "--permutations=0"], "--permutations: must be at least 1"),
            (["--corpus=x", "--show=-1"], "--show")):
        with pytest.raises(ConfigError, match=text):
            check_splits.main(arguments)
