"""The plan against a second, plain computation from the documents themselves."""

import collections
import random
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maxlm.config import ConfigError, TokenSource
from maxlm.data import readers, sources
from maxlm.data.corpus import CorpusError, TokenCorpus
from maxlm.data.plan import Plan
from tests import token_corpora
from tests.maxlm.data.plans import LENGTHS, PACKINGS, config, equal, passes, source_order
from tests.token_corpora import BOS, EOS, PAD


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "tokens"
    return path, token_corpora.random_split(path, "train", LENGTHS)


def epoch_rows(plan):
    """Rows of one epoch of all sources, when sources are read by their tokens."""
    return sum(source["rows_per_epoch"] for source in plan.describe()["sources"])


def read_rows(plan, count):
    """The first `count` rows of a run, one array each, over the batches they lie in."""
    steps = [plan.rows(step) for step in range(-(-count // plan.batch_size))]
    return {name: np.concatenate([step[name] for step in steps])[:count] for name in steps[0]}


def fragments(rows):
    """(source, tokens, targets, weights, positions) of each document fragment."""
    for i in range(len(rows["tokens"])):
        segments = rows["segment_ids"][i]
        for number in range(1, segments.max() + 1):
            inside = segments == number
            yield (int(rows["source"][i]), *(rows[name][i][inside] for name in
                                              ("tokens", "targets", "weights", "positions")))


def check_epoch(plan, documents):
    """Every token of every document is input once, and target once unless it is the first."""
    rows = read_rows(plan, epoch_rows(plan))
    inputs, targets = collections.Counter(), collections.Counter()
    for source, tokens, following, weights, positions in fragments(rows):
        np.testing.assert_array_equal(positions, np.arange(len(tokens)))
        inputs.update((source, int(token)) for token in tokens)
        trained = weights > 0
        assert trained[:-1].all()  # only the last of a fragment may be untrained
        np.testing.assert_array_equal(following[:-1], tokens[1:])
        targets.update((source, int(token)) for token in following[trained])
    expected_inputs, expected_targets = collections.Counter(), collections.Counter()
    for source, name in enumerate(plan.sources):
        for document in (d for shard in documents[name] for d in shard):
            expected_inputs.update((source, int(token)) for token in document)
            expected_targets.update((source, int(token)) for token in document[1:])
    assert inputs == expected_inputs
    assert targets == expected_targets
    segments = rows["segment_ids"]  # one after the other, then padding: attention relies on it
    following = np.diff(segments, axis=1)
    assert ((following == 0) | (following == 1) | (segments[:, 1:] == 0)).all()
    assert (segments[:, 0] == 1).all()
    padding = segments == 0
    assert (rows["weights"][padding] == 0).all()
    assert (rows["tokens"][padding] == PAD).all()
    assert set(np.unique(rows["weights"])) <= {0.0, 1.0}


@pytest.mark.parametrize("packing", PACKINGS)
def test_tokens_in_equal_tokens_out(corpus, packing):
    path, documents = corpus
    check_epoch(Plan.build(config(path, packing=packing), seed=3), documents)


@given(st.lists(st.lists(st.integers(2, 50), max_size=8), min_size=1, max_size=3),
       st.integers(2, 40), st.sampled_from(PACKINGS), st.integers(0, 100))
@settings(max_examples=30, deadline=None,
          suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_tokens_in_equal_tokens_out_for_any_lengths(
        tmp_path_factory, lengths, row_length, packing, seed):
    path = tmp_path_factory.mktemp("corpus") / "tokens"
    documents = token_corpora.random_split(path, "train", {"a": [[3]], "b": lengths})
    check_epoch(Plan.build(config(path, packing=packing, sequence_length=row_length), seed),
                documents)


def test_concat_row_by_hand(tmp_path):
    documents = [np.array(d, np.uint16) for d in
                 ([BOS, 10, 11, EOS], [BOS, 20, EOS, 21, 22, EOS], [BOS, 30, EOS])]
    token_corpora.write_split(tmp_path / "t", "train", {"a": [documents]})
    plan = Plan.build(config(tmp_path / "t", sequence_length=6, batch_size=1), seed=0)
    rows = read_rows(plan, 3)
    order = np.argsort([plan.locate(i).row for i in range(3)])
    assert rows["tokens"][order].tolist() == [
        [BOS, 10, 11, EOS, BOS, 20], [EOS, 21, 22, EOS, BOS, 30], [EOS, PAD, PAD, PAD, PAD, PAD]]
    # The second document holds an EOS inside and stays one document.
    assert rows["segment_ids"][order].tolist() == [
        [1, 1, 1, 1, 2, 2], [1, 1, 1, 1, 2, 2], [1, 0, 0, 0, 0, 0]]
    assert rows["positions"][order].tolist() == [
        [0, 1, 2, 3, 0, 1], [0, 1, 2, 3, 0, 1], [0, 0, 0, 0, 0, 0]]
    # At a row's end the target is the token that begins the next row, of the same document.
    assert rows["targets"][order].tolist() == [
        [10, 11, EOS, PAD, 20, EOS], [21, 22, EOS, PAD, 30, EOS], [PAD] * 6]
    assert rows["weights"][order].tolist() == [
        [1, 1, 1, 0, 1, 1], [1, 1, 1, 0, 1, 1], [0] * 6]


def test_best_fit_row_by_hand(tmp_path):
    documents = [np.array(d, np.uint16) for d in
                 ([BOS, 10, EOS], [BOS, 20, 21, 22, 23, 24, EOS], [BOS, EOS])]
    token_corpora.write_split(tmp_path / "t", "train", {"a": [documents]})
    plan = Plan.build(
        config(tmp_path / "t", sequence_length=5, batch_size=1, packing="best_fit"), seed=0)
    rows = read_rows(plan, 3)
    order = np.argsort([plan.locate(i).row for i in range(3)])
    # Seven tokens are a full row and two; three and two of the others fill a row with... the rest.
    assert rows["tokens"][order].tolist() == [
        [BOS, 20, 21, 22, 23], [BOS, 10, EOS, 24, EOS], [BOS, EOS, PAD, PAD, PAD]]
    assert rows["targets"][order].tolist() == [
        [20, 21, 22, 23, 24], [10, EOS, PAD, EOS, PAD], [EOS, PAD, PAD, PAD, PAD]]
    assert rows["weights"][order].tolist() == [
        [1, 1, 1, 1, 1], [1, 1, 0, 1, 0], [1, 0, 0, 0, 0]]
    assert rows["segment_ids"][order].tolist() == [
        [1, 1, 1, 1, 1], [1, 1, 1, 2, 2], [1, 1, 0, 0, 0]]


@pytest.mark.parametrize("packing, length, documents, masks, weights", [
    ("concat", 6,
     [[BOS, 10, 11, EOS], [BOS, 20, EOS, 21, 22, EOS], [BOS, 30, EOS]],
     [[0, 0, 1, 1], [0, 1, 0, 0, 1, 0], None],
     # The mask is that of the target. The second document goes on in the second row.
     [[0, 1, 1, 0, 1, 0], [0, 1, 0, 0, 1, 1], [0] * 6]),
    ("best_fit", 5,
     [[BOS, 10, EOS], [BOS, 20, 21, 22, 23, 24, EOS], [BOS, EOS]],
     [[0, 1, 0], [0, 1, 0, 1, 0, 1, 1], [0, 0]],
     [[1, 0, 1, 0, 1], [1, 0, 0, 1, 0], [0] * 5]),
])
def test_masks_become_weights_by_hand(tmp_path, packing, length, documents, masks, weights):
    """All else in the rows is as without masks."""
    arrays = [np.array(document, np.uint16) for document in documents]
    token_corpora.write_split(tmp_path / "plain", "train", {"a": [arrays]})
    token_corpora.write_split(tmp_path / "t", "train", {"a": [arrays]}, marks={
        ("a", 0, i): {"mask": np.array(mask, bool), "group": "g" if i else ""}
        for i, mask in enumerate(masks) if mask is not None})
    plain, plan = (Plan.build(config(tmp_path / name, sequence_length=length, batch_size=1,
                                     packing=packing), seed=0) for name in ("plain", "t"))
    without, rows = read_rows(plain, 3), read_rows(plan, 3)
    order = [plan.locate(i).row for i in range(3)]
    assert order == [plain.locate(i).row for i in range(3)]
    assert rows["weights"][np.argsort(order)].tolist() == weights
    assert equal({**rows, "weights": 0}, {**without, "weights": 0})
    groups = {document["id"]: document["group"] for step in range(3)
              for document in plan.documents(step)[0]}
    assert groups == {token_corpora.document_id("train", "a", 0, i).hex():
                      "g" if i and masks[i] is not None else "" for i in range(3)}


@pytest.mark.parametrize("packing", PACKINGS)
def test_dtypes_and_shapes(corpus, packing):
    batch = Plan.build(config(corpus[0], packing=packing), 0).rows(5, [1, 3])
    assert {name: (array.shape, array.dtype.name) for name, array in batch.items()} == {
        "tokens": ((2, 16), "int32"), "targets": ((2, 16), "int32"),
        "segment_ids": ((2, 16), "int32"), "positions": ((2, 16), "int32"),
        "weights": ((2, 16), "float32"), "source": ((2,), "int32")}


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("hosts", [1, 2, 3, 4, 7])
def test_any_number_of_hosts_gives_the_same_batches(corpus, packing, hosts):
    data = config(corpus[0], packing=packing, batch_size=7)
    whole = Plan.build(data, 1)
    for step in (0, 1, 50):
        batch = whole.rows(step)
        parts = [Plan.build(data, 1).rows(step, range(host, 7, hosts)) for host in range(hosts)]
        for name, array in batch.items():
            joined = np.empty_like(array)
            for host, part in enumerate(parts):
                joined[host::hosts] = part[name]
            np.testing.assert_array_equal(joined, array)
    assert equal(whole.rows(2, slice(1, 3)), {k: v[1:3] for k, v in whole.rows(2).items()})


def test_a_row_outside_the_batch_is_refused(corpus):
    plan = Plan.build(config(corpus[0]), 0)
    for wrong in ([4], [-1]):
        with pytest.raises(IndexError, match="0 to 3"):
            plan.rows(0, wrong)


@pytest.mark.parametrize("packing", PACKINGS)
def test_epochs_hold_the_same_rows_in_another_order(corpus, packing):
    plan = Plan.build(config(corpus[0], packing=packing, batch_size=1), 0)
    size = epoch_rows(plan)
    epochs = [[plan.locate(epoch * size + i) for i in range(size)] for epoch in range(3)]
    assert [{location.epoch for location in epoch} for epoch in epochs] == [{0}, {1}, {2}]
    keys = [[(location.source, location.row) for location in epoch] for epoch in epochs]
    assert len(set(keys[0])) == size
    assert sorted(keys[0]) == sorted(keys[1]) == sorted(keys[2])
    assert keys[0] != keys[1] != keys[2]


def test_seed_changes_the_order_and_the_hash(corpus):
    one, two = (Plan.build(config(corpus[0]), seed) for seed in (0, 1))
    assert one.hash != two.hash
    assert not equal(one.rows(0), two.rows(0))
    assert equal(one.rows(3), Plan.build(config(corpus[0]), 0).rows(3))


def test_hash_follows_what_the_order_follows(corpus, tmp_path):
    path = corpus[0]
    base = Plan.build(config(path), 0).hash
    for same in ({"workers": 3}, {"prefetch": 9}, {"epochs": 7}, {"verify": False}):
        assert Plan.build(config(path, **same), 0).hash == base
    for other in ({"sequence_length": 17}, {"batch_size": 5}, {"packing": "best_fit"},
                  {"tokens": (TokenSource(path=str(path), source="web"),)}):
        assert Plan.build(config(path, **other), 0).hash != base
    token_corpora.random_split(tmp_path / "t", "train", LENGTHS)
    assert Plan.build(config(tmp_path / "t"), 0).hash == base, "the same corpus elsewhere"
    token_corpora.random_split(tmp_path / "u", "train", LENGTHS, seed=1)
    assert Plan.build(config(tmp_path / "u"), 0).hash != base


def test_another_source_does_not_reshuffle_the_others(corpus):
    path = str(corpus[0])
    two = Plan.build(config(path, tokens=(
        TokenSource(path=path, source="web"), TokenSource(path=path, source="code"))), 0)
    three = Plan.build(config(path, tokens=(
        TokenSource(path=path, source="law", weight=0.2), TokenSource(path=path, source="web"),
        TokenSource(path=path, source="code", weight=3.0))), 0)
    for name in ("web", "code"):
        few, many = source_order(two, name, 60), source_order(three, name, 60)
        common = min(len(few), len(many))
        assert common > 5
        assert few[:common] == many[:common]


def test_sources_of_one_shape_have_orders_of_their_own(tmp_path):
    token_corpora.random_split(tmp_path / "t", "train", {"a": [[16] * 20], "b": [[16] * 20]})
    plan = Plan.build(config(tmp_path / "t"), 0)
    assert source_order(plan, "a", 40) != source_order(plan, "b", 40)


def test_weights_are_shares_of_tokens_at_every_prefix(tmp_path):
    """0.7 and 0.3, though rows of the second source are half empty in best_fit."""
    lengths = {"full": [[16] * 50], "half": [[9] * 50]}
    token_corpora.random_split(tmp_path / "t", "train", lengths)
    path = str(tmp_path / "t")
    plan = Plan.build(config(path, packing="best_fit", tokens=(
        TokenSource(path=path, source="full", weight=0.7),
        TokenSource(path=path, source="half", weight=0.3))), 0)
    tokens = np.zeros(2)
    for row in range(400):
        location = plan.locate(row)
        tokens[plan.sources.index(location.source)] += sum(
            piece.stop - piece.start for piece in location.pieces)
        # One row of either source, and 2^-16 of all rows for the rounding of weights.
        assert abs(tokens[0] - 0.7 * tokens.sum()) <= 16 + tokens.sum() / 2**16
    full, _ = plan.describe()["stages"][0]["sources"]
    assert full["realised_weight"] == pytest.approx(0.7, abs=2**-15)
    assert plan.describe()["sources"][1]["fill"] == 9 / 16


def test_entry_without_source_shares_its_weight_by_tokens(tmp_path):
    token_corpora.random_split(tmp_path / "a", "train", {"x": [[16] * 30], "y": [[16] * 10]})
    token_corpora.random_split(tmp_path / "b", "train", {"x": [[16] * 7]})
    plan = Plan.build(config("", tokens=(
        TokenSource(path=str(tmp_path / "a"), weight=3.0),
        TokenSource(path=str(tmp_path / "b"), weight=1.0))), 0)
    assert plan.sources == ("x", "y", "x#2")
    weights = [source["weight"] for source in plan.describe()["stages"][0]["sources"]]
    assert weights == pytest.approx([9 / 16, 3 / 16, 4 / 16])


def test_epochs_limit_names_the_source_and_the_steps_possible(corpus):
    path = corpus[0]
    plan = Plan.build(config(path), 0)
    possible = epoch_rows(plan) // 4
    Plan.build(config(path, epochs=1), 0, steps=possible)
    with pytest.raises(ConfigError, match=f"more than 1 time; {possible} steps are possible"):
        Plan.build(config(path, epochs=1), 0, steps=possible + 1)


@pytest.mark.parametrize(("batch", "epochs"), [(4, 2), (4, 1), (16, 3), (1, 5), (3, 1)])
def test_epochs_limit_says_what_fits(corpus, batch, epochs):
    """Each number of the message is the largest, or smallest, that is accepted."""
    path = str(corpus[0])

    def build(steps=100, batch=batch, epochs=epochs):
        return Plan.build(config(path, batch_size=batch, epochs=epochs, tokens=tuple(
            TokenSource(path=path, source=name) for name in ("law", "web"))), 0, steps=steps)

    with pytest.raises(ConfigError) as caught:
        build()
    message = str(caught.value)
    assert message.startswith("config.data.epochs: ")
    assert f"'law'{'' if batch < 3 else ', of 1 row of 16 tokens,'} more than" in message
    needed = int(re.findall(r"(?:raise data.epochs to |data.epochs=)(\d+)", message)[0])
    build(epochs=needed)
    with pytest.raises(ConfigError):
        build(epochs=needed - 1)
    if batch == 1:
        [possible] = map(int, re.findall(r"(\d+) steps are possible", message))
        build(steps=possible)
        with pytest.raises(ConfigError):
            build(steps=possible + 1)
    else:
        assert "steps are possible" not in message
        [fits] = map(int, re.findall(r"data.batch_size of at most (\d+) fits", message))
        build(steps=1, batch=fits)
        with pytest.raises(ConfigError):
            build(steps=1, batch=fits + 1)


@pytest.mark.parametrize(("tokens", "batch"), [
    ((("law", 1.0), ("web", 1.0)), 4), ((("law", 0.01), ("web", 0.99)), 8), (None, 3),
    ((("law", 5.0), ("code", 1.0)), 16)])
def test_steps_that_pass_epochs_of_a_source(corpus, tokens, batch):
    path = str(corpus[0])
    mixture = path if tokens is None else tuple(
        TokenSource(path=path, source=name, weight=weight) for name, weight in tokens)
    plan = Plan.build(config(path, tokens=mixture, batch_size=batch), 0, steps=60)
    assert plan.passed_epochs() == passes(plan, 60) != {}


@pytest.mark.parametrize("fields, message", [
    ({"tokens": ""}, r"config\.data\.tokens: must be set"),
    ({"tokens": ()}, r"config\.data\.tokens: the list is empty"),
    ({"split": "test"}, "no finished split 'test'"),
])
def test_mistakes_are_named(corpus, fields, message):
    with pytest.raises(ConfigError, match=message):
        Plan.build(config(corpus[0], **fields), 0)


def test_mistakes_in_mixtures_are_named(corpus, tmp_path):
    path = str(corpus[0])

    def build(*entries):
        return Plan.build(config(path, tokens=entries), 0)

    with pytest.raises(ConfigError, match=r"did you mean 'code'"):
        build(TokenSource(path=path, source="cod"))
    with pytest.raises(ConfigError, match=r"tokens\[1\].*'web'.*listed twice"):
        build(TokenSource(path=path), TokenSource(path=path, source="web"))
    with pytest.raises(ConfigError, match=r"tokens\[1\]: source 'code' would get .* 1/65536"):
        build(TokenSource(path=path, source="web"),
              TokenSource(path=path, source="code", weight=1e-7))
    with pytest.raises(ConfigError, match=r"tokens\[1\]: no directory"):
        build(TokenSource(path=path), TokenSource(path=str(tmp_path / "none")))
    token_corpora.random_split(tmp_path / "empty", "train", {"a": [[]]})
    with pytest.raises(ConfigError, match=r"tokens\[1\]: .*holds no tokens in split 'train'"):
        build(TokenSource(path=path), TokenSource(path=str(tmp_path / "empty")))


def test_damaged_shard_is_named_at_build(tmp_path):
    token_corpora.random_split(tmp_path / "t", "train", {"a": [[5, 6]], "b": [[5]]})
    shard = tmp_path / "t" / "train" / "b-00000-of-00001.array_record"
    content = bytearray(shard.read_bytes())
    content[-1] ^= 1
    shard.write_bytes(content)
    with pytest.raises(CorpusError, match=r"b-00000-of-00001\.array_record.*damaged"):
        Plan.build(config(tmp_path / "t"), 0)
    # Only what is read is checked.
    Plan.build(config("", tokens=(TokenSource(path=str(tmp_path / "t"), source="a"),)), 0)


def test_corpus_smaller_than_a_batch_repeats(tmp_path):
    token_corpora.random_split(tmp_path / "t", "train", {"a": [[5]]})
    batch = Plan.build(config(tmp_path / "t", batch_size=6), 0).rows(1)
    assert (batch["segment_ids"].sum(axis=1) == 5).all()


def test_thirty_five_sources_hold_few_files_open(tmp_path, monkeypatch):
    token_corpora.random_split(
        tmp_path / "t", "train", {f"s{i:02d}": [[9, 8], [5]] for i in range(35)})
    pool = readers.ReaderPool(limit=4)
    monkeypatch.setattr(readers, "_pool", pool)
    plan = Plan.build(config(tmp_path / "t", sequence_length=8), 0)
    seen = set()
    for step in range(40):
        seen |= set(plan.rows(step)["source"].tolist())
        assert len(pool) <= 4
    assert seen == set(range(35))


def test_global_random_state_is_neither_read_nor_changed(corpus):
    plan = Plan.build(config(corpus[0]), 0)
    np.random.seed(1)
    random.seed(1)
    before = (np.random.get_state()[1].tolist(), random.getstate())
    first = plan.rows(2)
    assert (np.random.get_state()[1].tolist(), random.getstate()) == before
    np.random.seed(2)
    random.seed(2)
    assert equal(first, plan.rows(2))


def test_pad_id_equal_to_eos_id_still_trains_eos(tmp_path, monkeypatch):
    monkeypatch.setattr(token_corpora, "PAD", EOS)
    token_corpora.write_split(tmp_path / "t", "train", {
        "a": [[np.array([BOS, 9, EOS], np.uint16)]]})
    batch = Plan.build(config(tmp_path / "t", sequence_length=5, batch_size=1), 0).rows(0)
    assert batch["tokens"].tolist() == [[BOS, 9, EOS, EOS, EOS]]
    assert batch["targets"][0, 1] == EOS
    assert batch["weights"].tolist() == [[1, 1, 0, 0, 0]]


@pytest.mark.parametrize("packing", PACKINGS)
def test_documents_names_what_a_row_holds(corpus, packing):
    path, documents = corpus
    plan = Plan.build(config(path, packing=packing), 0)
    by_id = {}
    for name, shards in documents.items():
        for number, shard in enumerate(shards):
            for i, tokens in enumerate(shard):
                by_id[token_corpora.document_id("train", name, number, i).hex()] = (name, tokens)
    for step in (0, 9):
        batch = plan.rows(step)
        for i, row in enumerate(plan.documents(step)):
            parts = [by_id[piece["id"]][1][piece["start"]:piece["stop"]] for piece in row]
            assert {by_id[piece["id"]][0] for piece in row} == {row[0]["source"]}
            tokens = np.concatenate(parts)
            np.testing.assert_array_equal(batch["tokens"][i, :len(tokens)], tokens)
            assert batch["segment_ids"][i].max() == len(row)


def test_steps_far_away_are_computed_directly(corpus):
    plan = Plan.build(config(corpus[0], batch_size=4096, sequence_length=16), 0)
    step = 10**9
    assert plan.rows(step, [17])["segment_ids"].any()
    assert plan.locate(step * 4096 + 17).epoch > 10**9


def test_a_share_that_no_period_can_hold_is_told(tmp_path, monkeypatch):
    token_corpora.random_split(tmp_path / "t", "train", {"big": [[16] * 400], "small": [[16]]})
    settings = config(tmp_path / "t", packing="best_fit", sequence_length=16)
    assert Plan.build(settings, 0).distorted() == []
    monkeypatch.setattr(sources, "PERIOD", 10)
    monkeypatch.setattr(sources, "EXACT_PERIOD", 100)
    [line] = Plan.build(settings, 0).distorted()
    assert line.startswith("source 'small' gets 1.0e-02 of the tokens and not 2.5e-03")
    assert "period of 100 rows: its texts come 4.0 times as often" in line


def test_processes_share_the_checksums(tmp_path):
    """Each file is looked at by one process, and by no other."""
    token_corpora.random_split(tmp_path / "t", "train", {"a": [[5]] * 3, "b": [[5]] * 2})
    corpus = TokenCorpus.open(tmp_path / "t", "train")
    for file in sorted((tmp_path / "t" / "train").glob("*-of-*")):
        whole = file.read_bytes()
        file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        found = 0
        for part in range(3):
            try:
                corpus.verify(part=part, parts=3)
            except CorpusError as error:
                assert file.name in str(error)
                found += 1
        assert found == 1
        file.write_bytes(whole)
    for part in range(9):  # more processes than shards
        corpus.verify(part=part, parts=9)
