"""The folder of a trained model: arrays and other files, and model.json, which is written last.

    MODEL/model.npz     arrays
    MODEL/model.json    kind, training inputs, checksums of the other files

All files are plain data; none is executed or unpickled.
"""

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from apache_beam.io.filesystems import FileSystems

from data_beam.base import files, json_files
from data_beam.sinks import output_folder
from maxlm.config.schema import ConfigError

DESCRIPTION = "model.json"
ARRAYS = "model.npz"
PIECES = "tokenizer.model"
KENLM = "model.binary"
ARPA = "model.arpa"
REPORT = "report.json"
FILES = (ARRAYS, PIECES, KENLM, ARPA, REPORT)  # beside the description
_UNFINISHED = re.compile(r"unfinished-[0-9a-f]{32}")
_SHAPE = {"kind": str, "inputs": dict, "files": {str: str}}


def description_path(folder: str) -> str:
    """The description of a model, which has the checksums of its other files."""
    return FileSystems.join(folder, DESCRIPTION)


def finished(output: str, kind: str, inputs: Mapping[str, Any]) -> dict[str, Any] | None:
    """The description of the model in a folder (absolute path) if it was trained from these inputs,
    JSON values by flag; None without a model. Raises ConfigError if the folder has another model or
    files that this command did not write."""
    def difference(found: Any) -> str | None:
        if found["kind"] != kind:
            return f"holds a {found['kind']}"
        return output_folder.other_inputs(kind, inputs)(found)

    description = output_folder.finished(
        output, DESCRIPTION, lambda path: json_files.read(path, _SHAPE), difference)
    if description is None:
        for name in FILES:
            path = FileSystems.join(output, name)
            if FileSystems.exists(path) and not _is_marked(output, kind):
                raise ConfigError(f"--output: {path} has no {DESCRIPTION}, so this command did not "
                                  "write it; choose another --output or move it away")
        return None
    for name, digest in description["files"].items():
        _checked(FileSystems.join(output, name), digest, "--output")
    return description


def _marker(output: str) -> str:
    return FileSystems.join(output, "unfinished_model")


def _is_marked(output: str, kind: str) -> bool:
    marker = _marker(output)
    return FileSystems.exists(marker) and files.read_bytes(marker).strip() == kind.encode()


def write(output: str, kind: str, inputs: Mapping[str, Any], arrays: Mapping[str, np.ndarray],
          description: Mapping[str, Any], others: Mapping[str, bytes]) -> dict[str, Any]:
    """Writes a model into an existing folder and returns the content of model.json, which has
    `kind`, `inputs` (as for `finished`) and the entries of `description`. An interrupted run leaves
    no model.json; the next run overwrites its files. Equal arrays (numeric, by name) give equal
    bytes; `others` has the content of further files by name."""
    assert not any(array.dtype.hasobject for array in arrays.values()) and set(others) <= {*FILES}
    marker = _marker(output)
    if _is_marked(output, kind):  # an earlier run was interrupted
        files.remove([entry.path for entry in files.match(output, "unfinished-*")
                      if _UNFINISHED.fullmatch(entry.path.rpartition("/")[2])])
    files.write_atomically(marker, output, f"{kind}\n".encode())
    digests = {}
    for name, content in others.items():
        _, digests[name] = files.write_atomically(FileSystems.join(output, name), output, content)
    if arrays:
        _, digests[ARRAYS] = files.write_atomically(
            FileSystems.join(output, ARRAYS), output, lambda handle: _write_arrays(handle, arrays))
    whole = {"kind": kind, **description, "inputs": dict(inputs), "files": digests}
    text = json.dumps(whole, indent=1, ensure_ascii=False) + "\n"
    files.write_atomically(FileSystems.join(output, DESCRIPTION), output,
                           text.encode("utf-8", "replace"))
    files.remove([marker])
    return whole


def _write_arrays(handle: Any, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes the same format as `np.savez`, to a write-only handle. Members have the date
    1980-01-01, so the bytes depend only on the arrays."""
    with zipfile.ZipFile(handle, "w") as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)


class Folder:
    """The folder of a model that is being loaded, local or on any file system that Beam knows.

    `shape` are the required entries of its description, in the format of `json_files.read`. Raises
    ConfigError, which names the setting `field`, if there is no model, a damaged model, or a model
    of another kind.
    """

    def __init__(self, path: str, kind: str, field: str, shape: Mapping[str, Any]):
        self.path, self.field = path, field
        if not path:
            raise ConfigError(f"{field}: must name a folder with a {kind}")
        file = FileSystems.join(path, DESCRIPTION)
        if not FileSystems.exists(file):
            what = (f"contains no {DESCRIPTION}, so it is unfinished or not a model"
                    if FileSystems.exists(path) else "does not exist")
            raise ConfigError(f"{field}: {path} {what}; it must be a folder with a {kind}")
        self.description = _description(file, field, {})
        found = self.description["kind"]
        if found != kind:
            raise ConfigError(f"{field}: {path} contains a {found}, not a {kind}")
        _description(file, field, shape)

    def read(self, name: str) -> bytes:
        """The content of a file, verified by its checksum."""
        digest = self.description["files"].get(name)
        if digest is None:
            raise ConfigError(f"{self.field}: {self.path}/{DESCRIPTION} lists no file {name}")
        return _checked(FileSystems.join(self.path, name), digest, self.field)

    def arrays(self) -> dict[str, np.ndarray]:
        data = self.read(ARRAYS)
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as loaded:
                return {name: loaded[name] for name in loaded.files}
        except (ValueError, zipfile.BadZipFile) as error:
            raise ConfigError(f"{self.field}: {self.path}/{ARRAYS} contains no plain arrays "
                              f"({error})") from None


def _description(path: str, field: str, shape: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return json_files.read(path, {**_SHAPE, **shape})
    except json_files.NotThisKind as error:
        raise ConfigError(f"{field}: {path} is damaged or does not describe a model ({error}); "
                          "remove the folder and train again") from None


def _checked(path: str, digest: str, field: str) -> bytes:
    if not FileSystems.exists(path):
        raise ConfigError(f"{field}: {path} is missing; remove the folder and train again")
    data = files.read_bytes(path)
    if hashlib.sha256(data).hexdigest() != digest:
        raise ConfigError(f"{field}: {path} does not match its checksum in {DESCRIPTION}; remove "
                          "the folder and train again")
    return data
