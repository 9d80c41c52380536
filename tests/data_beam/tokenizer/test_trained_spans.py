"""Trained spans and groups, from the records of a JSON-lines file to the weights of rows."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from data_beam import tokenize
from data_beam.base.records import DeadLetter, Record
from data_beam.base.trained_spans import read_spans, token_mask
from data_beam.config import (
    FilterConfig,
    InputConfig,
    PrivacyConfig,
    RecipeConfig,
    SourceConfig,
    SplitConfig,
)
from data_beam.runners import beam_options
from maxlm.config import ConfigError, DataConfig
from maxlm.data.corpus import TokenCorpus, decode_record, file_sha256
from maxlm.data.evaluation_plan import EvaluationPlan
from maxlm.data.plan import Plan
from maxlm.data.readers import ReaderPool
from maxlm.data.tokenizer import Tokenizer
from tests.data_beam.readers.reading import read, write_rows
from tests.data_beam.runs import TWO_PROCESSES, contents, run
from tests.document_corpora import document, write_corpus
from tests.maxlm.data.test_huggingface_tokenizer import KINDS, SPECIAL
from tests.token_corpora import tiny_tokenizer


@pytest.mark.parametrize("spans, mask", [
    # BOS "ab" " 文" "c" EOS; a token that crosses a border is trained.
    ([[0, 2]], [0, 1, 0, 0, 0]),
    ([[2, 4]], [0, 0, 1, 0, 0]),
    ([[3, 4]], [0, 0, 1, 0, 0]),
    ([[1, 3]], [0, 1, 1, 0, 0]),
    ([[4, 5]], [0, 0, 0, 1, 1]),  # the end of the text: EOS too
    ([[0, 1], [1, 2], [4, 5]], [0, 1, 0, 1, 1]),
    ([[0, 5]], [0, 1, 1, 1, 1]),
    ([], [0, 0, 0, 0, 0]),
])
def test_mask_by_hand(spans, mask):
    text, sizes = "ab 文c", np.array([2, 4, 1])
    spans = read_spans(spans, len(text))
    assert token_mask(text, spans, sizes, 0).tolist() == mask
    # A tokenizer that puts a space of its own before the text: it is part of the first token.
    assert token_mask(text, spans, sizes + np.array([1, 0, 0]), 1).tolist() == mask
    # As a token of its own, it is trained with the first character.
    first = bool(spans) and spans[0][0] == 0
    assert token_mask(text, spans, np.array([1, *sizes]), 1).tolist() == [0, first, *mask[1:]]
    with pytest.raises(ValueError, match="another number of bytes"):
        token_mask(text, spans, sizes + np.array([0, 0, 1]), 0)


@pytest.fixture(scope="module")
def hugging_face(tmp_path_factory):
    """Tokenizers of this project, and the same ones in their own package, which knows offsets."""
    folder, found = tmp_path_factory.mktemp("tokenizers"), {}
    for name, make in KINDS.items():
        path = folder / name / "tokenizer.json"
        path.parent.mkdir()
        model = make()
        model.no_truncation()
        model.no_padding()
        model.encode_special_tokens = True
        model.save(str(path))
        found[name] = Tokenizer.load(path, special=SPECIAL), model
    return found


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_mask_is_that_of_the_offsets(hugging_face, kind, data):
    """Against the offsets (in characters) of the `tokenizers` package."""
    tokenizer, model = hugging_face[kind]
    text = data.draw(st.text("word1xé文字🙂 \n", min_size=1, max_size=30))
    borders = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=6)))
    spans = tuple(zip(borders[::2], borders[1::2], strict=False))
    encoding = model.encode(text, add_special_tokens=False)
    expected = [any(start < b and a < end for a, b in spans) for start, end in encoding.offsets]
    sizes = tokenizer.piece_bytes()[encoding.ids]
    found = token_mask(text, spans, sizes, tokenizer.prefix_bytes)
    assert found[1:-1].tolist() == expected
    assert found[-1] == bool(spans and spans[-1][1] == len(text)) and not found[0]


@pytest.mark.parametrize("value, problem", [
    ("0-3", "a list of"), ([0, 3], r"span 1 is not"), ([[0, 3], [4]], r"span 2 is not"),
    ([[0, 2.0]], r"span 1 is not"), ([[False, 2]], r"span 1 is not"),
    ([[2, 2]], "empty or outside"), ([[-1, 2]], "empty or outside"),
    ([[0, 2], [3, 6]], r"span 2 \[3, 6\] is empty or outside of the text, which has 5 characters"),
    ([[2, 4], [0, 1]], "span 2 .* begins before the end"), ([[0, 3], [2, 4]], "begins before"),
])
def test_spans_that_do_not_fit_are_named(value, problem):
    with pytest.raises(ValueError, match=problem):
        read_spans(value, 5)


@pytest.mark.parametrize("format", ["jsonl", "json", "parquet"])
def test_readers_take_spans_and_groups(tmp_path, format):
    """Records with good spans, none, and broken ones, which are dead letters."""
    write_rows(tmp_path, format, [
        {"text": "问 and 答", "where": [[6, 7]], "chat": "7"}, {"text": "all", "where": None},
        {"text": "short", "where": [[0, 6]]}, {"text": "none", "where": []}])
    items = read(tmp_path, format=format, trained_spans_field="where", group_field="chat")
    assert [(item.trained_spans, item.group) for item in items if isinstance(item, Record)] == [
        (((6, 7),), "7"), (None, ""), ((), "")]
    bad, = (item for item in items if isinstance(item, DeadLetter))
    assert (bad.origin.record, bad.reason) == (3, "invalid trained spans")
    assert bad.detail == ("span 1 [0, 6] is empty or outside of the text, which has 5 characters")


def test_parquet_without_lists_and_sqlite_are_refused(tmp_path):
    pq.write_table(pa.table({"text": ["abc"], "where": ["0-3"]}), tmp_path / "a.parquet")
    bad, = read(tmp_path, format="parquet", trained_spans_field="where")
    assert bad.reason == "invalid trained spans"
    with pytest.raises(ConfigError, match=r"trained_spans_field: a field of SQLite cannot"):
        InputConfig("x", "*", "sqlite", query="SELECT 1", trained_spans_field="w").check("inputs")


CHATS = [f"Question {n}? Answer {n}, which is 文字 of some length.\r\n " for n in range(40)]
"""Repairs would change the line ends."""


def make_recipe(root):
    return RecipeConfig(
        shards=2, split=SplitConfig(validation=0.3, test=0.0), privacy=PrivacyConfig(enabled=True),
        filters=FilterConfig(min_characters=1), sources=(
            SourceConfig("chats", "general", "CC0-1.0", (InputConfig(
                str(root), "chats.jsonl", "jsonl", trained_spans_field="trained",
                group_field="chat"),)),
            SourceConfig("web", "general", "CC0-1.0", (
                InputConfig(str(root), "web.jsonl", "jsonl"),))))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Raw files, the corpus and its tokens."""
    root = tmp_path_factory.mktemp("raw")
    rows = [{"text": text, "trained": [[text.index("Answer"), len(text)]], "chat": f"chat {n % 9}"}
            for n, text in enumerate(CHATS)]
    rows += [{"text": "Question out of bounds", "trained": [[9, 90]]},
             {"text": "Write to someone.real@mail-server.org now", "trained": [[0, 5]]},
             {"text": "Trained as a whole, without a group. "}]
    write_lines(root / "chats.jsonl", rows)
    write_lines(root / "web.jsonl", [{"text": f"Page {n} of the web"} for n in range(20)])
    (root / "tokenizer.model").write_bytes(tiny_tokenizer())
    output = tmp_path_factory.mktemp("corpus")
    manifest = run(make_recipe(root), output / "corpus")
    make_tokens(root, output / "corpus", output / "tokens")
    return root, output, manifest


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def make_tokens(root, corpus, output, *more):
    options = beam_options.pipeline_options(more)
    tokenizer = Tokenizer.load(root / "tokenizer.model")
    output.mkdir(exist_ok=True)
    return tokenize.tokenize(str(corpus), tokenizer, str(output), 700, options)


