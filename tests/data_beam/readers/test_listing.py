"""Listing files: none is left out silently, and none that may hang is opened."""

import contextlib
import hashlib
import json
import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from data_beam import prepare
from data_beam.base import files
from data_beam.base.records import Record
from data_beam.config import EvaluationSetConfig, InputConfig, RecipeConfig, SourceConfig
from data_beam.decontaminate import evaluation_sets
from data_beam.readers.listing import fingerprint, list_files
from data_beam.readers.read_file import read_file
from data_beam.readers.recipe_inputs import raw_folder
from maxlm.config import command_line
from maxlm.config.schema import ConfigError
from tests.data_beam.readers.reading import source

PAGE = "<html><body><p>{} has a page with a sentence about tea, long enough.</p></body></html>"
NOBODY = 65534


@contextlib.contextmanager
def powerless() -> Iterator[None]:
    """Root may read everything; as another user, which it is inside the block, it may not."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.fixture
def tree():
    """gm/{e1,e2,sub/e3}.html in a folder that any user may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        root = Path(folder) / "gm"
        for name in ("e1", "e2", "sub/e3"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / f"{name}.html").write_text(PAGE.format(name))
        yield root
        for path in (root / "sub", root / "lost+found", root.parent / "elsewhere"):
            if path.exists():
                path.chmod(0o755)  # or it cannot be removed


def recipe(root, *patterns: str, format: str = "html", **fields) -> RecipeConfig:
    return RecipeConfig(sources=(SourceConfig("s", "general", "CC0-1.0", tuple(
        InputConfig(str(root), pattern, format, **fields) for pattern in patterns)),))


def paths(root, *patterns: str, **fields) -> list[str]:
    return [file.path for file in list_files(recipe(root, *patterns, **fields))]


def notes(config: RecipeConfig) -> list[str]:
    told: list[str] = []
    list_files(config, told.append)
    return told


@pytest.mark.parametrize("mode", [0o000, 0o444, 0o111], ids=["---", "r--", "--x"])
def test_a_folder_that_cannot_be_read_stops_the_run_and_is_named(tree, mode):
    (tree / "sub").chmod(mode)
    message = (rf"^source 's', input 0: cannot read the folder '{tree}/sub' \(permission denied\); "
               r"make it readable, as with chmod u\+rx, or leave it out with "
               r"exclude=\('sub/\*',\)$")
    with powerless():
        with pytest.raises(ConfigError, match=message):
            paths(tree, "**.html")
        with pytest.raises(ConfigError, match=rf"^cannot read the folder '{tree}/sub'.*, or move"):
            raw_folder(str(tree))
        with pytest.raises(ConfigError, match=r"sets\[0\]: .*cannot read the folder"):
            evaluation_sets.paths(EvaluationSetConfig("e", str(tree), "**.html", "text"), "sets[0]")
        for pattern in ("s*/*.html", "s?b/*.html", "[s]ub/*.html", "sub/*.html"):
            with pytest.raises(ConfigError, match="cannot read the folder"):
                paths(tree, pattern)
        with pytest.raises(ConfigError, match=r"cannot read the folder .* chmod u\+rx$"):
            paths(tree / "sub", "**.html")
        # Where no file there could be meant, nobody loses one.
        assert paths(tree, "**.html", exclude=("sub/*",)) == ["e1.html", "e2.html"]
        assert paths(tree, "*.html") == ["e1.html", "e2.html"]
        for pattern in ("other/*.html", "o*/*.html"):
            with pytest.raises(ConfigError, match="no file matches"):
                paths(tree, pattern)


def test_only_roots_own_folder_at_the_top_of_a_disk_may_stay_closed(tree):
    (tree / "lost+found").mkdir()
    (tree / "lost+found").chmod(0)
    with powerless():
        assert paths(tree, "**.html") == ["e1.html", "e2.html", "sub/e3.html"]


@pytest.mark.parametrize("extra", [[], ["--dry_run"]], ids=["run", "dry_run"])
def test_the_command_says_it_in_one_line_and_writes_nothing(
        tree, extra, monkeypatch, capsys):
    (tree / "sub").chmod(0)
    config = tree.parent / "recipe.py"
    config.write_text(
        "from data_beam.config import *\nfrom maxlm.config.schema import to_config_dict\n"
        "def get_config():\n    return to_config_dict(RecipeConfig(sources=(SourceConfig('s', 'd', "
        f"'CC0-1.0', (InputConfig({str(tree)!r}, '**.html', 'html'),)),)))\n")
    monkeypatch.setattr(sys, "argv", [
        "prepare", f"--config={config}", f"--output={tree.parent / 'out'}", *extra])
    with powerless(), pytest.raises(SystemExit) as caught:
        command_line.run_command(prepare.main)
    shown = capsys.readouterr()
    assert caught.value.code == 2 and shown.out == ""
    line, = shown.err.strip().splitlines()
    assert line.startswith(f"error: source 's', input 0: cannot read the folder '{tree}/sub'")
    assert not [path for path in (tree.parent / "out").glob("**/*") if path.is_file()]


