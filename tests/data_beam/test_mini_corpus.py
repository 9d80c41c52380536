"""A corpus whose every document has a label: the whole recipe must agree with all of them."""

import collections
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import sentencepiece

from data_beam import check_splits, train_tokenizer
from data_beam.readers.listing import list_files
from data_beam.stages import stage_manifest
from tests.data_beam.job_service import portable_options
from tests.data_beam.mini_corpus import everything
from tests.data_beam.mini_corpus.corpus import Label, MiniCorpus, id_of
from tests.data_beam.runs import TWO_PROCESSES, contents, run, run_in_order

ROOT = Path(__file__).parents[2]


class Made:
    """The corpus as the program made it, and its labels.

    Attributes:
      documents: rows that come from a record; those of augmentation are in `augmented`.
    """

    def __init__(self, corpus: MiniCorpus, folder: Path):
        self.corpus, self.folder, self.output = corpus, folder, folder / "out"
        self.recipe = everything.recipe(folder)
        self.manifest: dict[str, Any] = run(self.recipe, self.output)
        rows = pq.read_table(self.output / "documents").to_pylist()
        is_made = [any(each.startswith("augment:") for each in row["transforms"]) for row in rows]
        self.documents = [row for row, made in zip(rows, is_made, strict=True) if not made]
        self.augmented = [row for row, made in zip(rows, is_made, strict=True) if made]
        self.dropped = pq.read_table(self.output / "dropped").to_pylist()
        self.dead = [json.loads(line)
                     for path in sorted((self.output / "dead_letters").iterdir())
                     for line in path.read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Made:
    folder = tmp_path_factory.mktemp("mini")
    corpus = everything.make()
    everything.write(corpus, folder)
    return Made(corpus, folder)


def end(document: dict | None, dropped: dict | None, dead: dict | None) -> str:
    """What became of a record, in words."""
    if document is not None:
        return "kept"
    if dropped is not None:
        return f"dropped by {dropped['stage']}: {dropped['reason']} ({dropped['detail'][:100]})"
    if dead is not None:
        return f"dead letter of {dead['stage']}: {dead['reason']} ({dead['detail'][:100]})"
    return "nothing: it is lost"


def facts(label: Label, document: dict) -> list[str]:
    """What a kept document has that its label does not want."""
    text, wrong = document["text"], []
    if label.text is not None and text != label.text:
        wrong.append(f"text is {text[:150]!r}, not {label.text[:150]!r}")
    wrong += [f"lacks {part[:80]!r} in {text[:300]!r}" for part in label.contains
              if part not in text]
    wrong += [f"has {part[:80]!r} in {text[:300]!r}" for part in label.lacks if part in text]
    if label.language and document["language"] != label.language:
        wrong.append(f"language is {document['language']}, not {label.language}")
    places = [document["transforms"].index(each) if each in document["transforms"] else -1
              for each in label.transforms]
    if -1 in places or places != sorted(places) or (label.untouched and document["transforms"]):
        wrong.append(f"transforms are {document['transforms']}, not {list(label.transforms)}")
    scores = dict(document["scores"])
    for name, value in label.scores:
        if name not in scores or (value is not None and scores[name] != value):
            wrong.append(f"score {name} is {scores.get(name)}, not {value}")
    if label.licence and document["licence"] != label.licence:
        wrong.append(f"licence is {document['licence']}, not {label.licence}")
    if label.url and document["url"] != label.url:
        wrong.append(f"url is {document['url']}, not {label.url}")
    if document["sha256"] != hashlib.sha256(text.encode()).hexdigest():
        wrong.append("sha256 is not that of the text")
    return wrong


def test_every_label_agrees(made):
    documents = {row["id"]: row for row in made.documents}
    dropped = {row["id"]: row for row in made.dropped}
    dead = {(row["source"], row["path"], row["record"]): row for row in made.dead}
    wrong = []
    for key, label in made.corpus.labels.items():
        one = documents.get(id_of(key)), dropped.get(id_of(key)), dead.get(key)
        want = {"kept": "kept", "dropped": f"dropped by {label.stage}: {label.reason}",
                "dead": f"dead letter of {label.stage}: {label.reason}"}[label.fate]
        got = end(*one)
        where = f"{key[1]} {key[2] or ''} {label.why}"
        if got.partition(" (")[0] != want:
            wrong.append(f"{where}: should be {want}, is {got}")
        elif one[0] is not None:
            wrong += [f"{where}: {each}" for each in facts(label, one[0])]
    assert not wrong, f"{len(wrong)} of {len(made.corpus.labels)} labels disagree:\n" + \
        "\n".join(wrong)


def test_every_record_is_there_once(made):
    """And there is no record that nobody wrote."""
    ends = collections.Counter(row["id"] for row in made.documents + made.dropped)
    ends.update(id_of((row["source"], row["path"], row["record"])) for row in made.dead)
    names = {id_of(key): key for key in made.corpus.labels}
    assert {names.get(id, id) for id, count in ends.items() if count != 1} == set()
    assert {names.get(id, id) for id in ends.keys() ^ names.keys()} == set()


def test_the_manifest_counts_what_the_labels_say(made):
    counts: dict[str, dict[str, Any]] = {}
    for (source, _, _), label in made.corpus.labels.items():
        entry = counts.setdefault(source, {"read": 0, "kept": 0, "dropped": {}, "dead_letters": {}})
        entry["read"] += 1
        if label.fate == "kept":
            entry["kept"] += 1
        else:
            ends = entry["dropped" if label.fate == "dropped" else "dead_letters"]
            reasons = ends.setdefault(label.stage, {})
            reasons[label.reason] = reasons.get(label.reason, 0) + 1
    augmented = collections.Counter(row["source"] for row in made.augmented)
    for source, entry in counts.items():
        said = made.manifest["sources"][source]
        assert said["augmented"] == augmented[source]
        assert said["kept"] - said["augmented"] == entry["kept"]
        assert {name: said[name] for name in ("read", "dropped", "dead_letters")} == {
            name: entry[name] for name in ("read", "dropped", "dead_letters")}, source


STAGES = ("read", "extract", "filter", "licence", "language", *everything.RULES, "perplexity",
          "quality", "safety", "decontaminate", "privacy", "dedup")
ELSEWHERE = {
    43: "the slow tests below: workers, order, restarts",
    44: "test_the_search_for_near_copies_meets_what_it_should",
    58: "the slow tests below: each process hashes in its own way",
    59: "test_prepare.py: the runner is named, every transform has a label",
    60: "test_the_tokenizer_gives_every_text_back",
}


def test_the_corpus_holds_what_it_should(made):
    """At least 300 documents, every stage with something to drop, and every trap."""
    labels = list(made.corpus.labels.values())
    assert len(labels) >= 300
    reasons = collections.Counter((label.stage, label.reason) for label in labels if label.stage)
    assert {stage for stage, _ in reasons} == set(STAGES)
    assert len(reasons) >= 70, sorted(reasons.items())
    traps = {trap for label in labels for trap in label.traps}
    assert traps | ELSEWHERE.keys() == set(range(41, 61))
    languages = collections.Counter(label.language for label in labels)
    assert languages["en"] > 60 and languages["zh"] > 60


def test_similarities_are_what_the_labels_rest_on(made):
    pairs = everything.copies.PAIRS
    assert len(pairs) > 30
    for one, two, low, high in pairs:
        value = everything.copies.similarity(one, two)
        assert low <= value <= high, (value, low, high, one[:60], two[:60])


def test_clusters_are_the_known_ones(made):
    known: dict[str, set[str]] = {}
    for key, label in made.corpus.labels.items():
        if label.cluster:
            known.setdefault(label.cluster, set()).add(id_of(key))
    rows = [row for path in sorted((made.output / "clusters").glob("*.parquet"))
            for row in pq.read_table(path).to_pylist()]
    found: dict[str, set[str]] = {}
    for row in rows:
        found.setdefault(row["cluster"], set()).add(row["id"])
    assert sorted(map(sorted, found.values())) == sorted(map(sorted, known.values()))
    assert all(sum(row["kept"] for row in rows if row["cluster"] == name) == 1 for name in found)
    for row in made.documents:
        assert (row["cluster"] is not None) == (row["id"] in set().union(*known.values()))
    summary = json.loads((made.output / "clusters/_summary.json").read_text("utf-8"))
    assert summary["clusters"] == len(known)
    assert summary["largest"][0]["documents"] == max(map(len, known.values()))


def test_the_search_for_near_copies_meets_what_it_should(made):
    summary = json.loads((made.output / "clusters/_summary.json").read_text("utf-8"))
    for search, similarity in (("copies", 0.7), ("split_groups", 0.5)):
        found = summary[search]
        assert found["similarity"] == similarity
        assert found["candidate_probability"] == pytest.approx(
            1 - (1 - similarity ** found["rows"]) ** found["bands"], abs=1e-12)
        assert found["candidate_probability"] >= 0.95


def test_near_copies_never_cross_splits(made, capsys):
    splits = {row["id"]: row["split"] for row in made.documents}
    groups: dict[str, set[str]] = {}
    for key, label in made.corpus.labels.items():
        if label.split_with:
            groups.setdefault(label.split_with, set()).add(splits[id_of(key)])
    assert len(groups) >= 2 and all(len(group) == 1 for group in groups.values()), groups
    assert set(splits.values()) == {"train", "validation", "test"}
    assert check_splits.main([f"--corpus={made.output}"]) == 0
    assert json.loads(capsys.readouterr().out)["leaks"] == 0


def test_what_augmentation_made_is_marked_and_comes_from_training_documents(made):
    assert made.augmented
    originals = {row["id"][:16]: row for row in made.documents}
    for row in made.augmented:
        original = originals[row["id"][:16]]
        assert original["split"] == row["split"] == "train"
        assert row["text"] != original["text"]
        assert any(other in row["text"].lower() for other in everything.SYNONYMS.values())
        assert row["transforms"][:len(original["transforms"])] == original["transforms"]


def test_what_models_measured_is_kept_with_each_document(made):
    for row in made.documents:
        scores = dict(row["scores"])
        if row["source"] == "code":
            assert not {"perplexity", "quality", "toxicity"} & scores.keys()
        else:
            assert 1 < scores["perplexity"] <= (20 if row["language"] == "en" else 950)
            assert 2 <= scores["quality"] <= 5 and 0 <= scores["toxicity"] <= 0.5


def test_the_tokenizer_gives_every_text_back(made):
    """Line feeds, full-width forms, joiners, code: whatever was kept."""
    assert train_tokenizer.main([
        f"--corpus={made.output}", f"--output={made.folder / 'tokenizer'}", "--vocab_size=2500",
        "--user_defined_symbols=[EMAIL],[ID]"]) == 0
    pieces = sentencepiece.SentencePieceProcessor(
        model_file=str(made.folder / "tokenizer/tokenizer.model"))
    for row in made.documents + made.augmented:
        assert pieces.decode(pieces.encode(row["text"])) == row["text"], row["path"]
    for piece in ("[EMAIL]", "[ID]", "\n"):
        assert pieces.id_to_piece(pieces.piece_to_id(piece)) == piece


@pytest.mark.slow
def test_another_order_of_files_gives_the_same_bytes(made, tmp_path):
    listing = list_files(made.recipe)
    random.Random(3).shuffle(listing)
    run_in_order(made.recipe, listing, tmp_path / "out")
    expected = contents(made.output)
    del expected["manifest.json"]
    assert contents(tmp_path / "out") == expected


@pytest.mark.slow
def test_two_worker_processes_give_the_same_bytes(made, tmp_path, monkeypatch):
    monkeypatch.setattr("data_beam.stages.run.SMALL", -1)  # every stage in worker processes
    run(made.recipe, tmp_path / "out", *TWO_PROCESSES)
    assert contents(tmp_path / "out") == contents(made.output)


@pytest.mark.slow
def test_the_portable_protocol_gives_the_same_bytes(made, tmp_path):
    """Beam's own job service, with the workers in processes that it starts."""
    with portable_options() as options:
        run(made.recipe, tmp_path / "out", *options)
    assert contents(tmp_path / "out") == contents(made.output)


@pytest.mark.slow
def test_a_run_killed_in_every_stage_and_run_again_equals_one_that_was_not(made, tmp_path):
    config, output = tmp_path / "recipe.py", tmp_path / "out"
    config.write_text(
        "from pathlib import Path\nfrom maxlm.config.schema import to_config_dict\n"
        "from tests.data_beam.mini_corpus import everything\n"
        "def get_config():\n"
        f"    return to_config_dict(everything.recipe(Path({str(made.folder)!r})))\n")
    command = [sys.executable, "-m", "data_beam.prepare", f"--config={config}",
               f"--output={output}"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    moments = random.Random()  # another one in each run; the message says which
    seed = moments.randrange(10**6)
    moments.seed(seed)
    killed = []
    for stage, before in zip(stage_manifest.STAGES, (None, *stage_manifest.STAGES), strict=False):
        begun = output / "stages" / before / "manifest.json" if before else output / "_temporary"
        with open(tmp_path / "log", "w+b") as log:
            victim = subprocess.Popen(command, stdout=log, stderr=log, cwd=ROOT, env=environment)
            while not begun.exists() and victim.poll() is None:
                time.sleep(0.02)
            time.sleep(moments.uniform(0, 1))
            ended = victim.poll()
            assert ended in (None, 0), (seed, stage, (tmp_path / "log").read_text("utf-8")[-2000:])
            if ended is None:
                killed.append(stage)
                victim.send_signal(signal.SIGKILL)
                victim.wait()
                if (output / "manifest.json").exists():  # it is the last file: all others are there
                    left = contents(output)
                    assert {name: digest for name, digest in left.items() if not name.startswith(
                        ("stages/", "_temporary/"))} == contents(made.output), f"seed {seed}"
    assert len(killed) >= 3, f"seed {seed}: only in {killed}, the others were too quick"
    whole = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True,
                           timeout=300)
    assert whole.returncode == 0, whole.stderr
    assert contents(output) == contents(made.output), f"seed {seed}"
