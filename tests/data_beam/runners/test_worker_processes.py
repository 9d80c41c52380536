"""Beam's worker processes on this machine: one fork server, and one line when one of them dies."""

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest

from data_beam.runners import beam_options
from maxlm.config.schema import ConfigError

OPTIONS = ("--direct_running_mode=multi_processing", "--direct_num_workers=2")


class Note(beam.DoFn):
    """Leaves a file named for its process and its parent, with a variable of its environment."""

    def __init__(self, folder: str):
        self._folder = folder

    def process(self, element: int) -> Iterator[int]:
        Path(self._folder, f"{os.getpid()}-{os.getppid()}").write_text(os.environ.get("WORD", ""))
        yield element


class KillOthers(beam.DoFn):
    """Kills the processes that left a file, but its own."""

    def __init__(self, folder: str):
        self._folder = folder

    def process(self, element: int) -> Iterator[int]:
        for path in Path(self._folder).iterdir():
            if (process := int(path.name.split("-")[0])) != os.getpid():
                os.kill(process, signal.SIGKILL)
        yield element


def power(number: int) -> int:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(pow, (number, 2))


def spread(root: beam.Pipeline, elements: int, name: str) -> Any:
    return root | f"Create {name}" >> beam.Create(range(elements)) | name >> beam.Reshuffle()


def run(build, options=OPTIONS) -> None:
    root = beam_options.make_pipeline(beam_options.pipeline_options(options))
    build(root)
    root.run().wait_until_finish()


def test_workers_of_all_pipelines_are_forked_from_one_process(tmp_path, monkeypatch):
    for word in ("one", "two"):  # a server that began before a change must not hide it
        monkeypatch.setenv("WORD", word)
        folder = tmp_path / word
        folder.mkdir()
        run(lambda root, folder=folder: (
            spread(root, 50, "Spread") | beam.ParDo(Note(str(folder)))))
    notes = [path for word in ("one", "two") for path in (tmp_path / word).iterdir()]
    workers, parents = zip(*(path.name.split("-") for path in notes), strict=True)
    assert len(set(workers)) == 4 and len(set(parents)) == 1
    assert str(os.getpid()) not in {*workers, *parents}
    assert all(path.read_text() == path.parent.name for path in notes)


@pytest.mark.parametrize(("function", "end"), [
    (lambda _: os.kill(os.getpid(), signal.SIGKILL), "was killed by SIGKILL"),
    (lambda _: os._exit(3), "ended with status 3")])
def test_a_worker_that_dies_is_named_in_one_line(function, end, capfd):
    with pytest.raises(ConfigError, match=f"^--direct_num_workers: a worker process {end}; .* run "
                       "again with fewer workers$"):
        run(lambda root: spread(root, 10, "Spread") | beam.Map(function))
    time.sleep(0.5)  # threads that read broken streams
    assert capfd.readouterr().err == ""


def test_a_worker_that_dies_between_its_tasks_is_not_waited_for(tmp_path):
    def build(root: beam.Pipeline) -> None:
        everywhere = spread(root, 50, "Everywhere") | beam.ParDo(Note(str(tmp_path)))
        one = everywhere | beam.combiners.Count.Globally() | beam.ParDo(KillOthers(str(tmp_path)))
        _ = (one | beam.FlatMap(lambda count: range(count)) | "Again" >> beam.Reshuffle()
             | beam.Map(lambda element: element))

    with pytest.raises(ConfigError, match="a worker process was killed by SIGKILL"):
        run(build)


def test_a_worker_may_have_processes_of_its_own():
    run(lambda root: spread(root, 2, "Spread") | beam.Map(power))


def test_an_exception_in_a_worker_is_not_its_death():
    with pytest.raises(Exception, match="ZeroDivisionError") as raised:
        run(lambda root: spread(root, 10, "Spread") | beam.Map(lambda element: 1 // 0))
    assert not isinstance(raised.value, ConfigError)


def main(folder: list[str], options=OPTIONS) -> int:
    """A command with a pipeline that takes long; see below."""
    run(lambda root: spread(root, 50, "Spread") | beam.ParDo(Note(folder[0]))
        | beam.Map(lambda element: time.sleep(100)), options)
    return 0


def alone(folder: list[str]) -> int:
    """The same in the command's own process."""
    return main(folder, ["--direct_running_mode=in_memory"])


COMMAND = (f"import data_beam, {__name__} as here\nfrom maxlm.cli import command_line\n"
           "command_line.run_command(here.main)")


def start(*words: str) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, *words], text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, start_new_session=True)


