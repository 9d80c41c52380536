"""Small models and packed batches for the tests of this folder."""

import numpy as np

from maxlm.config import ModelConfig, PrecisionConfig
from maxlm.parallel.execution import Execution

# How the commands run a model on one CPU.
FLOAT32 = Execution(attention="blocked")
BFLOAT16 = Execution(PrecisionConfig(compute="bfloat16"), attention="blocked")
SMALL = ModelConfig(vocab_size=256, num_layers=3, embed_dim=64, num_heads=8, num_kv_heads=4,
                    head_dim=16, mlp_dim=96, loss_chunk=64)


def packed_batch(lengths_by_row: list[list[int]], length: int, vocab_size: int,
                 seed: int = 0) -> dict[str, np.ndarray]:
    """Rows of documents with these lengths, the rest of a row padded; last tokens have weight 0."""
    random = np.random.default_rng(seed)
    shape = (len(lengths_by_row), length)
    batch = {name: np.zeros(shape, np.int32)
             for name in ("tokens", "targets", "segment_ids", "positions")}
    batch["weights"] = np.zeros(shape, np.float32)
    for row, lengths in enumerate(lengths_by_row):
        start = 0
        for number, n in enumerate(lengths, 1):
            document = random.integers(1, vocab_size, n)
            end = start + n
            batch["tokens"][row, start:end] = document
            batch["targets"][row, start:end - 1] = document[1:]
            batch["weights"][row, start:end - 1] = 1
            batch["segment_ids"][row, start:end] = number
            batch["positions"][row, start:end] = np.arange(n)
            start = end
        assert start <= length
    return batch
