"""FineWeb-2's recipe for Chinese (Penedo et al. 2025, arXiv 2506.20920; thresholds of `cmn_Hani`).

    python -m data_beam.prepare --config=configs/corpus/fineweb2_zh.py:RAW --output=CORPUS

RAW is a folder with files of any format that data_beam knows by its suffix, WARC files of Common
Crawl among them. Text by trafilatura; Chinese only; Gopher's repetition and quality and FineWeb's
rules with the thresholds for Chinese; near copies by 14 bands of 8 rows, over 5-grams of characters
where FineWeb-2 takes words.

One threshold is not that of `cmn_Hani`: its `language_score` of 0.692 is for GlotLID. The language
here is named by fastText's lid.176, another model whose scores are not on that scale, so that
`min_score` is 0.65, which FineWeb takes for lid.176.
"""

import ml_collections

from data_beam.config import (
    DedupConfig,
    ExtractConfig,
    FilterConfig,
    LanguageConfig,
    MinHashConfig,
    PrivacyConfig,
    RecipeConfig,
)
from data_beam.readers.recipe_inputs import raw_folder
from maxlm.config.schema import to_config_dict


def get_config(root: str = "raw") -> ml_collections.ConfigDict:
    """The recipe for the files below `root`."""
    return to_config_dict(RecipeConfig(
        sources=(raw_folder(root),),
        language=LanguageConfig(languages=("zh",), min_score=0.65),
        extract=ExtractConfig(html="trafilatura"),
        filters=FilterConfig(
            max_short_line_fraction=1.0,
            rules=("gopher_repetition", "gopher_quality", "fineweb")),
        privacy=PrivacyConfig(
            enabled=True, phone="keep", resident_id="keep", ssn="keep", card="keep",
            passport="keep", plate="keep"),
        dedup=DedupConfig(minhash=MinHashConfig(
            enabled=True, threshold=0.75, permutations=112, bands=14, rows=8)),
    ))
