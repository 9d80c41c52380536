"""The plan of a run's data: which tokens are in which row of which step.

A plan is a pure function of (corpus index, mixture, packing, seed, step). It has no state: any rows
of any step can be computed at any time and on any host, with the same result.

    global row = step * batch_size + row of the batch
    -> mixture:   source, and how many rows of that source came before (p); by stage
    -> epoch p // rows, and the p % rows-th row in the epoch's own permutation
    -> layout:    token ranges of documents
"""

import bisect
import dataclasses
import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxlm.config import ConfigError, DataConfig
from maxlm.data.corpus import CorpusError
from maxlm.data.mixture import StagedMixture
from maxlm.data.rows import Piece, SourceRows, empty_batch
from maxlm.data.shuffle import permute
from maxlm.data.sources import (
    ChosenSource,
    StageSources,
    choose_sources,
    distinct_sources,
    rows_of_period,
)
from maxlm.data.tokenizer import Tokenizer, find_tokenizer
from maxlm.parallel import processes

# Version of the data order. A run can be resumed only with the version it was started with.
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
    """Verifies the checksums of all files. Each process reads a share; all raise if one fails."""
    problem = None
    try:
        for corpus in {id(c.corpus): c.corpus for c in chosen}.values():
            corpus.verify(tuple(c.entry.name for c in chosen if c.corpus is corpus),
                          *processes.process_index_and_count())
    except CorpusError as error:
        problem = str(error)
    if problem := processes.first_problem(problem):
        raise CorpusError(problem)


