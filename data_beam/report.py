"""Statistics and samples of a corpus, as one page to look at.

    python -m data_beam.report --corpus=CORPUS --tokenizer=TOK/tokenizer.model --compare=OTHER

writes

    CORPUS/report.html    one page that needs no network: what came in and what each stage dropped,
                          samples with the reason marked, distributions, copies, mixture, topics
    CORPUS/report.json    the same facts

`data_beam.prepare` writes both at its end. This command writes them again, with tokens by source
(--tokenizer) and the differences to another corpus (--compare), and updates the manifest; with
--output it leaves the corpus unchanged. docs/report.md explains the numbers. The same corpus and
flags give the same bytes.
"""

import functools
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from apache_beam.io.filesystems import FileSystems

from data_beam.base import files, json_files
from data_beam.readers.corpus_files import find_documents
from data_beam.reporting.corpus_report import HTML, JSON, make_report
from data_beam.runners import beam_options
from data_beam.runners.progress import Progress
from data_beam.sinks import output_folder
from data_beam.stages import corpus_manifest, stage_manifest
from maxlm.cli import command_line
from maxlm.config.schema import ConfigError
from maxlm.data.tokenizer import Tokenizer

COMMAND = "data_beam.report"
_SHAPE = {
    **corpus_manifest.SHAPE, "libraries": {str: str}, "stages": {str: {str: int}},
    "sources": {str: {**corpus_manifest.SOURCE, "input_bytes": int, "augmented": int}}}


def _manifest(corpus: str) -> dict[str, Any]:
    """The manifest of a corpus. Raises ConfigError if it is damaged, or of an older version."""
    path = FileSystems.join(corpus, stage_manifest.NAME)
    try:
        return json_files.read(path, _SHAPE)
    except json_files.NotThisKind as error:
        raise ConfigError(f"--corpus: {path} is damaged, or of another version of this program "
                          f"({error}); make the corpus again with python -m data_beam.prepare"
                          ) from None


def report(corpus: str, output: str | None, tokenizer: Tokenizer | None, options: Any,
           compare: str = "") -> None:
    """Writes the report of a corpus into the folder `output`, or into the corpus itself; with
    tokens if there is a tokenizer, and with the differences to the corpus `compare` unless that is
    "".

    Raises ConfigError if there is no complete corpus, or a damaged one; if the output cannot be
    written; if there is nothing to compare with.
    """
    find_documents(corpus, others=("dropped", "dead_letters", "samples", "clusters"))
    with output_folder.exclusive(output or corpus) as folder:
        manifest = _manifest(corpus)
        with (output_folder.naming_full_disk(folder, "report"),
              output_folder.scratch(folder, COMMAND) as temporary):
            local = files.is_local(folder)
            progress = FileSystems.join(temporary, "progress") if local else ""
            work = FileSystems.join(temporary, "work")
            for path in filter(None, (progress, work)):
                files.make_folder(path)

            shown = Progress("report", Path(progress), "documents", manifest["total"]["kept"]) if (
                local) else nullcontext()
            with shown:
                contents = make_report(
                    manifest, corpus, work, progress,
                    functools.partial(beam_options.run_pipeline, options), tokenizer, compare)
            outputs = []
            for name, data in contents.items():
                size, digest = files.write_atomically(
                    FileSystems.join(folder, name), temporary, data)
                outputs.append({"file": name, "rows": 1, "bytes": size, "sha256": digest})
            if output is None:
                kept = [entry for entry in manifest["outputs"] if entry["file"] not in (HTML, JSON)]
                manifest["outputs"] = sorted(kept + outputs, key=lambda entry: entry["file"])
                stage_manifest.write(corpus, temporary, manifest)


def main(argv: Sequence[str]) -> int:
    """The command; see the module's docstring."""
    parser = command_line.Parser(prog="python -m data_beam.report", description=__doc__,
                                 epilog=beam_options.HELP)
    parser.add_argument("--corpus", required=True, help="folder that data_beam.prepare wrote")
    parser.add_argument("--tokenizer", help="tokenizer.model of train_tokenizer, a Hugging Face "
                        "tokenizer.json, or a folder with one of them; counts tokens by source")
    parser.add_argument("--compare", default="", metavar="OTHER_CORPUS", help="another corpus, or "
                        "its report.json: the page shows what differs from it")
    parser.add_argument("--output", help="folder of the report (the corpus itself)")
    arguments, beam_words = parser.parse_known_args(argv)
    options = beam_options.pipeline_options(beam_words, parser)
    tokenizer = None if arguments.tokenizer is None else Tokenizer.load(
        arguments.tokenizer, "--tokenizer")
    report(arguments.corpus, arguments.output, tokenizer, options, arguments.compare)
    print(f"report: {FileSystems.join(arguments.output or arguments.corpus, HTML)}")
    return 0


if __name__ == "__main__":
    command_line.run_command(main)
