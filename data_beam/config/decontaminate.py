"""Evaluation sets that a corpus must not contain."""

import dataclasses

from data_beam.config.checks import check_idle, check_not_empty, check_unique
from maxlm.config.schema import ConfigError, setting

EVALUATION_FORMATS = ("jsonl", "json", "parquet", "text")


@dataclasses.dataclass(frozen=True)
class EvaluationSetConfig:
    """The files of one evaluation set."""

    name: str = setting(dataclasses.MISSING, "names the set in what is reported")
    root: str = setting(dataclasses.MISSING, "directory (or gs:// prefix)")
    pattern: str = setting(dataclasses.MISSING, "glob under root, for example mmlu/test/*.jsonl")
    format: str = setting(
        "jsonl", "jsonl: an object a line; json: an array of objects; parquet: a row an item; "
        "text: a paragraph an item. Compression is recognised", choices=EVALUATION_FORMATS)
    fields: tuple[str, ...] = setting(
        (), "fields whose texts are searched for, each by itself: question, answer, choices ...; "
        "none for text")
    questions: tuple[str, ...] = setting(
        (), "of the fields, those of which a match alone is evidence; empty: the first. A match in "
        "another field needs the question of its item in the same document, or twice the length of "
        "an n-gram")

    def check(self, path: str) -> None:
        check_not_empty(self, path, "name", "root", "pattern")
        if (self.format == "text") == bool(self.fields):
            raise ConfigError(f"{path}.fields: format {self.format!r} " + (
                "has no fields; leave it empty" if self.fields else "needs at least one"))
        for name in self.questions:
            if name not in self.fields:
                raise ConfigError(f"{path}.questions: {name!r} is not in {path}.fields")


@dataclasses.dataclass(frozen=True)
class DecontaminateConfig:
    """Documents that contain parts of evaluation sets. Off while `sets` is empty.

    A part is an n-gram of words, or of characters in Chinese, Japanese and other texts without
    spaces.
    """

    sets: tuple[EvaluationSetConfig, ...] = setting((), "evaluation sets")
    words: int = setting(13, "words of an n-gram (GPT-3: 13)", minimum=1)
    min_words: int = setting(
        8, "a shorter text of an evaluation set is searched for as a whole if it has this many "
        "words (GPT-3: 8), else not at all", minimum=1)
    characters: int = setting(
        20, "characters of an n-gram in texts without spaces: 13 Chinese words are 22 (measured on "
        "a novel)", minimum=1)
    min_characters: int = setting(13, "as min_words, in characters: 8 words are 13", minimum=1)
    max_overlap: float = setting(
        0.0, "share of a document's words (characters) in parts of evaluation sets up to which it "
        "is kept unchanged; 0 acts on any", minimum=0.0, maximum=0.99)
    action: str = setting(
        "drop", "drop the document, or remove the passages", choices=("drop", "remove"))
    window: int = setting(
        200, "remove: characters also removed on each side of a part (GPT-3: 200)", minimum=0)
    max_removed: float = setting(
        0.5, "remove: a document that would lose a larger share of its characters is dropped",
        minimum=0.0, maximum=1.0)

    def check(self, path: str) -> None:
        for unit in ("words", "characters"):
            if getattr(self, f"min_{unit}") > getattr(self, unit):
                raise ConfigError(f"{path}.min_{unit}: must be at most {path}.{unit} "
                                  f"({getattr(self, unit)})")
        check_unique([each.name for each in self.sets], f"{path}.sets")
        if not self.sets and self != DecontaminateConfig():
            raise ConfigError(f"{path}.sets: is empty, so the other fields of {path} do nothing; "
                              "name the evaluation sets")
        if self.action == "drop":
            check_idle(self, path, f"{path}.action is 'drop'", "set it to 'remove'",
                       only=("window", "max_removed"))
