"""benchmarks.train_cpu: what it says of other trainers that are not there, and of their answers."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import train_cpu
from maxlm.config import ConfigError, RunFailure

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("arguments, message", [
    (["--nanogpt=nowhere"], "--nanogpt: no model.py in 'nowhere'"),
    (["--levanter_python=nowhere"], "--levanter_python: no Python interpreter at 'nowhere'"),
    ([f"--levanter_python={sys.executable}"], "--levanter_python: .* has no levanter"),
    ([f"--maxtext_python={sys.executable}"], "--maxtext_python: .* has no maxtext aqt"),
    (["--maxtext_python=/bin/false"], "--maxtext_python: '/bin/false' is no Python interpreter"),
    (["--peer_python=nowhere"], "--peer_python: no Python interpreter at 'nowhere'"),
    (["--only", "levanter"], "--only=levanter needs --levanter_python"),
    (["--only", "nanogpt", "--peer_python="], "needs --nanogpt and --peer_python"),
    (["--rounds=0"], "--rounds and --steps are at least 1"),
])
def test_a_peer_that_is_not_there_is_named(arguments, message):
    with pytest.raises(ConfigError, match=message):
        train_cpu.main(arguments)


def test_nobody_is_left_out_in_silence(tmp_path):
    (tmp_path / "model.py").touch()
    places = {"peer_python": "", "nanogpt": str(tmp_path), "levanter_python": "",
              "maxtext_python": ""}
    there, absent = train_cpu.find_contestants(None, places)
    assert list(there) == ["maxlm"]
    assert absent == {
        "transformers": "give --peer_python", "transformers_compiled": "give --peer_python",
        "nanogpt": "give --peer_python", "nanogpt_compiled": "give --peer_python",
        "levanter": "give --levanter_python", "maxtext": "give --maxtext_python"}
    _, absent = train_cpu.find_contestants(["maxlm"], places)
    assert set(absent.values()) == {"left out by --only"}


def test_losses_that_mean_other_work_are_refused():
    chance = math.log(8192)
    train_cpu.check_losses("peer", chance + 0.1, chance, 8192)
    for first, last, message in ((7.0, 6.0, "peer: its first loss is 7.000, and chance is 9.011"),
                                 (12.0, 9.0, "its first loss is 12.000"),
                                 (9.1, 9.2, "its loss does not fall: 9.100, later 9.200"),
                                 (9.1, math.nan, "does not fall"), (math.nan, 9.0, "first loss")):
        with pytest.raises(RunFailure, match=message):
            train_cpu.check_losses("peer", first, last, 8192)


def test_maxlm_is_measured_alone(capfd):
    train_cpu.main(["--config=configs/bench_cpu.py:tiny", "--rounds=2", "--steps=1",
                    "--only", "maxlm"])
    output = capfd.readouterr().out
    speed = next(line.split()[1] for line in output.splitlines() if line.startswith("maxlm "))
    assert int(speed) > 0
    assert output.count("not measured: left out by --only") == len(train_cpu.CONTESTANTS) - 1


def test_prints_of_a_library_do_not_reach_the_answers():
    program = (
        "import os, sys\nfrom benchmarks.train_worker import serve\n"
        "def start(job):\n    print('hello')\n    os.system('echo there')\n"
        "    return job['size'], lambda steps: float(steps)\n"
        "serve(start, {'size': 7}, {'rate': lambda: 2.5})")
    done = subprocess.run([sys.executable, "-c", program], input="3\nrate\n", cwd=ROOT, text=True,
                          capture_output=True, check=True)
    first, third, rate = map(json.loads, done.stdout.splitlines())
    assert (first["parameters"], first["loss"], third["loss"]) == (7, 1.0, 3.0)
    assert rate == {"value": 2.5}
    assert third["memory"] > 1_000_000 and done.stderr.split() == ["hello", "there"]