def test_links_to_nothing_and_things_that_are_no_files_are_dead_letters(tmp_path):
    (tmp_path / "good.txt").write_text("good")
    (tmp_path / "alias.txt").symlink_to("good.txt")
    (tmp_path / "dangling.txt").symlink_to("nowhere")
    (tmp_path / "loop.txt").symlink_to("loop.txt")
    (tmp_path / "loop.md").symlink_to("loop.md")  # no pattern matches it
    (tmp_path / "zero.txt").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe.txt")
    with socket.socket(socket.AF_UNIX) as server:
        there = os.getcwd()
        os.chdir(tmp_path)  # the path of a socket may have some 100 bytes only
        try:
            server.bind("socket.txt")
        finally:
            os.chdir(there)
    for format in ("text", "jsonl", "json", "parquet", "warc"):
        config = recipe(tmp_path, "**.txt", format=format)
        found = {}
        for file in list_files(config):
            for item in read_file(file, config.sources[0], 1000):
                if not isinstance(item, Record) and item.origin.path not in ("good.txt",
                                                                             "alias.txt"):
                    found[item.origin.path] = (type(item).__name__, item.reason, item.detail)
        assert found == {
            "dangling.txt": ("DeadLetter", "unreadable file",
                             "a symbolic link: No such file or directory"),
            "loop.txt": ("DeadLetter", "unreadable file",
                         "a symbolic link: Too many levels of symbolic links"),
            "zero.txt": ("DeadLetter", "not a regular file", "a character device"),
            "pipe.txt": ("DeadLetter", "not a regular file", "a named pipe"),
            "socket.txt": ("DeadLetter", "not a regular file", "a socket")}
    config = recipe(tmp_path, "**.txt", format="text")
    assert [item.text for file in list_files(config)
            for item in read_file(file, config.sources[0], 1000)
            if isinstance(item, Record)] == ["good", "good"]  # by its name and by its link's


def test_a_link_to_where_nobody_may_look_is_a_dead_letter(tree):
    hidden = tree.parent / "elsewhere"
    hidden.mkdir()
    (hidden / "x.html").write_text("x")
    (tree / "link.html").symlink_to(hidden / "x.html")
    hidden.chmod(0)
    config = recipe(tree, "link.html")
    with powerless():
        file, = list_files(config)
        item, = read_file(file, config.sources[0], 1000)
    assert not isinstance(item, Record)
    assert (item.reason, item.detail) == ("unreadable file", "a symbolic link: Permission denied")


def test_evaluation_sets_have_no_file_that_cannot_be_read(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "b.txt").symlink_to("b.txt")
    os.mkfifo(tmp_path / "c.md")
    for pattern, words in (("*.txt", "b.txt': Too many levels"), ("*.md", "is a named pipe")):
        config = EvaluationSetConfig("e", str(tmp_path), pattern, "text")
        with pytest.raises(ConfigError, match=words):
            evaluation_sets.paths(config, "sets[0]")


def test_links_to_folders_are_told_of_and_not_followed(tree):
    (tree / "again").symlink_to(tree, target_is_directory=True)
    (tree / "more").symlink_to(tree / "sub", target_is_directory=True)
    assert paths(tree, "**.html") == ["e1.html", "e2.html", "sub/e3.html"]
    line, = notes(recipe(tree, "**.html"))
    assert line == (f"warning: 2 symbolic links to folders are not followed, such as "
                    f"'{tree}/again'; to read what is there, move it in or make it an input of "
                    "its own")
    assert notes(recipe(tree, "*.html")) == []
    assert len(notes(recipe(tree, "**.html", exclude=("again/*", "sub/*")))) == 1
    assert notes(recipe(tree, "**.html", exclude=("again/*", "more/*"))) == []
    # One that the pattern or the root names is meant.
    assert paths(tree, "more/*.html") == ["more/e3.html"]
    assert paths(tree / "more", "**.html") == ["e3.html"]
    with pytest.raises(ConfigError, match=r"no file matches .* \(1 symbolic link to a folder is "):
        paths(tree, "mo*/*.html")
    (tree.parent / "linked").mkdir()
    (tree.parent / "linked/in").symlink_to(tree, target_is_directory=True)
    with pytest.raises(ConfigError, match=r"FILE.py:FOLDER \(1 symbolic link to a folder is "):
        raw_folder(str(tree.parent / "linked"))


