"""Makes token shards from a corpus.

    python -m data_beam.tokenize --corpus=CORPUS --tokenizer=TOK/tokenizer.model --output=TOKENS

writes

    TOKENS/tokenizer.model                              the tokenizer, or tokenizer.json and
                                                        tokenizer_config.json
    TOKENS/SPLIT/SOURCE-00000-of-00004.array_record     one record a document: id and token ids
    TOKENS/SPLIT/SOURCE-00000-of-00004.index.parquet    id, tokens and bytes of each record
    TOKENS/SPLIT/manifest.json                          counts and checksums; written last

Documents are shuffled by the hash of their ids. Each text is decoded again and compared; if it
differs, an error names the document. The same corpus and tokenizer give the same bytes whatever the
runner and the number of workers. A second run does nothing. After a stop the next run starts
again.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow.parquet
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from data_beam.base import files
from data_beam.readers.corpus_files import DAMAGED, CorpusFiles, find_documents
from data_beam.runners import beam_options
from data_beam.runners.progress import Progress
from data_beam.sinks import array_record, output_folder
from data_beam.stages.stage_manifest import read_reports
from data_beam.tokenizer import pipeline
from maxlm.config import command_line
from maxlm.config.schema import ConfigError
from maxlm.data.corpus import MANIFEST, SPLITS, TOKENS_FORMAT, Manifest, Shard, SourceEntry
from maxlm.data.tokenizer import TOKENIZER_FILES, SentencePieceTokenizer, Tokenizer

COMMAND = "data_beam.tokenize"
_OWN_FILES = re.compile(
    rf"{'|'.join(map(re.escape, TOKENIZER_FILES))}|(?:{'|'.join(SPLITS)})/(?:{re.escape(MANIFEST)}"
    r"|[A-Za-z0-9_-]+-\d{5,}-of-\d{5,}\.(?:array_record|index\.parquet))")
_RECIPE = 1
"""Part of the recipe's hash: another number means that the same documents give other shards."""
_SHOWN_FAILURES = 3


def count_shards(corpus: CorpusFiles, shard_bytes: int) -> dict[tuple[str, str], int]:
    """Shards by split and source: its bytes of text, by its share of documents, over shard_bytes.

    They depend on the corpus' manifest alone, not on workers or the order of work.
    """
    shards = {}
    for split in SPLITS:
        for source in corpus.sources:
            documents = source.splits.get(split, 0)
            if documents:
                size = source.bytes * documents / source.documents
                shards[split, source.name] = max(1, min(documents, round(size / shard_bytes)))
    return shards


def _finished(output: str, recipe: str, tokenizer: Tokenizer) -> list[Manifest] | None:
    """The manifests of a complete output of this recipe, None when there is work to do.

    Raises:
      ConfigError: the output holds tokens of another recipe, or these in part.
    """
    def difference(manifest: Manifest) -> str | None:
        return None if manifest.recipe == recipe else (
            "holds tokens of another corpus, tokenizer or shard size")

    found = {name: output_folder.finished(
        output, name, lambda path: Manifest.from_json(files.read_bytes(path).decode()), difference)
        for name in (f"{split}/{MANIFEST}" for split in SPLITS)}
    manifests = [manifest for manifest in found.values() if manifest is not None]
    missing = [FileSystems.join(output, name) for name in found if found[name] is None]
    if missing:
        if manifests and not output_folder.is_unfinished(output, COMMAND):
            raise ConfigError(f"--output: {missing[0]} is missing; remove {output} and run again")
        return None
    _check_files(output, manifests, tokenizer)
    return manifests


def _check_files(output: str, manifests: Sequence[Manifest], tokenizer: Tokenizer) -> None:
    """Checks the files of complete splits without reading all: lengths, indices, the tokenizer.

    Raises:
      ConfigError: one is not.
    """
    shards = [(manifest.split, shard) for manifest in manifests
              for source in manifest.sources for shard in source.shards]
    expected: list[tuple[str, int | None]] = [(name, None) for name in tokenizer.files]
    for split, shard in shards:
        expected += [(f"{split}/{shard.file}", shard.size), (f"{split}/{shard.index}", None)]
    output_folder.check_files(output, expected)
    damaged = [path for name, content in tokenizer.files.items()
               if files.read_bytes(path := FileSystems.join(output, name)) != content]
    for split, shard in shards:
        path = FileSystems.join(output, split, shard.index)
        with FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED) as handle:
            try:
                whole = pyarrow.parquet.read_metadata(handle).num_rows == shard.documents
            except DAMAGED:
                whole = False
        if not whole:
            damaged.append(path)
    if damaged:
        raise ConfigError(f"--output: {damaged[0]} is damaged; remove {output} and run again")


