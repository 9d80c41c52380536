"""Running one stage, and finding out which stages need not run again."""

import contextlib
import functools
import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from apache_beam.io.filesystems import FileSystems

from data_beam.base import files
from data_beam.base.stage_context import Context, StagePaths
from data_beam.config import RecipeConfig
from data_beam.readers.listing import File
from data_beam.runners import beam_options
from data_beam.runners.progress import Progress, StatusLine
from data_beam.stages import corpus_manifest, dedup, extract, shard_stages, stage_manifest

RUN: dict[str, Callable[[Context], None]] = {
    "extract": extract.run, "filter": shard_stages.run_filter, "dedup": dedup.run,
    "finish": shard_stages.run_finish, "report": shard_stages.run_report}
SMALL = 2_000
"""Up to so many documents the stages after `filter` run in this process even if worker processes
were asked for: they end before workers would have started (docs/decisions.md)."""
_SCRATCH = ("reports", "progress", "parts", "work")  # temporary, of one stage
_BLOCK = 2**20
_THREADS = 8


def folder(output: str, stage: str) -> str:
    """Where a stage writes: the last two into the corpus itself."""
    return output if stage in ("finish", "report") else manifest_dir(output, stage)


def manifest_dir(output: str, stage: str) -> str:
    """Folder of the manifest of a stage; the report has none."""
    return FileSystems.join(output, "stages", stage)


