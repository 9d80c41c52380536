"""The plan of a run's data: which tokens are in which row of which step.

A plan is a pure function of (corpus index, mixture, packing, seed, step). It holds no state: any
step can be computed at any time, on any host, for any subset of rows, and comes out the same.

    global row = step * batch_size + row of the batch
    -> mixture:   source, and how many rows of that source came before (p)
    -> epoch p // rows, and the p % rows-th row in the epoch's own permutation
    -> layout:    token ranges of documents
"""

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from maxlm.config import ConfigError, DataConfig
from maxlm.data.corpus import CorpusError
from maxlm.data.mixture import Mixture
from maxlm.data.rows import Piece, SourceRows, empty_batch
from maxlm.data.shuffle import permute
from maxlm.data.sources import ChosenSource, choose_sources, rows_of_period
from maxlm.data.tokenizer import Tokenizer, find_tokenizer
from maxlm.parallel import processes

# Version of the order of data; a run goes on only with the order it was started with.
PLAN_FORMAT = 2
Indices = Sequence[int] | slice | np.ndarray | None


@dataclasses.dataclass(frozen=True)
class Location:
    """Where one row of the run comes from."""

    source: str
    epoch: int
    row: int
    """Number of the row in the source's layout; an epoch visits them in a permuted order."""
    pieces: tuple[Piece, ...]


def _verify(chosen: list[ChosenSource]) -> None:
    """Checksums of all files, each read by one of the processes; raises on all or on none."""
    problem = None
    try:
        for corpus in {id(c.corpus): c.corpus for c in chosen}.values():
            corpus.verify(tuple(c.entry.name for c in chosen if c.corpus is corpus),
                          *processes.place())
    except CorpusError as error:
        problem = str(error)
    if problem := processes.first_problem(problem):
        raise CorpusError(problem)


