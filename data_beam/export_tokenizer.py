"""Converts a SentencePiece tokenizer to a Hugging Face tokenizer.json with the same ids.

    python -m data_beam.export_tokenizer --tokenizer=TOK/tokenizer.model --output=HF

writes

    HF/tokenizer.json          for tokenizers, transformers, vLLM and other programs
    HF/tokenizer_config.json   names of BOS, EOS, padding and unknown, as transformers reads them

The ids are compared on texts in several scripts, and with --corpus on documents of a corpus; if any
differs, nothing is written. A second run does nothing.
"""

from collections.abc import Sequence

from apache_beam.io.filesystems import FileSystems

from data_beam.base import files
from data_beam.models.samples import sample_documents
from data_beam.readers.corpus_files import find_documents
from data_beam.sinks import output_folder
from maxlm.cli import command_line
from maxlm.config.schema import ConfigError
from maxlm.data.tokenizer import SentencePieceTokenizer, Tokenizer
from maxlm.data.tokenizer_export import to_huggingface

_COMPARED_BYTES = 2_000_000


def write_tokenizer(tokenizer: Tokenizer, output: str) -> None:
    """Writes the files of a tokenizer into a folder. Raises ConfigError if files of another
    tokenizer are there."""
    for name, content in tokenizer.files.items():
        path = FileSystems.join(output, name)
        if FileSystems.exists(path) and files.read_bytes(path) != content:
            raise ConfigError(f"--output: {path} is of another tokenizer; choose another "
                              "--output or remove it")
    for name, content in tokenizer.files.items():
        files.write_atomically(FileSystems.join(output, name), output, content)


def main(argv: Sequence[str]) -> int:
    """The command; see the module's docstring."""
    parser = command_line.Parser(prog="python -m data_beam.export_tokenizer", description=__doc__)
    parser.add_argument("--tokenizer", required=True,
                        help="tokenizer.model of train_tokenizer or extend_tokenizer")
    parser.add_argument("--output", required=True, help="folder of the two files")
    parser.add_argument("--corpus", help="folder that data_beam.prepare wrote: ids of up to 2 MB "
                        "of its texts are compared too")
    arguments = parser.parse_args(argv)
    tokenizer = Tokenizer.load(arguments.tokenizer, "--tokenizer")
    if not isinstance(tokenizer, SentencePieceTokenizer):
        raise ConfigError("--tokenizer: it is a Hugging Face tokenizer already")
    texts = []
    if arguments.corpus is not None:
        rows, _ = sample_documents(find_documents(arguments.corpus), _COMPARED_BYTES)
        texts = [row["text"] for row in rows]
    exported = to_huggingface(tokenizer, texts)
    with output_folder.exclusive(arguments.output) as output:
        write_tokenizer(exported, output)
    print(f"{exported.vocab_size:,} ids, equal on all texts compared"
          + (f", {len(texts):,} documents among them" if texts else ""))
    print(f"tokenizer: {', '.join(FileSystems.join(output, name) for name in exported.files)}")
    return 0


if __name__ == "__main__":
    command_line.run_command(main)
