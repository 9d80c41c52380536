"""Running the stages that are not done, one after the other."""

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.runners.runner import PipelineState

from data_beam.base import files
from data_beam.base.stage_context import Context, StagePaths
from data_beam.config import RecipeConfig
from data_beam.readers.listing import File
from data_beam.runners import beam_options
from data_beam.runners.progress import Progress
from data_beam.stages import (
    balance,
    checksums,
    corpus_manifest,
    dedup,
    extract,
    filter,
    finish,
    report,
    stage_manifest,
)

RUN: dict[str, Callable[[Context], None]] = {
    "extract": extract.run, "filter": filter.run, "dedup": dedup.run, "finish": finish.run,
    "report": report.run}
ALONE = 2_000
"""Documents up to which the stages after `filter` stay in this process though worker processes were
asked for: that is done by the time that a stage's workers have begun (docs/decisions.md)."""
_SCRATCH = ("reports", "progress", "parts", "work")
"""Folders below the temporary one that belong to a single stage."""


def folder(output: str, stage: str) -> str:
    """Where a stage writes: the last two into the corpus itself."""
    return output if stage in ("finish", "report") else manifest_dir(output, stage)


def manifest_dir(output: str, stage: str) -> str:
    """Folder of the manifest of a stage; the report has none."""
    return FileSystems.join(output, "stages", stage)


def finished(output: str, fingerprints: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Manifests of the stages that are whole and of these inputs and settings, from the first to
    the last before one that is not. What later stages read of them has its checksums."""
    result: dict[str, dict[str, Any]] = {}
    for stage in stage_manifest.STAGES[:-1]:
        found = stage_manifest.read(manifest_dir(output, stage), folder(output, stage))
        if found is None or found["fingerprint"] != fingerprints[stage]:
            break
        result[stage] = found
    return checksums.verified(result, lambda stage: folder(output, stage))


def run_stage(stage: str, recipe: RecipeConfig, listing: Sequence[File], output: str,
              temporary: str, done: dict[str, dict[str, Any]], options: Any) -> dict[str, Any]:
    """Runs one stage.

    Args:
      stage: its name.
      recipe: checked recipe.
      listing: all input files.
      output: the corpus folder.
      temporary: the temporary folder of the run.
      done: what the manifests of all stages before have on sources and outputs.
      options: Beam pipeline options.

    Returns:
      What its manifest has on sources and outputs; the manifest itself is not written.

    Raises:
      ConservationError: a document was lost.
      RuntimeError: the Beam job failed.
    """
    _clear(temporary)
    local = files.is_local(output)
    progress_folder = FileSystems.join(temporary, "progress") if local else ""
    for path in (FileSystems.join(temporary, "reports"), progress_folder):
        if path:
            files.make_folder(path)
    number = stage_manifest.STAGES.index(stage)
    workers = beam_options.local_workers(options)
    before = done[stage_manifest.STAGES[number - 1]] if number else None
    last_books = stage == "finish"  # the ends of all stages come together there
    earlier = tuple(folder(output, name) for name in stage_manifest.STAGES[:number])
    if number:
        inputs = earlier[-1]
    else:
        inputs = FileSystems.join(temporary, "listing.jsonl")
        extract.write_listing(inputs, [
            listing[i] for i in balance.balanced_order([file.size for file in listing], workers)])
    sizes = [0] * recipe.shards if before is None else [
        entry["bytes"] for entry in before["outputs"] if entry["file"].startswith("documents/")]
    paths = StagePaths(inputs, earlier, folder(output, stage), temporary, progress_folder,
                  balance.balanced_order(sizes, workers))
    files.make_folder(paths.output)

    read = None if before is None else {
        name: entry["kept"] for name, entry in before["sources"].items()}
    if read is not None and stage != "filter" and sum(read.values()) <= ALONE:
        options = beam_options.in_this_process(options)

    def pipeline(build: Callable[[beam.Pipeline], None]) -> None:
        root = beam_options.make_pipeline(options)
        build(root)
        state = root.run().wait_until_finish()
        if state != PipelineState.DONE:
            raise RuntimeError(f"the Beam job of stage {stage} ended in state {state}; {output} is "
                               "not whole")

    unit, total = ("bytes", sum(file.size for file in listing)) if read is None else (
        "documents", sum(read.values()))
    passes = dedup.passes(recipe) if stage == "dedup" else 1
    shown = Progress(stage, Path(progress_folder), unit, total, passes=passes) if local else (
        contextlib.nullcontext())
    corpus = corpus_manifest.of_corpus(recipe, listing, done) if stage == "report" else {}
    with shown:
        RUN[stage](Context(recipe, paths, pipeline, corpus))
    reports = stage_manifest.read_reports(temporary)
    if stage == "report":
        sums: dict[str, Any] = {"outputs": stage_manifest.outputs(reports)}
    else:
        sums = stage_manifest.combine(recipe, reports, None if last_books else read)
    if number == 0:
        stage_manifest.check_files(sums["sources"], listing)
    if stage != "report" and not last_books:
        stage_manifest.check_conservation(sums["sources"])
    _clear(temporary)
    return sums


def _clear(temporary: str) -> None:
    for name in _SCRATCH:
        files.remove_folder(FileSystems.join(temporary, name))