def session_of(leader: int) -> set[int]:
    """Processes of the session that are alive."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, *numbers = path.read_text().rpartition(")")[2].split()
            if int(numbers[2]) == leader and state != "Z":
                found.add(int(path.parent.name))
    return found


def wait(until: Callable[[], bool], command: subprocess.Popen | None = None,
         seconds: float = 0.05) -> None:
    """Until something is true, looking again after some seconds; the command must be alive."""
    deadline = time.monotonic() + 60
    while not until():
        assert (command is None or command.poll() is None) and time.monotonic() < deadline
        time.sleep(seconds)


def wait_for_workers(command: subprocess.Popen, folder: Path, workers: int = 2) -> None:
    """Until they have left their files."""
    wait(lambda: len(list(folder.iterdir())) >= workers, command)


def wait_for_the_end(command: subprocess.Popen) -> None:
    """Until no process of the command's session is alive."""
    wait(lambda: not session_of(command.pid))


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_the_command(kind, tmp_path):
    command = start("-c", COMMAND, str(tmp_path))
    wait_for_workers(command, tmp_path)
    if kind == signal.SIGINT:
        os.killpg(command.pid, kind)  # as a terminal does
    else:
        command.kill()
    assert command.stderr is not None
    status, error = command.wait(30), command.stderr.read()  # which the workers have open too
    assert (status, error) == ((130, "interrupted\n") if kind == signal.SIGINT else (-kind, ""))
    wait_for_the_end(command)


def test_ctrl_c_in_a_function_that_beam_runs_in_the_command_itself_is_one_line(tmp_path):
    command = start("-c", COMMAND.replace("here.main", "here.alone"), str(tmp_path))
    wait_for_workers(command, tmp_path, 1)
    time.sleep(0.2)
    os.killpg(command.pid, signal.SIGINT)
    assert command.communicate(timeout=30) == ("", "interrupted\n")
    assert command.returncode == 130


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("processes", [2, 3, 4], ids=["tracker", "fork server", "worker"])
def test_workers_end_with_a_command_that_has_just_begun(kind, processes, tmp_path):
    """One that is not yet connected to the command has no stream to break."""
    command = start("-c", COMMAND, str(tmp_path))
    wait(lambda: len(session_of(command.pid)) >= processes, command, 0)
    if kind == signal.SIGINT:
        os.killpg(command.pid, kind)
    else:
        command.send_signal(kind)
    error = command.communicate(timeout=30)[1]
    if kind == signal.SIGINT:
        assert error == "interrupted\n"
    wait_for_the_end(command)


@pytest.mark.parametrize("pause", [0, 0.05, 0.3])
def test_ctrl_c_again_and_again_ends_at_once(pause, tmp_path):
    command = start("-c", COMMAND, str(tmp_path))
    wait_for_workers(command, tmp_path)
    for _ in range(4):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(command.pid, signal.SIGINT)
        time.sleep(pause)
    assert command.communicate(timeout=30)[1] == "interrupted\n"
    assert command.returncode == 130
    wait_for_the_end(command)


def test_ctrl_c_while_a_command_imports_is_one_line():
    command = start("-m", "data_beam.prepare", "--help")
    maps = Path(f"/proc/{command.pid}/maps")
    wait(lambda: "numpy" in maps.read_text(), command, 0)  # an early one of many
    os.killpg(command.pid, signal.SIGINT)
    assert command.communicate(timeout=30) == ("", "interrupted\n")
    assert command.returncode == 130


def test_a_long_folder_for_temporary_files_is_named_in_one_line(tmp_path):
    folder = tmp_path / ("x" * 100)
    folder.mkdir()
    (tmp_path / "a.txt").write_text("text")
    for module, *words in (
            ("data_beam.prepare", f"--config=configs/corpus/gopher.py:{tmp_path}"),
            ("data_beam.tokenize", f"--corpus={tmp_path}", "--tokenizer=none")):
        done = subprocess.run(
            [sys.executable, "-m", module, *words, f"--output={tmp_path / 'out'}", *OPTIONS],
            text=True, capture_output=True, env={**os.environ, "TMPDIR": str(folder)})
        assert done.returncode == 2
        assert done.stderr.startswith("error: --direct_running_mode=multi_processing: ")
        assert "TMPDIR" in done.stderr and done.stderr.count("\n") == 1


def test_a_program_without_a_guard_is_run_once(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "print('here', __name__)\n"
        "import apache_beam as beam\nfrom data_beam.runners import beam_options\n"
        f"options = beam_options.pipeline_options({OPTIONS!r})\n"
        "root = beam_options.make_pipeline(options)\n"
        "root | beam.Create(range(10)) | beam.Reshuffle() | beam.Map(lambda x: 1 // (x + 1))\n"
        "root.run().wait_until_finish()\n")
    for words, stdin in (([str(program)], ""), (["-"], program.read_text())):
        done = subprocess.run([sys.executable, *words], text=True, capture_output=True,
                              input=stdin, env={**os.environ, "PYTHONPATH": ":".join(sys.path)})
        assert (done.returncode, done.stdout) == (0, "here __main__\n"), done.stderr
