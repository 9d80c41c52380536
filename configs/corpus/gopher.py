"""Gopher's recipe (Rae et al. 2021, arXiv 2112.11446): quality, repetition, near copies.

    python -m data_beam.prepare --config=configs/corpus/gopher.py:RAW --output=CORPUS

RAW is a folder with files of any format that data_beam knows by its suffix. English and Chinese are
judged, each by its own thresholds; other languages are dropped.
"""

import ml_collections

from data_beam.config import DedupConfig, FilterConfig, LanguageConfig, MinHashConfig, RecipeConfig
from data_beam.readers.recipe_inputs import raw_folder
from maxlm.config.schema import to_config_dict


def get_config(root: str = "raw") -> ml_collections.ConfigDict:
    """The recipe for the files below `root`."""
    return to_config_dict(RecipeConfig(
        sources=(raw_folder(root),),
        language=LanguageConfig(languages=("en", "zh")),
        filters=FilterConfig(max_short_line_fraction=1.0,
                             rules=("gopher_repetition", "gopher_quality")),
        # Near copies as in the paper: 13-grams of words, similarity 0.8.
        dedup=DedupConfig(minhash=MinHashConfig(
            enabled=True, threshold=0.8, word_ngram=13, character_ngram=26)),
    ))
