"""With --huge_pages a program restarts with glibc's settings, once, and only where they help."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from maxlm.cli.host_memory import OPTION, SETTINGS, VARIABLE, settings_apply

GLIBC = os.confstr("CS_GNU_LIBC_VERSION") if sys.platform == "linux" else ""
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
NEW_ENOUGH = bool(GLIBC) and tuple(map(int, GLIBC.split()[1].split(".")[:2])) >= (2, 35)


def test_only_for_a_program_that_computes_on_the_cpu(tmp_path, monkeypatch):
    if not NEW_ENOUGH:
        assert not settings_apply({}, tmp_path)
        pytest.skip("the C library here has no such settings")
    assert settings_apply({}, tmp_path) and settings_apply({"JAX_PLATFORMS": "cpu"}, tmp_path)
    assert not settings_apply({"JAX_PLATFORMS": "cuda,cpu"}, tmp_path)
    assert not settings_apply({VARIABLE: ""}, tmp_path)  # the user's choice
    for device in ("nvidia0", "accel0", "vfio/0", "kfd"):
        (tmp_path / device).parent.mkdir(exist_ok=True)
        (tmp_path / device).touch()
        assert not settings_apply({}, tmp_path)
        assert settings_apply({"JAX_PLATFORMS": "cpu"}, tmp_path)  # the GPU is not used
        (tmp_path / device).unlink()
    for version in ("glibc 2.34", "musl 1.2.5", "", None):
        monkeypatch.setattr(os, "confstr", lambda _, version=version: version)
        assert not settings_apply({}, tmp_path)
    monkeypatch.setattr(os, "confstr", lambda _: "glibc 2.100.1")
    assert settings_apply({}, tmp_path)


@pytest.mark.skipif(not NEW_ENOUGH, reason="the C library here has no such settings")
@pytest.mark.parametrize(("own", "option", "restarts"), [
    (None, [OPTION], True), ("glibc.malloc.arena_max=2", [OPTION], False), (None, [], False)])
def test_the_same_program_restarts_in_the_same_process(own, option, restarts, tmp_path):
    (tmp_path / "program.py").write_text(
        "import json, os, sys\nprint(os.getpid(), flush=True)\n"
        "from maxlm.cli.host_memory import restart_if_asked\nrestart_if_asked()\n"
        "print(json.dumps([os.getpid(), sys.argv[1:], sys.flags.dev_mode, __name__,"
        f" os.environ.get({VARIABLE!r}), sys.stdin.read()]))\n")
    environment = {**os.environ, "JAX_PLATFORMS": "cpu",
                   "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    environment.pop(VARIABLE, None)
    if own:
        environment[VARIABLE] = own
    arguments = ["--a b", "", "ü", *option]
    done = subprocess.run([sys.executable, "-X", "dev", "-m", "program", *arguments], text=True,
                          input="piped", capture_output=True, env=environment, check=True)
    *starts, last = done.stdout.splitlines()
    number = int(starts[0])
    assert starts == [str(number)] * (2 if restarts else 1)
    assert json.loads(last) == [
        number, arguments, True, "__main__", SETTINGS if restarts else own, "piped"]
    assert ("has no effect" in done.stderr) == (bool(own) and bool(option))


@pytest.mark.skipif(not NEW_ENOUGH, reason="the C library here has no such settings")
@pytest.mark.parametrize("settings", ["", SETTINGS])
def test_glibc_takes_the_settings(settings):
    """A large buffer is advised for huge pages: flag `hg` of its mapping (man 5 proc)."""
    if not HUGE_PAGES.exists() or "[madvise]" not in HUGE_PAGES.read_text():
        pytest.skip("the kernel here does not leave huge pages to the program")
    code = ("import ctypes\nc = ctypes.CDLL(None)\nc.malloc.restype = ctypes.c_void_p\n"
            "place, inside = c.malloc(64 * 2**20), False\n"
            "for line in open('/proc/self/smaps'):\n"
            "    first = line.split()[0]\n"
            "    if '-' in first and not first.endswith(':'):\n"
            "        begin, end = (int(x, 16) for x in first.split('-'))\n"
            "        inside = begin <= place < end\n"
            "    elif inside and first == 'VmFlags:':\n"
            "        print('hg' in line.split())\n")
    shown = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True,
                           env={**os.environ, VARIABLE: settings}, check=True).stdout
    assert shown == f"{bool(settings)}\n"


@pytest.mark.skipif(not NEW_ENOUGH, reason="the C library here has no such settings")
@pytest.mark.parametrize("settings", [None, SETTINGS, SETTINGS + ":glibc.malloc.arena_max=2"])
def test_memory_of_the_first_step_is_returned_to_the_system(settings):
    """In `trim_after_compile` buffers of 8 MB are their own mappings, later malloc's own."""
    code = ("import ctypes\nfrom maxlm.cli.host_memory import trim_after_compile\n"
            "c = ctypes.CDLL(None)\nc.malloc.restype = ctypes.c_void_p\n"
            "c.free.argtypes = [ctypes.c_void_p]\n"
            "class Info(ctypes.Structure):\n"
            "    _fields_ = [(name, ctypes.c_size_t) for name in 'arena ordblks smblks hblks '\n"
            "        'hblkhd usmblks fsmblks uordblks fordblks keepcost'.split()]\n"
            "c.mallinfo2.restype = Info\n"
            "def mappings():\n"
            "    before = c.mallinfo2().hblks\n"
            "    place = c.malloc(8 * 2**20)\n"
            "    found = c.mallinfo2().hblks - before\n"
            "    c.free(place)\n"
            "    return found\n"
            "mappings()\nmappings()\n"  # after the first, glibc keeps such buffers by itself
            "with trim_after_compile():\n    print(mappings(), mappings())\n"
            "print(mappings())\n")
    environment = dict(os.environ)
    environment.pop(VARIABLE, None)
    if settings:
        environment[VARIABLE] = settings
    shown = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True,
                           env=environment, check=True).stdout
    assert shown == ("1 1\n0\n" if settings in (None, SETTINGS) else "0 0\n0\n")
