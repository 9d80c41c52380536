"""Extends the embedding and the head of a trained model by rows for new tokens."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from maxlm.config import Config, ConfigError
from maxlm.data.tokenizer import Tokenizer
from maxlm.training.state import TrainState, abstract_state

_MOST_PADDING = 128


def old_pieces(old: Tokenizer, new: Tokenizer) -> list[list[int]]:
    """For each id that `new` adds, the old ids that encode its text.

    Args:
      old: tokenizer of the model.
      new: `old` with more ids.

    Returns:
      One list for each id from old.vocab_size on; empty for special tokens, which have no text.

    Raises:
      ConfigError: `new` does not begin with the ids of `old`, or adds none.
    """
    if type(old) is not type(new):
        raise ConfigError("--tokenizer: it is of another form than the run's (SentencePiece and "
                          "Hugging Face); extend the one in the run's directory")
    common = range(min(old.vocab_size, new.vocab_size))
    moved = [i for i, (a, b) in enumerate(zip(old.pieces(common), new.pieces(common), strict=True))
             if a != b]
    if moved or new.vocab_size < old.vocab_size:
        what = f"id {moved[0]} is another piece" if moved else "it has fewer ids"
        raise ConfigError(f"--tokenizer: it does not extend the run's tokenizer: {what}; make it "
                          "with python -m data_beam.extend_tokenizer from the run's own")
    for name in ("bos_id", "eos_id", "pad_id"):
        if getattr(old, name) != getattr(new, name):
            raise ConfigError(f"--tokenizer: its {name} is {getattr(new, name)}, the run's is "
                              f"{getattr(old, name)}")
    if new.vocab_size == old.vocab_size:
        raise ConfigError("--tokenizer: it adds no ids to the run's tokenizer")
    return [old.encode(new.decode([token])) for token in range(old.vocab_size, new.vocab_size)]


def padded_size(rows: int, tokens: int, tensor: int) -> int:
    """Rows of the embedding for a vocabulary of `tokens`.

    The old number of rows if it is enough. Otherwise the next multiple of the mesh axis that the
    vocabulary is split over and of the largest power of two, at most 128, that divides the old
    number.

    Args:
      rows: of the embedding so far.
      tokens: ids of the new tokenizer.
      tensor: config.parallel.tensor; -1 (all remaining devices) counts as 1.
    """
    if tokens <= rows:
        return rows
    multiple = math.lcm(math.gcd(rows, _MOST_PADDING), max(1, tensor))
    return -(-tokens // multiple) * multiple


def resize_rows(rows: np.ndarray, size: int, first: int, pieces: Sequence[Sequence[int]],
                padding: int | None) -> np.ndarray:
    """An embedding or a head with rows for new tokens.

    Args:
      rows: [old rows, D] float32.
      size: number of rows of the result.
      first: id of the first new token; rows from there to the old end are padding.
      pieces: old ids of each new token. A new row is the mean of their rows, or of all old tokens'
        rows if the list is empty.
      padding: id that is never predicted; padding rows that are added copy its row. None: they are
        the mean of all old tokens' rows.

    Returns:
      [size, D] float32. Rows before `first`, and padding rows that stay padding, are unchanged.
    """
    mean = rows[:first].mean(axis=0, dtype=np.float64)
    result = np.empty((size, rows.shape[1]), rows.dtype)
    result[:] = mean if padding is None else rows[padding]
    result[:len(rows)] = rows
    for number, ids in enumerate(pieces):
        result[first + number] = rows[list(ids)].mean(axis=0, dtype=np.float64) if ids else mean
    return result


def extend_state(state: TrainState, config: Config, mesh: Mesh, size: int, old: Tokenizer,
                 pieces: Sequence[Sequence[int]]) -> tuple[TrainState, Config]:
    """The state of a model with rows for new tokens, at step 0.

    New rows of the embedding, and of the head if it is not tied, are means of old rows (see
    `resize_rows`). The moments of old rows are kept; those of new rows are zero, so their first
    updates are as large as in the first step of a run.

    Args:
      state: of the run, laid out on `mesh`.
      config: of the run.
      size: rows of the new embedding, from `padded_size`.
      old: tokenizer of the run.
      pieces: from `old_pieces`.

    Returns:
      The new state and its config.

    Raises:
      ConfigError: the vocabulary cannot be divided over the mesh.
    """
    longer = dataclasses.replace(config, model=dataclasses.replace(config.model, vocab_size=size))
    wanted = abstract_state(longer, mesh)
    rows, first = config.model.vocab_size, old.vocab_size
    padding = rows - 1 if rows > first else old.pad_id if old.pad_id != old.eos_id else None

    def vocabulary(path: Any) -> bool:
        return any(getattr(key, "key", None) in ("embedding", "head") for key in path)

    def resize(path: Any, leaf: jax.Array, target: jax.ShapeDtypeStruct) -> jax.Array:
        if not vocabulary(path):
            return leaf
        values = np.asarray(leaf)
        if path[0].name == "params":
            values = resize_rows(values, size, first, pieces, padding)
        else:
            zeros = np.zeros((size, values.shape[1]), values.dtype)
            zeros[:first] = values[:first]
            values = zeros
        return jax.device_put(values, target.sharding)

    new = jax.tree_util.tree_map_with_path(resize, state, wanted)
    return new._replace(step=jax.device_put(np.int32(0), wanted.step.sharding)), longer
