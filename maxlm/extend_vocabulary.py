"""Adds rows for the new tokens of an extended tokenizer to a trained model.

    python -m maxlm.extend_vocabulary --workdir=RUN --tokenizer=TOK2 --output=RUN2

TOK2 is made by `python -m data_beam.extend_tokenizer` from the tokenizer in RUN. RUN2 becomes a new
run at step 0 with the weights of RUN. The row of a new token (in the embedding, and in the head if
it is not tied) is the mean of the rows of the old tokens that spelled it. The logits of the old
tokens do not change. The optimizer keeps its moments; those of new rows are zero.

RUN2 starts at step 0, with the learning rate of step 0, because the same texts have other tokens
now and so another data order. Tokenize the texts with TOK2 and continue training; the command
prints how. generate and evaluate work on RUN2 right away.
"""

import dataclasses
import json
import os
from collections.abc import Sequence
from pathlib import Path

from maxlm.cli.command_line import Parser, run_command
from maxlm.config import ConfigError, local_path, to_plain
from maxlm.data.tokenizer import Tokenizer
from maxlm.parallel.mesh import make_mesh
from maxlm.training.checkpoint_reader import Meta, Reader
from maxlm.training.checkpoints import Checkpointer
from maxlm.training.faults import naming_full_disk
from maxlm.training.runs import open_config, write_run_files
from maxlm.training.state import TrainState, abstract_state
from maxlm.training.vocabulary import extend_state, old_pieces, padded_size

STARTED_FROM = "started_from.json"


def extend_vocabulary(workdir: Path, tokenizer: Tokenizer, output: Path, step: int | None) -> dict:
    """Writes the run `output`; returns what its started_from.json says.

    Raises:
      ConfigError: no run or checkpoint, a tokenizer that does not extend the run's, an output that
        is not empty.
    """
    step, meta, config, old = open_config(workdir, step)
    pieces = old_pieces(old, tokenizer)
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise ConfigError(f"--output: {str(output)!r} exists; choose a new directory")
    size = padded_size(config.model.vocab_size, tokenizer.vocab_size, config.parallel.tensor)
    mesh = make_mesh(config.parallel)
    abstract = abstract_state(config, mesh)._asdict()
    state = TrainState(**Reader(workdir).restore_state(step, abstract))
    state, longer = extend_state(state, config, mesh, size, old, pieces)
    started_from = {
        "workdir": str(workdir.resolve()), "step": step, "tokens": meta.tokens,
        "plan": meta.plan["hash"], "tokenizer_sha256": old.sha256,
        "new_tokens": len(pieces), "new_tokens_without_text": sum(not ids for ids in pieces),
        "vocab_size": size, "vocab_size_before": config.model.vocab_size}
    # The stored config with the new size; `config` has the mesh of this machine.
    stored = json.loads(json.dumps(meta.config))
    stored["model"]["vocab_size"] = size
    longer = dataclasses.replace(longer, parallel=type(longer.parallel)(**stored["parallel"]))
    output.mkdir(parents=True, exist_ok=True)
    with naming_full_disk(output), Checkpointer(output, longer.checkpoint) as checkpointer:
        checkpointer.save(0, state, Meta(
            config=to_plain(longer), tokens=0,
            plan={"hash": None, "tokenizer_sha256": tokenizer.sha256,
                  "started_from": started_from}))
    write_run_files(longer, output, tokenizer)
    temporary = output / f"{STARTED_FROM}.tmp"
    temporary.write_text(json.dumps(started_from, indent=2) + "\n", encoding="utf-8")
    os.replace(temporary, output / STARTED_FROM)
    return started_from


def main(argv: Sequence[str]) -> int:
    """The command; see the module's docstring."""
    parser = Parser(prog="python -m maxlm.extend_vocabulary", description=__doc__)
    parser.add_argument("--workdir", required=True, help="directory of the training run")
    parser.add_argument("--step", type=int, help="which checkpoint (default: the newest)")
    parser.add_argument("--tokenizer", required=True,
                        help="the longer tokenizer: its file, or the folder with it")
    parser.add_argument("--output", required=True, help="directory of the new run")
    arguments = parser.parse_args(argv)
    done = extend_vocabulary(
        local_path(arguments.workdir, "--workdir"),
        Tokenizer.load(arguments.tokenizer, "--tokenizer"),
        local_path(arguments.output, "--output"), arguments.step)
    print(f"step {done['step']} of {arguments.workdir}: {done['new_tokens']:,} new tokens, "
          f"{done['vocab_size_before']:,} -> {done['vocab_size']:,} rows; moments of new rows are "
          "zero")
    if done["new_tokens_without_text"]:
        print(f"note: {done['new_tokens_without_text']:,} new tokens have no text; their rows are "
              "the mean of all")
    print(f"train on with --workdir={arguments.output} --config.model.vocab_size="
          f"{done['vocab_size']} and --config.data.tokens of texts tokenized with "
          f"{arguments.tokenizer}")
    return 0


if __name__ == "__main__":
    run_command(main)
