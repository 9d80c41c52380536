"""A run with a Hugging Face tokenizer: tokenize, train, evaluate, generate, extend."""

import json
import math

import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from data_beam import extend_tokenizer, tokenize
from maxlm import evaluate, extend_vocabulary, generate
from maxlm.config import ConfigError
from maxlm.data.corpus import TokenCorpus
from maxlm.data.tokenizer import Tokenizer
from tests import training_runs
from tests.document_corpora import document, write_corpus

VOCABULARY = 285
TEXTS = [f"word{i % 9} 患者{i % 7} <|endoftext|> heart attack, word{i % 5}." * 4 for i in range(60)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A byte-level tokenizer with one special token, as GPT-2's, and a run with it."""
    folder = tmp_path_factory.mktemp("hf")
    model = tokenizers.Tokenizer(models.BPE())
    model.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    model.decoder = decoders.ByteLevel()
    model.train_from_iterator(TEXTS, trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=["<|endoftext|>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    model.save(str(folder / "tokenizer.json"))
    write_corpus(folder / "corpus", [
        document(i, text, split="validation" if i % 6 == 0 else "train")
        for i, text in enumerate(TEXTS)])
    flags = [f"--corpus={folder / 'corpus'}", f"--tokenizer={folder / 'tokenizer.json'}",
             f"--output={folder / 'tokens'}"]
    with pytest.raises(ConfigError, match="pass --bos_token=TOKEN and --eos_token=TOKEN"):
        tokenize.main(flags)
    assert tokenize.main([*flags, "--bos_token=<|endoftext|>", "--eos_token=<|endoftext|>"]) == 0
    assert training_runs.run(folder / "RUN", data__tokens=str(folder / "tokens"), run__steps=4,
                             evals__batches=1, model__vocab_size=320) == 0
    return folder


def test_documents_are_wrapped_and_texts_are_text(folder):
    corpus = TokenCorpus.open(folder / "tokens", "validation")
    assert (corpus.bos_id, corpus.eos_id, corpus.pad_id, corpus.vocab_size) == (0, 0, 0, VOCABULARY)
    tokenizer = Tokenizer.load(folder / "tokens")
    assert corpus.tokenizer_sha256 == tokenizer.sha256
    # <|endoftext|> in a text is no special token: each document has two of them, its ends.
    assert 0 not in tokenizer.encode(TEXTS[0]) and tokenizer.decode(
        [0, *tokenizer.encode(TEXTS[0]), 0]) == TEXTS[0]


def test_the_run_is_evaluated_over_the_bytes_of_its_texts(folder, capsys):
    run = folder / "RUN"
    assert sorted(path.name for path in run.glob("tokenizer*")) == [
        "tokenizer.json", "tokenizer_config.json"]
    assert evaluate.main([f"--workdir={run}", "--config.evals.batches=100"]) == 0
    result = json.loads(capsys.readouterr().out)
    corpus = TokenCorpus.open(folder / "tokens", "validation")
    targets = corpus.manifest.tokens - corpus.manifest.documents  # all but each BOS
    size = sum(len(text.encode()) for text in TEXTS[::6])
    assert result["eval/bits_per_byte"] == pytest.approx(
        result["eval/loss"] * targets / (math.log(2) * size), rel=1e-5)


def test_the_run_generates(folder, capsys):
    assert generate.main([f"--workdir={folder / 'RUN'}", "--prompt=word1 患者", "--json",
                          "--max_tokens=6", "--temperature=2"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["prompt"] == "word1 患者" and all(0 < i < VOCABULARY for i in result["tokens"])


def test_the_run_is_extended(folder, tmp_path, capsys):
    (tmp_path / "terms.txt").write_text("heart attack\n患者\n", encoding="utf-8")
    assert extend_tokenizer.main([f"--tokenizer={folder / 'RUN'}", f"--output={tmp_path / 'TOK2'}",
                                  f"--add={tmp_path / 'terms.txt'}"]) == 0
    assert extend_vocabulary.main([f"--workdir={folder / 'RUN'}", f"--output={tmp_path / 'RUN2'}",
                                   f"--tokenizer={tmp_path / 'TOK2'}"]) == 0
    assert "2 new tokens, 320 -> 320 rows" in capsys.readouterr().out
    old = training_runs.saved_arrays(folder / "RUN", 4)["['params']['embedding']"]
    new = training_runs.saved_arrays(tmp_path / "RUN2", 0)["['params']['embedding']"]
    pieces = Tokenizer.load(folder / "RUN").encode("heart attack")
    assert new[VOCABULARY] == pytest.approx(old[pieces].mean(axis=0), abs=1e-6)
    same = [*range(VOCABULARY), *range(VOCABULARY + 2, 320)]
    assert (new[same] == old[same]).all()
    assert generate.main([f"--workdir={tmp_path / 'RUN2'}", "--prompt=患者"]) == 0
