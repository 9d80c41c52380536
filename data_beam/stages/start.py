"""What `prepare` checks before it writes anything, and the dry run: the plan, and the decision of
each stage on some documents."""

import dataclasses
import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from data_beam.base import json_files
from data_beam.base.filter import Filter
from data_beam.base.records import DeadLetter, Document, Dropped, Record
from data_beam.base.stage_context import KINDS
from data_beam.config import RecipeConfig
from data_beam.extract.document import process
from data_beam.filters.chain import judge, make_filters
from data_beam.readers.listing import File, list_files, refuse_output_among_inputs
from data_beam.readers.read_file import read_file
from data_beam.sinks import output_folder
from data_beam.stages import augmentation, corpus_manifest, stage_manifest
from data_beam.stages.run import finished
from maxlm.config.schema import ConfigError

COMMAND = "data_beam.prepare"
_SHARDS = "|".join([*(rf"{kind}/{kind}-\d{{5,}}-of-\d{{5,}}\.{suffix}"
                      for kind, suffix in KINDS.items()),
                    r"clusters/(?:clusters-\d{5,}-of-\d{5,}\.parquet|_summary\.json)"])
OWN_FILES = re.compile(
    rf"(?:stages/\w+/)?(?:{_SHARDS})|stages/\w+/manifest\.json|report\.(?:html|json)")
"""What the command writes below its output, except the manifest."""
_WRITTEN = (*(f"{kind}/{kind}-00000-of-00001.{suffix}" for kind, suffix in KINDS.items()),
            "report.html", "report.json", corpus_manifest.NAME)
"""One name of each kind of file that the command writes below its output."""
PREVIEWED = 200  # documents that a dry run judges, the same number from each source
_PER_FILE = 20


@dataclasses.dataclass(frozen=True)
class Start:
    """Where a run starts. Without `fingerprints` and `done` if it is complete."""

    listing: list[File]  # all input files
    notes: list[str]  # lines for the user about files that are not in it
    complete: bool  # the corpus of this recipe and these files is there
    replaces: bool  # another corpus is there and will be replaced
    fingerprints: dict[str, str]  # of the stages
    done: dict[str, dict[str, Any]]  # manifests of the stages that need not run


def check(recipe: RecipeConfig, output: str, stages: Sequence[str] = stage_manifest.STAGES,
          replace: bool = False) -> tuple[Start, list[Filter]]:
    """Checks inputs, output, and what filters and augmentation load; writes nothing. Returns where
    the run starts, and the filters if the check made them. With `replace` a corpus of another
    recipe or other files may be replaced.

    Raises ConfigError for inputs that do not exist; an output that contains other files or lacks
    files; a stage that another one needs first; a model, list, dictionary, table or function that
    cannot be used.
    """
    notes: list[str] = []
    listing = list_files(recipe, notes.append)
    output_folder.check_is_folder(output)
    refuse_output_among_inputs(recipe, output, _WRITTEN)
    identity = corpus_manifest.identity(recipe, listing)
    existing = output_folder.finished(
        output, corpus_manifest.NAME, lambda path: json_files.read(path, corpus_manifest.SHAPE),
        lambda found: None if replace else _difference(found, identity),
        "choose another --output, or add --replace to rebuild this corpus")
    if existing is None:
        output_folder.check_begin(output, COMMAND, OWN_FILES)
    elif _difference(existing, identity) is None:
        output_folder.check_files(output, ((e["file"], e["bytes"]) for e in existing["outputs"]))
        return Start(listing, notes, True, False, {}, {}), []
    else:
        output_folder.check_reopen(output, OWN_FILES, corpus_manifest.NAME)
    fingerprints = stage_manifest.fingerprints(recipe, listing)
    done = finished(output, fingerprints)
    wanted = [stage for stage in stage_manifest.STAGES if stage in stages]
    missing = [stage for stage in stage_manifest.STAGES[:stage_manifest.STAGES.index(wanted[0])]
               if stage not in done]
    if missing:
        raise ConfigError(f"--stages: {wanted[0]} needs {missing[0]}, which is not done in "
                          f"{output} for these files and settings; add it")
    # Mistakes that only filters and augmentation can see must end the run before it reads anything.
    filters: list[Filter] = []
    if "filter" in wanted and "filter" not in done:
        filters = make_filters(recipe)
    if "finish" in wanted and "finish" not in done and recipe.augment.enabled:
        augmentation.check(recipe)
        if not filters:
            make_filters(recipe, for_augmented=True)
    return Start(listing, notes, False, existing is not None, fingerprints, done), filters


def _difference(existing: dict[str, Any], identity: dict[str, Any]) -> str | None:
    """How the corpus of a manifest differs from that of this run, or None."""
    if existing["recipe_sha256"] != identity["recipe_sha256"]:
        changed = [key for key in identity["recipe"]
                   if existing["recipe"].get(key) != identity["recipe"][key]]
        return f"holds a corpus of another recipe (it differs in {', '.join(changed)})"
    if existing["inputs"] != identity["inputs"]:
        now, then = identity["inputs"], existing["inputs"]
        return (f"was made from other files (now {now['files']} of {now['bytes']:,} bytes, then "
                f"{then['files']} of {then['bytes']:,}, or some were modified since)")
    return next((f"was made with another {path}" for path, digest in identity["loaded"].items()
                 if existing["loaded"].get(path) != digest), None)


