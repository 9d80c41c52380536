"""Raw sources to a corpus of clean documents.

    python -m data_beam.prepare --config=configs/corpus/quickstart.py --output=CORPUS

writes

    CORPUS/documents/*.parquet     one row a document: id, text, source, domain, licence, path,
                                   language, split, sha256 and more
    CORPUS/dropped/*.parquet       what a rule left out, and which rule
    CORPUS/dead_letters/*.jsonl    what could not be read, and why
    CORPUS/manifest.json           counts by source, checksums, the recipe; written last

Every document read is kept, dropped or a dead letter, exactly one of them. The same files and
recipe give the same bytes whatever the runner and the number of workers. Run it again and it does
nothing; stop it and the next run starts afresh.
"""

import json
import re
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from apache_beam.io.filesystems import FileSystems
from apache_beam.runners.runner import PipelineState

from data_beam import beam_options, pipeline, progress
from data_beam.config import RecipeConfig
from data_beam.readers.listing import File, list_files
from data_beam.sinks import files, manifest, output_folder
from maxlm.config import command_line, schema
from maxlm.config.schema import ConfigError

COMMAND = "data_beam.prepare"
_OUTPUTS = {"documents": "parquet", "dropped": "parquet", "dead_letters": "jsonl"}
_OWN_FILES = re.compile("|".join(rf"{kind}/{kind}-\d{{5,}}-of-\d{{5,}}\.{suffix}"
                                 for kind, suffix in _OUTPUTS.items()))


def _already_done(output: str, identity: dict[str, Any]) -> bool:
    """Whether `output` holds the corpus of this recipe and these files.

    Raises:
      ConfigError: it holds another corpus, or this one in part.
    """
    existing = manifest.read(output)
    if existing is None:
        return False
    if existing["recipe_sha256"] != identity["recipe_sha256"]:
        changed = [key for key in identity["recipe"]
                   if existing["recipe"].get(key) != identity["recipe"][key]]
        raise ConfigError(f"--output: {output} holds a corpus of another recipe (it differs in "
                          f"{', '.join(changed)}); choose another --output or remove it")
    if existing["inputs"] != identity["inputs"]:
        now, then = identity["inputs"], existing["inputs"]
        raise ConfigError(
            f"--output: {output} was made from other files (now {now['files']} of {now['bytes']:,} "
            f"bytes, then {then['files']} of {then['bytes']:,}, or some were modified since); "
            "choose another --output or remove it")
    output_folder.check_whole(output, ((e["file"], e["bytes"]) for e in existing["outputs"]))
    return True


def _read_reports(temporary: str) -> list[dict[str, Any]]:
    return [json.loads(files.read_bytes(entry.path))
            for entry in files.match(FileSystems.join(temporary, "reports"), "*.json")]


def _run_pipeline(recipe: RecipeConfig, listing: Sequence[File], output: str, temporary: str,
                  options: Any) -> None:
    listing_path = FileSystems.join(temporary, "listing.jsonl")
    pipeline.write_listing(listing_path, list(listing))
    local = files.is_local(output)
    progress_folder = FileSystems.join(temporary, "progress") if local else ""
    for folder in (FileSystems.join(temporary, "reports"), progress_folder):
        if folder:
            files.make_folder(folder)
    root = beam_options.make_pipeline(options)
    pipeline.build(root, recipe, listing_path, output, temporary, progress_folder)
    shown = progress.Progress(
        Path(progress_folder), Path(output), sum(file.size for file in listing),
        len(_OUTPUTS) * recipe.shards) if local else nullcontext()
    with shown:
        state = root.run().wait_until_finish()
    if state != PipelineState.DONE:
        raise RuntimeError(f"the Beam job ended in state {state}; {output} is not whole")


def prepare(recipe: RecipeConfig, output: str, options: Any) -> dict[str, Any]:
    """Makes the corpus unless it is there; returns its manifest.

    Args:
      recipe: checked recipe.
      output: folder, local or on any file system that Beam knows.
      options: Beam pipeline options.

    Raises:
      ConfigError: inputs that do not exist; an output that holds something else, lacks files or
        is being written by another run; a full disk.
    """
    with output_folder.exclusive(output) as folder:
        return _prepare(recipe, folder, options)


def _prepare(recipe: RecipeConfig, output: str, options: Any) -> dict[str, Any]:
    listing = list_files(recipe)
    if _already_done(output, manifest.identity(recipe, listing)):
        output_folder.finish(output, COMMAND)
        print(f"{output} is whole and of this recipe: nothing to do")
        result = manifest.read(output)
        assert result is not None
        return result
    try:
        temporary = output_folder.begin(output, COMMAND, _OWN_FILES)
        print(f"reading {len(listing):,} files, {sum(f.size for f in listing) / 1e6:.1f} MB, from "
              f"{len(recipe.sources)} sources", flush=True)
        _run_pipeline(recipe, listing, output, temporary, options)
        result = manifest.combine(recipe, listing, _read_reports(temporary))
        manifest.write(output, temporary, result)
    except Exception as error:
        full = files.disk_full(error)
        if not full:
            raise
        raise ConfigError(f"--output: cannot write to {output}: {full}; what is there is not taken "
                          "for a corpus. Make room and run again") from error
    output_folder.finish(output, COMMAND)
    return result


def main(argv: Sequence[str]) -> int:
    """The command; see the module's docstring."""
    parser = command_line.Parser(
        prog="python -m data_beam.prepare", description=__doc__,
        epilog=beam_options.HELP + "\n\nRecipe fields, in a file like "
        "configs/corpus/quickstart.py or on the command line:\n" + schema.describe(RecipeConfig))
    parser.add_argument("--config", required=True, help="recipe file, configs/corpus/*.py")
    parser.add_argument("--output", required=True, help="folder of the corpus")
    words, overrides = command_line.split_overrides(argv)
    arguments, beam_words = parser.parse_known_args(words)
    recipe = command_line.resolve_config(RecipeConfig, arguments.config, overrides)
    options = beam_options.pipeline_options(beam_words)
    result = prepare(recipe, arguments.output, options)
    print(progress.summary(result))
    for name, counts in result["sources"].items():
        if not counts["kept"]:
            print(f"warning: nothing of source {name!r} was kept")
    print(f"corpus: {arguments.output}")
    return 0


if __name__ == "__main__":
    command_line.run_command(main)
