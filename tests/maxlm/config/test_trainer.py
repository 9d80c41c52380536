"""The trainer's own fields: combinations that cannot be, mesh sizes, and that each one is read."""

import ast
import dataclasses
import json
import os
import re
import typing
from pathlib import Path

import pytest

from maxlm.config import (
    MESH_AXES,
    Config,
    ConfigError,
    DataConfig,
    MixtureStage,
    ParallelConfig,
    TokenSource,
    build,
    from_config_dict,
    natures,
    override,
    shrink,
    to_plain,
    variant,
)
from maxlm.config.overrides import describe
from maxlm.config.schema import Nature

SECTIONS = typing.get_type_hints(Config)
PACKAGE = Path(__file__).resolve().parents[3] / "maxlm"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"model": {"num_heads": 4, "num_kv_heads": 3}},
         "config.model.num_kv_heads: 3 does not divide num_heads 4"),
        ({"model": {"head_dim": 33}},
         "config.model.head_dim: must be even for rotary positions, got 33"),
        ({"run": {"accumulation_steps": 3}},
         "config.run.accumulation_steps: 3 does not divide data.batch_size 8"),
        ({"run": {"steps": 99}}, "config.schedule.warmup_steps: 100 is more than run.steps 99"),
        ({"schedule": {"steps": 99}},
         "config.schedule.warmup_steps: 100 is more than schedule.steps 99"),
        ({"schedule": {"steps": 300, "start_step": 201}},
         "config.schedule.warmup_steps: 100 is more than schedule.steps 300 - start_step 201"),
        ({"schedule": {"start_step": 1000}},
         "config.schedule.start_step: 1000 must be less than run.steps 1000"),
        ({"parallel": {"fsdp": 0}}, "config.parallel.fsdp: must be at least 1, or -1 for what is "
         "left"),
        ({"parallel": {"fsdp": -1}}, "config.parallel.fsdp: only one axis may be -1, and data is "
         "too"),
        ({"parallel": {"fsdp": -2}}, "config.parallel.fsdp: must be at least -1, got -2"),
        ({"parallel": {"stage": 2}}, "config.parallel.stage: can only be 1, got 2"),
        ({"run": {"seed": 2**31}}, "config.run.seed: must be at most 2147483647, got 2147483648"),
        ({"optimizer": {"beta2": 1.0}}, "config.optimizer.beta2: must be at most 0.9999999, got "
         "1.0"),
        ({"optimizer": {"epsilon": 1e-20}}, "config.optimizer.epsilon: must be at least 4.8e-19 "
         "with beta2 0.95, got 1e-20: smaller mean squares are 0 in float32"),
    ],
)
def test_combinations_that_cannot_be(values, expected):
    with pytest.raises(ConfigError) as caught:
        build(Config, values)
    assert str(caught.value).startswith(expected)


@pytest.mark.parametrize(
    ("parallel", "devices", "expected"),
    [
        (ParallelConfig(), 8, {"data": 8}),
        (ParallelConfig(), 1, {}),
        (ParallelConfig(data=1, fsdp=-1), 8, {"fsdp": 8}),
        (ParallelConfig(data=1, fsdp=-1, tensor=2), 8, {"fsdp": 4, "tensor": 2}),
        (ParallelConfig(data=2, fsdp=2, tensor=2), 8, {"data": 2, "fsdp": 2, "tensor": 2}),
        (ParallelConfig(data=2, fsdp=2, tensor=-1), 12, {"data": 2, "fsdp": 2, "tensor": 3}),
    ],
)
def test_mesh_sizes(parallel, devices, expected):
    sizes = parallel.sizes(devices)
    assert tuple(sizes) == MESH_AXES  # the order of the device array
    assert sizes == {axis: expected.get(axis, 1) for axis in MESH_AXES}


