"""The attention kernels by name, and which of them a model runs with.

A kernel computes what an `AttentionDescription` says over rows of packed documents. Softmax is
float32, and every output is finite, because each query sees at least itself. Adding a kernel takes
one class and one entry of `KERNELS`.
"""

from collections.abc import Iterable
from typing import Protocol

import jax

from maxlm.config.schema import ConfigError, suggestion
from maxlm.kernels.cpu.attention import Blocked
from maxlm.kernels.cudnn_attention import CuDNN
from maxlm.kernels.description import AttentionDescription, AttentionInputs
from maxlm.kernels.reference import Reference
from maxlm.kernels.splash_attention import Splash
from maxlm.parallel.execution import Execution


class AttentionKernel(Protocol):
    """Shape legend: B rows, T tokens, H query heads, G key/value heads, K head width."""

    def lacks(self, description: AttentionDescription, inputs: AttentionInputs) -> str | None:
        """What keeps the kernel from computing this, as the end of a sentence ("needs ..."); None
        if it can."""
        ...

    def __call__(self, query_BTHK: jax.Array, key_BTGK: jax.Array, value_BTGK: jax.Array,
                 segments_BT: jax.Array, description: AttentionDescription, how: Execution
                 ) -> jax.Array:
        """The output [B, T, H, K] in the dtype of the query.

        Args:
          query_BTHK, key_BTGK, value_BTGK: one dtype; H is a multiple of G.
          segments_BT: int32 document number within the row; 0 is padding. The tokens of a document
            are contiguous.
        """
        ...


KERNELS: dict[str, AttentionKernel] = {
    "reference": Reference(), "blocked": Blocked(), "splash": Splash(), "cudnn": CuDNN()}

# What "auto" tries, in this order.
PREFERRED = {"cpu": ("blocked", "reference"), "tpu": ("splash", "reference"),
             "gpu": ("cudnn", "reference")}


def choose(name: str, descriptions: Iterable[AttentionDescription], inputs: AttentionInputs
           ) -> tuple[str, str]:
    """The kernel to run with, and a sentence that says which and why.

    Args:
      name: `config.model.attention`: a kernel, or "auto" for the first of `PREFERRED` that can.
      descriptions: of all layers.

    Raises:
      ConfigError: no such kernel, or it cannot compute one of them; says what it lacks.
    """
    descriptions = list(descriptions)

    def problem(kernel: str) -> str | None:
        found = (KERNELS[kernel].lacks(each, inputs) for each in descriptions)
        return next((each for each in found if each), None)

    if name != "auto":
        if name not in KERNELS:
            raise ConfigError(f"config.model.attention: no kernel {name!r}; "
                              f"{suggestion(name, [*KERNELS, 'auto'])}")
        if lack := problem(name):
            raise ConfigError(f"config.model.attention: {name!r} {lack}; use 'auto' or "
                              "'reference'")
        return name, f"attention: {name}"
    refused = []
    for kernel in PREFERRED.get(inputs.platform, ("reference",)):
        if not (lack := problem(kernel)):
            why = "".join(f"; {each}" for each in refused)
            return kernel, f"attention: {kernel}, chosen for {inputs.platform}{why}"
        refused.append(f"{kernel} {lack}")
    raise ConfigError(f"config.model.attention: no kernel can compute this: {'; '.join(refused)}")
