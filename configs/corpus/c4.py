"""C4's recipe (Raffel et al. 2020, arXiv 1910.10683; numbers as in TensorFlow Datasets): lines that
are sentences, pages with enough of them, no line twice in the whole corpus.

    python -m data_beam.prepare --config=configs/corpus/c4.py:RAW --output=CORPUS

RAW is a folder with files of any format that data_beam knows by its suffix. English and Chinese are
judged, each by its own marks; other languages are dropped. C4 removes spans of three sentences that
occur before; here it is whole lines, as in the code of TensorFlow Datasets.
"""

import ml_collections

from data_beam.config import (
    DedupConfig,
    FilterConfig,
    LanguageConfig,
    RecipeConfig,
    RepeatedTextConfig,
)
from data_beam.filters import C4Config
from data_beam.readers.recipe_inputs import raw_folder
from maxlm.config.schema import to_config_dict


def get_config(root: str = "raw") -> ml_collections.ConfigDict:
    """The recipe for the files below `root`."""
    return to_config_dict(RecipeConfig(
        sources=(raw_folder(root),),
        language=LanguageConfig(languages=("en", "zh")),
        filters=FilterConfig(max_short_line_fraction=1.0, rules=("c4",),
                             c4=C4Config(preset="tfds")),
        dedup=DedupConfig(lines=RepeatedTextConfig(
            enabled=True, min_characters=1, max_documents=1)),
    ))