class _Rows:
    """What the plans of training and evaluation share: sources, a mixture, rows of batches."""

    def __init__(self, data: DataConfig, seed: int, chosen: list[ChosenSource]):
        first = chosen[0].corpus
        self.seed = seed
        self.packing = data.packing
        self.batch_size = data.batch_size
        self.sequence_length = data.sequence_length
        self.vocab_size = first.vocab_size
        self.bos_id, self.eos_id, self.pad_id = first.bos_id, first.eos_id, first.pad_id
        self.tokenizer_path = str(find_tokenizer(first.directory.parent))
        self.tokenizer_sha256 = first.tokenizer_sha256
        if self.tokenizer().sha256 != self.tokenizer_sha256:
            raise CorpusError(f"{self.tokenizer_path}: not the tokenizer the corpus was made with; "
                              "copy it again, or run data_beam.tokenize again")
        self.sources = tuple(c.label for c in chosen)
        self.domains = tuple(c.entry.domain for c in chosen)
        if data.verify:
            _verify(chosen)
        self._sources = [SourceRows(c.label, c.corpus, c.entry, data.sequence_length, data.packing)
                         for c in chosen]
        self._rows_per_epoch = np.asarray([source.rows for source in self._sources], np.int64)
        self._mixture = Mixture(rows_of_period(chosen, self._rows_per_epoch.tolist()))
        self._keys: dict[tuple[int, int], int] = {}

    def tokenizer(self) -> Tokenizer:
        """The tokenizer that lies beside the tokens."""
        return Tokenizer.load(self.tokenizer_path)

    def _key(self, source: int, epoch: int) -> int:
        key = self._keys.get((source, epoch))
        if key is None:
            key = self._keys[source, epoch] = self._sources[source].key(self.seed, epoch)
        return key

    def _global_rows(self, step: int, indices: Indices) -> np.ndarray:
        within = np.arange(self.batch_size, dtype=np.int64)
        if isinstance(indices, slice):
            within = within[indices]
        elif indices is not None:
            within = np.asarray(indices, np.int64)
            if within.size and not (within.min() >= 0 and within.max() < self.batch_size):
                raise IndexError(f"rows of a batch are 0 to {self.batch_size - 1}, got {within}")
        return step * self.batch_size + within

    def _locate(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Source, epoch and row in the source of each global row; [n] each."""
        sources, before = self._mixture.locate(rows)
        sizes = self._rows_per_epoch[sources]
        epochs, index = np.divmod(before, sizes)
        keys = np.asarray([self._key(source, epoch) for source, epoch in
                           zip(sources.tolist(), epochs.tolist(), strict=True)], np.uint64)
        return sources, epochs, permute(index, sizes, keys)

    def locate(self, row: int) -> Location:
        """Where a global row, step * batch_size + row of the batch, comes from."""
        sources, epochs, rows = self._locate(np.asarray([row], np.int64))
        source = self._sources[int(sources[0])]
        return Location(source.label, int(epochs[0]), int(rows[0]),
                        tuple(source.pieces(int(rows[0]))))

    def _read(self, sources: np.ndarray, rows: np.ndarray, valid: np.ndarray | None = None
              ) -> dict[str, np.ndarray]:
        batch = empty_batch(len(rows), self.sequence_length, self.pad_id)
        batch["source"][:] = sources
        for place, (source, row) in enumerate(zip(sources.tolist(), rows.tolist(), strict=True)):
            if valid is None or valid[place]:
                self._sources[source].fill(batch, place, row)
        return batch


class Plan(_Rows):
    """The rows of a training run.

    Attributes:
      hash: of all that the order of data follows from; equal hashes give equal batches.
      sources, domains: label and domain of each source, in the numbering of `rows()["source"]`.
      vocab_size, bos_id, eos_id, pad_id, tokenizer_path, tokenizer_sha256: of the corpora.
    """

    @classmethod
    def build(cls, data: DataConfig, seed: int, steps: int | None = None) -> "Plan":
        """The plan of a configuration.

        Args:
          data: the section of the configuration.
          seed: `run.seed`; it selects the order of rows in each epoch.
          steps: `run.steps`, to check `data.epochs`; None for no check.

        Raises:
          ConfigError: the sources cannot be what the configuration says, or would repeat more
            often than `data.epochs`.
          CorpusError: files are missing or damaged.
        """
        return cls(data, seed, steps)

    @staticmethod
    def for_evaluation(data: DataConfig, split: str, batches: int) -> "EvaluationPlan":
        """The rows of an evaluation; see `EvaluationPlan`."""
        return EvaluationPlan(data, split, batches)

    def __init__(self, data: DataConfig, seed: int, steps: int | None):
        chosen = choose_sources(data, data.split)
        super().__init__(data, seed, chosen)
        self.split = data.split
        self.steps = steps
        self._weights = [float(c.weight / sum(c.weight for c in chosen)) for c in chosen]
        self.hash = hashlib.sha256(json.dumps({
            "format": PLAN_FORMAT,
            "sources": [[c.label, c.entry.fingerprint] for c in chosen],
            "tokenizer": self.tokenizer_sha256,
            "mixture": self._mixture.counts.tolist(),
            "packing": self.packing,
            "sequence_length": self.sequence_length,
            "batch_size": self.batch_size,
            "seed": seed,
        }, sort_keys=True).encode()).hexdigest()
        if steps is not None and data.epochs is not None:
            self._check_epochs(steps, data.epochs)

    def rows(self, step: int, indices: Indices = None) -> dict[str, np.ndarray]:
        """Rows of the batch of a step.

        Args:
          step: from 0.
          indices: which rows of the batch; None for all.

        Returns:
          See `maxlm.data.rows.empty_batch`.
        """
        sources, _, rows = self._locate(self._global_rows(step, indices))
        return self._read(sources, rows)

    def documents(self, step: int) -> list[list[dict[str, Any]]]:
        """The documents of each row of a step.

        Returns:
          Per row a list of {id, source, epoch, shard, record, start, stop}: tokens [start, stop)
          of the document are in the row.
        """
        result = []
        for row in self._global_rows(step, None).tolist():
            location = self.locate(row)
            source = self._sources[self.sources.index(location.source)]
            result.append([{"id": record[:16].hex(), "source": location.source,
                            "epoch": location.epoch, **dataclasses.asdict(piece)}
                           for piece, (record, *_) in zip(
                               location.pieces, source.read(location.row), strict=True)])
        return result

    def _check_epochs(self, steps: int, epochs: int) -> None:
        def over(count: int) -> list[str]:
            return [source.label for i, source in enumerate(self._sources)
                    if self._mixture.count(i, count * self.batch_size) > epochs * source.rows]

        if not over(steps):
            return
        low, high = 0, steps  # low steps are possible, high steps are not
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if over(middle) else (middle, high)
        raise ConfigError(
            f"config.data.epochs: {steps} steps would read source {over(high)[0]!r} more than "
            f"{epochs} time{'s' if epochs > 1 else ''}; {low} steps are possible: lower run.steps "
            "or the weight of the source, or raise data.epochs")

    def distorted(self) -> list[str]:
        """A line for each source whose share of the tokens rounding changed by more than a quarter;
        only in corpora of more than 262,144 rows, for sources of a few rows."""
        lines = []
        for source in self.describe()["sources"]:
            realised, wanted = source["realised_weight"], source["weight"]
            if abs(realised / wanted - 1) > 0.25:
                lines.append(
                    f"source {source['name']!r} gets {realised:.1e} of the tokens and not "
                    f"{wanted:.1e}, because the mixture has a period of {self._mixture.period} "
                    f"rows: its texts come {realised / wanted:.1f} times as often as they should; "
                    "leave it out, or make it part of another source")
        return lines

    def describe(self) -> dict[str, Any]:
        """What the run reads, for the console and the run's manifest."""
        sources = []
        tokens_per_row = [source.entry.tokens / source.rows for source in self._sources]
        shares = self._mixture.counts * tokens_per_row
        for i, source in enumerate(self._sources):
            row: dict[str, Any] = {
                "name": source.label, "domain": source.entry.domain,
                "licence": source.entry.licence, "documents": source.entry.documents,
                "tokens": source.entry.tokens, "weight": self._weights[i],
                # After rounding to whole rows of a period.
                "realised_weight": float(shares[i] / shares.sum()),
                "rows_per_epoch": source.rows,
                "fill": tokens_per_row[i] / self.sequence_length,
            }
            if self.steps is not None:
                rows = self._mixture.count(i, self.steps * self.batch_size)
                row["epochs"] = rows / source.rows
            sources.append(row)
        return {"hash": self.hash, "split": self.split, "packing": self.packing,
                "sequence_length": self.sequence_length, "batch_size": self.batch_size,
                "tokenizer_sha256": self.tokenizer_sha256,
                "tokens": sum(source.entry.tokens for source in self._sources),
                "sources": sources}


class EvaluationPlan(_Rows):
    """The first rows of a split in a fixed order, each at most once, the same ones each time.

    Sources take part by their tokens in that split, whatever the weights and the seed of training.
    When the split has fewer rows than `batches * batch_size`, the rest is padding with weight 0:
    any number of hosts runs any number of batches.

    Attributes:
      batches: number of batches.
      valid_rows: rows that are not padding, over all batches.
      split, sources, domains, vocab_size, pad_id, ...: as in `Plan`.
    """

    def __init__(self, data: DataConfig, split: str, batches: int):
        chosen = choose_sources(data, split, skip_empty=True, split_field="config.evals.split")
        tokens = sum(c.entry.tokens for c in chosen)
        super().__init__(data, 0, [
            dataclasses.replace(c, weight=Fraction(c.entry.tokens, tokens)) for c in chosen])
        self.split = split
        self.batches = batches
        self.valid_rows = sum(
            min(self._mixture.count(i, batches * self.batch_size), source.rows)
            for i, source in enumerate(self._sources))
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
          a trained target once, so over a whole split they sum to the bytes of its text.
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
