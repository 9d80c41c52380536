"""What docs/architecture.md says about who may import whom, and other rules of the whole tree."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# A folder may import from those in the same or a lower layer; no two import each other.
LAYERS = {
    "maxlm": [
        {"config"},
        {"cli"},
        {"parallel", "precision", "kernels"},
        {"models", "data"},
        {"training", "telemetry", "interop"},
        {"evals"},
    ],
    "data_beam": [
        {"config"},
        {"base", "runners"},
        {"readers", "sinks", "clean"},
        {"extract", "models", "privacy", "decontaminate", "dedup", "augment", "tokenizer"},
        {"filters"},
        {"reporting"},
        {"stages"},
    ],
}


def imports(file: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def test_maxlm_never_imports_data_beam():
    for file in (ROOT / "maxlm").rglob("*.py"):
        packages = {name.split(".")[0] for name in imports(file)}
        assert not packages & {"data_beam", "benchmarks"}, file


def folder_imports(package: str) -> set[tuple[str, str]]:
    """(folder, what it imports of its own package): a folder, or a command at the root."""
    found = set()
    for file in (ROOT / package).rglob("*.py"):
        parts = file.relative_to(ROOT / package).parts
        if len(parts) == 1:
            continue  # commands may import anything
        for name in imports(file):
            words = name.split(".")
            if words[0] == package and len(words) > 1 and words[1] != parts[0]:
                found.add((parts[0], words[1]))
    return found


@pytest.mark.parametrize("package", LAYERS)
def test_dependencies_point_one_way(package):
    level = {folder: i for i, folders in enumerate(LAYERS[package]) for folder in folders}
    edges = folder_imports(package)
    commands = {path.stem for path in (ROOT / package).glob("*.py")} - {"__init__"}
    assert not [edge for edge in edges if edge[1] in commands]
    edges = {edge for edge in edges if edge[1] in level}
    assert edges
    assert not [edge for edge in edges if level[edge[1]] > level[edge[0]]]
    assert not [edge for edge in edges if edge[::-1] in edges]


@pytest.mark.parametrize("package", LAYERS)
def test_every_folder_has_a_place_in_the_layers(package):
    folders = {path.parent.name for path in (ROOT / package).glob("*/__init__.py")
               if len(list(path.parent.glob("*.py"))) > 1}
    assert folders == set().union(*LAYERS[package])


def test_the_root_of_data_beam_holds_commands_only():
    for file in (ROOT / "data_beam").glob("*.py"):
        if file.stem != "__init__":
            assert 'if __name__ == "__main__":' in file.read_text(encoding="utf-8"), file


def test_data_beam_shares_only_configuration_and_the_corpus_format():
    allowed = re.compile(r"maxlm(\.cli|\.config|\.data$|\.data\.(corpus|tokenizer|tokenizer_export|"
                         r"sentencepiece_model|huggingface_tokenizer)\b|$)")
    for file in (ROOT / "data_beam").rglob("*.py"):
        assert not [n for n in imports(file)
                    if n.split(".")[0] == "maxlm" and not allowed.match(n)], file


FORBIDDEN = re.compile(r"\bpickle\b|\bmarshal\b|(?<![\w.])(?:eval|exec)\(")


def test_nothing_is_unpickled_or_evaluated():
    """Data and checkpoints are never run. Config files are the user's own Python."""
    for package in ("maxlm", "data_beam"):
        for file in (ROOT / package).rglob("*.py"):
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                assert not FORBIDDEN.search(line.partition("#")[0]), f"{file}:{number}: {line}"


def test_bash_scripts_parse_and_need_no_more_than_bash_3_2():
    newer = re.compile(r"declare -A|local -n|mapfile|readarray|\$\{\w+(\^\^|,,|@)|&>>|\bcoproc\b"
                       r"|\|&|wait -n|printf -v|EPOCHSECONDS")
    scripts = [*(ROOT / "scripts").glob("*.sh"), ROOT / ".ci" / "run"]
    assert len(scripts) >= 4
    for script in scripts:
        subprocess.run(["bash", "-n", str(script)], check=True)
        assert not newer.search(script.read_text(encoding="utf-8")), script


@pytest.mark.parametrize("name", ["README.md", *sorted(
    f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md"))])
def test_files_named_in_the_documentation_exist(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#:]+)\)", text)
    paths = re.findall(r"`((?:maxlm|data_beam|configs|scripts|docs|tests|benchmarks)/[\w./-]*)`",
                       text)
    for target in links:
        assert ((ROOT / name).parent / target).exists(), target
    for target in paths:
        assert (ROOT / target).exists(), target