def test_mesh_sizes_that_do_not_fit():
    with pytest.raises(ConfigError, match=r"parallel\.data: 8 devices cannot be divided by .*3"):
        ParallelConfig(fsdp=3).sizes(8)
    with pytest.raises(ConfigError, match="data 2 x fsdp 2 needs 4 devices, but there are 8"):
        ParallelConfig(data=2, fsdp=2).sizes(8)
    with pytest.raises(ConfigError, match="all axes 1 needs 1 devices, but there are 8"):
        ParallelConfig(data=1).sizes(8)


def test_round_trip_with_a_mixture():
    mixture = (TokenSource(path="a", source="wiki", weight=0.7), TokenSource(path="b", weight=0.3))
    config = Config(data=DataConfig(tokens=mixture, stages=(
        MixtureStage(after_step=3, tokens="c"), MixtureStage(after_step=5, tokens=mixture))))
    assert from_config_dict(Config, config.to_config_dict()) == config
    assert build(Config, json.loads(json.dumps(to_plain(config)))) == config


def stages(*after):
    return {"data": {"stages": [{"after_step": step, "tokens": "t"} for step in after]}}


@pytest.mark.parametrize(("values", "message"), [
    (stages(5, 5), r"config\.data\.stages\[1\]\.after_step: must be above the 5"),
    (stages(3, 9, 8), r"config\.data\.stages\[2\]\.after_step: must be above the 9"),
    (stages(0), r"config\.data\.stages\[0\]\.after_step: must be at least 1"),
    (stages(10**13), r"config\.data\.stages\[0\]\.after_step: must be at most"),
    ({"data": {"stages": [{"tokens": "t"}]}}, r"stages\[0\]\.after_step: must be set"),
    ({"data": {"stages": [{"after_step": 3}]}}, r"stages\[0\]\.tokens: must be set"),
    ({"data": {"stages": [{"after_step": 3, "tokens": [{"path": "gs://b/t"}]}]}},
     r"config\.data\.stages\[0\]\.tokens: 'gs://b/t' is a URL"),
])
def test_mistakes_in_stages(values, message):
    with pytest.raises(ConfigError, match=message):
        build(Config, values)


def test_absolute_paths_in_every_mixture():
    data = DataConfig(tokens="a", stages=(
        MixtureStage(after_step=1, tokens="b"),
        MixtureStage(after_step=2, tokens=(TokenSource(path="c"), TokenSource(path="/d")))))
    absolute = data.with_absolute_paths()
    assert absolute.tokens == os.path.abspath("a")
    assert absolute.stages[0].tokens == os.path.abspath("b")
    assert [source.path for source in absolute.stages[1].tokens] == [os.path.abspath("c"), "/d"]


def test_help_lists_every_field_once():
    lines = [line.split("=")[0].strip() for line in describe(Config).splitlines()]
    for section, kind in SECTIONS.items():
        for field in dataclasses.fields(kind):
            assert lines.count(f"--config.{section}.{field.name}") == 1
            assert len(field.metadata["help"]) > 5


def test_shrinking_keeps_the_kind_of_run():
    big = build(Config, {
        "run": {"steps": 1000, "accumulation_steps": 16},
        "model": {"num_layers": 80, "embed_dim": 8192, "num_heads": 64, "num_kv_heads": 8,
                  "head_dim": 128, "mlp_dim": 28672, "remat": "full", "tie_embeddings": True},
        "data": {"batch_size": 1024, "sequence_length": 4096, "packing": "best_fit"},
        "precision": {"compute": "bfloat16"},
        "parallel": {"data": 1, "fsdp": -1, "tensor": 8}})
    small = build(Config, to_plain(shrink(big)))  # passes all checks
    assert small.model.num_kv_heads < small.model.num_heads
    for section, fields in {"model": ("remat", "tie_embeddings", "scan_layers", "attention"),
                            "data": ("packing", "tokens"), "precision": ("compute",),
                            "optimizer": ("beta2", "clip_norm")}.items():
        for field in fields:
            assert getattr(getattr(small, section), field) == getattr(getattr(big, section), field)
    assert small.model.vocab_size == 8192  # reads the tokens of data_beam.train_tokenizer's default
    assert small.parallel.sizes(8) == ParallelConfig(data=1, fsdp=4, tensor=2).sizes(8)
    assert small.run.accumulation_steps == 2 and small.run.steps <= 4
    assert variant(big, "") is big and variant(big, "tiny") == small
    with pytest.raises(ConfigError, match="no variant 'tinny'"):
        variant(big, "tinny")


