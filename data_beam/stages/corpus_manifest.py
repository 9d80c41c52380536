"""CORPUS/manifest.json: what the corpus contains and how it was made; written last."""

from collections.abc import Sequence
from typing import Any

from data_beam.config import RecipeConfig
from data_beam.readers.listing import File, fingerprint
from data_beam.stages import stage_manifest
from maxlm.config.schema import to_plain

NAME = stage_manifest.NAME
_COUNTS = {str: int}
_OUTCOMES = {str: _COUNTS}
SOURCE = {
    "domain": str, "licence": str, "files": int, "read": int, "kept": int, "dropped": _OUTCOMES,
    "dead_letters": _OUTCOMES, "characters": int, "bytes": int, "splits": _COUNTS,
    "languages": _COUNTS}
SHAPE = {
    "recipe": dict, "recipe_sha256": str,
    "inputs": {"files": int, "bytes": int, "fingerprint": str},
    "loaded": {str: str},
    "total": _COUNTS,
    "sources": {str: SOURCE},
    "outputs": [{"file": str, "rows": int, "bytes": int, "sha256": str}],
}


def identity(recipe: RecipeConfig, listing: Sequence[File]) -> dict[str, Any]:
    """The part of a manifest that is known before the run: runs of the same corpus have the same.
    Raises ConfigError if a model or list that the recipe names does not exist."""
    plain = to_plain(recipe)
    return {
        "recipe": plain,
        "recipe_sha256": stage_manifest.digest(plain),
        "inputs": {"files": len(listing), "bytes": sum(file.size for file in listing),
                   "fingerprint": fingerprint(listing)},
        "loaded": {path: digest for of_stage in stage_manifest.loaded_files(recipe).values()
                   for path, digest in of_stage.items()},
    }


def of_corpus(recipe: RecipeConfig, listing: Sequence[File],
              stages: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The manifest of a corpus from the sums of its stages, with or without those of `report`.

    `made` is when the first stage started and how long all but `report` ran. It decides nothing:
    with the environment variable SOURCE_DATE_EPOCH equal inputs give equal bytes. Raises
    ConservationError if documents read are not kept + dropped + dead letters.
    """
    first, last = stages["extract"], stages["finish"]
    run_times = [sums["made"] for stage, sums in stages.items() if stage != "report"]
    sources = {}
    for source in recipe.sources:
        counts = last["sources"][source.name]
        sources[source.name] = {
            "domain": source.domain, "licence": source.licence, **counts,
            "dropped_characters": stage_manifest.add_counts(
                sums["sources"][source.name]["dropped_characters"]
                for sums in stages.values() if "sources" in sums),
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
        "made": {"started": min(entry["started"] for entry in run_times),
                 "seconds": None if None in (seconds := [entry["seconds"] for entry in run_times])
                 else round(sum(seconds), 1)},
    }
