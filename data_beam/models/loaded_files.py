"""Which files the model filters of a recipe read."""

from apache_beam.io.filesystems import FileSystems

from data_beam.config import RecipeConfig
from data_beam.models.folder import DESCRIPTION


def all_paths(recipe: RecipeConfig) -> list[tuple[str, str]]:
    """(field of the recipe, path). Of a model its description, which has the checksums of the rest.
    """
    folders = [(f"config.perplexity.models[{i}].model", entry.model)
               for i, entry in enumerate(recipe.perplexity.models)]
    folders += [(f"config.{name}.model", path) for name, path in (
        ("quality", recipe.quality.model), ("safety", recipe.safety.model)) if path]
    lists = [(f"config.safety.keywords[{i}].file", entry.file)
             for i, entry in enumerate(recipe.safety.keywords)]
    return [(field, FileSystems.join(path, DESCRIPTION)) for field, path in folders] + lists