def test_files_of_kinds_that_a_recipe_does_not_read_are_counted(tmp_path):
    for name in ("a.html", "b.xhtml", "c.htm.gz", "d.json", "e/f.JSON", "g.gz", "h.tar.gz",
                 "README", ".hidden", "i.what?", "j.a b", "k.html.xz"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    preset = RecipeConfig(sources=(raw_folder(str(tmp_path)),))
    assert [file.path for file in list_files(preset)] == ["a.html", "b.xhtml", "c.htm.gz"]
    assert [config.format for config in preset.sources[0].inputs] == ["html"] * 3
    line, = notes(preset)
    assert line == (f"note: 9 files under {tmp_path} are of kinds that this recipe does not read "
                    "(without suffix 4, .json 2, .gz 1, .html.xz 1, .tar.gz 1)")
    line, = notes(recipe(tmp_path, "**.html", exclude=("e/*", "[!ad]*")))
    assert line == (f"note: 1 file under {tmp_path} is of kinds that this recipe does not read "
                    "(.json 1)")
    # A corner of a folder was never meant to be all; nor do a cap and another source hide kinds.
    assert notes(recipe(tmp_path, "e/**.JSON", format="json")) == []
    two = RecipeConfig(sources=(
        SourceConfig("s", "d", "CC0-1.0", (InputConfig(str(tmp_path), "**.html", "html"),),
                     max_bytes=1),
        SourceConfig("t", "d", "CC0-1.0", (InputConfig(str(tmp_path), "**.json", "json"),))))
    line, = notes(two)
    assert ".json 1" in line and ".html 1" not in line
    for i in range(12):
        (tmp_path / f"x.kind{i:02}").write_text("x")
    assert notes(preset)[0].endswith(".kind02 1, .kind03 1, others 9)")


def test_a_run_and_a_dry_run_tell_of_both(tree, capsys):
    (tree / "again").symlink_to(tree, target_is_directory=True)
    (tree / "gone.html").symlink_to("nowhere")
    os.mkfifo(tree / "pipe.html")
    (tree / "x.json").write_text("{}")
    config = tree.parent / "recipe.py"
    config.write_text(
        "from data_beam.config import *\nfrom data_beam.readers.recipe_inputs import raw_folder\n"
        "from maxlm.config.schema import to_config_dict\n"
        "def get_config():\n    return to_config_dict(RecipeConfig(sources=("
        f"raw_folder({str(tree)!r}),)))\n")
    arguments = [f"--config={config}", f"--output={tree.parent / 'out'}"]
    for extra in (["--dry_run"], []):
        assert prepare.main([*arguments, *extra]) == 0
        shown = [line.strip() for line in capsys.readouterr().out.splitlines()]
        assert [line for line in shown if line.startswith("warning: 1 symbolic link to a folder")]
        assert (f"note: 1 file under {tree} is of kinds that this recipe does not read (.json 1)"
                in shown)
    manifest = json.loads((tree.parent / "out/manifest.json").read_text("utf-8"))
    source = manifest["sources"]["raw"]
    assert source["read"] == 5
    assert source["dead_letters"] == {"read": {"not a regular file": 1, "unreadable file": 1}}
    letters = [json.loads(line) for path in (tree.parent / "out/dead_letters").iterdir()
               for line in path.read_text("utf-8").splitlines()]
    assert {(each["path"], each["reason"]) for each in letters} == {
        ("gone.html", "unreadable file"), ("pipe.html", "not a regular file")}


def test_a_pattern_is_walked_where_it_may_match(tmp_path):
    names = ["a/b/c.x", "a/c.x", "ab/c.x", "c.x", "a/b/c/d.x"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    for pattern, expected in {
            "*.x": ["c.x"], "**.x": names, "a/*.x": ["a/c.x"], "a*/*.x": ["a/c.x", "ab/c.x"],
            "*/*/*.x": ["a/b/c.x"], "a?b/c.x": ["a/b/c.x"], "a*/**/d.x": ["a/b/c/d.x"],
            "a/[b]/*.x": ["a/b/c.x"], "?*/b/c.x": ["a/b/c.x"], "**/c/*.x": ["a/b/c/d.x"]}.items():
        found = [entry.path[len(str(tmp_path)) + 1:]
                 for entry in files.match(str(tmp_path), pattern)]
        assert sorted(found) == sorted(expected), pattern


def make_tree(root) -> None:
    for name in ("b/two.py", "a/one.py", "a/tests/test_one.py", "a/readme.md"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)


def test_listing_is_relative_sorted_and_cut_by_patterns(tmp_path):
    make_tree(tmp_path)
    config = source(tmp_path, "**.py", "python", exclude=("*/tests/*",), prefix="v1/")
    files = list_files(RecipeConfig(sources=(config,)))
    assert [file.path for file in files] == ["v1/a/one.py", "v1/b/two.py"]
    assert [file.size for file in files] == [8, 8]


def test_max_bytes_takes_files_by_the_hash_of_their_path(tmp_path):
    make_tree(tmp_path)
    names = ["a/one.py", "b/two.py", "a/readme.md"]
    by_hash = sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())
    sizes = {name: len(name) for name in names}
    for count in (1, 2, 3):
        limit = sum(sizes[name] for name in by_hash[:count])
        config = SourceConfig("s", "code", "CC0-1.0", (
            InputConfig(str(tmp_path), "**", "text", exclude=("*/tests/*",)),), max_bytes=limit)
        files = list_files(RecipeConfig(sources=(config,)))
        assert {file.path for file in files} == set(by_hash[:count])


def test_mistakes_in_inputs_are_named(tmp_path):
    make_tree(tmp_path)
    with pytest.raises(ConfigError, match=r"source 's', input 0: no file matches .*/\*\.rs"):
        list_files(RecipeConfig(sources=(source(tmp_path, "*.rs"),)))
    twice = SourceConfig("s", "code", "CC0-1.0", (
        InputConfig(str(tmp_path), "a/*.py", "python"),
        InputConfig(str(tmp_path), "**.py", "docstrings")))
    with pytest.raises(ConfigError, match=r"inputs 0 and 1 both have 'a/one.py'"):
        list_files(RecipeConfig(sources=(twice,)))
    small = SourceConfig("s", "code", "CC0-1.0", (
        InputConfig(str(tmp_path), "**.py", "python"),), max_bytes=1)
    with pytest.raises(ConfigError, match="max_bytes 1 is less"):
        list_files(RecipeConfig(sources=(small,)))


@pytest.mark.parametrize("name, words", [
    ("nothing", "the folder .*nothing does not exist"),
    ("nothing/below/", "the folder .*below/? does not exist"),
    ("a/one.py", "the folder .*one.py is not a folder"),
    ("a/one.py/below", "the folder .*below does not exist"),
    ("dangling", "the folder .*dangling does not exist")])
def test_a_folder_that_does_not_exist_is_called_that(tmp_path, name, words):
    make_tree(tmp_path)
    (tmp_path / "dangling").symlink_to("nowhere")
    with pytest.raises(ConfigError, match="source 's', input 0: " + words):
        list_files(RecipeConfig(sources=(source(f"{tmp_path}/{name}"),)))
    with pytest.raises(ConfigError, match=words):
        raw_folder(f"{tmp_path}/{name}")


def test_a_folder_without_a_file_of_a_known_kind(tmp_path):
    make_tree(tmp_path)
    with pytest.raises(ConfigError, match=r"none of its files has one of the suffixes \.html, "):
        raw_folder(str(tmp_path / "b"))


def test_the_fingerprint_sees_a_changed_file(tmp_path):
    make_tree(tmp_path)
    recipe = RecipeConfig(sources=(source(tmp_path, "**.py", "python"),))
    before = fingerprint(list_files(recipe))
    assert fingerprint(list_files(recipe)) == before
    os.utime(tmp_path / "a/one.py", (1, 1))
    touched = fingerprint(list_files(recipe))
    (tmp_path / "a/one.py").write_text("longer than before")
    os.utime(tmp_path / "a/one.py", (1, 1))
    assert len({before, touched, fingerprint(list_files(recipe))}) == 3


def test_patterns_are_globs_and_roots_are_not(tmp_path):
    for name in ("a.md", "docs/b.md", "docs/deep/c.md", "docs/d.txt", "[1].md"):
        (tmp_path / "[r]" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "[r]" / name).write_text("x")
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "a.md").write_text("x")

    def found(pattern: str) -> set[str]:
        return set(paths(tmp_path / "[r]", pattern))

    assert found("**.md") == {"a.md", "docs/b.md", "docs/deep/c.md", "[1].md"}
    assert found("*.md") == {"a.md", "[1].md"}
    assert found("docs/*.md") == {"docs/b.md"}
    assert found("docs/b.md") == {"docs/b.md"}
    assert found("[ab].md") == {"a.md"}
    with pytest.raises(ConfigError, match="no file matches"):
        found("docs")
