"""The rows of an evaluation during training, or of `maxlm.evaluate`."""

import dataclasses
from fractions import Fraction
from typing import Any

import numpy as np

from maxlm.config import DataConfig
from maxlm.data.plan import PLAN_FORMAT, Indices, PlanRows, hash_of
from maxlm.data.sources import StageSources, choose_sources, distinct_sources


class EvaluationPlan(PlanRows):
    """The first rows of a split in a fixed order, each at most once, the same ones each time.

    Sources take part by their tokens in that split, whatever the weights and the seed of training.
    When the split has fewer rows than `batches * batch_size`, the rest is padding with weight 0:
    any number of hosts runs any number of batches.

    Attributes:
      batches: number of batches.
      valid_rows: rows that are not padding, over all batches.
      hash: of what is scored; equal hashes give figures that can be compared.
      split, sources, domains, vocab_size, pad_id, ...: as in `Plan`.
    """

    def __init__(self, data: DataConfig, split: str, batches: int):
        chosen = distinct_sources(choose_sources(data, split, skip_empty=True,
                                                 split_field="config.evals.split"))
        tokens = sum(c.entry.tokens for c in chosen)
        super().__init__(data, 0, [StageSources(0, [
            dataclasses.replace(c, weight=Fraction(c.entry.tokens, tokens)) for c in chosen])])
        self.split = split
        self.batches = batches
        scored = [min(self._mixture.count(i, batches * self.batch_size), source.rows)
                  for i, source in enumerate(self._sources)]
        self.valid_rows = sum(scored)
        self.hash = hash_of({
            "format": PLAN_FORMAT,
            "sources": sorted([source.label, source.entry.fingerprint, rows]
                              for source, rows in zip(self._sources, scored, strict=True)),
            "tokenizer": self.tokenizer_sha256,
            "packing": self.packing,
            "sequence_length": self.sequence_length,
        })
        tokenizer = self.tokenizer()
        self._piece_bytes, self._prefix_bytes = tokenizer.piece_bytes(), tokenizer.prefix_bytes

    def rows(self, step: int, indices: Indices = None) -> dict[str, np.ndarray]:
        """Rows of a batch.

        Args:
          step: number of the batch, from 0.
          indices: which rows of the batch; None for all.

        Returns:
          See `maxlm.data.rows.empty_batch`, and bytes [B] int32: UTF-8 length of the text of the
          row's trained targets. Each token stands for an exact number of bytes and each but BOS is
          a target once, so over a whole split without masks they sum to the bytes of its text.
          Bits per byte is then loss sum / (ln 2 * bytes sum).
        """
        sources, epochs, rows = self._locate(self._global_rows(step, indices))
        batch = self._read(sources, rows, valid=epochs == 0)
        trained = batch["weights"] > 0
        batch["bytes"] = (self._piece_bytes[batch["targets"]] * trained).sum(
            axis=1, dtype=np.int32)
        if self._prefix_bytes:  # a space of the tokenizer's own, after each BOS
            begins = trained & (batch["tokens"] == self.bos_id) & (batch["targets"] != self.eos_id)
            batch["bytes"] -= self._prefix_bytes * begins.sum(axis=1, dtype=np.int32)
        return batch

    def describe(self) -> dict[str, Any]:
        """What is scored, for the run's checkpoints."""
        return {"hash": self.hash, "split": self.split, "packing": self.packing,
                "sequence_length": self.sequence_length, "rows": self.valid_rows,
                "sources": self.describe_sources()}
