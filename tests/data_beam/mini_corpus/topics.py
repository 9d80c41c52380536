"""Prose of the labelled corpus, written for these tests: some sentences on each of 30 subjects, and
advertisements."""

from pathlib import Path


def _topics(name: str, colon: str) -> dict[str, list[str]]:
    """Sentences by subject: a block each, whose first line begins with the subject."""
    text = (Path(__file__).parent / f"{name}.txt").read_text("utf-8")
    blocks = (block.partition(colon) for block in text.strip().split("\n\n"))
    return {subject: sentences.split("\n") for subject, _, sentences in blocks}


ENGLISH, CHINESE = _topics("english", ": "), _topics("chinese", "：")
SPAM, (EVENINGS,) = _topics("spam", ": "), _topics("evenings", ": ").values()
