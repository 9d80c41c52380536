"""How a model is computed on the devices it runs on."""

import dataclasses

import jax
import jax.numpy as jnp

from maxlm.config.trainer import ParallelConfig, PrecisionConfig
from maxlm.parallel.rules import Rules, constrain, logical_rules, parts


@dataclasses.dataclass(frozen=True)
class Execution:
    """What models and kernels are told of the machine, beside the config of the model. It changes
    speed, memory and rounding, never what is computed. Static under jit.

    Attributes:
      precision: dtypes.
      platform: of the devices: "cpu", "tpu" or "gpu".
      attention: a name of `maxlm.kernels.attention.KERNELS`.
      rules: the table of logical axes.
    """

    precision: PrecisionConfig = PrecisionConfig()
    platform: str = "cpu"
    attention: str = "reference"
    rules: Rules = logical_rules(ParallelConfig())

    @property
    def dtype(self) -> jnp.dtype:
        """The dtype of matmul inputs and activations."""
        return jnp.dtype(self.precision.compute)

    def constrain(self, x: jax.Array, *logical_axes: str | None) -> jax.Array:
        """`x` laid out by its logical axes, one name a dimension (see `rules.constrain`)."""
        return constrain(x, logical_axes, self.rules)

    def parts(self, logical: str) -> int:
        """Into how many parts the ambient mesh splits a dimension with this logical axis."""
        return parts(logical, self.rules, jax.sharding.get_abstract_mesh())

    @property
    def uses_cpu_kernels(self) -> bool:
        """Whether the forms of `maxlm.kernels.cpu` are used. They merge rows with length, which
        would move data between devices where both are split. In `shard_map` they write no
        transposes to memory (`materialize`), and XLA:CPU cannot run their bfloat16 dots."""
        return (self.platform == "cpu" and not jax.sharding.get_abstract_mesh().manual_axes
                and min(self.parts("batch"), self.parts("length")) == 1)
