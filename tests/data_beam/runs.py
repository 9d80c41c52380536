"""Small recipes, runs of `prepare` on them, and what the runs wrote."""

import hashlib
import io
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import sentencepiece

from data_beam import prepare
from data_beam.config import InputConfig, RecipeConfig, SourceConfig
from data_beam.readers.listing import File
from data_beam.runners import beam_options
from data_beam.stages import stage_manifest
from data_beam.stages.run import run_stage

TWO_PROCESSES = ("--runner=FnApiRunner", "--direct_running_mode=multi_processing",
                 "--direct_num_workers=2")


def text_recipe(root: Path, pattern: str = "*", shards: int = 1, **sections: Any) -> RecipeConfig:
    """A recipe with one source of text files."""
    return RecipeConfig(shards=shards, sources=(SourceConfig("s", "general", "CC0-1.0", (
        InputConfig(str(root), pattern, "text"),)),), **sections)


def write_config(folder: Path, raw: Path, inputs: str = "InputConfig({root!r}, '**', 'text')"
                 ) -> Path:
    """A file for `--config`: a recipe of the text files below `raw`, or of these inputs."""
    config = folder / "recipe.py"
    config.write_text(
        "from data_beam.config import *\nfrom maxlm.config.schema import to_config_dict\n"
        "def get_config():\n    return to_config_dict(RecipeConfig(shards=2, sources=(SourceConfig("
        f"'s', 'd', 'CC0-1.0', ({inputs.format(root=str(raw))},)),)))\n")
    return config


def run(recipe: RecipeConfig, output: Path, *options: str, **arguments: Any) -> Any:
    """The manifest of the corpus that `prepare` makes with these Beam options."""
    return prepare.prepare(recipe, str(output), beam_options.pipeline_options(options),
                           **arguments)


def run_in_order(recipe: RecipeConfig, listing: Sequence[File], output: Path) -> None:
    """Makes the corpus, without its manifest, from the input files in this order."""
    temporary = output / "_temporary"
    temporary.mkdir(parents=True)
    done: dict[str, Any] = {}
    for stage in stage_manifest.STAGES:
        done[stage] = run_stage(stage, recipe, listing, str(output), str(temporary), done,
                                beam_options.pipeline_options([]))
    shutil.rmtree(temporary)
    shutil.rmtree(output / "stages", ignore_errors=True)


def contents(output: Path) -> dict[str, str]:
    """SHA-256 of every file by relative path."""
    return {str(path.relative_to(output)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(output.rglob("*")) if path.is_file()}


def sentencepiece_model(texts: Iterable[str], **arguments: Any) -> bytes:
    """A model that keeps texts as they are, with pad 0, BOS 1, EOS 2 and unknown 3; `arguments` of
    the trainer add to these or replace them."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(  # pyright: ignore
        sentence_iterator=iter(texts), model_writer=model, **{
            "pad_id": 0, "bos_id": 1, "eos_id": 2, "unk_id": 3, "minloglevel": 2,
            "normalization_rule_name": "identity", "add_dummy_prefix": False,
            "remove_extra_whitespaces": False, **arguments})
    return model.getvalue()
