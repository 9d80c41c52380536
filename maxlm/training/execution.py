"""The `Execution` of a run: its kernels, rules and dtypes on the devices of a mesh."""

from jax.sharding import Mesh

from maxlm.config import Config
from maxlm.kernels.attention import choose
from maxlm.kernels.description import AttentionInputs
from maxlm.models.attention import describe
from maxlm.models.blocks import layer_groups
from maxlm.parallel.execution import Execution
from maxlm.parallel.rules import logical_rules


def make_execution(config: Config, mesh: Mesh) -> Execution:
    """How this configuration is computed on the devices of the mesh.

    Raises:
      ConfigError: the attention kernel cannot compute what the model asks for.
    """
    return _chosen(config, mesh)[0]


def kernel_note(config: Config, mesh: Mesh) -> str:
    """One line for the start of a run: the attention kernel, and why that one."""
    return _chosen(config, mesh)[1]


def _chosen(config: Config, mesh: Mesh) -> tuple[Execution, str]:
    model, platform = config.model, mesh.devices.flat[0].platform
    platform = "gpu" if platform in ("cuda", "rocm") else platform
    inputs = AttentionInputs(
        config.data.sequence_length, model.num_heads, model.num_kv_heads, model.head_dim,
        config.precision.compute, platform)
    kinds = {block for group in layer_groups(model) for block in group.blocks}
    kernel, note = choose(model.attention, [describe(model, kind) for kind in kinds], inputs)
    return Execution(config.precision, platform, kernel, logical_rules(config.parallel)), note