def records(folder, split, name):
    """(shard number, record, its row in the index)."""
    found = TokenCorpus.open(folder, split)
    for number, shard in enumerate(found.source(name).shards):
        index = pq.read_table(found.directory / shard.index).to_pylist()
        contents = ReaderPool().read(str(found.directory / shard.file), range(len(index))
                                     ) if index else []
        for content, row in zip(contents, index, strict=True):
            yield number, decode_record(
                content, found.dtype, row["tokens"], found.manifest.format), row


def test_broken_and_changed_texts_are_dead_letters(corpus):
    _, output, manifest = corpus
    assert manifest["sources"]["chats"]["dead_letters"] == {
        "privacy": {"text with trained spans": 1}, "read": {"invalid trained spans": 1}}
    assert manifest["sources"]["chats"]["kept"] == 41
    letters = [json.loads(line) for path in (output / "corpus" / "dead_letters").iterdir()
               for line in path.read_text().splitlines()]
    assert {letter["reason"]: letter["detail"] for letter in letters} == {
        "invalid trained spans": "span 1 [9, 90] is empty or outside of the text, which has 22 "
                                 "characters",
        "text with trained spans": "privacy:email=1 would change the text, and its trained spans "
                                   "would no longer fit"}


def test_masks_are_the_answers_and_groups_stay_together(corpus):
    _, output, _ = corpus
    tokenizer = Tokenizer.load(output / "tokens" / "tokenizer.model")
    texts, places = {}, {}
    for split in ("train", "validation"):
        assert TokenCorpus.open(output / "tokens", split).manifest.format == 2
        shards = TokenCorpus.open(output / "tokens", split).source("chats").shards
        for place, (shard, record, row) in enumerate(records(output / "tokens", split, "chats")):
            ids = record.tokens.tolist()
            text = tokenizer.decode(ids)
            texts[text] = record
            assert row.get("group") == (record.group or None)
            if record.group:
                places.setdefault(record.group, []).append((split, shard, place))
                assert shard == xxhash.xxh3_64_intdigest(record.group.encode()) % len(shards)
            if record.mask is not None:
                trained = tokenizer.decode(np.array(ids)[record.mask])
                # "A" or " A" begins the answer; the rule takes the token that crosses the border.
                assert trained.strip() == text[text.index("Answer"):].strip()
                assert record.mask[-1] and not record.mask[0]
    assert {text for text, record in texts.items() if record.mask is not None} == set(CHATS)
    assert len(places) == 9
    for members in places.values():
        assert len({place[:2] for place in members}) == 1  # split and shard
        numbers = [number for *_, number in members]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    # A shard without groups has an index without the column, and its records have no mask.
    assert all(record.mask is None and record.group == "" and "group" not in row
               for _, record, row in records(output / "tokens", "train", "web"))


