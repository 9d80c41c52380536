"""`gs://` folders, in a server that speaks Google Cloud Storage's protocol."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

TEXTS = ["A sentence about the history of tea, long enough to be kept by every rule, number 1.",
         "茶的历史可以追溯到很久以前。茶起源于中国，后来沿着商路传到整个亚洲，成为人们的饮料。" * 2,
         "Another text, about rivers and the towns along them, kept by every rule as well.",
         "short",
         "Another text, about rivers and the towns along them, kept by every rule as well as that."]
RECIPE = """
from data_beam.config import *
from maxlm.config.schema import to_config_dict
def get_config(root):
    return to_config_dict(RecipeConfig(shards=2,
        dedup=DedupConfig(minhash=MinHashConfig(enabled=True),
                          lines=RepeatedTextConfig(enabled=True)),
        sources=(
        SourceConfig("s", "general", "MIT", (InputConfig(root, "**.txt", "text"),)),)))
"""
# The client of the object store retries for long when it finds no credentials.
STORE = """
import json, os, sys
from apache_beam.internal.gcp import auth
auth.get_service_credentials = lambda options: None
from apache_beam.io.filesystems import FileSystems
from data_beam.base import files
from data_beam import prepare, tokenize
texts, recipe, tokenizer, local = json.loads(sys.argv[1])
for i, text in enumerate(texts):
    with FileSystems.create(f"gs://bucket/raw/[{i % 2}]/{i}.txt") as handle:
        handle.write(text.encode())
words = [f"--config={recipe}:gs://bucket/raw", "--output=gs://bucket/out"]
assert prepare.main([*words, "--stages=extract,filter"]) == 0
stage = next(files.match("gs://bucket/out/stages/filter/documents", "*")).path
altered = bytearray(files.read_bytes(stage))
altered[len(altered) // 2] ^= 1
with FileSystems.create(stage) as handle:
    handle.write(bytes(altered))
for attempt in range(2):
    assert prepare.main(words) == 0
assert tokenize.main(["--corpus=gs://bucket/out", f"--tokenizer={tokenizer}",
                      "--output=gs://bucket/tokens"]) == 0
for name in ("out", "tokens"):
    for entry in files.match(f"gs://bucket/{name}", "**"):
        path = os.path.join(local, entry.path.removeprefix("gs://bucket/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as handle:
            handle.write(files.read_bytes(entry.path))
"""


@pytest.fixture
def store():
    """Environment in which gs:// is a server of this test."""
    for name in ("gcp_storage_emulator", "google.cloud.storage"):
        pytest.importorskip(name, reason="pip install gcp-storage-emulator google-cloud-storage")
    from gcp_storage_emulator.server import create_server
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    server = create_server("localhost", port, in_memory=True, default_bucket="bucket")
    server.start()
    yield {**os.environ, "STORAGE_EMULATOR_HOST": f"http://localhost:{port}"}
    server.stop()


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*")) if path.is_file()}


def test_an_object_store_holds_what_a_disk_would(store, tmp_path):
    from data_beam import prepare, tokenize
    from tests.token_corpora import tiny_tokenizer
    (tmp_path / "recipe.py").write_text(RECIPE)
    (tmp_path / "tokenizer.model").write_bytes(tiny_tokenizer())
    arguments = json.dumps([TEXTS, str(tmp_path / "recipe.py"),
                            str(tmp_path / "tokenizer.model"), str(tmp_path / "store")])
    result = subprocess.run([sys.executable, "-c", STORE, arguments], env=store, text=True,
                            capture_output=True, timeout=300)
    assert result.returncode == 0, result.stderr
    assert "extract: done before" in result.stdout and "filter: done again" in result.stdout
    assert "nothing to do" in result.stdout

    for i, text in enumerate(TEXTS):
        path = tmp_path / f"raw/[{i % 2}]/{i}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for command, words in ((prepare, [f"--config={tmp_path}/recipe.py:{tmp_path}/raw",
                                      f"--output={tmp_path}/disk/out"]),
                           (tokenize, [f"--corpus={tmp_path}/disk/out",
                                       f"--tokenizer={tmp_path}/tokenizer.model",
                                       f"--output={tmp_path}/disk/tokens"])):
        assert command.main(words) == 0
    remote, disk = content(tmp_path / "store"), content(tmp_path / "disk")
    assert remote.keys() == disk.keys()
    # Manifests and reports name the folder of the inputs; all else is the same.
    different = {name for name in disk if disk[name] != remote[name]}
    assert different <= {"out/manifest.json", "out/report.json", "out/report.html"} | {
        name for name in disk if name.startswith("tokens/") and name.endswith("manifest.json")}
