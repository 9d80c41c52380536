"""Rows for new tokens in the arrays of a trained model."""

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
    """Old ids that spell each id that `new` adds.

    Args:
      old: tokenizer of the model.
      new: the same with more ids.

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

    The old number where it is enough. Otherwise the next multiple of the largest power of two, at
    most 128, that divides the old number, and of the mesh axis that the vocabulary is split over.

    Args:
      rows: of the embedding so far.
      tokens: ids of the new tokenizer.
      tensor: config.parallel.tensor; -1 (all devices left) is not known here and not considered.
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
      pieces: old ids of each new token. A new row is the mean of theirs, or of all old tokens'
        where there are none.
      padding: old row that rows past the new tokens copy, an id that is never predicted; None for
        the mean of all old tokens' rows.

    Returns:
      [size, D] float32; rows before `first` are those of `rows`, and so are rows that were padding
      and still are.
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

    New rows of the embedding, and of the head where it is not tied, are means of old rows (see
    `resize_rows`). The optimizer keeps its moments of the old rows; those of new rows are zero, so
    that their first updates are as large as a first step's.

    Args:
      state: of the run, laid out on `mesh`.
      config: of the run.
      size: rows of the new embedding, from `padded_size`.
      old: tokenizer of the run.
      pieces: from `old_pieces`.

    Returns:
      The new state and the config that fits it.

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