def show(recipe: RecipeConfig, output: str, stages: Sequence[str] = stage_manifest.STAGES,
         replace: bool = False) -> None:
    """Prints the plan of a recipe and a preview; writes nothing. Raises ConfigError as `check`."""
    start, filters = check(recipe, output, stages, replace)
    listing = start.listing
    filters = filters or make_filters(recipe)
    print(_plan(recipe, start, filters, output, stages))
    print()
    decided: Counter[str] = Counter()
    seen: dict[str, str] = {}
    number = 0
    decides = stage_manifest.STAGES[:max(map(stage_manifest.STAGES.index, stages)) + 1]
    for name, outcome, steps in _preview(recipe, listing, filters, seen, decides):
        number += 1
        decided[outcome] += 1
        print(f"{number:4d}  {name}\n      {' > '.join(steps)}")
    print()
    print(f"of {number} documents:")
    for outcome, count in sorted(decided.items(), key=lambda item: (item[0] != "kept", -item[1])):
        print(f"  {count:4d}  {outcome}")
    if "dedup" in decides:
        print("near copies are only found in a real run, among all documents")
    else:
        print(f"after {decides[-1]}, the last stage of this run")


def _plan(recipe: RecipeConfig, start: Start, filters: Sequence[Filter],
          output: str, stages: Sequence[str]) -> str:
    lines = [f"plan for {output}", "  sources:"]
    for source in recipe.sources:
        of_source = [file for file in start.listing if file.source == source.name]
        formats = ", ".join(sorted({entry.format for entry in source.inputs}))
        lines.append(f"    {source.name} ({source.domain}, {source.licence}): {len(of_source):,} "
                     f"files, {sum(file.size for file in of_source) / 1e6:.1f} MB, {formats}")
    lines += [f"    {note}" for note in start.notes]
    if start.complete:
        lines.append("  the corpus is there already, complete and of this recipe: nothing to do")
        return "\n".join(lines)
    if start.replaces:
        lines.append("  the corpus there, of another recipe or other files, is replaced")
    lines.append("  stages:")
    what = {"filter": ", ".join(each.name for each in filters),
            "report": "report.html, report.json"}
    for stage in stage_manifest.STAGES:
        text = what.get(stage, ", ".join(stage_manifest.SECTIONS[stage]))
        note = " (done before)" if stage in start.done else \
            "" if stage in stages else " (not in this run)"
        lines.append(f"    {stage}{note}: {text}")
        if stage == "filter" and stage in stages:
            lines += [f"      {note}" for each in filters for note in each.notes()]
    lines.append(f"  {recipe.shards} shards of each kind of output")
    return "\n".join(lines)


def _records(recipe: RecipeConfig, listing: Sequence[File]
             ) -> Iterator[Record | Dropped | DeadLetter]:
    """Some records of each source: files in the order of the hash of their paths."""
    for source in recipe.sources:
        wanted = max(1, PREVIEWED // len(recipe.sources))
        of_source = sorted((file for file in listing if file.source == source.name),
                           key=lambda file: hashlib.sha256(file.path.encode()).digest())
        for i, file in enumerate(of_source):
            # From few files, more documents of each.
            share = max(_PER_FILE, -(-wanted // (len(of_source) - i)))
            for count, item in enumerate(read_file(
                    file, source, recipe.limits.max_record_bytes), 1):
                yield item
                wanted -= 1
                if not wanted or count == share:
                    break
            if not wanted:
                break


def _preview(recipe: RecipeConfig, listing: Sequence[File], filters: list[Filter],
             seen: dict[str, str], stages: Sequence[str]
             ) -> Iterator[tuple[str, str, list[str]]]:
    """For each document its name, its outcome and the decision of each step until then."""
    for item in _records(recipe, listing):
        origin = item.origin
        name = f"{origin.source} {origin.path}" + (
            f" #{origin.record}" if origin.record is not None else "")
        outcome = process(item, recipe) if isinstance(item, Record) else item
        steps = ["read"]
        if isinstance(outcome, Document):
            steps.append(f"extract: {len(outcome.text):,} characters"
                         + (f" ({', '.join(outcome.transforms)})" if outcome.transforms else ""))
            document = outcome
            for stage, outcome in judge(document, filters if "filter" in stages else []):
                if isinstance(outcome, Document):
                    steps.append(stage + _changes(document, outcome))
                    document = outcome
        if isinstance(outcome, Document) and "dedup" in stages:
            first = seen.setdefault(outcome.sha256, name)
            if first != name:
                outcome = Dropped(origin, "dedup", "exact duplicate", f"same text as {first}")
        if isinstance(outcome, Document):
            yield name, "kept", [*steps, "kept"]
            continue
        verb = "dropped" if isinstance(outcome, Dropped) else "dead letter"
        steps.append(f"{verb} by {outcome.stage}: {outcome.reason}"
                     + (f" ({outcome.detail})" if outcome.detail else ""))
        yield name, f"{verb} by {outcome.stage}: {outcome.reason}", steps


def _changes(before: Document, after: Document) -> str:
    parts = []
    if after.language != before.language:
        parts.append(f"{after.language} {after.language_score:.2f}")
    parts += [f"{key} {value:g}" for key, value in after.scores.items()
              if before.scores.get(key) != value]
    parts += after.transforms[len(before.transforms):]
    return f" ({', '.join(parts)})" if parts else ""
