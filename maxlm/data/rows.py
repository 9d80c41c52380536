"""The rows of one source: from a row number to token ids, targets, segments and weights.

Shapes: B rows of a batch on this host, L tokens in a row.
"""

import bisect
import dataclasses
import itertools

import numpy as np

from maxlm.data import packing
from maxlm.data.corpus import CorpusError, SourceEntry, TokenCorpus, TokenRecord, decode_record
from maxlm.data.readers import shared_pool
from maxlm.data.shuffle import stable_key


@dataclasses.dataclass(frozen=True)
class Piece:
    """Tokens [start, stop) of one document, BOS and EOS counted as tokens."""

    shard: str
    record: int
    start: int
    stop: int


def empty_batch(rows: int, length: int, pad_id: int) -> dict[str, np.ndarray]:
    """A batch of padding.

    Returns:
      tokens [B, L] int32; targets [B, L] int32, the token that follows in the same document;
      segment_ids [B, L] int32, 1, 2, ... per document in a row and 0 for padding; positions
      [B, L] int32, from 0 in each segment; weights [B, L] float32, 1 where the target is trained
      (0 at the end of a document, in padding and where the document's mask says so); source [B]
      int32, the plan's number of it.
    """
    return {
        "tokens": np.full((rows, length), pad_id, np.int32),
        "targets": np.full((rows, length), pad_id, np.int32),
        "segment_ids": np.zeros((rows, length), np.int32),
        "positions": np.zeros((rows, length), np.int32),
        "weights": np.zeros((rows, length), np.float32),
        "source": np.zeros(rows, np.int32),
    }


class SourceRows:
    """One source laid out in rows.

    Attributes:
      label: name of the source, unique in a plan.
      entry: its counts and shards.
      rows: rows of one epoch.
    """

    def __init__(self, label: str, corpus: TokenCorpus, entry: SourceEntry, row_length: int,
                 kind: str):
        self.label = label
        self.entry = entry
        self._paths = [str(corpus.directory / shard.file) for shard in entry.shards]
        self._begins = [0, *itertools.accumulate(shard.documents for shard in entry.shards)]
        self._dtype, self._version = corpus.dtype, corpus.manifest.format
        self._lengths = corpus.lengths(entry)
        if kind == "concat":
            self._layout = packing.ConcatLayout(self._lengths, row_length)
        else:
            self._layout = packing.BestFitLayout(
                self._lengths, row_length, [shard.documents for shard in entry.shards])
        self.rows = self._layout.rows
        self._arange = np.arange(row_length, dtype=np.int32)

    def key(self, seed: int, epoch: int) -> int:
        """Key of the order of rows in an epoch: of the source's own name and the seed only."""
        return stable_key("rows", seed, self.label, epoch)

    def _place(self, document: int) -> tuple[int, int]:
        """Shard number and record of a document."""
        shard = bisect.bisect_right(self._begins, document) - 1
        return shard, document - self._begins[shard]

    def pieces(self, row: int) -> list[Piece]:
        """What a row is made of."""
        places = ((self._place(document), start, stop)
                  for document, start, stop in self._layout.pieces(row))
        return [Piece(self._paths[shard], record, start, stop)
                for (shard, record), start, stop in places]

    def read(self, row: int) -> list[tuple[TokenRecord, int, int]]:
        """The document, start and stop of each piece of a row.

        Raises:
          CorpusError: a record has another length than the index says, or cannot be read.
        """
        pieces = self._layout.pieces(row)
        result = []
        position = 0
        while position < len(pieces):
            shard, _ = self._place(pieces[position][0])
            first, after = self._begins[shard], self._begins[shard + 1]
            stop = position + 1
            while stop < len(pieces) and pieces[stop][0] < after:
                stop += 1
            group = pieces[position:stop]
            # The fragments of one long document never share a row, so numbers ascend strictly.
            records = shared_pool().read(self._paths[shard], [piece[0] - first for piece in group])
            for content, (document, start, end) in zip(records, group, strict=True):
                try:
                    record = decode_record(
                        content, self._dtype, int(self._lengths[document]), self._version)
                except ValueError as error:
                    raise CorpusError(f"{self._paths[shard]}: record {document - first} has "
                                      f"{error}; the shard is damaged") from None
                result.append((record, start, end))
            position = stop
        return result

    def fill(self, batch: dict[str, np.ndarray], place: int, row: int) -> None:
        """Writes a row into place `place` of a batch that `empty_batch` made."""
        tokens, targets = batch["tokens"][place], batch["targets"][place]
        segments, positions = batch["segment_ids"][place], batch["positions"][place]
        weights = batch["weights"][place]
        begin = 0
        for number, (record, start, stop) in enumerate(self.read(row), 1):
            end = begin + stop - start
            ids = record.tokens[start:stop + 1]
            # Every token but the document's last is followed by one of the same document.
            following = begin + len(ids) - 1
            tokens[begin:end] = ids[:stop - start]
            targets[begin:following] = ids[1:]
            weights[begin:following] = 1 if record.mask is None else record.mask[start + 1:stop + 1]
            segments[begin:end] = number
            positions[begin:end] = self._arange[:end - begin]
            begin = end
