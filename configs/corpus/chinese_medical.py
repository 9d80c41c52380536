"""A Chinese medical corpus with everything on: an example to take from.

    python -m data_beam.prepare --config=configs/corpus/chinese_medical.py:FOLDER --output=CORPUS

FOLDER holds

    raw/guidelines/     clinical texts: PDF, EPUB, HTML, text, JSON lines ... (domain medicine)
    raw/web/            pages and archives of the web (domain general)
    models/perplexity   python -m data_beam.train_perplexity --language=zh ...
    models/quality      python -m data_beam.train_quality ...
    models/safety       python -m data_beam.train_quality --task=safety ...
    evaluation/*.jsonl  questions that must not be trained on, with `question` and `answer`
    synonyms.tsv        terms and their synonyms, a line each

A record of JSON lines or Parquet may have a field `licence`: it is judged by that. All other
documents count as CC-BY-4.0, so put in these folders only what is under it, or write your licence
below.

What is kept: documents under free licences, in Chinese or English, that pass the published rules
for their language, read like the clean text that the models were trained on, hold no personal data
afterwards, and are no copies of each other.
"""

import ml_collections

from data_beam.config import (
    AugmentConfig,
    CleanConfig,
    DecontaminateConfig,
    DedupConfig,
    EvaluationSetConfig,
    FilterConfig,
    LanguageConfig,
    LicenceConfig,
    MinHashConfig,
    PerplexityConfig,
    PerplexityModelConfig,
    PrivacyConfig,
    QualityConfig,
    RecipeConfig,
    RepeatedTextConfig,
    SafetyConfig,
    SimHashConfig,
)
from data_beam.readers.recipe_inputs import raw_folder
from maxlm.config.schema import to_config_dict


def get_config(folder: str = "medical") -> ml_collections.ConfigDict:
    """The recipe for the files below `folder`."""
    return to_config_dict(RecipeConfig(
        sources=(  # of equal texts the guideline's copy is kept
            raw_folder(f"{folder}/raw/guidelines", "guidelines", "medicine", "CC-BY-4.0"),
            raw_folder(f"{folder}/raw/web", "web", "general", "CC-BY-4.0")),
        clean=CleanConfig(fold_width=True, script="t2s", rejoin_lines=True),
        licence=LicenceConfig(
            allow=("CC0-1.0", "CC-BY", "CC-BY-SA", "MIT", "Apache-2.0"), unknown="quarantine"),
        language=LanguageConfig(languages=("zh", "en"), second_vote="cld2"),
        filters=FilterConfig(rules=(
            "chat_log", "gopher_repetition", "gopher_quality", "fineweb", "ngram_repetition",
            "repeated_sentences", "entropy")),
        perplexity=PerplexityConfig(models=(
            PerplexityModelConfig("zh", f"{folder}/models/perplexity"),)),
        quality=QualityConfig(model=f"{folder}/models/quality", min_score=2.0),
        safety=SafetyConfig(model=f"{folder}/models/safety", default_keywords=True),
        decontaminate=DecontaminateConfig(sets=(
            EvaluationSetConfig("evaluation", f"{folder}/evaluation", "*.jsonl",
                                fields=("question", "answer")),)),
        privacy=PrivacyConfig(enabled=True),
        dedup=DedupConfig(
            lines=RepeatedTextConfig(enabled=True),
            minhash=MinHashConfig(enabled=True), simhash=SimHashConfig(enabled=True)),
        augment=AugmentConfig(synonyms=f"{folder}/synonyms.tsv", max_share=0.1),
    ))
