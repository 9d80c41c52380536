"""A corpus whose every document has a label: the whole recipe must agree with all of them."""

import collections
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from data_beam import beam_options, prepare
from data_beam.config import RecipeConfig
from tests.data_beam.mini_corpus import everything
from tests.data_beam.mini_corpus.corpus import Label, MiniCorpus, id_of


def load(output: Path) -> tuple[list[dict], list[dict], list[dict]]:
    """Documents, dropped, dead letters."""
    dead = [json.loads(line) for path in sorted((output / "dead_letters").iterdir())
            for line in path.read_text("utf-8").splitlines()]
    return (pq.read_table(output / "documents").to_pylist(),
            pq.read_table(output / "dropped").to_pylist(), dead)


class Made:
    """The corpus as the program made it, and its labels."""

    def __init__(self, corpus: MiniCorpus, recipe: RecipeConfig, output: Path):
        self.corpus, self.recipe, self.output = corpus, recipe, output
        self.manifest: dict[str, Any] | None = prepare.prepare(
            recipe, str(output), beam_options.pipeline_options([]))
        self.documents, self.dropped, self.dead = load(output)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Made:
    raw = tmp_path_factory.mktemp("raw")
    corpus = everything.make()
    corpus.write(raw)
    evaluation = tmp_path_factory.mktemp("evaluation")
    (evaluation / "quiz.jsonl").write_text(everything.unwanted.QUIZ, "utf-8")
    return Made(corpus, everything.recipe(raw, evaluation),
                tmp_path_factory.mktemp("corpus") / "out")


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
    if -1 in places or places != sorted(places) or label.untouched and document["transforms"]:
        wrong.append(f"transforms are {document['transforms']}, not {list(label.transforms)}")
    scores = dict(document["scores"])
    for name, value in label.scores:
        if name not in scores or value is not None and scores[name] != value:
            wrong.append(f"score {name} is {scores.get(name)}, not {value}")
    if label.licence and document["licence"] != label.licence:
        wrong.append(f"licence is {document['licence']}, not {label.licence}")
    if label.url and document["path"] != label.url:
        wrong.append(f"path is {document['path']}, not {label.url}")
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


def test_similarities_are_what_the_labels_rest_on():
    everything.make()
    pairs = everything.copies.PAIRS
    assert len(pairs) > 30
    for one, two, low, high in pairs:
        value = everything.copies.similarity(one, two)
        assert low <= value <= high, (value, low, high, one[:60], two[:60])
