"""The corpus on disk: the one description of the formats that data_beam writes and maxlm reads.

Clean documents (written by `data_beam.prepare`):

    CORPUS/documents/*.parquet     one row a document, columns of DOCUMENT_COLUMNS
    CORPUS/dropped/*.parquet       one row a document left out, columns of DROPPED_COLUMNS
    CORPUS/dead_letters/*.jsonl    one object a record that could not be read
    CORPUS/manifest.json           counts by source; its presence means the corpus is whole

Tokens (written by `data_beam.tokenize`):

    TOKENS/tokenizer.model                              the SentencePiece model they were made with
    TOKENS/SPLIT/SOURCE-00000-of-00004.array_record     one record a document (see encode_record)
    TOKENS/SPLIT/SOURCE-00000-of-00004.index.parquet    one row a record: id, tokens, bytes
    TOKENS/SPLIT/manifest.json                          counts, checksums, tokenizer hash

A shard holds documents of one source, those whose stable hash of the id falls to it, sorted by
that hash: a global shuffle that is the same whatever the number of workers. Tokens of a document
are BOS, the pieces of its text, EOS; both ends come from lengths, never from a search for EOS.
"""

DOCUMENT_COLUMNS = ("id", "text", "source", "domain", "licence", "path", "language", "split",
                    "sha256")
DROPPED_COLUMNS = ("id", "source", "path", "stage", "reason")
DEAD_LETTER_FIELDS = ("source", "path", "record", "stage", "reason")
SPLITS = ("train", "validation", "test")
