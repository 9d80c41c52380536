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

import re
from collections.abc import Sequence
from typing import Any

from apache_beam.io.filesystems import FileSystems

from data_beam import beam_options, preview, progress
from data_beam.config import RecipeConfig
from data_beam.readers.listing import list_files
from data_beam.rules import make_rules
from data_beam.sinks import files, manifest, output_folder
from data_beam.stages import augmentation, ledger
from data_beam.stages.context import KINDS
from data_beam.stages.run import books, finished, run_stage
from maxlm.config import command_line, schema
from maxlm.config.schema import ConfigError, suggestion

COMMAND = "data_beam.prepare"
_SHARDS = "|".join([*(rf"{kind}/{kind}-\d{{5,}}-of-\d{{5,}}\.{suffix}"
                      for kind, suffix in KINDS.items()),
                    r"clusters/(?:clusters-\d{5,}-of-\d{5,}\.parquet|_summary\.json)"])
_OWN_FILES = re.compile(
    rf"(?:stages/\w+/)?(?:{_SHARDS})|stages/\w+/manifest\.json|report\.(?:html|json)")


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


def _already_done(output: str, identity: dict[str, Any], replace: bool) -> bool:
    """Whether `output` holds the corpus of this recipe and these files.

    Raises:
      ConfigError: it holds another corpus that is not to be replaced, or this one in part.
    """
    existing = manifest.read(output)
    if existing is None:
        return False
    difference = _difference(existing, identity)
    if difference is None:
        output_folder.check_whole(output, ((e["file"], e["bytes"]) for e in existing["outputs"]))
        return True
    if not replace:
        raise ConfigError(f"--output: {output} {difference}; choose another --output, or add "
                          "--replace to make this one anew")
    output_folder.reopen(output, COMMAND, _OWN_FILES, manifest.NAME)
    return False


def prepare(recipe: RecipeConfig, output: str, options: Any,
            stages: Sequence[str] = ledger.STAGES, keep_stages: bool = False,
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
    listing = list_files(recipe)
    if _already_done(output, manifest.identity(recipe, listing), replace):
        _finish(output, keep_stages)
        print(f"{output} is whole and of this recipe: nothing to do")
        result = manifest.read(output)
        assert result is not None
        return result
    fingerprints = ledger.fingerprints(recipe, listing)
    done = finished(output, fingerprints)
    wanted = [stage for stage in ledger.STAGES if stage in stages]
    missing = [stage for stage in ledger.STAGES[:ledger.STAGES.index(wanted[0])]
               if stage not in done]
    if missing:
        raise ConfigError(f"--stages: {wanted[0]} needs {missing[0]}, which is not done in "
                          f"{output} for these files and settings; add it")
    # Mistakes that only rules and augmentation can see end the run before it reads anything.
    if "filter" in wanted and "filter" not in done:
        make_rules(recipe)
    if "finish" in wanted and "finish" not in done:
        augmentation.check(recipe)
    kept = [f"stages/{stage}/" for stage in done]
    if "finish" in done:  # its files are those of the corpus itself
        kept += [entry["file"] for entry in done["finish"]["outputs"]]
    result = None
    try:
        temporary = output_folder.begin(output, COMMAND, _OWN_FILES,
                                        lambda name: name.startswith(tuple(kept)))
        print(f"{len(listing):,} files, {sum(f.size for f in listing) / 1e6:.1f} MB, from "
              f"{len(recipe.sources)} sources", flush=True)
        for stage in ledger.STAGES:
            if stage in done:
                print(f"{stage}: done before", flush=True)
                continue
            if stage not in wanted:
                break
            done[stage] = run_stage(stage, recipe, listing, output, temporary, done, options)
            if stage == ledger.STAGES[-1]:
                result = manifest.of_corpus(recipe, listing, done)
                ledger.write(output, temporary, result)
            else:
                files.make_folder(books(output, stage))
                ledger.write(books(output, stage), temporary,
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
        if name not in ledger.STAGES:
            raise ConfigError(f"--stages: there is no stage {name!r}; "
                              f"{suggestion(name, ledger.STAGES)}")
    if not names:
        raise ConfigError(f"--stages: names none; the stages are {', '.join(ledger.STAGES)}")
    first, last = (ledger.STAGES.index(names[i]) for i in (0, -1))
    if names != ledger.STAGES[first:last + 1]:
        raise ConfigError(f"--stages: {', '.join(names)} must follow each other in the order "
                          f"{', '.join(ledger.STAGES)}")
    return names


def main(argv: Sequence[str]) -> int:
    """The command; see the module's docstring."""
    parser = command_line.Parser(
        prog="python -m data_beam.prepare", description=__doc__,
        epilog=beam_options.HELP + "\n\nRecipe fields, in a file like "
        "configs/corpus/quickstart.py or on the command line:\n" + schema.describe(RecipeConfig))
    parser.add_argument("--config", required=True, help="recipe file, configs/corpus/*.py")
    parser.add_argument("--output", required=True, help="folder of the corpus")
    parser.add_argument("--stages", default=",".join(ledger.STAGES),
                        help="the ones to run, in order; the corpus is whole after the last "
                        "(default: %(default)s)")
    parser.add_argument("--keep_stages", action="store_true",
                        help="leave CORPUS/stages, what they hand to each other, at the end")
    parser.add_argument("--replace", action="store_true",
                        help="if the folder holds a corpus of another recipe or of other files, "
                        "make it anew, from the stages that were kept where they still hold")
    parser.add_argument("--dry_run", action="store_true",
                        help="write nothing: print the plan, and what the rules would decide on "
                        f"{preview.DOCUMENTS} documents")
    words, overrides = command_line.split_overrides(argv)
    arguments, beam_words = parser.parse_known_args(words)
    recipe = command_line.resolve_config(RecipeConfig, arguments.config, overrides)
    options = beam_options.pipeline_options(beam_words)
    stages = _stages(arguments.stages)
    if arguments.dry_run:
        preview.show(recipe, arguments.output)
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
