"""A dry run ends with the words of a run that cannot begin, and writes as little."""

import dataclasses
import hashlib
from pathlib import Path

import pytest

from data_beam.config import FilterConfig, InputConfig, RecipeConfig, SourceConfig
from data_beam.stages import stage_manifest, start
from maxlm.config.schema import ConfigError
from tests.data_beam.runs import run, text_recipe


def recipe_of(root: Path) -> RecipeConfig:
    return text_recipe(root / "raw", "**")


def tree(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
            if path.is_file() else "" for path in sorted(root.rglob("*"))}


@pytest.fixture
def root(tmp_path) -> Path:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.txt").write_text("The river rose in the night. " * 20)
    return tmp_path


def refuse_both(root: Path, recipe: RecipeConfig, output: Path, stages=stage_manifest.STAGES,
                replace: bool = False) -> str:
    """What both say."""
    before = tree(root)
    said = []
    for attempt in (lambda: run(recipe, output, stages=stages, replace=replace),
                    lambda: start.show(recipe, str(output), stages, replace)):
        with pytest.raises(ConfigError) as caught:
            attempt()
        said.append(str(caught.value))
    assert said[0] == said[1] and tree(root) == before
    return said[0]


def test_a_folder_with_other_files(root):
    (root / "mine").mkdir()
    (root / "mine" / "thesis.tex").write_text("years")
    assert "contains files this command did not write (thesis.tex)" in refuse_both(
        root, recipe_of(root), root / "mine")
    assert "is, or lies below, a file" in refuse_both(
        root, recipe_of(root), root / "mine" / "thesis.tex")
    assert "is, or lies below, a file" in refuse_both(
        root, recipe_of(root), root / "mine" / "thesis.tex" / "below")


def test_inputs_that_are_not_there_and_a_stage_that_needs_another(root):
    assert "filter needs extract" in refuse_both(
        root, recipe_of(root), root / "out", ("filter",))
    (root / "raw" / "a.txt").unlink()
    assert "no file matches" in refuse_both(root, recipe_of(root), root / "out")


def test_an_output_that_an_input_would_read(root):
    assert "would read the corpus as its own (out/documents/" in refuse_both(
        root, recipe_of(root), root / "raw" / "out")
    (root / "link").symlink_to(root / "raw")
    refuse_both(root, recipe_of(root), root / "link")
    # A pattern that matches no file of a corpus may have the output in its folder.
    for pattern, exclude in (("*.txt", ()), ("**", ("out/*",))):
        recipe = RecipeConfig(sources=(SourceConfig("s", "d", "CC0-1.0", (
            InputConfig(str(root / "raw"), pattern, "text", exclude=exclude),)),))
        start.check(recipe, str(root / "raw" / "out"))


def test_the_corpus_of_another_recipe(root, capsys):
    recipe, output = recipe_of(root), root / "out"
    run(recipe, output)
    start.show(recipe, str(output))
    assert "already, complete and of this recipe: nothing to do" in capsys.readouterr().out
    other = dataclasses.replace(recipe, filters=FilterConfig(min_characters=30))
    assert "holds a corpus of another recipe" in refuse_both(root, other, output)
    start.show(other, str(output), replace=True)
    assert "of another recipe or other files, is replaced" in capsys.readouterr().out
    (output / "notes.txt").write_text("mine")
    assert "other files too (notes.txt)" in refuse_both(root, other, output, replace=True)
    next((output / "documents").iterdir()).unlink()
    assert "is missing" in refuse_both(root, recipe, output)