def hash_of(content: Any) -> str:
    """SHA-256 of plain JSON content, hexadecimal."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


class PlanRows:
    """The part that the plans of training and evaluation share: sources, mixtures, rows."""

    def __init__(self, data: DataConfig, seed: int, stages: list[StageSources]):
        chosen = distinct_sources(stages)
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
        members = [[self.sources.index(c.label) for c in stage.sources] for stage in stages]
        self._mixture = StagedMixture(len(chosen), [
            (stage.after_step * data.batch_size, numbers,
             rows_of_period(stage.sources, self._rows_per_epoch[numbers].tolist()))
            for stage, numbers in zip(stages, members, strict=True)])
        self._keys: dict[tuple[int, int], int] = {}

    def tokenizer(self) -> Tokenizer:
        """The tokenizer in the directory of the tokens."""
        return Tokenizer.load(self.tokenizer_path)

    def describe_sources(self) -> list[dict[str, Any]]:
        """Name, counts and checksums of each source, which are compared on resume."""
        return [{"name": source.label, "documents": source.entry.documents,
                 "tokens": source.entry.tokens, "fingerprint": source.entry.fingerprint,
                 "files": {name: checksum[:16] for shard in source.entry.shards for name, checksum
                           in ((shard.file, shard.sha256), (shard.index, shard.index_sha256))}}
                for source in self._sources]

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
        """The location of a global row: step * batch_size + row of the batch."""
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


class Plan(PlanRows):
    """The rows of a training run.

    Attributes:
      hash: of everything that determines the data order; equal hashes give equal batches.
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
          ConfigError: a source of the configuration cannot be used, or a source would repeat more
            often than `data.epochs`.
          CorpusError: files are missing or damaged.
        """
        return cls(data, seed, steps)

    def __init__(self, data: DataConfig, seed: int, steps: int | None):
        self._stages = choose_sources(data, data.split)
        super().__init__(data, seed, self._stages)
        self.split = data.split
        self.steps = steps
        self.hash = hash_of({
            "format": PLAN_FORMAT,
            "sources": [[s.label, s.entry.fingerprint] for s in self._sources],
            "tokenizer": self.tokenizer_sha256,
            "stages": [
                [stage.after_step, [c.label for c in stage.sources], mixture.counts.tolist()]
                for stage, mixture in zip(self._stages, self._mixture.mixtures, strict=True)],
            "packing": self.packing,
            "sequence_length": self.sequence_length,
            "batch_size": self.batch_size,
            "seed": seed,
        })
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
          A list per row of {id, group, source, epoch, shard, record, start, stop}: tokens
          [start, stop) of the document are in the row.
        """
        result = []
        for row in self._global_rows(step, None).tolist():
            location = self.locate(row)
            source = self._sources[self.sources.index(location.source)]
            result.append([{"id": record.id.hex(), "group": record.group,
                            "source": location.source, "epoch": location.epoch,
                            **dataclasses.asdict(piece)}
                           for piece, (record, *_) in zip(
                               location.pieces, source.read(location.row), strict=True)])
        return result

    def _first_step_past(self, source: int, rows: int, steps: int) -> int:
        """The first step, from 1, that reads more than `rows` rows of a source, counted from the
        start of the run; `steps` + 1 if none of the first `steps` does."""
        return bisect.bisect_right(range(steps + 1), rows, key=lambda step: self._mixture.count(
            source, step * self.batch_size))

    def _check_epochs(self, steps: int, epochs: int) -> None:
        sizes = [source.rows for source in self._sources]
        past = [self._first_step_past(i, epochs * size, steps) for i, size in enumerate(sizes)]
        possible = min(past) - 1
        if possible == steps:
            return
        name = self.sources[past.index(min(past))]
        times = f"more than {epochs} time{'s' if epochs > 1 else ''}"
        needed = max(-(-self._mixture.count(i, steps * self.batch_size) // size)
                     for i, size in enumerate(sizes))
        if possible:
            raise ConfigError(
                f"config.data.epochs: {steps} steps would read source {name!r} {times}; "
                f"{possible} steps are possible: lower run.steps or the weight of the source, or "
                f"raise data.epochs to {needed}")
        batch = min(bisect.bisect_right(range(self.batch_size + 1), epochs * size,
                                        key=lambda rows, i=i: self._mixture.count(i, rows))
                    for i, size in enumerate(sizes)) - 1
        size = sizes[self.sources.index(name)]
        raise ConfigError(
            f"config.data.epochs: the first step would read source {name!r}, of "
            f"{size} row{'s' if size > 1 else ''} of {self.sequence_length} tokens, {times}; "
            f"a data.batch_size of at most {batch} fits one step, and {steps} steps of "
            f"{self.batch_size} rows need data.epochs={needed}")

    def passed_epochs(self) -> dict[int, dict[str, int]]:
        """The steps at which sources begin to repeat: step (from 1) -> source -> number of epochs
        that this step passes: 1, 4, 8, 16, ..., the highest if it passes several.
        """
        assert self.steps is not None, "only of a run whose length is known"
        passed: dict[int, dict[str, int]] = {}
        for i, source in enumerate(self._sources):
            epochs = 1
            while (step := self._first_step_past(i, epochs * source.rows, self.steps)
                   ) <= self.steps:
                passed.setdefault(step, {})[source.label] = epochs
                epochs = 4 if epochs == 1 else 2 * epochs
        return passed

    def distorted(self) -> list[str]:
        """A line for each source whose share of the tokens changes by more than a quarter through
        rounding. This only happens to sources of a few rows in corpora of over 262,144 rows."""
        lines = []
        for stage, mixture in zip(self._describe_stages(), self._mixture.mixtures, strict=True):
            for source in stage["sources"]:
                realised, wanted = source["realised_weight"], source["weight"]
                if abs(realised / wanted - 1) > 0.25:
                    lines.append(
                        f"source {source['name']!r} gets {realised:.1e} of the tokens and not "
                        f"{wanted:.1e}, because the mixture has a period of {mixture.period} "
                        f"rows: its texts come {realised / wanted:.1f} times as often as they "
                        "should; leave it out, or make it part of another source")
        return lines

    def _describe_stages(self) -> list[dict[str, Any]]:
        tokens_per_row = {s.label: s.entry.tokens / s.rows for s in self._sources}
        stages = []
        for stage, mixture in zip(self._stages, self._mixture.mixtures, strict=True):
            total = sum(c.weight for c in stage.sources)
            rows = mixture.counts.tolist()
            tokens = [tokens_per_row[c.label] * count
                      for c, count in zip(stage.sources, rows, strict=True)]
            stages.append({"after_step": stage.after_step, "sources": [
                # realised_weight: after rounding to whole rows of a period.
                {"name": c.label, "weight": float(c.weight / total),
                 "realised_weight": share / sum(tokens), "rows": count}
                for c, share, count in zip(stage.sources, tokens, rows, strict=True)]})
        return stages

    def describe(self) -> dict[str, Any]:
        """What the run reads, for the console and the run's checkpoints."""
        sources = []
        for i, (source, row) in enumerate(zip(self._sources, self.describe_sources(),
                                              strict=True)):
            row |= {"domain": source.entry.domain, "licence": source.entry.licence,
                    "rows_per_epoch": source.rows,
                    "fill": source.entry.tokens / source.rows / self.sequence_length}
            if self.steps is not None:
                row["epochs"] = self._mixture.count(i, self.steps * self.batch_size) / source.rows
            sources.append(row)
        return {"hash": self.hash, "format": PLAN_FORMAT, "split": self.split, "seed": self.seed,
                "packing": self.packing, "sequence_length": self.sequence_length,
                "batch_size": self.batch_size, "tokenizer_sha256": self.tokenizer_sha256,
                "tokens": sum(source.entry.tokens for source in self._sources),
                "sources": sources, "stages": self._describe_stages()}
