"""The table of logical axes: which axis is split over what, and what is refused."""

import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec

from maxlm.config import MESH_AXES, ConfigError, ModelConfig, ParallelConfig, build
from maxlm.models import transformer
from maxlm.parallel import rules
from maxlm.parallel.mesh import make_mesh

MODEL = ModelConfig(vocab_size=64, embed_dim=32, num_heads=4, num_kv_heads=2, head_dim=8,
                    mlp_dim=48)
RULES = rules.logical_rules(ParallelConfig())


def mesh(**sizes):
    return make_mesh(ParallelConfig(**{"data": 1, **sizes}))


def test_mesh_keeps_all_axes():
    made = mesh(fsdp=4, tensor=2)
    assert made.axis_names == MESH_AXES
    assert dict(made.shape) == {"data": 1, "stage": 1, "fsdp": 4, "expert": 1, "context": 1,
                                "tensor": 2}
    assert rules.parts("batch", RULES, made) == 4
    one = make_mesh(ParallelConfig(), jax.devices()[:1])
    assert one.axis_names == MESH_AXES and one.size == 1


def test_parameters_are_sharded_by_the_table():
    shardings = transformer.param_shardings(MODEL, mesh(fsdp=4, tensor=2), RULES)
    attention = shardings["blocks"]["attention"]
    assert attention["query"].spec == PartitionSpec(None, "fsdp", "tensor", None)
    assert attention["out"].spec == PartitionSpec(None, "tensor", None, "fsdp")
    assert shardings["head"].spec == PartitionSpec("tensor", "fsdp")
    assert shardings["head"].shard_shape((64, 32)) == (32, 8)


def test_activations_are_split_by_rows_and_heads():
    assert rules.spec_for(("batch", "length", "heads", "head_dim"), RULES) == PartitionSpec(
        ("data", "fsdp"), "context", "tensor", None)


def test_a_dimension_that_does_not_divide_is_named():
    with pytest.raises(ConfigError) as error:
        transformer.param_shardings(MODEL, mesh(fsdp=2, tensor=4), RULES)
    for part in ("blocks/attention/key", "'kv_heads' of size 2", "'tensor' of size 4",
                 "config.parallel.tensor"):
        assert part in str(error.value)


def test_two_dimensions_on_one_mesh_axis_are_refused():
    collision = (("mlp", "fsdp"), *RULES)
    with pytest.raises(ConfigError) as error:
        transformer.param_shardings(MODEL, mesh(fsdp=8), collision)
    for part in ("blocks/feed_forward/", "'embed'", "'mlp'", "'fsdp'"):
        assert part in str(error.value)


def test_entries_of_the_config_come_before_the_built_in_ones():
    parallel = build(ParallelConfig, {"rules": [{"logical": "mlp", "mesh": ["data", "tensor"]},
                                                {"logical": "embed", "mesh": []}]})
    spec = rules.spec_for(("embed", "mlp"), rules.logical_rules(parallel))
    assert spec == PartitionSpec(None, ("data", "tensor"))
    with pytest.raises(ConfigError, match=r"rules\[0\].logical: no .* 'heds'; did you mean"):
        rules.logical_rules(build(ParallelConfig, {"rules": [{"logical": "heds"}]}))
    with pytest.raises(ConfigError, match=r"rules\[0\].mesh: no .* 'tenser'; did you mean"):
        build(ParallelConfig, {"rules": [{"logical": "mlp", "mesh": ["tenser"]}]})


def test_an_unknown_logical_axis_names_the_nearest():
    with pytest.raises(ConfigError, match=r"'head' is not in the table.*did you mean 'heads'"):
        rules.spec_for(("embed", "head"), RULES)


def test_rank_mismatch_is_refused():
    with pytest.raises(ConfigError, match="2 dimensions"):
        rules.spec_for(("embed",), RULES, shape=(2, 3), name="weight")


def test_constrain_lays_an_activation_out():
    made = mesh(fsdp=4, tensor=2)
    with jax.set_mesh(made):
        axes = ("batch", "length", "mlp")
        y = jax.jit(lambda x: rules.constrain(x, axes, RULES))(np.ones((8, 3, 6)))
    assert y.sharding.shard_shape(y.shape) == (2, 3, 3)
    np.testing.assert_array_equal(rules.constrain(np.ones((3, 5)), ("batch", "mlp"), RULES), 1)


def test_table_lists_every_parameter_with_its_bytes():
    made = mesh(fsdp=4, tensor=2)
    lines = rules.table(transformer.abstract_params(MODEL), made, RULES).splitlines()
    head = next(line for line in lines if line.startswith("head"))
    assert head.split() == ["head", "64x32", "vocab,embed", "tensor,fsdp", "1,024"]
    total = int(lines[-1].split()[-1].replace(",", ""))
    shardings = jax.tree.leaves(transformer.param_shardings(MODEL, made, RULES))
    leaves = jax.tree.leaves(transformer.abstract_params(MODEL))
    assert total == sum(4 * int(np.prod(s.shard_shape(leaf.shape)))
                        for s, leaf in zip(shardings, leaves, strict=True))
