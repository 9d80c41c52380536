"""Stage `dedup` as a whole, on corpora whose clusters are known."""

import collections
import dataclasses
import json
import random
from pathlib import Path

import numpy as np
import pytest

from data_beam.config import (
    DedupConfig,
    InputConfig,
    MinHashConfig,
    RepeatedTextConfig,
    SimHashConfig,
    SourceConfig,
)
from data_beam.dedup.signatures import jaccard, shingles
from tests.data_beam.dedup.cases import NEAR, joined, recipe, rows, run, words, write


def copies(generator: random.Random) -> list[str]:
    """Documents of which a third are edited copies of others, or of copies."""
    made: list[list[str]] = []
    for _ in range(150):
        if made and generator.random() < 0.4:
            parts = list(generator.choice(made))
            for _ in range(generator.randrange(1, 12)):
                parts[generator.randrange(len(parts))] = words(generator, 1)[0]
            if generator.random() < 0.3:
                parts = parts[:-generator.randrange(1, 20)]
        else:
            parts = words(generator, generator.randrange(80, 300))
        made.append(parts)
    return [" ".join(parts) for parts in made]


def true_stars(texts: list[str], ids: dict[int, str], threshold: float) -> list[list[int]]:
    """By comparing each with each: a text is kept unless it is a copy of one that is kept and is
    longer (of equally long ones, has the smaller id). Of equal texts only the first counts."""
    first = {text: i for i, text in reversed(list(enumerate(texts)))}
    sets = {i: np.unique(shingles(text)) for text, i in first.items()}
    stars: list[list[int]] = []
    for i in sorted(sets, key=lambda i: (-len(texts[i]), ids[i])):
        star = next((s for s in stars if jaccard(sets[s[0]], sets[i]) >= threshold), None)
        if star is None:
            stars.append([i])
        else:
            star.append(i)
    return stars


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> tuple[list[str], Path, Path]:
    """Texts, their folder, and the corpus made of them."""
    root = tmp_path_factory.mktemp("raw")
    texts = copies(random.Random(4))
    write(root, texts)
    return texts, root, run(recipe(root, NEAR), tmp_path_factory.mktemp("made") / "out")


def numbers(found: list[dict]) -> set[int]:
    return {row["record"] - 1 for row in found}


def test_the_longest_of_each_true_cluster_is_kept_and_written_out(corpus):
    texts, _, output = corpus
    kept_ids = {row["id"]: row for row in rows(output, "documents")}
    dropped = {row["id"]: row for row in rows(output, "dropped")}
    ids = {row["record"] - 1: row["id"] for row in [*kept_ids.values(), *dropped.values()]}
    # A pair at the threshold shares a bucket with probability 0.98, one at 0.8 with 0.9998.
    truth = true_stars(texts, ids, 0.7)
    assert len(truth) < 130 and max(map(len, truth)) >= 3
    assert numbers(list(kept_ids.values())) == {star[0] for star in truth}
    written = collections.defaultdict(list)
    for row in rows(output, "clusters"):
        written[row["cluster"]].append(row)
    assert {ids[star[0]]: {ids[i] for i in star} for star in truth if len(star) > 1} == {
        name: {member["id"] for member in members} for name, members in written.items()}
    for name, members in written.items():
        assert [m["kept"] for m in members] == [True] + [False] * (len(members) - 1)
        assert members[0]["id"] == name == kept_ids[name]["cluster"]
        representative = np.unique(shingles(texts[members[0]["record"] - 1]))
        for member in members:
            text = texts[member["record"] - 1]
            assert member["characters"] == len(text)
            similarity = jaccard(representative, np.unique(shingles(text)))
            assert member["similarity"] == similarity >= 0.7
            if not member["kept"]:
                end = dropped[member["id"]]
                assert (end["stage"], end["reason"]) == ("dedup", "near duplicate")
                assert f"{similarity:.3f} to {name}" in end["detail"]
    summary = json.loads((output / "clusters/_summary.json").read_text())
    assert summary["documents"] == sum(map(len, written.values()))
    sizes = [entry["documents"] for entry in summary["largest"]]
    assert sizes == sorted(map(len, written.values()), reverse=True)[:20]
    found = summary["copies"]
    assert (found["bands"], found["rows"]) == (22, 5)
    assert found["largest_bucket"] >= 3 and found["hot_buckets"] == 0


def ends(output: Path) -> dict[str, tuple]:
    """What became of each text's copies: by record, with nothing that a shard number could change.
    """
    return ({row["id"]: ("kept", row["split"], row["cluster"]) for row in rows(output, "documents")}
            | {row["id"]: (row["reason"], row["detail"]) for row in rows(output, "dropped")})