class ConservationError(RuntimeError):
    """Documents or tokens encoded are not those written: a bug of this program."""


def _combine(corpus: CorpusFiles, tokenizer: Tokenizer, recipe: str,
             reports: list[dict[str, Any]]) -> list[Manifest]:
    """The manifests from the reports of readers and writers.

    Raises:
      ConfigError: document files that cannot be read; documents that are invalid, or whose text
        changes when it is encoded and decoded.
      ConservationError: what was read is not what was written.
    """
    damaged = sorted(report["damaged"] for report in reports if report.get("damaged"))
    if damaged:
        raise ConfigError(damaged[0])
    failures = sorted((failure for report in reports for failure in report.get("failures", ())),
                      key=lambda failure: (failure["source"], failure["id"]))
    if failures:
        wrong = [f for f in failures if f["reason"] != pipeline.LOSSY]
        if wrong:
            raise ConfigError(f"--corpus: {wrong[0]['file']} is damaged: document {wrong[0]['id']} "
                              f"of {wrong[0]['source']}: {wrong[0]['reason']} ({len(wrong)} such "
                              "documents); make the corpus again with python -m data_beam.prepare")
        shown = "; ".join(f"{f['id']} of {f['source']}: {f['reason']}"
                          for f in failures[:_SHOWN_FAILURES])
        more = f" and {len(failures) - _SHOWN_FAILURES} more" if (
            len(failures) > _SHOWN_FAILURES) else ""
        raise ConfigError(f"{len(failures)} documents cannot be tokenized without loss: "
                          f"{shown}{more}; " + (
                              "train the tokenizer with --byte_fallback" if isinstance(
                                  tokenizer, SentencePieceTokenizer) else
                              "the tokenizer.json changes texts (its normalizer, or pieces that "
                              "stand for several texts); prepare the corpus in that form, or take "
                              "another tokenizer"))
    read: dict[tuple[str, str], dict[str, Any]] = {}
    shards: dict[tuple[str, str], dict[int, Shard]] = {}
    for report in reports:
        for split, source, counts in report.get("counts", ()):
            entry = read.setdefault((split, source), {
                "documents": 0, "tokens": 0, "bytes": 0, "marked": 0, "domains": {},
                "licences": {}})
            for name, value in counts.items():
                if isinstance(value, dict):
                    for key, count in value.items():
                        entry[name][key] = entry[name].get(key, 0) + count
                else:
                    entry[name] += value
        if "shard" in report:
            shards.setdefault((report["split"], report["source"]), {})[report["number"]] = Shard(
                **report["shard"])
    manifests = []
    for split in SPLITS:
        marked = any(counts["marked"] for (of, _), counts in read.items() if of == split)
        entries = []
        for source in corpus.sources:
            written = tuple(shard for _, shard in sorted(
                shards.get((split, source.name), {}).items()))
            counts = read.get((split, source.name), {"domains": {source.domain: 0},
                                                     "licences": {source.licence: 0}})
            totals = {name: sum(getattr(shard, name) for shard in written)
                      for name in ("documents", "tokens", "bytes")}
            expected = {name: counts.get(name, 0) for name in totals}
            if totals != expected:
                raise ConservationError(f"source {source.name!r}, split {split!r}: encoded "
                                        f"{expected}, but the shards hold {totals}")
            entries.append(SourceEntry(
                name=source.name, domain=", ".join(sorted(counts["domains"])),
                licence=", ".join(sorted(counts["licences"])), shards=written, **totals))
        manifests.append(Manifest(
            format=TOKENS_FORMAT if marked else 1, split=split, vocab_size=tokenizer.vocab_size,
            bos_id=tokenizer.bos_id, eos_id=tokenizer.eos_id, pad_id=tokenizer.pad_id,
            tokenizer_sha256=tokenizer.sha256, recipe=recipe,
            documents=sum(e.documents for e in entries), tokens=sum(e.tokens for e in entries),
            bytes=sum(e.bytes for e in entries), sources=tuple(entries)))
    total = sum(manifest.documents for manifest in manifests)
    if total != corpus.rows:
        raise ConservationError(f"the corpus has {corpus.rows} documents, {total} were written")
    return manifests


