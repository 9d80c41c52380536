"""Makes a corpus of clean documents from raw files.

    python -m data_beam.prepare --config=configs/corpus/quickstart.py --output=CORPUS

writes

    CORPUS/documents/*.parquet     one row a document: id, text, source, domain, licence, path,
                                   language, split, sha256 and more
    CORPUS/dropped/*.parquet       documents that were not kept, and which filter dropped them
    CORPUS/dead_letters/*.jsonl    what could not be read, and why
    CORPUS/samples/*.jsonl         texts of a few dropped documents for each reason
    CORPUS/report.html, .json      statistics and samples to look at; see data_beam.report
    CORPUS/manifest.json           counts by source, checksums, the recipe; written last

in five stages: `extract` (read files, remove markup, repair texts), `filter` (judge one document at
a time), `dedup` (compare documents), `finish` (split, final columns) and `report`. Every document
read is kept, dropped or a dead letter, exactly one of them. The same files and recipe give the same
bytes whatever the runner and the number of workers, except for the date and duration.

A second run does nothing. After a stop, the next run continues after the last complete stage. A
stage whose settings have changed runs again, with those after it.
"""

import heapq
import json
import shlex
from collections.abc import Sequence
from typing import Any

from apache_beam.io.filesystems import FileSystems

from data_beam.base import files, json_files
from data_beam.config import RecipeConfig
from data_beam.runners import beam_options, progress
from data_beam.sinks import output_folder
from data_beam.stages import corpus_manifest, stage_manifest
from data_beam.stages.run import manifest_dir, run_stage
from data_beam.stages.start import COMMAND, OWN_FILES, PREVIEWED, check, show
from maxlm.config import command_line
from maxlm.config.schema import ConfigError, suggestion

_EXAMPLES = 3
"""Reasons of each source of which the summary shows a dead letter."""
_DETAIL_CHARACTERS = 300


def prepare(recipe: RecipeConfig, output: str, options: Any,
            stages: Sequence[str] = stage_manifest.STAGES, keep_stages: bool = False,
            replace: bool = False) -> dict[str, Any] | None:
    """Makes the corpus unless it is there already.

    Args:
      recipe: checked recipe.
      output: folder, local or on any file system that Beam knows.
      options: Beam pipeline options.
      stages: the ones to run; those before them must be done.
      keep_stages: keep the intermediate files of the stages when the corpus is complete.
      replace: replace a corpus of another recipe or other files, reusing cached stages that are
        still valid.

    Returns:
      The manifest of the corpus, or None if `stages` ends before it is complete.

    Raises:
      ConfigError: inputs that do not exist; an output that contains other files, lacks files or
        is being written by another run; a full disk; a stage that another one needs first.
    """
    with output_folder.exclusive(output) as output:
        start = check(recipe, output, stages, replace)[0]
        listing, done = start.listing, start.done
        if start.complete:
            _finish(output, keep_stages)
            print(f"{output} is complete and of this recipe: nothing to do")
            return json_files.read(FileSystems.join(output, corpus_manifest.NAME), dict)
        if start.replaces:
            output_folder.reopen(output, COMMAND, OWN_FILES, corpus_manifest.NAME)
        kept = [f"stages/{stage}/" for stage in done]
        if "finish" in done:  # its files are those of the corpus itself
            kept += [entry["file"] for entry in done["finish"]["outputs"]]
        result = None
        with output_folder.naming_full_disk(output, "corpus"):
            temporary = output_folder.begin(output, COMMAND, OWN_FILES,
                                            lambda name: name.startswith(tuple(kept)))
            print(f"{len(listing):,} files, {sum(f.size for f in listing) / 1e6:.1f} MB, from "
                  f"{len(recipe.sources)} sources", *start.notes, sep="\n", flush=True)
            for stage in stage_manifest.STAGES:
                if stage in done:
                    print(f"{stage}: done before", flush=True)
                    continue
                if stage not in stages:
                    break
                done[stage] = run_stage(stage, recipe, listing, output, temporary, done, options)
                if stage == stage_manifest.STAGES[-1]:
                    result = corpus_manifest.of_corpus(recipe, listing, done)
                    stage_manifest.write(output, temporary, result)
                else:
                    files.make_folder(manifest_dir(output, stage))
                    stage_manifest.write(manifest_dir(output, stage), temporary, {
                        "stage": stage, "fingerprint": start.fingerprints[stage], **done[stage]})
        if result is not None:
            _finish(output, keep_stages)
        return result


