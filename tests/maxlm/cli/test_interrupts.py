"""Signals that arrive while a signal is handled."""

import subprocess
import sys

# Each child gets a second SIGINT before another line that the handler of the first one executes,
# those of libraries included. SIGALRM ends a child that waits forever.
SCRIPT = """
import os, signal, sys, time
from maxlm.cli import command_line

def press_at(wanted):
    lines = 0
    def trace(frame, event, _):
        nonlocal lines
        lines += event == "line"
        if event == "line" and lines == wanted:
            os.kill(os.getpid(), signal.SIGINT)
        return trace
    return trace

def child(wanted):
    def main(_):
        sys.settrace(press_at(wanted))
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
    signal.alarm(10)
    command_line.run_command(main)

for wanted in range(1, 30):
    if not (process := os.fork()):
        child(wanted)
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
"""


def test_a_signal_inside_the_handler_does_not_wait_for_it():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True,
                          timeout=300)
    assert done.stdout.split() == ["130"] * 29
    assert done.stderr == "interrupted\n" * 29