def tokenize(corpus: str, tokenizer: Tokenizer, output: str, shard_bytes: int, options: Any
             ) -> list[Manifest]:
    """Makes the token shards unless they are there already; returns the manifest of each split.

    Args:
      corpus: folder that data_beam.prepare wrote.
      tokenizer: with BOS and EOS.
      output: folder that `output_folder.exclusive` locked.
      shard_bytes: bytes of text in a shard, about.
      options: Beam pipeline options.

    Raises:
      ConfigError: inputs that do not exist or cannot be tokenized without loss; an output that
        contains other files or lacks files; a full disk.
    """
    found = find_documents(str(Path(corpus).resolve()) if files.is_local(corpus) else corpus)
    recipe = hashlib.sha256(json.dumps([
        _RECIPE, array_record.OPTIONS, found.fingerprint, tokenizer.sha256, shard_bytes,
    ]).encode()).hexdigest()
    manifests = _finished(output, recipe, tokenizer)
    if manifests is not None:
        output_folder.finish(output, COMMAND)
        print(f"{output} is complete and of these inputs: nothing to do")
        return manifests
    with output_folder.naming_full_disk(output, "tokens"):
        temporary = output_folder.begin(output, COMMAND, _OWN_FILES)
        job = pipeline.Job(output, temporary, tuple(tokenizer.files),
                           count_shards(found, shard_bytes), files.is_local(output))
        for folder in (*map(job.folder, ("reports", "parts", "progress")),
                       *(FileSystems.join(output, split) for split in SPLITS)):
            files.make_folder(folder)
        print(f"tokenizing {found.rows:,} documents of {len(found.sources)} sources", flush=True)
        for name, content in tokenizer.files.items():
            files.write_atomically(FileSystems.join(output, name), temporary, content)
        shown = Progress("tokenize", Path(job.folder("progress")), "documents", found.rows) if (
            job.progress) else nullcontext()
        with shown:
            beam_options.run_pipeline(options, lambda root: pipeline.build(
                root, job, found.files, tokenizer.vocab_size))
        manifests = _combine(found, tokenizer, recipe, read_reports(temporary))
        for manifest in manifests:
            text = manifest.to_json().encode()
            files.write_atomically(
                FileSystems.join(output, manifest.split, MANIFEST), temporary, text)
    output_folder.finish(output, COMMAND)
    return manifests


def main(argv: Sequence[str]) -> int:
    """The command; see the module's docstring."""
    parser = command_line.Parser(prog="python -m data_beam.tokenize", description=__doc__,
                                 epilog=beam_options.HELP)
    parser.add_argument("--corpus", required=True, help="folder that data_beam.prepare wrote")
    parser.add_argument("--tokenizer", required=True, help="tokenizer.model of train_tokenizer, a "
                        "Hugging Face tokenizer.json, or a folder with one of them")
    for name, what in (("bos_token", "begins"), ("eos_token", "ends"), ("pad_token", "follows")):
        parser.add_argument(f"--{name}", metavar="TOKEN", help=f"token of a tokenizer.json that "
                            f"{what} a document (what its tokenizer_config.json says)")
    parser.add_argument("--output", required=True, help="folder of the token shards")
    parser.add_argument("--shard_bytes", type=command_line.size, default=256_000_000,
                        help="bytes of text in a shard, about; a shard is sorted in the memory of "
                        "one worker (256e6)")
    arguments, beam_words = parser.parse_known_args(argv)
    options = beam_options.pipeline_options(beam_words, parser)
    special = {name: token for name in ("bos_token", "eos_token", "pad_token")
               if (token := getattr(arguments, name)) is not None}
    tokenizer = Tokenizer.load(arguments.tokenizer, "--tokenizer", special=special)
    with output_folder.exclusive(arguments.output) as output:
        manifests = tokenize(arguments.corpus, tokenizer, output, arguments.shard_bytes, options)
    print(f"{'split':<11} {'source':<20} {'documents':>11} {'tokens':>15} {'bytes/token':>11} "
          f"{'shards':>6}")
    for manifest in manifests:
        for source in manifest.sources:
            print(f"{manifest.split:<11} {source.name:<20} {source.documents:>11,} "
                  f"{source.tokens:>15,} {source.bytes / max(1, source.tokens):>11.2f} "
                  f"{len(source.shards):>6}")
    print(f"tokens: {arguments.output}")
    return 0


if __name__ == "__main__":
    command_line.run_command(main, "run the same command again to start over")