def test_workers_shards_and_order_change_nothing(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("data_beam.stages.run.SMALL", -1)  # every stage in worker processes
    _, root, output = corpus
    assert ends(run(recipe(root, NEAR, shards=7), tmp_path / "seven")) == ends(output)
    other = run(recipe(root, NEAR), tmp_path / "two", "--direct_running_mode=multi_processing",
                "--direct_num_workers=2")
    for kind in ("documents", "dropped", "clusters"):
        for path in (output / kind).iterdir():
            assert path.read_bytes() == (other / kind / path.name).read_bytes()


def test_components_in_rounds_give_the_same_clusters(corpus, tmp_path):
    _, root, output = corpus
    rounds = dataclasses.replace(NEAR, max_edges_one_worker=0)
    other = run(recipe(root, rounds), tmp_path / "rounds")
    assert ends(other) == ends(output)
    # Clusters of up to ten documents: a round or two to join them, one to see that nothing moves.
    assert 2 <= json.loads((other / "clusters/_summary.json").read_text())["copies"]["rounds"] <= 4


@pytest.mark.parametrize(("split_similarity", "han"), [(0.5, False), (1.0, True)])
def test_a_chain_loses_only_copies_of_what_is_kept(tmp_path, han, split_similarity):
    """Of equal length, cut from one text: neighbours 0.71 similar, those next to them 0.49 (less
    than what shares a split), the ends 0.08."""
    generator = random.Random(2)
    long = words(generator, 189, han)
    chain = [joined(long[17 * i:17 * i + 104], han) for i in range(6)]
    relatives = [joined(long[17 * i:17 * i + 42] + words(generator, 20, han)
                        + long[17 * i + 62:17 * i + 104], han) for i in range(6)]  # 0.61 similar
    others = [joined(words(generator, count, han), han) for count in (*[104] * 14, 20_000, 20_000)]
    write(tmp_path / "raw", chain + relatives + others)
    settings = DedupConfig(minhash=MinHashConfig(True, split_similarity=split_similarity))
    output = run(recipe(tmp_path / "raw", settings), tmp_path / "out")
    kept = numbers(rows(output, "documents"))
    assert kept >= set(range(6, 28)) and 2 <= len(kept & set(range(6))) <= 4
    sets = [np.unique(shingles(text)) for text in chain]
    assert jaccard(sets[0], sets[1]) > 0.7 and jaccard(sets[0], sets[-1]) < 0.2
    for row in rows(output, "dropped"):
        assert max(jaccard(sets[row["record"] - 1], sets[i]) for i in kept if i < 6) >= 0.7
    # The kept ones share what was dropped, so they share a split; each takes its relative along.
    splits = {row["record"]: row["split"] for row in rows(output, "documents")}
    together = [i + 1 for i in kept if i < 6]
    assert len({splits[record] for record in together}) == 1
    related = {splits[record + 6] for record in together}
    assert (related == {splits[together[0]]}) == (split_similarity < 1)
    # The old way: one of the whole chain, though the others are not similar to it.
    whole = dataclasses.replace(settings.minhash, clustering="component")
    output = run(recipe(tmp_path / "raw", DedupConfig(minhash=whole)), tmp_path / "whole")
    assert len(numbers(rows(output, "documents")) & set(range(6))) == 1
    assert len(rows(output, "clusters")) == 6


def test_a_document_that_is_part_of_another_is_dropped_when_asked(tmp_path):
    generator = random.Random(7)
    book = words(generator, 3000)
    parts = [" ".join(book[1000:1200] + words(generator, own)) for own in (80, 120, 260)]
    write(tmp_path / "raw", [" ".join(book), *parts, " ".join(words(generator, 3000))])
    output = run(recipe(tmp_path / "raw", NEAR), tmp_path / "no")
    assert len(rows(output, "documents")) == 5  # the Jaccard similarities are under 0.1
    settings = DedupConfig(minhash=MinHashConfig(True, containment=0.6, split_similarity=1.0))
    output = run(recipe(tmp_path / "raw", settings), tmp_path / "yes")
    # 196 of 276, 316 and 456 shingles are in the book: 0.71, 0.62 and 0.43. The parts share 196
    # shingles, but no one of them holds 0.6 of the last.
    assert numbers(rows(output, "documents")) == {0, 3, 4}
    details = {row["record"]: row["detail"] for row in rows(output, "dropped")}
    assert details[2].startswith("similarity 0.06") and "0.710 of it is in that" in details[2]
    assert "0.620 of it is in that" in details[3]
    splits = {row["record"]: row["split"] for row in rows(output, "documents")}
    assert splits[1] == splits[4]  # linked by what was dropped


def test_empty_and_short_texts_never_make_a_cluster(tmp_path):
    short = ["yes", "no", "好", "不好", "one two", "one two", "。。。", "!!!", "a b c d", "a b c e"]
    write(tmp_path / "raw", short)
    output = run(recipe(tmp_path / "raw", NEAR), tmp_path / "out")
    assert [r["reason"] for r in rows(output, "dropped")] == ["exact duplicate"]
    assert not rows(output, "clusters") and len(rows(output, "documents")) == 9
    write(tmp_path / "none", [])
    output = run(recipe(tmp_path / "none", NEAR), tmp_path / "nothing")
    assert not rows(output, "documents") and not rows(output, "clusters")
    assert json.loads((output / "clusters/_summary.json").read_text())["clusters"] == 0


def test_code_is_compared_as_a_whole_unless_asked(tmp_path):
    source = "\n".join(f"def function_{i}(argument):\n    return argument + {i}" for i in range(40))
    (tmp_path / "raw").mkdir()
    for name, text in (("a1.py", source), ("a2.py", source + "\n# end\n"), ("a3.py", source)):
        (tmp_path / "raw" / name).write_text(text)
    made = recipe(tmp_path / "raw", NEAR)
    made = dataclasses.replace(made, sources=(SourceConfig("a", "code", "MIT", (
        InputConfig(str(tmp_path / "raw"), "*.py", "python"),)),))
    plain = rows(run(made, tmp_path / "plain"), "dropped")
    assert [(r["path"], r["reason"]) for r in plain] == [("a3.py", "exact duplicate")]
    asked = dataclasses.replace(made, dedup=DedupConfig(minhash=MinHashConfig(
        enabled=True, code=True)))
    asked_for = rows(run(asked, tmp_path / "asked"), "dropped")
    assert {(r["path"], r["reason"]) for r in asked_for} == {
        ("a3.py", "exact duplicate"), ("a1.py", "near duplicate")}


def test_simhash_finds_what_the_bands_miss(tmp_path):
    # One band of 112 rows meets equal signatures: at similarity 1946 / 2046, in 0.4 % of cases.
    # The expected distance of the fingerprints is 64 / pi * arccos(1946 / 1996) = 4.6 bits.
    generator = random.Random(3)
    parts = words(generator, 2000)
    other = list(parts)
    for place in range(100, 2000, 190):
        other[place] = "changed"
    write(tmp_path / "raw", [" ".join(p) for p in (parts, other, words(generator, 2000))])
    narrow = MinHashConfig(enabled=True, bands=1, rows=112, split_similarity=1.0)
    assert len(rows(run(recipe(tmp_path / "raw", DedupConfig(minhash=narrow)), tmp_path / "no"),
                    "documents")) == 3
    both = DedupConfig(minhash=narrow, simhash=SimHashConfig(enabled=True, distance=8, blocks=10))
    output = run(recipe(tmp_path / "raw", both), tmp_path / "yes")
    assert len(rows(output, "documents")) == 2 and 2 in numbers(rows(output, "documents"))


def test_copies_come_to_light_where_repeated_paragraphs_are_removed(tmp_path):
    generator = random.Random(9)
    disclaimer = " ".join(words(generator, 120))
    bodies = [" ".join(words(generator, 100)) for _ in range(3)]
    first, second, third = (f"{body}\n\n{disclaimer}" for body in bodies)
    write(tmp_path / "raw", [first], "a.jsonl")  # whose source is listed first: it stays whole
    write(tmp_path / "raw", [second, third, f"{bodies[1]} end"], "b.jsonl")
    settings = DedupConfig(minhash=MinHashConfig(True), paragraphs=RepeatedTextConfig(
        True, min_characters=100, max_documents=2))
    output = run(recipe(tmp_path / "raw", settings, sources=2), tmp_path / "out")
    assert {row["text"] for row in rows(output, "documents")} == {
        first, bodies[2], f"{bodies[1]} end"}
    assert [row["reason"] for row in rows(output, "dropped")] == ["near duplicate"]


def test_texts_that_are_equal_without_what_is_repeated(tmp_path):
    notice = "All rights reserved, and this notice is in every page of the site."
    texts = [f"{notice}\nfirst", f"second\n{notice}", f"second\n{notice}\n", "second", notice,
             f"{notice}\nthird\n{notice}"]
    write(tmp_path / "raw", texts)
    settings = DedupConfig(lines=RepeatedTextConfig(True, min_characters=30, max_documents=2))
    output = run(recipe(tmp_path / "raw", settings), tmp_path / "out")
    # The fifth has the smallest id and keeps the notice. The third is the second as it stands, the
    # fourth is the second without the notice.
    kept = {row["record"]: row["text"] for row in rows(output, "documents")}
    assert kept == {1: "first", 2: "second", 5: notice, 6: "third"}
    assert {(row["record"], row["reason"]) for row in rows(output, "dropped")} == {
        (3, "exact duplicate"), (4, "exact duplicate")}
