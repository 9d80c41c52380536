"""All parts of the corpus, and the recipe with everything on."""

from pathlib import Path
from typing import Any

from data_beam.config import (
    AugmentConfig,
    DecontaminateConfig,
    DedupConfig,
    EvaluationSetConfig,
    FilterConfig,
    InputConfig,
    KeywordListConfig,
    LanguageConfig,
    LicenceConfig,
    LimitConfig,
    MinHashConfig,
    PerplexityConfig,
    PerplexityModelConfig,
    PrivacyConfig,
    QualityConfig,
    RecipeConfig,
    RepeatedTextConfig,
    SafetyConfig,
    SimHashConfig,
    SourceConfig,
    SplitConfig,
)
from data_beam.filters import C4Config, C4Thresholds
from tests.data_beam.mini_corpus import (
    books,
    cleaning,
    copies,
    filters,
    formats,
    models,
    reading,
    unwanted,
)
from tests.data_beam.mini_corpus.corpus import FREE, MiniCorpus

RULES = ("chat_log", "entropy", "ngram_repetition", "repeated_sentences", "gopher_quality",
         "gopher_repetition", "chinese_web_text", "nemo", "c4", "fineweb", "roots")
"""The special filters come before the general ones, which would hide them."""


SYNONYMS = {"高血压": "血压升高", "病人": "患者", "patients": "sick people", "drug": "medicine"}
"""Terms, and what augmentation writes in their place."""


def make() -> MiniCorpus:
    """All files and labels."""
    corpus = MiniCorpus()
    for part in (reading, formats, cleaning, filters, books, unwanted, copies):
        part.add(corpus)
    return corpus


def write(corpus: MiniCorpus, folder: Path) -> None:
    """Writes the raw files, the models and the evaluation set that the recipe names."""
    corpus.write(folder / "raw")
    (folder / "models").mkdir()
    models.train(folder / "models")
    (folder / "keywords.txt").write_text(unwanted.KEYWORDS, "utf-8")
    (folder / "synonyms.tsv").write_text("".join(
        f"{term}\t{other}\n" for term, other in SYNONYMS.items()), "utf-8")
    (folder / "evaluation").mkdir()
    (folder / "evaluation/quiz.jsonl").write_text(unwanted.QUIZ, "utf-8")


def recipe(folder: Path) -> RecipeConfig:
    """Everything on.

    Args:
      folder: with what `write` wrote.
    """
    raw, trained = folder / "raw", folder / "models"

    def files(pattern: str, format: str, **fields: Any) -> InputConfig:
        return InputConfig(str(raw), pattern, format, **fields)

    row = {"licence_field": "licence", "url_field": "url"}
    # Without the rule on the ends of lines, as FineWeb runs it. A paragraph ends with an empty
    # line, which C4 takes away, but where it asks for no words in a line.
    en = C4Thresholds(require_end_mark=False)
    zh = C4Thresholds(require_end_mark=False, min_words_per_line=0)
    return RecipeConfig(
        sources=(
            SourceConfig("web", "general", FREE, (
                files("web/*.html", "html"), files("web/*.txt", "text"),
                files("web/*.md", "markdown"))),
            SourceConfig("rows", "domain", FREE, (files("rows/*", "jsonl", **row),)),
            SourceConfig("archive", "general", FREE, (
                files("archive/*.warc*", "warc"), files("archive/*.parquet", "parquet"),
                files("archive/*.json", "json"), files(
                    "archive/*.sqlite", "sqlite", query="SELECT text FROM posts ORDER BY place"))),
            SourceConfig("packages", "code", FREE, (
                files("packages/*.metadata", "package_description"),
                files("packages/*.py", "docstrings"))),
            SourceConfig("books", "domain", FREE, (
                files("books/*.pdf", "pdf"), files("books/*.epub", "epub"),
                files("books/*.txt", "text"))),
            SourceConfig("mirror", "general", FREE, (files("mirror/*", "jsonl", **row),)),
            SourceConfig("code", "code", "Apache-2.0", (files("code/*", "code"),)),
        ),
        filters=FilterConfig(rules=RULES, c4=C4Config(en=en, zh=zh)),
        language=LanguageConfig(second_vote="cld2", languages=("zh", "en", "ja", "und")),
        licence=LicenceConfig(("CC-BY", "CC0-1.0", "MIT", "Apache-2.0")),
        perplexity=PerplexityConfig((
            PerplexityModelConfig("en", str(trained / "en"), max_perplexity=20.0),
            PerplexityModelConfig("zh", str(trained / "zh"), max_perplexity=950.0))),
        quality=QualityConfig(str(trained / "quality")),
        safety=SafetyConfig(str(trained / "safety"), default_keywords=True, keywords=(
            KeywordListConfig("zh", str(folder / "keywords.txt")),)),
        decontaminate=DecontaminateConfig((EvaluationSetConfig(
            "quiz", str(folder / "evaluation"), "quiz.jsonl", "jsonl", ("question", "choices")),)),
        privacy=PrivacyConfig(enabled=True, passport="drop"),
        dedup=DedupConfig(
            minhash=MinHashConfig(True), simhash=SimHashConfig(True),
            lines=RepeatedTextConfig(True), paragraphs=RepeatedTextConfig(True, 100)),
        augment=AugmentConfig(synonyms=str(folder / "synonyms.tsv")),
        split=SplitConfig(0.1, 0.1), limits=LimitConfig(reading.LONGEST_RECORD), shards=3)
