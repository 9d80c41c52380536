"""The configurations that ship: their sizes, and that the command in each docstring runs."""

import ast
import importlib.util
import json
import re
import shlex
from pathlib import Path

import jax
import pytest

from maxlm import train
from maxlm.config import Config, ModelConfig, load_config_file, resolve_config
from maxlm.models import counts
from tests import token_corpora

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
NAMES = sorted(path.name for path in CONFIGS.glob("*.py"))


def parameters(model: ModelConfig) -> int:
    """By hand, from the shapes in arXiv:2302.13971 and arXiv:2305.13245."""
    d, heads, kv, h, m = (
        model.embed_dim, model.num_heads, model.num_kv_heads, model.head_dim, model.mlp_dim)
    query, output = d * heads * h, heads * h * d
    key, value = d * kv * h, d * kv * h
    gate, up, down = d * m, d * m, m * d
    norms = 2 * d
    block = query + key + value + output + gate + up + down + norms
    embedding = model.vocab_size * d
    head = 0 if model.tie_embeddings else model.vocab_size * d
    return embedding + model.num_layers * block + d + head


# Totals as published with the weights of these shapes; the first two are this project's own.
PUBLISHED = {
    "tiny.py": 5_310_720,
    "350m.py": 341_099_520,
    "110m.py": 109_529_856,  # stories110M of karpathy/llama2.c
    "1b.py": 1_100_048_384,  # TinyLlama 1.1B
    "7b.py": 6_738_415_616,  # Llama 2 7B
    "13b.py": 13_015_864_320,  # Llama 2 13B
    "70b.py": 68_976_648_192,  # Llama 2 70B
    "bench_cpu.py": 13_767_552,
}


def test_all_configurations_are_here():
    assert set(NAMES) == set(PUBLISHED)


@pytest.mark.parametrize("name", NAMES)
def test_parameter_counts(name):
    model = resolve_config(Config, str(CONFIGS / name), []).model
    assert parameters(model) == PUBLISHED[name]
    assert counts.param_count(model) == PUBLISHED[name]


def test_13b_is_the_shape_that_was_asked_for():
    config = resolve_config(Config, str(CONFIGS / "13b.py"), [])
    model = config.model
    assert (model.num_layers, model.num_heads, model.embed_dim, model.vocab_size) == (
        40, 40, 5120, 32000)
    assert config.data.sequence_length == 2048


def docstring(name: str) -> str:
    text = ast.get_docstring(ast.parse((CONFIGS / name).read_text(encoding="utf-8")))
    assert text
    return text


def launch_command(name: str) -> list[str]:
    text = docstring(name).replace("\\\n", " ")  # a command may continue on the next line
    lines = [line.strip() for line in text.splitlines()
             if line.startswith("    python -m maxlm.train")]
    assert len(lines) == 1, "one launch command"
    return shlex.split(lines[0])


@pytest.mark.parametrize("name", NAMES)
def test_docstring_states_the_size(name):
    stated = re.search(r"([\d.]+) (m|b)illion parameters", docstring(name))
    assert stated
    number, unit = stated.groups()
    decimals = len(number.partition(".")[2])
    exact = PUBLISHED[name] / {"m": 1e6, "b": 1e9}[unit]
    assert f"{exact:.{decimals}f}" == number


@pytest.mark.parametrize("name", NAMES)
def test_configurations_are_locked(name):
    config = load_config_file(str(CONFIGS / name))
    assert config.is_locked and config.model.is_locked


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("tiny.py", "bench_cpu.py")])
def test_batches_divide_over_the_hardware_in_the_docstring(name):
    config = resolve_config(Config, str(CONFIGS / name), [])
    devices = {"110m.py": 1, "350m.py": 8, "1b.py": 16, "7b.py": 64, "13b.py": 128,
               "70b.py": 512}[name]
    assert f"{devices} " in docstring(name) or devices == 1
    sizes = config.parallel.sizes(devices)
    shares = sizes["data"] * sizes["fsdp"]
    assert config.data.batch_size % (config.run.accumulation_steps * shares) == 0
    # What fsdp and tensor split, as in maxlm/parallel/rules.py.
    assert config.model.embed_dim % sizes["fsdp"] == 0
    assert config.model.num_heads % sizes["tensor"] == 0
    assert config.model.num_kv_heads % sizes["tensor"] == 0
    assert config.model.mlp_dim % sizes["tensor"] == 0


@pytest.fixture(scope="module")
def tokens(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("tokens")
    token_corpora.random_split(directory, "train", {"books": [[150] * 40, [90] * 40]})
    token_corpora.random_split(directory, "validation", {"books": [[100] * 20]})
    return directory


# The smallest, the one asked for, and the one that splits most; the others in the slow run.
FIRST = ("tiny.py", "13b.py", "70b.py")


@pytest.mark.parametrize("name", [
    name if name in FIRST else pytest.param(name, marks=pytest.mark.slow) for name in NAMES])
def test_the_documented_command_runs_in_miniature(name, tokens, tmp_path):
    """Invariant 7 of docs/architecture.md. Eight devices, so 70b also splits over `tensor`."""
    assert jax.device_count() == 8
    python, dash_m, module, *arguments = launch_command(name)
    assert (python, dash_m) == ("python", "-m")
    assert module == "maxlm.train" and importlib.util.find_spec(module)
    workdir = tmp_path / "run"
    shrunk = []
    for argument in arguments:
        option, _, value = argument.partition("=")
        if option == "--config":
            assert (CONFIGS.parent / value).is_file()
            argument = f"--config={CONFIGS.parent / value}:tiny"
        elif option == "--workdir":
            argument = f"--workdir={workdir}"
        elif option == "--config.data.tokens":
            argument = f"--config.data.tokens={tokens}"
        shrunk.append(argument)
    assert train.main([*shrunk, "--compilation_cache="]) == 0
    rows = [json.loads(line) for line in (workdir / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows if "loss" in row] == [1, 2, 3, 4]
    saved = json.loads((workdir / "config.json").read_text())
    assert saved["model"]["remat"] == load_config_file(str(CONFIGS / name)).model.remat
