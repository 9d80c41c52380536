"""Stops all processes of a run after the same step, and verifies what they saved.

maxlm/cli/stop_signals.py receives the signals.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from maxlm.config import RunFailure
from maxlm.parallel import processes
from maxlm.training.checkpoints import Checkpointer


class AgreedStop:
    """Whether any process was asked to stop, with the same answer in all processes.

    Each process votes after each step. The devices combine the votes behind that step, and the
    result is read together with the step's metrics, so no step waits for it. Every process must
    make the same calls in the same order.

    Args:
      asked: whether this process was asked to stop.

    Attributes:
      agreed: the result of the votes so far.
    """

    def __init__(self, asked: Callable[[], bool]):
        self._asked = asked
        self.agreed = False
        devices = np.asarray(jax.devices())
        mesh = Mesh(devices, ("devices",))
        self._shape = devices.shape
        self._sharding = NamedSharding(mesh, PartitionSpec("devices"))
        self._any = jax.jit(jnp.any, out_shardings=NamedSharding(mesh, PartitionSpec()))

    def vote(self, flag: bool | None = None) -> jax.Array | bool:
        """Starts a vote on whether `flag` (default: `asked`) is true in any process."""
        flag = self._asked() if flag is None else flag
        if jax.process_count() == 1:
            return flag
        return self._any(jax.make_array_from_callback(
            self._shape, self._sharding, lambda index: np.full(1, flag)))

    def count(self, vote: jax.Array | bool) -> None:
        """Waits for the result of a vote and records it."""
        self.agreed |= bool(vote)

    def now(self) -> bool:
        """Votes and waits for the result."""
        self.count(self.vote())
        return self.agreed

    def due(self) -> bool:
        """Whether a stop is agreed on, without waiting for another process."""
        return self.now() if jax.process_count() == 1 else self.agreed


def verify_stop(checkpointer: Checkpointer, step: int, start: int) -> str:
    """Compares the files of the last checkpoint with their checksums; returns a line for the user.

    Args:
      step: the last finished step; its checkpoint has been saved.
      start: the step from which the run resumed.

    Raises:
      RunFailure: a file does not match its checksum.
    """
    if step == start:
        return "stopped before a step was done; the same command continues"
    problem = processes.first_problem(
        checkpointer.reader.damage(step, *processes.process_index_and_count()))
    if problem:
        raise RunFailure(f"stopped after step {step}, but its checkpoint is damaged: {problem}")
    return f"stopped after step {step}, which is saved; the same command continues"