def _finish(output: str, keep_stages: bool) -> None:
    """Removes what only a running `prepare` needs."""
    if not output_folder.is_unfinished(output, COMMAND):
        return
    if not keep_stages:
        files.remove_folder(FileSystems.join(output, "stages"))
    output_folder.finish(output, COMMAND)


def _stages(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in stage_manifest.STAGES:
            raise ConfigError(f"--stages: there is no stage {name!r}; "
                              f"{suggestion(name, stage_manifest.STAGES)}")
    if not names:
        raise ConfigError("--stages: names none; the stages are "
                          f"{', '.join(stage_manifest.STAGES)}")
    first, last = (stage_manifest.STAGES.index(names[i]) for i in (0, -1))
    if names != stage_manifest.STAGES[first:last + 1]:
        raise ConfigError(f"--stages: {', '.join(names)} must follow each other in the order "
                          f"{', '.join(stage_manifest.STAGES)}")
    return names


def _command_for_the_rest(argv: Sequence[str]) -> str:
    """The command of `argv` for all stages; those that are done are skipped."""
    words = list(argv)
    for i, word in enumerate(argv):
        if word.partition("=")[0] == "--stages":
            del words[i:i + (1 if "=" in word else 2)]
            break
    return f"python -m {COMMAND} {shlex.join(words)}"


def _examples(manifest: dict[str, Any], output: str) -> dict[tuple[str, str, str], str]:
    """The first dead letter of the most frequent reasons of each source, in words, by source, stage
    and reason: `detail` often says what to change in the recipe."""
    wanted: set[tuple[str, str, str]] = set()
    for name, counts in manifest["sources"].items():
        reasons = [(count, stage, reason) for stage, counted in counts["dead_letters"].items()
                   for reason, count in counted.items()]
        wanted |= {(name, *which) for _, *which in heapq.nlargest(_EXAMPLES, reasons)}
    found: dict[tuple[str, str, str], str] = {}
    paths = sorted(entry.path for entry in files.match(
        FileSystems.join(output, "dead_letters"), "*.jsonl"))
    for letter in (json.loads(line) for path in paths for line in files.read_bytes(
            path).splitlines()):
        key = letter["source"], letter["stage"], letter["reason"]
        if key in wanted and key not in found:
            record = "" if letter["record"] is None else f", record {letter['record']}"
            found[key] = f"{letter['path']}{record}: {letter['detail'][:_DETAIL_CHARACTERS]}"
        if len(found) == len(wanted):
            break
    return found


def main(argv: Sequence[str]) -> int:
    """The command; see the module's docstring."""
    parser = command_line.Parser(
        prog="python -m data_beam.prepare", description=__doc__, fields=RecipeConfig,
        epilog=beam_options.HELP)
    parser.add_argument("--config", required=True, help="recipe file, configs/corpus/*.py")
    parser.add_argument("--output", required=True, help="folder of the corpus")
    parser.add_argument("--stages", default=",".join(stage_manifest.STAGES),
                        help="the stages to run, in order; the corpus is complete after the last "
                        "(default: %(default)s)")
    parser.add_argument("--keep_stages", action="store_true",
                        help="keep CORPUS/stages, the stages' intermediate files, at the end")
    parser.add_argument("--replace", action="store_true",
                        help="if the folder holds a corpus of another recipe or of other files, "
                        "rebuild it, reusing cached stages that are still valid")
    parser.add_argument("--dry_run", action="store_true",
                        help="write nothing: make the checks of a run, print the plan, and what "
                        f"the filters would decide on {PREVIEWED} documents")
    words, overrides = command_line.split_overrides(argv)
    arguments, beam_words = parser.parse_known_args(words)
    recipe = command_line.resolve_config(RecipeConfig, arguments.config, overrides)
    options = beam_options.pipeline_options(beam_words, parser)
    stages = _stages(arguments.stages)
    if arguments.dry_run:
        show(recipe, arguments.output, stages, arguments.replace)
        return 0
    result = prepare(recipe, arguments.output, options, stages, arguments.keep_stages,
                     arguments.replace)
    if result is None:
        print(f"{', '.join(stages)}: done; the corpus in {arguments.output} is incomplete; this "
              f"runs the remaining stages:\n  {_command_for_the_rest(argv)}")
        return 0
    print(progress.summary(result, _examples(result, arguments.output)))
    for name, counts in result["sources"].items():
        if not counts["kept"]:
            print(f"warning: nothing of source {name!r} was kept")
    print(f"corpus: {arguments.output}")
    return 0


if __name__ == "__main__":
    command_line.run_command(
        main, "run the same command again to continue after the last complete stage")
