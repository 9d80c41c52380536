"""The split of a document from the hash of its text."""


def split_of(sha256: str, validation: float, test: float) -> str:
    """`train`, `validation` or `test`.

    The first 64 bits of the hash are a number in [0, 1): below `test` it is test, in the next
    `validation` validation, the rest train. Equal texts always share a split, and raising one
    share moves documents only across its own border.
    """
    position = int(sha256[:16], 16) / 2**64
    if position < test:
        return "test"
    return "validation" if position < test + validation else "train"