def finished(output: str, fingerprints: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Manifests of the stages, from the first on, that are complete and of these inputs and
    settings. The files that later stages read have the right checksums."""
    result: dict[str, dict[str, Any]] = {}
    for stage in stage_manifest.STAGES[:-1]:
        found = stage_manifest.read(manifest_dir(output, stage), folder(output, stage))
        if found is None or found["fingerprint"] != fingerprints[stage]:
            break
        result[stage] = found
    return _verified(result, lambda stage: folder(output, stage))


def run_stage(stage: str, recipe: RecipeConfig, listing: Sequence[File], output: str,
              temporary: str, done: dict[str, dict[str, Any]], options: Any) -> dict[str, Any]:
    """Runs one stage; returns `sources`, `outputs` and `made` of its manifest, which is not
    written.

    `temporary` is the temporary folder of the run, `done` has the same of all stages before,
    `options` are Beam's. Raises ConfigError if no record of a source can be read and its
    `allow_unreadable` is off, ConservationError if a document was lost, RuntimeError if the Beam
    job failed.
    """
    started = time.time()
    _clear(temporary)
    local = files.is_local(output)
    progress_folder = FileSystems.join(temporary, "progress") if local else ""
    for path in filter(None, (FileSystems.join(temporary, "reports"), progress_folder)):
        files.make_folder(path)
    number = stage_manifest.STAGES.index(stage)
    workers = beam_options.local_workers(options)
    before = done[stage_manifest.STAGES[number - 1]] if number else None
    counts_all = stage == "finish"  # it counts the outcomes of all stages
    earlier = tuple(folder(output, name) for name in stage_manifest.STAGES[:number])
    if number:
        inputs = earlier[-1]
    else:
        inputs = FileSystems.join(temporary, "listing.jsonl")
        extract.write_listing(inputs, [
            listing[i] for i in balanced_order([file.size for file in listing], workers)])
    sizes = [0] * recipe.shards if before is None else [
        entry["bytes"] for entry in before["outputs"] if entry["file"].startswith("documents/")]
    paths = StagePaths(inputs, earlier, folder(output, stage), temporary, progress_folder,
                       balanced_order(sizes, workers))
    files.make_folder(paths.output)

    read = None if before is None else {
        name: entry["kept"] for name, entry in before["sources"].items()}
    if read is not None and stage != "filter" and sum(read.values()) <= SMALL:
        options = beam_options.in_this_process(options)

    unit, total = ("bytes", sum(file.size for file in listing)) if read is None else (
        "documents", sum(read.values()))
    passes = dedup.passes(recipe) if stage == "dedup" else 1
    shown = Progress(stage, Path(progress_folder), unit, total, passes=passes) if local else (
        contextlib.nullcontext())
    corpus = corpus_manifest.of_corpus(recipe, listing, done) if stage == "report" else {}
    with shown:
        RUN[stage](Context(
            recipe, paths, functools.partial(beam_options.run_pipeline, options), corpus))
    reports = stage_manifest.read_reports(temporary)
    if stage == "report":
        sums: dict[str, Any] = {"outputs": stage_manifest.outputs(reports)}
    else:
        sums = stage_manifest.combine(recipe, reports, None if counts_all else read)
    if number == 0:
        extract.check_sources(recipe, paths, reports)
        stage_manifest.check_files(sums["sources"], listing)
    if stage != "report" and not counts_all:
        stage_manifest.check_conservation(sums["sources"])
    _clear(temporary)
    return {**sums, "made": stage_manifest.run_time(started)}


def _clear(temporary: str) -> None:
    for name in _SCRATCH:
        files.remove_folder(FileSystems.join(temporary, name))


def balanced_order(sizes: Sequence[int], workers: int) -> list[int]:
    """An order of pieces of work, given by their costs in any unit, that gives the workers about
    equal shares: each of 0 .. len(sizes) - 1 once.

    Beam's local runner assigns piece i to worker i modulo `workers` before any work starts, and a
    worker that is done waits for the others. Other runners assign pieces as workers become free;
    there the largest pieces come first, which is right too.

    Each piece goes to the worker with the least work so far, the largest first (R. L. Graham,
    Bounds on multiprocessing timing anomalies, 1969); workers get equal numbers of pieces, or one
    more.
    """
    assigned: list[list[int]] = [[] for _ in range(workers)]
    full, longer = divmod(len(sizes), workers)
    loads = [0] * workers
    for piece in sorted(range(len(sizes)), key=lambda piece: (-sizes[piece], piece)):
        # Workers with one piece more must come first.
        free = [w for w in range(workers) if len(assigned[w]) < full + (w < longer)]
        worker = min(free, key=lambda w: (loads[w], w))
        assigned[worker].append(piece)
        loads[worker] += sizes[piece]
    return [assigned[number % workers][number // workers] for number in range(len(sizes))]


def _verified(done: dict[str, dict[str, Any]], folder: Callable[[str], str]
             ) -> dict[str, dict[str, Any]]:
    """The stages before the first one with a file of a wrong checksum; a line names that stage. A
    disk or a copy can change bytes and keep a file's size. `done` has the manifests of the stages
    that are complete by the sizes of their files, in order; `folder` gives the folder of a stage.

    It reads only the files that later stages read: all of the last stage, and of earlier ones what
    `finish` merges, that is all but the documents.
    """
    checked: set[str] = set()
    while done:
        last = list(done)[-1]
        wanted = [(stage, FileSystems.join(folder(stage), entry["file"]), entry)
                  for stage, manifest in done.items() for entry in manifest["outputs"]
                  if stage == last or (last != "finish"
                                       and not entry["file"].startswith("documents/"))]
        wanted = [item for item in wanted if item[1] not in checked]
        digests = _digests([path for _, path, _ in wanted],
                           sum(entry["bytes"] for _, _, entry in wanted))
        bad = next(((stage, path) for (stage, path, entry), digest in zip(
            wanted, digests, strict=True) if digest != entry["sha256"]), None)
        if bad is None:
            break
        checked.update(path for _, path, _ in wanted)
        stage, path = bad
        print(f"{stage}: done again, as {path} does not have the checksum of its manifest",
              flush=True)
        names = list(done)
        done = {name: done[name] for name in names[:names.index(stage)]}
    return done


def _digests(paths: Sequence[str], total: int) -> list[str]:
    """SHA-256 of files; `total` is their size, for the progress line."""
    lock, stop, status = threading.Lock(), threading.Event(), StatusLine()
    read = 0

    def digest(path: str) -> str:
        nonlocal read
        result = hashlib.sha256()
        with files.open_raw(path) as handle:
            while not stop.is_set() and (block := handle.read(_BLOCK)):
                result.update(block)
                with lock:
                    read += len(block)
                    status(f"checking finished stages: {read / 1e6:,.0f} of {total / 1e6:,.0f} MB")
        return result.hexdigest()

    with ThreadPoolExecutor(_THREADS) as threads:
        try:
            return list(threads.map(digest, paths))
        except BaseException:
            stop.set()
            raise
