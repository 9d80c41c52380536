"""The recipe that benchmarks.corpus measures: the stages that datatrove runs beside it.

    python -m data_beam.prepare --config=benchmarks/corpus_recipe.py:FOLDER --output=CORPUS
"""

import ml_collections

from data_beam.config import (
    DedupConfig,
    FilterConfig,
    InputConfig,
    MinHashConfig,
    RecipeConfig,
    SourceConfig,
)
from maxlm.config.schema import to_config_dict

RULES = ("gopher_quality", "gopher_repetition", "c4", "fineweb")
BANDS, ROWS, WORD_NGRAM = 14, 8, 5


def get_config(root: str = "documents") -> ml_collections.ConfigDict:
    """JSON lines under `root` through Gopher, C4, FineWeb and MinHash (14 x 8, 5-grams)."""
    return to_config_dict(RecipeConfig(
        sources=(SourceConfig("documents", "general", "unknown", (
            InputConfig(root, "*.jsonl", "jsonl"),),
            language="en"),),  # which datatrove takes for granted too
        filters=FilterConfig(min_characters=1, max_short_line_fraction=1.0, rules=RULES),
        # Splits of their own for similar documents are no work that datatrove does.
        dedup=DedupConfig(minhash=MinHashConfig(
            enabled=True, permutations=BANDS * ROWS, bands=BANDS, rows=ROWS, word_ngram=WORD_NGRAM,
            split_similarity=1.0)),
        shards=8))
