"""CORPUS/manifest.json: what the corpus holds and how it was made; there only when it is whole."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from apache_beam.io.filesystems import FileSystems

from data_beam.base import json_files
from data_beam.config import RecipeConfig
from data_beam.readers.listing import File, fingerprint
from data_beam.stages import stage_manifest
from maxlm.config.schema import ConfigError, to_plain

NAME = stage_manifest.NAME
_COUNTS = {str: int}
_ENDS = {str: _COUNTS}
_SHAPE = {
    "recipe": dict, "recipe_sha256": str,
    "inputs": {"files": int, "bytes": int, "fingerprint": str},
    "loaded": {str: str},
    "total": _COUNTS,
    "sources": {str: {
        "domain": str, "licence": str, "files": int, "read": int, "kept": int, "dropped": _ENDS,
        "dead_letters": _ENDS, "characters": int, "bytes": int, "splits": _COUNTS,
        "languages": _COUNTS}},
    "outputs": [{"file": str, "rows": int, "bytes": int, "sha256": str}],
}


def identity(recipe: RecipeConfig, listing: Sequence[File]) -> dict[str, Any]:
    """The part of a manifest known before the run: it must be equal for a run to be the same.

    Raises:
      ConfigError: a model or list that the recipe names does not exist.
    """
    plain = to_plain(recipe)
    canonical = json.dumps(plain, sort_keys=True, ensure_ascii=False)
    return {
        "recipe": plain,
        "recipe_sha256": hashlib.sha256(canonical.encode("utf-8")).hexdigest(),
        "inputs": {"files": len(listing), "bytes": sum(file.size for file in listing),
                   "fingerprint": fingerprint(listing)},
        "loaded": {path: digest for of_stage in stage_manifest.loaded_files(recipe).values()
                   for path, digest in of_stage.items()},
    }


def read(output: str) -> dict[str, Any] | None:
    """The manifest of a whole corpus, or None where there is none.

    Raises:
      ConfigError: the file is there but is no manifest.
    """
    path = FileSystems.join(output, NAME)
    if not FileSystems.exists(path):
        return None
    try:
        return json_files.read(path, _SHAPE)
    except json_files.NotThisKind as error:
        raise ConfigError(f"--output: {path} is damaged or no manifest of a corpus ({error}); "
                          "choose another --output, or remove it and run again") from None


def of_corpus(recipe: RecipeConfig, listing: Sequence[File],
              stages: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The manifest of a corpus from the sums of its stages, all of them or all but the report.

    Raises:
      ConservationError: documents read are not kept + dropped + dead letters.
    """
    first, last = stages["extract"], stages["finish"]
    sources = {}
    for source in recipe.sources:
        counts = last["sources"][source.name]
        sources[source.name] = {
            "domain": source.domain, "licence": source.licence, **counts,
            **{key: first["sources"][source.name][key] for key in ("files", "read")},
            "input_bytes": sum(file.size for file in listing if file.source == source.name)}
    stage_manifest.check_conservation(sources)
    total = {key: sum(entry[key] for entry in sources.values())
             for key in ("files", "read", "kept", "augmented", "characters", "bytes")}
    for key in ("dropped", "dead_letters"):
        total[key] = sum(stage_manifest.total(entry[key]) for entry in sources.values())
    return {
        "format": "maxlm corpus 3",
        **identity(recipe, listing),
        "total": total,
        "sources": sources,
        "stages": {stage: {key: sum(entry[key] for entry in sums["sources"].values())
                           for key in ("read", "kept")}
                   for stage, sums in stages.items() if "sources" in sums},
        "outputs": sorted([*last["outputs"], *stages.get("report", {}).get("outputs", [])],
                          key=lambda entry: entry["file"]),
        "libraries": stage_manifest.libraries(),
    }
