"""The manifest of a stage: by source, what it read is what it kept, dropped and could not read.

    CORPUS/stages/NAME/manifest.json

is written last, so its presence means that the stage is complete. Its fingerprint covers the
inputs, the settings of this stage and of those before, and the versions of the libraries that
influence decisions. The files of `finish` are those of the corpus itself. The last stage, `report`,
has no manifest: the one of the corpus follows it.
"""

import contextlib
import datetime
import hashlib
import importlib.metadata
import json
import os
import time
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from apache_beam.io.filesystems import FileSystems

from data_beam.base import files, json_files
from data_beam.base.stage_context import KINDS, Report
from data_beam.config import RecipeConfig
from data_beam.filters import chain
from data_beam.readers.listing import File, fingerprint
from data_beam.stages import augmentation
from maxlm.config.schema import to_plain

NAME = "manifest.json"
SECTIONS = {
    "extract": ("sources", "extract", "clean", "limits", "shards"),
    "filter": chain.sections(),
    "dedup": ("dedup",),
    "finish": ("split", "augment"),
    "report": (),
}  # stages in order, and the fields of the recipe that each follows
STAGES = tuple(SECTIONS)

_LIBRARIES = ("resiliparse", "trafilatura", "jusText", "lxml", "lxml_html_clean", "pypdfium2",
              "ftfy", "OpenCC", "pyarrow", "numpy")
"""A newer version of these may give another text or other bytes: each is called by an extractor, or
(jusText, lxml) by trafilatura. Filters declare their own. All stages depend on all of them."""
_OUTCOMES = {str: {str: int}}
_SHAPE = {
    "fingerprint": str,
    "sources": {str: {"files": int, "read": int, "kept": int, "dropped": _OUTCOMES,
                      "dead_letters": _OUTCOMES}},
    "made": dict,
    "outputs": [{"file": str, "rows": int, "bytes": int, "sha256": str}],
}

Outcomes = dict[str, dict[str, int]]  # counts by stage and reason


class ConservationError(RuntimeError):
    """A document without an outcome or with two, a file not read, a shard not written: a bug of
    this program or of its runner, never a fault of the input."""


def run_time(started: float) -> dict[str, Any]:
    """When a stage started and how long it took until now, for its manifest. It decides nothing.

    SOURCE_DATE_EPOCH, as for other reproducible builds, fixes the date and leaves the seconds out.
    """
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    when = datetime.datetime.fromtimestamp(int(fixed or started), datetime.UTC)
    return {"started": when.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "seconds": None if fixed else round(time.time() - started, 1)}


def libraries() -> dict[str, str]:
    """Versions of the libraries that decide on a document's text and bytes, where installed."""
    versions = {}
    for name in (*_LIBRARIES, *chain.libraries()):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return {**versions, "unicode": unicodedata.unidata_version}


def digest(value: Any) -> str:
    """SHA-256 of a JSON value."""
    canonical = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(canonical.encode("utf-8")).hexdigest()


def loaded_files(recipe: RecipeConfig) -> dict[str, dict[str, str]]:
    """SHA-256 of the models, lists and evaluation files that the stages load, by stage and path.
    Raises ConfigError if one does not exist."""
    return {"filter": chain.loaded_files(recipe), "finish": augmentation.files_read(recipe)}


def fingerprints(recipe: RecipeConfig, listing: Sequence[File]) -> dict[str, str]:
    """What the output of each stage depends on, as a hash. Raises ConfigError if a model or list
    that the recipe names does not exist."""
    plain = to_plain(recipe)
    result = {}
    loaded = loaded_files(recipe)
    before = digest([fingerprint(listing), libraries()])
    for stage, sections in SECTIONS.items():
        before = digest([stage, before, {name: plain[name] for name in sections},
                          loaded.get(stage, {})])
        result[stage] = before
    return result


def read(manifest_dir: str, folder: str) -> dict[str, Any] | None:
    """The manifest of a complete stage, or None: there is none, or it is damaged, or a file that it
    lists is missing from the stage's folder or has another size. Then a line says that the stage is
    done again."""
    path = FileSystems.join(manifest_dir, NAME)
    if not FileSystems.exists(path):
        return None
    try:
        manifest = json_files.read(path, _SHAPE)
    except json_files.NotThisKind:
        _say_again(manifest_dir, f"{path} is damaged")
        return None
    root = folder.rstrip("/") + "/"
    found = {entry.path[len(root):]: entry.size_in_bytes for entry in files.match(folder, "**")}
    for entry in manifest["outputs"]:
        size = found.get(entry["file"])
        if size != entry["bytes"]:
            _say_again(manifest_dir, f"{root}{entry['file']} " + (
                "is missing" if size is None else f"has {size:,} bytes of {entry['bytes']:,}"))
            return None
    return manifest


