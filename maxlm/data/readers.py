"""Open ArrayRecord files: a bounded number of them, shared by the threads of a process."""

import collections
import resource
import threading
from collections.abc import Sequence

from array_record.python.array_record_module import ArrayRecordReader

from maxlm.data.corpus import CorpusError

# Records are read by their number, in the calling thread: no read-ahead, no pool of threads.
_OPTIONS = "readahead_buffer_size:0,max_parallelism:0"


class ReaderPool:
    """The most recently used readers stay open; older ones are closed.

    The bound follows from the machine (a quarter of the files a process may open, at most 512),
    not from the number of sources or shards.
    """

    def __init__(self, limit: int | None = None):
        if limit is None:
            soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            limit = min(512, soft // 4) if soft != resource.RLIM_INFINITY else 512
        self.limit = max(1, limit)
        self._readers: collections.OrderedDict[str, ArrayRecordReader] = collections.OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._readers)

    def _reader(self, path: str) -> ArrayRecordReader:
        with self._lock:
            reader = self._readers.get(path)
            if reader is None:
                try:
                    reader = ArrayRecordReader(path, _OPTIONS)
                except Exception as error:
                    raise CorpusError(f"{path}: the shard cannot be opened ({error})") from None
                self._readers[path] = reader
                while len(self._readers) > self.limit:
                    # Closed when the last thread that reads from it is done.
                    self._readers.popitem(last=False)
            else:
                self._readers.move_to_end(path)
            return reader

    def read(self, path: str, records: Sequence[int]) -> list[bytes]:
        """The records with these ascending numbers; consecutive ones in one read.

        Raises:
          CorpusError: names the shard.
        """
        reader = self._reader(path)
        try:
            if records[-1] - records[0] == len(records) - 1:
                return reader.read(records[0], records[-1] + 1)
            return reader.read(list(records))
        except Exception as error:  # any error of the library means a damaged shard here
            raise CorpusError(f"{path}: records {list(records)} cannot be read ({error})") from None


_pool: ReaderPool | None = None


def shared_pool() -> ReaderPool:
    """The pool of this process."""
    global _pool
    if _pool is None:
        _pool = ReaderPool()
    return _pool
