"""What `prepare` checks before it writes anything, in a dry run too."""

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

from data_beam.base.filter import Filter
from data_beam.base.stage_context import KINDS
from data_beam.config import RecipeConfig
from data_beam.filters.chain import make_filters, make_filters_for_augmented
from data_beam.readers.listing import File, list_files
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
"""What the command writes below its output, but for the manifest."""


@dataclasses.dataclass(frozen=True)
class Start:
    """Where a run begins.

    Attributes:
      listing: all input files.
      notes: what the user should know of files that are not in it, a line each.
      whole: the corpus of this recipe and these files is there.
      replaces: another one is there, and makes room.
      fingerprints: of the stages; empty if `whole`.
      done: manifests of the stages that need not run; empty if `whole`.
    """

    listing: list[File]
    notes: list[str] = dataclasses.field(default_factory=list)
    whole: bool = False
    replaces: bool = False
    fingerprints: dict[str, str] = dataclasses.field(default_factory=dict)
    done: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)


def check(recipe: RecipeConfig, output: str, stages: Sequence[str] = stage_manifest.STAGES,
          replace: bool = False) -> tuple[Start, list[Filter]]:
    """Checks inputs, output, and what rules and augmentation load; writes nothing.

    Args:
      recipe: checked recipe.
      output: folder, local or on any file system that Beam knows.
      stages: the ones to run.
      replace: a corpus of another recipe or other files is no mistake.

    Returns:
      Where the run begins, and the rules if they had to be made for the check.

    Raises:
      ConfigError: inputs that do not exist; an output that holds something else or lacks files; a
        stage that another one needs first; a model, list, dictionary, table or function that
        cannot be used.
    """
    notes: list[str] = []
    listing = list_files(recipe, notes.append)
    output_folder.check_is_folder(output)
    existing = corpus_manifest.read(output)
    if existing is not None:
        difference = _difference(existing, corpus_manifest.identity(recipe, listing))
        if difference is None:
            output_folder.check_whole(
                output, ((e["file"], e["bytes"]) for e in existing["outputs"]))
            return Start(listing, notes, whole=True), []
        if not replace:
            raise ConfigError(f"--output: {output} {difference}; choose another --output, or add "
                              "--replace to make this one anew")
        output_folder.check_reopen(output, OWN_FILES, corpus_manifest.NAME)
    else:
        output_folder.check_begin(output, COMMAND, OWN_FILES)
    fingerprints = stage_manifest.fingerprints(recipe, listing)
    done = finished(output, fingerprints)
    wanted = [stage for stage in stage_manifest.STAGES if stage in stages]
    missing = [stage for stage in stage_manifest.STAGES[:stage_manifest.STAGES.index(wanted[0])]
               if stage not in done]
    if missing:
        raise ConfigError(f"--stages: {wanted[0]} needs {missing[0]}, which is not done in "
                          f"{output} for these files and settings; add it")
    # Mistakes that only rules and augmentation can see end the run before it reads anything.
    rules: list[Filter] = []
    if "filter" in wanted and "filter" not in done:
        rules = make_filters(recipe)
    if "finish" in wanted and "finish" not in done and recipe.augment.enabled:
        augmentation.check(recipe)
        if not rules:
            make_filters_for_augmented(recipe)
    return Start(listing, notes, replaces=existing is not None, fingerprints=fingerprints,
                 done=done), rules


def _difference(existing: dict[str, Any], identity: dict[str, Any]) -> str | None:
    """What tells the corpus of one manifest from that of this run, or None."""
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
