"""Listing files: none is left out silently, and none that may hang is opened."""

import contextlib
import dataclasses
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
from data_beam.config import EvaluationSetConfig, InputConfig, RecipeConfig, SourceConfig
from data_beam.decontaminate import evaluation_sets
from data_beam.readers.listing import fingerprint, list_files
from data_beam.readers.recipe_inputs import raw_folder
from maxlm.cli import command_line
from maxlm.config.schema import ConfigError
from tests.data_beam.readers.reading import read

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


def write(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    return root


def arguments(folder: Path, source: str) -> list[str]:
    """Those of `prepare`, with a recipe of one source."""
    (folder / "recipe.py").write_text(
        "from data_beam.config import *\nfrom data_beam.readers.recipe_inputs import raw_folder\n"
        "from maxlm.config.schema import to_config_dict\n"
        f"def get_config():\n    return to_config_dict(RecipeConfig(sources=({source},)))\n")
    return [f"--config={folder / 'recipe.py'}", f"--output={folder / 'out'}"]


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
    words = arguments(tree.parent, "SourceConfig('s', 'd', 'CC0-1.0', (InputConfig("
                                   f"{str(tree)!r}, '**.html', 'html'),))")
    monkeypatch.setattr(sys, "argv", ["prepare", *words, *extra])
    with powerless(), pytest.raises(SystemExit) as caught:
        command_line.run_command(prepare.main)
    shown = capsys.readouterr()
    assert caught.value.code == 2 and shown.out == ""
    line, = shown.err.strip().splitlines()
    assert line.startswith(f"error: source 's', input 0: cannot read the folder '{tree}/sub'")
    assert not [path for path in (tree.parent / "out").glob("**/*") if path.is_file()]


def test_links_to_nothing_and_things_that_are_no_files_are_dead_letters(tmp_path):
    (tmp_path / "good.txt").write_text("good")
    for name, target in (("alias.txt", "good.txt"), ("dangling.txt", "nowhere"),
                         ("loop.txt", "loop.txt"), ("zero.txt", "/dev/zero"),
                         ("loop.md", "loop.md")):  # no pattern matches this one
        (tmp_path / name).symlink_to(target)
    os.mkfifo(tmp_path / "pipe.txt")
    # The path of a socket may have some 100 bytes only.
    with contextlib.chdir(tmp_path), socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.txt")
    for format in ("text", "jsonl", "json", "parquet", "warc"):
        alias, dangling, good, *others = read(tmp_path, pattern="**.txt", format=format)
        assert [(type(item).__name__, item.origin.path, item.reason, item.detail)
                for item in (dangling, *others)] == [
            ("DeadLetter", "dangling.txt", "unreadable file",
             "a symbolic link: No such file or directory"),
            ("DeadLetter", "loop.txt", "unreadable file",
             "a symbolic link: Too many levels of symbolic links"),
            ("DeadLetter", "pipe.txt", "not a regular file", "a named pipe"),
            ("DeadLetter", "socket.txt", "not a regular file", "a socket"),
            ("DeadLetter", "zero.txt", "not a regular file", "a character device")]
        assert format != "text" or alias.text == good.text == "good"


def test_a_link_to_where_nobody_may_look_is_a_dead_letter(tree):
    hidden = tree.parent / "elsewhere"
    hidden.mkdir()
    (hidden / "x.html").write_text("x")
    (tree / "link.html").symlink_to(hidden / "x.html")
    hidden.chmod(0)
    with powerless():
        item, = read(tree, pattern="link.html", format="html")
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
    write(tmp_path, "a.html", "b.xhtml", "c.htm.gz", "d.json", "e/f.JSON", "g.gz", "h.tar.gz",
          "README", ".hidden", "i.what?", "j.a b", "k.html.xz")
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
                     max_bytes=6),
        SourceConfig("t", "d", "CC0-1.0", (InputConfig(str(tmp_path), "**.json", "json"),))))
    line, = notes(two)
    assert ".json 1" in line and ".html 1" not in line
    write(tmp_path, *(f"x.kind{i:02}" for i in range(12)))
    assert notes(preset)[0].endswith(".kind02 1, .kind03 1, others 9)")


