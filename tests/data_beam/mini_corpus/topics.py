"""Prose of the labelled corpus: some sentences on each of 30 subjects, written for these tests."""

from pathlib import Path


def _topics(language: str, colon: str) -> dict[str, list[str]]:
    """Sentences by subject: a block each, whose first line begins with the subject."""
    text = (Path(__file__).parent / f"{language}.txt").read_text("utf-8")
    blocks = (block.partition(colon) for block in text.strip().split("\n\n"))
    return {subject: sentences.split("\n") for subject, _, sentences in blocks}


ENGLISH, CHINESE = _topics("english", ": "), _topics("chinese", "：")
