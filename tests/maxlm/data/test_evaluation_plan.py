import numpy as np
import pytest

from maxlm.config import ConfigError, DataConfig, TokenSource
from maxlm.data.corpus import CorpusError
from maxlm.data.evaluation_plan import EvaluationPlan
from maxlm.data.tokenizer import SentencePieceTokenizer
from tests import token_corpora
from tests.token_corpora import BOS, EOS

TEXTS = {"a": ["word1 文字一 x", "déjà ▁ vu 🙂\n\tend"], "b": ["word2 word3"]}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Real texts through the tokenizer, as validation; training tokens beside them."""
    path = tmp_path_factory.mktemp("corpus") / "tokens"
    tokenizer = SentencePieceTokenizer(token_corpora.tiny_tokenizer())
    sources = {name: [[np.array([BOS, *tokenizer.encode(text), EOS], np.uint16)
                       for text in texts]] for name, texts in TEXTS.items()}
    token_corpora.write_split(path, "validation", sources)
    token_corpora.random_split(path, "train", {"a": [[30]], "b": [[30]], "c": [[5]]})
    return path


def plan(path, batches, **fields):
    data = DataConfig(**{"tokens": str(path), "sequence_length": 7, "batch_size": 2, **fields})
    return EvaluationPlan(data, "validation", batches)


@pytest.mark.parametrize("packing", ["concat", "best_fit"])
def test_bytes_over_the_split_are_the_bytes_of_its_texts(corpus, packing):
    evaluation = plan(corpus, 20, packing=packing)
    total = dict.fromkeys(TEXTS, 0)
    tokens = 0
    for step in range(20):
        batch = evaluation.rows(step)
        for source, size, weights in zip(batch["source"], batch["bytes"], batch["weights"],
                                         strict=True):
            total[evaluation.sources[source]] += int(size)
            tokens += int(weights.sum())
    assert total == {name: sum(len(text.encode()) for text in texts)
                     for name, texts in TEXTS.items()}
    # Each token but BOS is a target once.
    described = sum(source.entry.tokens - source.entry.documents for source in evaluation._sources)
    assert tokens == described


def test_bytes_of_a_cut_document_are_those_of_its_pieces(corpus):
    """Row by row against the text itself: the bytes of decode(all) minus those before the row."""
    tokenizer = SentencePieceTokenizer(token_corpora.tiny_tokenizer())
    ids = tokenizer.encode("word1 文字一 x")
    table = tokenizer.piece_bytes()
    for cut in range(len(ids) + 1):
        head = tokenizer.decode(ids[:cut])
        if "�" not in head:  # the cut is not inside a character spelled by bytes
            assert table[ids[:cut]].sum() == len(head.encode())


def test_padding_fills_what_the_split_does_not_have(corpus):
    evaluation = plan(corpus, 50)
    rows = [evaluation.rows(step) for step in range(50)]
    valid = sum(int((batch["segment_ids"].max(axis=1) > 0).sum()) for batch in rows)
    assert valid == evaluation.valid_rows < 100
    last = rows[-1]
    assert not last["weights"].any() and not last["segment_ids"].any() and not last["bytes"].any()
    assert last["tokens"].shape == (2, 7)
    assert plan(corpus, 1).valid_rows == 2


def test_rows_do_not_follow_seed_weights_or_training(corpus):
    mixture = (TokenSource(path=str(corpus), source="b", weight=9.0),
               TokenSource(path=str(corpus), source="a"))
    one = plan(corpus, 8, tokens=mixture)
    two = plan(corpus, 8, tokens=tuple(reversed(mixture)))
    assert one.valid_rows == two.valid_rows

    def rows(evaluation):
        return sorted(bytes(row) for step in range(8) for row in evaluation.rows(step)["tokens"])

    assert rows(one) == rows(two) == rows(plan(corpus, 8))


def test_hosts_see_the_same_batches(corpus):
    evaluation = plan(corpus, 4, batch_size=3)
    for step in range(4):
        whole = evaluation.rows(step)
        for i in range(3):
            part = evaluation.rows(step, [i])
            assert all(np.array_equal(part[name][0], whole[name][i]) for name in whole)


def test_source_without_held_out_text_is_left_out(corpus):
    evaluation = plan(corpus, 4, tokens=(TokenSource(path=str(corpus)),))
    assert set(evaluation.sources) == {"a", "b"}
    with pytest.raises(ConfigError, match="no source 'c'"):
        plan(corpus, 4, tokens=(TokenSource(path=str(corpus), source="c"),))


def test_another_tokenizer_beside_the_tokens_is_refused(tmp_path):
    token_corpora.random_split(tmp_path / "t", "validation", {"a": [[5]]})
    (tmp_path / "t" / "tokenizer.model").write_bytes(token_corpora.tiny_tokenizer(390))
    with pytest.raises(CorpusError, match="not the tokenizer the corpus was made with"):
        plan(tmp_path / "t", 1)