def test_a_run_and_a_dry_run_tell_of_both(tree, capsys):
    (tree / "again").symlink_to(tree, target_is_directory=True)
    (tree / "gone.html").symlink_to("nowhere")
    os.mkfifo(tree / "pipe.html")
    (tree / "x.json").write_text("{}")
    words = arguments(tree.parent, f"raw_folder({str(tree)!r})")
    for extra in (["--dry_run"], []):
        assert prepare.main([*words, *extra]) == 0
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
    write(tmp_path, *names)
    for pattern, expected in {
            "*.x": ["c.x"], "**.x": names, "a/*.x": ["a/c.x"], "a*/*.x": ["a/c.x", "ab/c.x"],
            "*/*/*.x": ["a/b/c.x"], "a?b/c.x": ["a/b/c.x"], "a*/**/d.x": ["a/b/c/d.x"],
            "a/[b]/*.x": ["a/b/c.x"], "?*/b/c.x": ["a/b/c.x"], "**/c/*.x": ["a/b/c/d.x"]}.items():
        found = [entry.path[len(str(tmp_path)) + 1:]
                 for entry in files.match(str(tmp_path), pattern)]
        assert sorted(found) == sorted(expected), pattern


@pytest.fixture
def code(tmp_path) -> Path:
    """Four files; each holds its name."""
    return write(tmp_path, "b/two.py", "a/one.py", "a/tests/test_one.py", "a/readme.md")


def test_listing_is_relative_sorted_and_cut_by_patterns(code):
    files = list_files(recipe(code, "**.py", exclude=("*/tests/*",), prefix="v1/"))
    assert [(file.path, file.size) for file in files] == [("v1/a/one.py", 8), ("v1/b/two.py", 8)]


def capped(code: Path, limit: int) -> set[str]:
    part, = recipe(code, "**", exclude=("*/tests/*",)).sources
    return {file.path for file in list_files(RecipeConfig(sources=(
        dataclasses.replace(part, max_bytes=limit),)))}


def test_max_bytes_takes_files_by_the_hash_of_their_path(code):
    by_hash = sorted(("a/one.py", "b/two.py", "a/readme.md"),
                     key=lambda name: hashlib.sha256(name.encode()).digest())
    for count in (1, 2, 3):
        assert capped(code, len("".join(by_hash[:count]))) == set(by_hash[:count])
    with pytest.raises(ConfigError, match="max_bytes 1 is less"):
        capped(code, 1)


def test_mistakes_in_inputs_are_named(code):
    with pytest.raises(ConfigError, match=r"source 's', input 0: no file matches .*/\*\.rs"):
        paths(code, "*.rs")
    with pytest.raises(ConfigError, match=r"inputs 0 and 1 both have 'a/one.py'"):
        paths(code, "a/*.py", "**.py")


@pytest.mark.parametrize("name, words", [
    ("nothing", "the folder .*nothing does not exist"),
    ("nothing/below/", "the folder .*below/? does not exist"),
    ("a/one.py", "the folder .*one.py is not a folder"),
    ("a/one.py/below", "the folder .*below does not exist"),
    ("dangling", "the folder .*dangling does not exist")])
def test_a_folder_that_does_not_exist_is_called_that(code, name, words):
    (code / "dangling").symlink_to("nowhere")
    with pytest.raises(ConfigError, match="source 's', input 0: " + words):
        paths(f"{code}/{name}", "*")
    with pytest.raises(ConfigError, match=words):
        raw_folder(f"{code}/{name}")


def test_a_folder_without_a_file_of_a_known_kind(code):
    with pytest.raises(ConfigError, match=r"none of its files has one of the suffixes \.html, "):
        raw_folder(str(code / "b"))


def test_the_fingerprint_sees_a_changed_file(code):
    config = recipe(code, "**.py")
    before = fingerprint(list_files(config))
    assert fingerprint(list_files(config)) == before
    os.utime(code / "a/one.py", (1, 1))
    touched = fingerprint(list_files(config))
    (code / "a/one.py").write_text("longer than before")
    os.utime(code / "a/one.py", (1, 1))
    assert len({before, touched, fingerprint(list_files(config))}) == 3


def test_patterns_are_globs_and_roots_are_not(tmp_path):
    write(tmp_path / "[r]", "a.md", "docs/b.md", "docs/deep/c.md", "docs/d.txt", "[1].md")
    write(tmp_path / "r", "a.md")
    for pattern, found in {
            "**.md": {"a.md", "docs/b.md", "docs/deep/c.md", "[1].md"}, "*.md": {"a.md", "[1].md"},
            "docs/*.md": {"docs/b.md"}, "docs/b.md": {"docs/b.md"}, "[ab].md": {"a.md"}}.items():
        assert set(paths(tmp_path / "[r]", pattern)) == found
    with pytest.raises(ConfigError, match="no file matches"):
        paths(tmp_path / "[r]", "docs")