def attributes_by_file(package: Path) -> list[tuple[set[str], set[str]]]:
    """For each file but the config's own: attributes read in it, and all names it mentions."""
    files = []
    for file in package.rglob("*.py"):
        if "config" in file.relative_to(package).parts:
            continue
        nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
        attributes = {node.attr for node in nodes
                      if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)}
        files.append((attributes, attributes | {n.id for n in nodes if isinstance(n, ast.Name)}))
    return files


def test_every_field_has_a_reader():
    """Some file reads `.field` and deals with its section: `.section` or `SectionConfig`."""
    files = attributes_by_file(PACKAGE)
    unread = [
        f"{section}.{field.name}" for section, kind in SECTIONS.items() if section != "parallel"
        for field in dataclasses.fields(kind)
        if not any(field.name in attributes and {section, kind.__name__} & names
                   for attributes, names in files)]
    assert not unread, f"nothing reads {unread}"
    # The axes of `parallel` are read by ParallelConfig.sizes, tested above; the rules by
    # `logical_rules`.
    names = {field.name for field in dataclasses.fields(ParallelConfig)}
    assert names - {"rules"} == set(MESH_AXES)
    for field in dataclasses.fields(TokenSource):
        assert any(field.name in attributes and "tokens" in names for attributes, names in files)


def classes_in(kind: typing.Any) -> set[type]:
    """The config classes inside a type: of sections, and of the items of lists."""
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind).values()
        return {typing.cast(type, kind)}.union(*map(classes_in, hints))
    return set().union(*map(classes_in, typing.get_args(kind)))


def test_every_field_has_a_nature():
    for kind in classes_in(Config):
        for name, affects in natures(kind).items():
            assert affects and affects <= set(typing.get_args(Nature)), (
                f"{kind.__name__}.{name}: say in setting(..., affects=...) what a change affects")
    assert {MixtureStage, TokenSource} < classes_in(Config)


def test_natures_are_named_by_dotted_name():
    found = natures(Config)
    assert list(found)[:2] == ["run.steps", "run.seed"]
    assert found["run.seed"] == {"training", "data"} and found["model.remat"] == {"computation"}
    assert len(found) == sum(len(dataclasses.fields(kind)) for kind in SECTIONS.values())


FLOATS = [(section, name) for section, kind in SECTIONS.items()
          for name, hint in typing.get_type_hints(kind).items() if hint is float]


@pytest.mark.parametrize(("section", "field"), FLOATS)
@pytest.mark.parametrize("value", [1e39, -1e39, 1e300, 1e-39, -1e-46])
def test_every_number_must_be_one_of_float32(section, field, value):
    name = f"config.{section}.{field}"
    for attempt in (
            lambda: build(Config, {section: {field: value}}),
            lambda: override(Config().to_config_dict(), Config, f"{section}.{field}", str(value))):
        with pytest.raises(ConfigError, match=f"^{re.escape(name)}: {re.escape(str(value))} is not "
                           "a float32 number"):
            attempt()


def test_floats_of_all_sections_are_covered():
    assert {("schedule", "learning_rate"), ("optimizer", "epsilon"), ("model", "rope_theta"),
            ("checkpoint", "max_update_ratio")} <= set(FLOATS)


def test_a_weight_of_a_source_must_be_a_float32_number_too():
    with pytest.raises(ConfigError, match=r"^config\.data\.tokens\[0\]\.weight: 1e\+39 is not a"):
        build(Config, {"data": {"tokens": [{"path": "A", "weight": 1e39}]}})