def test_weights_train_the_answers_and_no_other_token(corpus):
    _, output, _ = corpus
    for packing in ("concat", "best_fit"):
        data = DataConfig(tokens=str(output / "tokens"), sequence_length=32, batch_size=1,
                          packing=packing)
        plan = Plan.build(data, 0)
        rows = sum(source["rows_per_epoch"] for source in plan.describe()["sources"])
        count = sum(float(plan.rows(step)["weights"].sum()) for step in range(rows))
        assert count == sum(
            len(record.tokens) - 1 if record.mask is None else record.mask.sum()
            for name in plan.sources for _, record, _ in records(output / "tokens", "train", name))
        scored = EvaluationPlan(data, "validation", 200)
        tokenizer = scored.tokenizer()
        assert sum(int(scored.rows(step)["bytes"][0]) for step in range(200)) == sum(
            len(tokenizer.decode(record.tokens if record.mask is None else
                                 record.tokens[record.mask]).encode())
            for name in scored.sources
            for _, record, _ in records(output / "tokens", "validation", name))


def test_two_workers_and_a_corpus_made_again_give_the_same_bytes(corpus, tmp_path):
    root, output, _ = corpus
    run(make_recipe(root), tmp_path / "corpus", *TWO_PROCESSES)
    make_tokens(root, tmp_path / "corpus", tmp_path / "tokens", *TWO_PROCESSES)
    documents = contents(output / "corpus" / "documents")
    assert contents(tmp_path / "corpus" / "documents") == documents
    assert contents(tmp_path / "tokens") == contents(output / "tokens")


def test_spans_of_another_text_stop_the_command(tmp_path):
    (tmp_path / "tokenizer.model").write_bytes(tiny_tokenizer())
    row = {**document(1, "word1"), "trained_spans": [[0, 6]]}
    corpus = write_corpus(tmp_path / "c", [document(2, "word2"), row])
    with pytest.raises(ConfigError, match=rf"document {row['id']} of a: trained_spans: span 1 .*"
                                          "outside of the text"):
        make_tokens(tmp_path, corpus, tmp_path / "t")


def test_a_corpus_without_the_columns_is_tokenized(tmp_path):
    (tmp_path / "tokenizer.model").write_bytes(tiny_tokenizer())
    corpus = write_corpus(tmp_path / "c", [document(1, "word1")], shards=1)
    path, = (corpus / "documents").iterdir()
    pq.write_table(pq.read_table(path).drop_columns(["trained_spans", "group"]), path)
    manifest = json.loads((corpus / "manifest.json").read_text())
    manifest["outputs"][0] |= {"bytes": path.stat().st_size, "sha256": file_sha256(path)}
    (corpus / "manifest.json").write_text(json.dumps(manifest))
    manifests = make_tokens(tmp_path, corpus, tmp_path / "t")
    assert [each.format for each in manifests] == [1, 1, 1]
