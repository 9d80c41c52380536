"""Raw sources to a corpus of clean documents.

    python -m data_beam.prepare --config=configs/corpus/quickstart.py --output=CORPUS

writes

    CORPUS/documents/*.parquet     one row a document: id, text, source, domain, licence, path,
                                   language, split, sha256 and more
    CORPUS/dropped/*.parquet       what a rule left out, and which rule
    CORPUS/dead_letters/*.jsonl    what could not be read, and why
    CORPUS/samples/*.jsonl         texts of a few dropped documents of each rule
    CORPUS/report.html, .json      what the corpus is like, to look at; see data_beam.report
    CORPUS/manifest.json           counts by source, checksums, the recipe; written last

in five stages: `extract` (read, text without markup, repairs), `filter` (the rules that judge one
document), `dedup` (those that compare documents), `finish` (split, the corpus's own form) and
`report`. Every document read is kept, dropped or a dead letter, exactly one of them. The same files
and recipe give the same bytes whatever the runner and the number of workers.

Run it again and it does nothing; stop it and the next run goes on after the last whole stage. A
stage whose settings changed since is done again, with those after it.
"""

from maxlm.cli import interrupts

if __name__ == "__main__":
    interrupts.end_at_once()  # as long as there is nothing to clean up

from collections.abc import Sequence
from typing import Any

from apache_beam.io.filesystems import FileSystems

from data_beam.base import files
from data_beam.config import RecipeConfig
from data_beam.runners import beam_options, progress
from data_beam.sinks import output_folder
from data_beam.stages import corpus_manifest, preview, stage_manifest
from data_beam.stages.run import manifest_dir, run_stage
from data_beam.stages.start import COMMAND, OWN_FILES, check
from maxlm.config import command_line
from maxlm.config.schema import ConfigError, suggestion


def prepare(recipe: RecipeConfig, output: str, options: Any,
            stages: Sequence[str] = stage_manifest.STAGES, keep_stages: bool = False,
            replace: bool = False) -> dict[str, Any] | None:
    """Makes the corpus unless it is there.

    Args:
      recipe: checked recipe.
      output: folder, local or on any file system that Beam knows.
      options: Beam pipeline options.
      stages: the ones to run; those before them must be done.
      keep_stages: leave what the stages hand to each other when the corpus is whole.
      replace: a corpus of another recipe or other files makes room for this one; its stages that
        were kept are used where they still hold.

    Returns:
      The manifest of the corpus, or None if `stages` ends before it is whole.

    Raises:
      ConfigError: inputs that do not exist; an output that holds something else, lacks files or
        is being written by another run; a full disk; a stage that another one needs first.
    """
    with output_folder.exclusive(output) as path:
        return _prepare(recipe, path, options, stages, keep_stages, replace)


def _prepare(recipe: RecipeConfig, output: str, options: Any, stages: Sequence[str],
             keep_stages: bool, replace: bool) -> dict[str, Any] | None:
    start = check(recipe, output, stages, replace)[0]
    listing, fingerprints, done = start.listing, start.fingerprints, start.done
    if start.whole:
        _finish(output, keep_stages)
        print(f"{output} is whole and of this recipe: nothing to do")
        result = corpus_manifest.read(output)
        assert result is not None
        return result
    if start.replaces:
        output_folder.reopen(output, COMMAND, OWN_FILES, corpus_manifest.NAME)
    kept = [f"stages/{stage}/" for stage in done]
    if "finish" in done:  # its files are those of the corpus itself
        kept += [entry["file"] for entry in done["finish"]["outputs"]]
    result = None
    try:
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
                stage_manifest.write(manifest_dir(output, stage), temporary,
                             {"stage": stage, "fingerprint": fingerprints[stage], **done[stage]})
    except Exception as error:
        full = files.disk_full(error)
        if not full:
            raise
        raise ConfigError(f"--output: cannot write to {output}: {full}; what is there is not taken "
                          "for a corpus. Make room and run again") from error
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


def main(argv: Sequence[str]) -> int:
    """The command; see the module's docstring."""
    parser = command_line.Parser(
        prog="python -m data_beam.prepare", description=__doc__, fields=RecipeConfig,
        epilog=beam_options.HELP)
    parser.add_argument("--config", required=True, help="recipe file, configs/corpus/*.py")
    parser.add_argument("--output", required=True, help="folder of the corpus")
    parser.add_argument("--stages", default=",".join(stage_manifest.STAGES),
                        help="the ones to run, in order; the corpus is whole after the last "
                        "(default: %(default)s)")
    parser.add_argument("--keep_stages", action="store_true",
                        help="leave CORPUS/stages, what they hand to each other, at the end")
    parser.add_argument("--replace", action="store_true",
                        help="if the folder holds a corpus of another recipe or of other files, "
                        "make it anew, from the stages that were kept where they still hold")
    parser.add_argument("--dry_run", action="store_true",
                        help="write nothing: make the checks of a run, print the plan, and what "
                        f"the rules would decide on {preview.DOCUMENTS} documents")
    words, overrides = command_line.split_overrides(argv)
    arguments, beam_words = parser.parse_known_args(words)
    recipe = command_line.resolve_config(RecipeConfig, arguments.config, overrides)
    options = beam_options.pipeline_options(beam_words, parser)
    stages = _stages(arguments.stages)
    if arguments.dry_run:
        preview.show(recipe, arguments.output, stages, arguments.replace)
        return 0
    result = prepare(recipe, arguments.output, options, stages, arguments.keep_stages,
                     arguments.replace)
    if result is None:
        print(f"{', '.join(stages)}: done; {arguments.output} is no whole corpus yet")
        return 0
    print(progress.summary(result))
    for name, counts in result["sources"].items():
        if not counts["kept"]:
            print(f"warning: nothing of source {name!r} was kept")
    print(f"corpus: {arguments.output}")
    return 0


if __name__ == "__main__":
    command_line.run_command(main)
