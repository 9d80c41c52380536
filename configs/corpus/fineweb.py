"""FineWeb's recipe for web archives (Penedo et al. 2024, arXiv 2406.17557), for English.

    python -m data_beam.prepare --config=configs/corpus/fineweb.py:RAW --output=CORPUS

RAW is a folder with files of any format that data_beam knows by its suffix, WARC files of Common
Crawl among them. Text by trafilatura; Gopher's repetition and quality; C4 without its rule on the
ends of lines; FineWeb's own rules; near copies by 14 bands of 8 rows over 5-grams of words; e-mail
and public IP addresses replaced. Other languages are dropped.
"""

import dataclasses

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
from data_beam.filters import C4Config
from data_beam.readers.recipe_inputs import raw_folder
from maxlm.config.schema import to_config_dict


def get_config(root: str = "raw") -> ml_collections.ConfigDict:
    """The recipe for the files below `root`."""
    c4 = C4Config(preset="datatrove")
    return to_config_dict(RecipeConfig(
        sources=(raw_folder(root),),
        language=LanguageConfig(languages=("en",), min_score=0.65),
        extract=ExtractConfig(html="trafilatura"),
        filters=FilterConfig(
            max_short_line_fraction=1.0,
            rules=("gopher_repetition", "gopher_quality", "c4", "fineweb"),
            c4=dataclasses.replace(
                c4, en=dataclasses.replace(c4.en, require_end_mark=False))),
        privacy=PrivacyConfig(
            enabled=True, phone="keep", resident_id="keep", ssn="keep", card="keep",
            passport="keep", plate="keep"),
        dedup=DedupConfig(minhash=MinHashConfig(
            enabled=True, threshold=0.75, permutations=112, bands=14, rows=8)),
    ))