def _say_again(manifest_dir: str, reason: str) -> None:
    print(f"{manifest_dir.rstrip('/').rpartition('/')[2]}: done again, as {reason}", flush=True)


def read_reports(temporary: str) -> list[Report]:
    """What the writers of a stage reported."""
    return [json.loads(files.read_bytes(entry.path))
            for entry in files.match(FileSystems.join(temporary, "reports"), "*.json")]


def outputs(reports: Iterable[Report]) -> list[dict[str, Any]]:
    """The entries of a manifest for the files of these reports."""
    entries = ({key: report[key] for key in ("file", "rows", "bytes", "sha256")}
               for report in reports if "file" in report)
    return sorted(entries, key=lambda entry: entry["file"])


def add_counts(parts: Iterable[Outcomes]) -> Outcomes:
    """Sums by stage and reason, in the order of their names."""
    sums: dict[str, Counter[str]] = {}
    for part in parts:
        for stage, reasons in part.items():
            sums.setdefault(stage, Counter()).update(reasons)
    return {stage: dict(sorted(reasons.items())) for stage, reasons in sorted(sums.items())}


def total(outcomes: Outcomes) -> int:
    """Documents of all stages and reasons."""
    return sum(sum(reasons.values()) for reasons in outcomes.values())


def combine(recipe: RecipeConfig, reports: Sequence[Report], read: dict[str, int] | None
            ) -> dict[str, Any]:
    """Sums of a stage from its reports: `sources` and `outputs` of its manifest. `reports` are
    those of all files, and of all sources in the first stage; `read` are the documents that the
    stage before kept, by source, None for the first.

    Raises ConservationError if documents read are not kept + dropped + dead letters, or a part is
    missing.
    """
    sources: dict[str, dict[str, Any]] = {
        source.name: {"files": 0, "read": 0, "kept": 0, "augmented": 0, "dropped": {},
                      "dead_letters": {}, "dropped_characters": {}, "characters": 0, "bytes": 0,
                      "splits": Counter(), "languages": Counter()} for source in recipe.sources}
    written = outputs(reports)
    for report in reports:
        if "file" not in report:
            for key in ("files", "read"):
                sources[report["source"]][key] += report[key]
            continue
        kind = report["file"].partition("/")[0]
        for name, count in report.get("read", {}).items():
            sources[name]["read"] += count
        for name, counts in report.get("dropped_characters", {}).items():
            entry = sources[name]
            entry["dropped_characters"] = add_counts([entry["dropped_characters"], counts])
        for name, counts in report.get("sources", {}).items():
            entry = sources[name]
            if kind in ("dropped", "dead_letters"):
                entry[kind] = add_counts([entry[kind], counts])
                continue
            for key, of in (("kept", "documents"), ("characters",) * 2, ("bytes",) * 2):
                entry[key] += counts[of]
            entry["augmented"] += counts.get("augmented", 0)
            for key in ("splits", "languages"):
                entry[key].update(counts[key])
    for kind in KINDS:
        count = sum(entry["file"].startswith(f"{kind}/") for entry in written)
        if count != recipe.shards:
            raise ConservationError(f"{count} of {recipe.shards} shards of {kind} were written")
    for name, entry in sources.items():
        for key in ("splits", "languages"):
            entry[key] = dict(sorted(entry[key].items()))
        if read is not None and entry["read"] != read[name]:
            raise ConservationError(f"source {name!r}: {entry['read']} documents read, but the "
                                    f"stage before kept {read[name]}")
    return {"sources": sources, "outputs": written}


def check_conservation(sources: dict[str, dict[str, Any]]) -> None:
    """Raises ConservationError unless every document (made ones too) has exactly one outcome."""
    for name, entry in sources.items():
        dropped, dead = total(entry["dropped"]), total(entry["dead_letters"])
        if entry["read"] + entry["augmented"] != entry["kept"] + dropped + dead:
            made = f" and {entry['augmented']} made" if entry["augmented"] else ""
            raise ConservationError(
                f"source {name!r}: {entry['read']} documents read{made}, but {entry['kept']} kept "
                f"+ {dropped} dropped + {dead} dead letters")


def check_files(sources: dict[str, dict[str, Any]], listing: Sequence[File]) -> None:
    """Raises ConservationError unless every file was read."""
    for name, entry in sources.items():
        listed = sum(file.source == name for file in listing)
        if entry["files"] != listed:
            raise ConservationError(
                f"source {name!r}: {entry['files']} of {listed} files were read")


def write(folder: str, temporary: str, manifest: dict[str, Any]) -> None:
    """Writes the manifest of a stage or of the corpus, as its last file."""
    data = (json.dumps(manifest, indent=1, ensure_ascii=False) + "\n").encode("utf-8")
    files.write_atomically(FileSystems.join(folder, NAME), temporary, data)
