"""The fields of a training run: a frozen dataclass per section, with defaults and checks."""

import dataclasses
import itertools
import math
import os
from typing import Any

import ml_collections

from maxlm.config import schema
from maxlm.config.schema import ConfigError, local_path, setting

# The mesh axes, in the order of the device array: slow links first. See docs/architecture.md.
MESH_AXES = ("data", "stage", "fsdp", "expert", "context", "tensor")


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunConfig:
    """How long, from which seed."""

    steps: int = setting(1000, "optimizer steps of the whole run", affects="training", minimum=1)
    seed: int = setting(
        0, "seed of initial weights and data order", affects=("training", "data"), minimum=0,
        maximum=2**31 - 1)
    accumulation_steps: int = setting(
        1, "microbatches a step is computed in; the batch size is the sum of them",
        affects="computation", minimum=1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class BlockConfig:
    """One kind of transformer block: what it has other than the rest of the model."""

    window: int | None = setting(
        None, "tokens that attention sees back, the token itself included; None for all",
        affects="model", minimum=1)
    mlp_dim: int | None = setting(
        None, "inner width of the feed-forward layer; None for model.mlp_dim", affects="model",
        minimum=1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroupConfig:
    """Blocks in order, the whole sequence repeated: `repeat=6, blocks=(local,) * 5 + (full,)`."""

    repeat: int = setting(
        1, "times that the blocks follow each other", affects="model", minimum=1)
    blocks: tuple[BlockConfig, ...] = setting(
        (BlockConfig(),), "the blocks, a list of tables", affects="model")

    def check(self, path: str) -> None:
        if not self.blocks:
            raise ConfigError(f"{path}.blocks: must have at least one block; [{{}}] is a plain one")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """A decoder. The defaults are those of Llama (arXiv:2302.13971): RMSNorm, rotary positions,
    SwiGLU."""

    vocab_size: int = setting(
        32000, "rows of the embedding; at least the tokenizer's vocabulary", affects="model",
        minimum=2)
    num_layers: int = setting(2, "transformer blocks", affects="model", minimum=1)
    embed_dim: int = setting(128, "width of the residual stream", affects="model", minimum=1)
    num_heads: int = setting(4, "query heads", affects="model", minimum=1)
    num_kv_heads: int = setting(
        4, "key and value heads; divides num_heads", affects="model", minimum=1)
    head_dim: int = setting(
        32, "width of one head; even for rotary positions", affects="model", minimum=2)
    mlp_dim: int = setting(352, "inner width of the feed-forward layer", affects="model", minimum=1)
    groups: tuple[GroupConfig, ...] = setting(
        (), "layers of several kinds: a list of {repeat, blocks}; num_layers is the total. Empty: "
        "num_layers plain blocks", affects="model")
    positions: str = setting(
        "rotary", "how the order of tokens is known: rotary (RoPE), alibi (a bias of scores by "
        "distance), none", affects="model", choices=("rotary", "alibi", "none"))
    norm: str = setting("rmsnorm", "rmsnorm, or layernorm (with bias)", affects="model",
                        choices=("rmsnorm", "layernorm"))
    feed_forward: str = setting(
        "gated", "gated: down(activation(gate(x)) * up(x)), plain: down(activation(up(x)))",
        affects="model", choices=("gated", "plain"))
    activation: str = setting(
        "silu", "of the feed-forward layer; gelu_tanh is GPT-2's approximation", affects="model",
        choices=("silu", "gelu", "gelu_tanh", "relu"))
    logit_cap: float | None = setting(
        None, "attention scores become cap * tanh(score / cap); None for none", affects="model",
        above=0)
    attention_scale: float | None = setting(
        None, "factor of attention scores; None for 1 / sqrt(head_dim)", affects="model", above=0)
    segment_bias: float | None = setting(
        None, "added to scores between documents of one row, at most 0; None: documents do not see "
        "each other", affects="model", maximum=0)
    tie_embeddings: bool = setting(
        False, "the output head is the transposed embedding", affects="model")
    rope_theta: float = setting(
        10000.0, "base of the RoPE wavelengths (arXiv:2104.09864)", affects="model", above=0)
    norm_epsilon: float = setting(
        1e-5, "added to the mean square in RMSNorm; its power of -3/2 must be finite in float32",
        affects="model", minimum=1e-24)
    init_std: float = setting(
        0.02, "standard deviation of initial weights; residual outputs use it over sqrt(2 layers)",
        affects="model", above=0)
    attention: str = setting(
        "auto", "attention kernel: auto (the best for the platform, named at start), blocked (CPU: "
        "by blocks of queries, scores never whole), splash (TPU), cudnn (GPU), reference (by the "
        "formula)",
        affects="computation")
    remat: str = setting(
        "none", "what the backward pass recomputes: none (all saved), dots (matmul outputs "
        "saved), full (only block inputs saved)", affects="computation",
        choices=("none", "dots", "full"))
    scan_layers: bool = setting(
        True, "compile one block and loop over it; False unrolls: slower to compile, faster on "
        "CPU", affects="computation")
    loss_chunk: int = setting(
        1024, "tokens per chunk of the cross-entropy; the full logits never exist",
        affects="computation", minimum=1)

    def check(self, path: str) -> None:
        if self.num_heads % self.num_kv_heads:
            raise ConfigError(f"{path}.num_kv_heads: {self.num_kv_heads} does not divide "
                              f"num_heads {self.num_heads}")
        if self.head_dim % 2 and self.positions == "rotary":
            raise ConfigError(f"{path}.head_dim: must be even for rotary positions, got "
                              f"{self.head_dim}")
        layers = sum(group.repeat * len(group.blocks) for group in self.groups)
        if self.groups and layers != self.num_layers:
            raise ConfigError(f"{path}.num_layers: {self.num_layers}, but groups have {layers} "
                              f"blocks; set it to {layers}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenSource:
    """One entry of a data mixture."""

    path: str = setting(
        dataclasses.MISSING, "directory that data_beam.tokenize wrote", affects="data")
    source: str | None = setting(
        None, "one source inside it; None for all, by their tokens", affects="data")
    weight: float = setting(
        1.0, "share of training tokens, relative to the other entries", affects="data", above=0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class MixtureStage:
    """The mixture from one step on, in place of the one before."""

    after_step: int = setting(
        dataclasses.MISSING, "the last step of the mixture before", affects="data", minimum=1,
        maximum=10**12)
    tokens: str | tuple[TokenSource, ...] = setting(
        dataclasses.MISSING, "the mixture of the steps after it, written as in data.tokens",
        affects="data")


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataConfig:
    """What is read, and how rows are made of documents."""

    tokens: str | tuple[TokenSource, ...] = setting(
        "", "directory of data_beam.tokenize, or a list of {path, source, weight}", affects="data")
    stages: tuple[MixtureStage, ...] = setting(
        (), "later mixtures: a list of {after_step, tokens}, by step; a source continues where it "
        "is, and a stage may be added to a run that has not reached it", affects="data")
    split: str = setting("train", "split to train on", affects="data")
    sequence_length: int = setting(256, "tokens in a row", affects="data", minimum=2)
    batch_size: int = setting(8, "rows in a step over all devices", affects="data", minimum=1)
    packing: str = setting(
        "concat", "concat: every token used once, documents cut at row ends; best_fit: no "
        "document cut unless longer than a row, rest of the row padded", affects="data",
        choices=("concat", "best_fit"))
    epochs: int | None = setting(
        None, "stop with an error before a source repeats more often; None repeats freely",
        affects="data", minimum=1)
    workers: int = setting(
        0, "processes that prepare batches ahead; 0 prepares them in threads",
        affects="computation", minimum=0)
    prefetch: int = setting(
        4, "batches prepared ahead of the step", affects="computation", minimum=1)
    verify: bool = setting(
        True, "compare the checksum of each shard with its manifest at start; the processes share "
        "the work. False: the length alone, which is always compared", affects="computation")

    def check(self, path: str) -> None:
        fields = {f"{path}.tokens": self.tokens} | {
            f"{path}.stages[{i}].tokens": stage.tokens for i, stage in enumerate(self.stages)}
        for field, tokens in fields.items():
            for directory in [tokens] if isinstance(tokens, str) else [s.path for s in tokens]:
                local_path(directory, field)
        starts = [stage.after_step for stage in self.stages]
        for i, (one, next_one) in enumerate(itertools.pairwise(starts), 1):
            if next_one <= one:
                raise ConfigError(f"{path}.stages[{i}].after_step: must be above the {one} of the "
                                  f"stage before, got {next_one}")

    def with_absolute_paths(self) -> "DataConfig":
        """The same with paths that hold in any working directory."""

        def absolute(tokens: Any) -> Any:
            if isinstance(tokens, str):
                return tokens and os.path.abspath(tokens)
            return tuple(dataclasses.replace(source, path=os.path.abspath(source.path))
                         for source in tokens)

        stages = tuple(dataclasses.replace(stage, tokens=absolute(stage.tokens))
                       for stage in self.stages)
        return dataclasses.replace(self, tokens=absolute(self.tokens), stages=stages)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ObjectiveConfig:
    """What training minimises."""

    name: str = setting(
        "causal_lm", "causal_lm: the cross-entropy of each next token", affects="training")


@dataclasses.dataclass(frozen=True, kw_only=True)
class OptimizerConfig:
    """The update rule. The fields are those of AdamW (arXiv:1711.05101)."""

    name: str = setting(
        "adamw", "a name of OPTIMIZERS in maxlm/training/optimizer.py: adamw", affects="training")
    beta1: float = setting(
        0.9, "decay of the mean of gradients", affects="training", minimum=0, maximum=0.9999999)
    beta2: float = setting(
        0.95, "decay of the mean square", affects="training", minimum=0, maximum=0.9999999)
    epsilon: float = setting(
        1e-8, "added to the root of the mean square; at least sqrt(2**-126 / (1 - beta2)), below "
        "which a mean square that float32 rounds to 0 would make an update of any size",
        affects="training", above=0)
    weight_decay: float = setting(
        0.1, "decoupled decay, times the learning rate; weights and embeddings only",
        affects="training", minimum=0)
    clip_norm: float = setting(
        1.0, "largest global norm of the gradient; longer ones are scaled down", affects="training",
        above=0)

    def check(self, path: str) -> None:
        # A gradient g below sqrt(tiny / (1 - beta2)) has a mean square (1 - beta2) * g**2 that is
        # flushed to 0; its update g / epsilon is then at most 1, as Adam's updates are.
        least = math.sqrt(schema.FLOAT32_TINY / (1 - self.beta2))
        if self.epsilon < least:
            raise ConfigError(f"{path}.epsilon: must be at least {least:.2g} with beta2 "
                              f"{self.beta2:g}, got {self.epsilon:g}: smaller mean squares are 0 "
                              "in float32")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScheduleConfig:
    """Learning rate over steps: linear warm-up, then the named curve.

    A run stores its schedule, with `steps` filled in, and continues with it.
    """

    name: str = setting(
        "cosine", "curve after warm-up", affects="training", choices=("cosine", "constant"))
    learning_rate: float = setting(3e-4, "peak learning rate", affects="training", minimum=0)
    warmup_steps: int = setting(
        100, "steps of linear warm-up; step k of them (from 0) uses peak * (k+1)/warmup",
        affects="training", minimum=0)
    final_fraction: float = setting(
        0.1, "learning rate of the last step of the schedule over the peak", affects="training",
        minimum=0, maximum=1)
    steps: int | None = setting(
        None, "length of the schedule; later steps keep its final rate. None: run.steps when the "
        "run starts", affects="training", minimum=1)
    if_steps_change: str = setting(
        "hold", "learning rate when run.steps of a started run changes: hold (keep the schedule; "
        "past its end, its final rate), rewarm (from the present rate to the peak in "
        "warmup_steps, then the curve to the new last step), replan (the schedule of a run "
        "planned for the new number of steps; the rate may jump)", affects="training",
        choices=("hold", "rewarm", "replan"))
    start_step: int = setting(
        0, "first step of the schedule; rewarm sets it", affects="training", minimum=0)
    start_rate: float = setting(
        0.0, "learning rate from which the warm-up rises; rewarm sets it", affects="training",
        minimum=0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrecisionConfig:
    """Dtypes. Master weights, norms, softmax, router and loss are float32 whatever is set here."""

    compute: str = setting(
        "float32", "dtype of matmul inputs and activations", affects="computation",
        choices=("float32", "bfloat16"))
    gradients: str = setting(
        "float32", "dtype in which devices add their parts of a weight's gradient; bfloat16 halves "
        "what they send. On the CPU always float32", affects="computation",
        choices=("float32", "bfloat16"))


@dataclasses.dataclass(frozen=True, kw_only=True)
class AxisRule:
    """Which mesh axes a logical axis (a kind of dimension of an array) is split over."""

    logical: str = setting(
        dataclasses.MISSING, "a logical axis of maxlm/parallel/rules.py", affects="computation")
    mesh: tuple[str, ...] = setting(
        (), f"some of {', '.join(MESH_AXES)}; [] for none", affects="computation")

    def check(self, path: str) -> None:
        for axis in self.mesh:
            if axis not in MESH_AXES:
                raise ConfigError(f"{path}.mesh: no mesh axis {axis!r}; "
                                  f"{schema.suggestion(axis, MESH_AXES)}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ParallelConfig:
    """One size per mesh axis; one of them may be -1: whatever devices are left."""

    data: int = setting(
        -1, "replicas that share nothing but gradients", affects="computation", minimum=-1)
    stage: int = setting(1, "pipeline stages", affects="computation", choices=(1,))
    fsdp: int = setting(
        1, "devices over which batch and parameters are both split", affects="computation",
        minimum=-1)
    expert: int = setting(
        1, "devices over which experts are split", affects="computation", choices=(1,))
    context: int = setting(
        1, "devices over which a sequence is split", affects="computation", choices=(1,))
    tensor: int = setting(
        1, "devices over which heads and inner widths are split", affects="computation", minimum=-1)
    rules: tuple[AxisRule, ...] = setting(
        (), "a list of {logical, mesh} before the built-in table of maxlm/parallel/rules.py",
        affects="computation")

    def check(self, path: str) -> None:
        sizes = {axis: getattr(self, axis) for axis in MESH_AXES}
        for axis, size in sizes.items():
            if size == 0:
                raise ConfigError(f"{path}.{axis}: must be at least 1, or -1 for what is left")
        free = [axis for axis, size in sizes.items() if size == -1]
        if len(free) > 1:
            raise ConfigError(f"{path}.{free[1]}: only one axis may be -1, and {free[0]} is too")

    def sizes(self, device_count: int) -> dict[str, int]:
        """Axis name -> size for this many devices, in mesh order.

        Raises:
          ConfigError: the sizes do not multiply to the device count.
        """
        sizes = {axis: getattr(self, axis) for axis in MESH_AXES}
        fixed = math.prod(size for size in sizes.values() if size != -1)
        shape = " x ".join(f"{axis} {size}" for axis, size in sizes.items() if size != 1)
        for axis, size in sizes.items():
            if size == -1:
                if device_count % fixed:
                    raise ConfigError(f"config.parallel.{axis}: {device_count} devices cannot be "
                                      f"divided by the other axes ({shape})")
                sizes[axis] = device_count // fixed
        if math.prod(sizes.values()) != device_count:
            raise ConfigError(f"config.parallel: {shape or 'all axes 1'} needs "
                              f"{math.prod(sizes.values())} devices, but there are {device_count}; "
                              "set one axis to -1 to use what is left")
        return sizes


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckpointConfig:
    """When to save. The last step is always saved."""

    every_steps: int = setting(
        100, "steps between checkpoints; 0 for none by steps", affects="output", minimum=0)
    every_minutes: float = setting(
        30.0, "minutes between checkpoints; 0 for none by time", affects="output", minimum=0)
    keep: int = setting(
        3, "newest good checkpoints kept; besides, up to three that are not confirmed yet",
        affects="output", minimum=1)
    confirm_steps: int = setting(
        10, "sound steps after a checkpoint before it is good; as many steps in a row above the "
        "loss limit end the run", affects="training", minimum=1)
    max_update_ratio: float = setting(
        1.0, "largest norm of a step's update over the norm of the weights; more ends the run",
        affects="training", above=0)
    max_loss_increase: float = setting(
        2.0, "nats per token that a sound loss may lie above the lowest one of a good checkpoint "
        "(training and held-out loss each; before the first good one, above the run's first loss)",
        affects="training", above=0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvalsConfig:
    """Held-out loss during training."""

    every_steps: int = setting(
        1000, "steps between evaluations; 0 for none. The first and last step are evaluated too",
        affects="output", minimum=0)
    batches: int = setting(
        16, "batches of data.batch_size rows per evaluation, the same ones each time",
        affects="data", minimum=1)
    split: str = setting("validation", "split to evaluate on", affects="data")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TelemetryConfig:
    """What is reported."""

    log_every: int = setting(1, "steps between rows of metrics.jsonl", affects="output", minimum=1)
    console_seconds: float = setting(
        2.0, "seconds between lines on the console; 0 prints every logged step", affects="output",
        minimum=0)
    gradient_check_every: int = setting(
        0, "steps between comparisons of the gradient of each parameter with finite differences "
        "of the loss, in float32; 0 for none. One takes 4 forward passes per parameter array",
        affects="output",
        minimum=0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    """A training run."""

    run: RunConfig = setting(RunConfig(), "length and seed")
    model: ModelConfig = setting(ModelConfig(), "the network")
    data: DataConfig = setting(DataConfig(), "the tokens")
    objective: ObjectiveConfig = setting(ObjectiveConfig(), "what is minimised")
    optimizer: OptimizerConfig = setting(OptimizerConfig(), "the update rule")
    schedule: ScheduleConfig = setting(ScheduleConfig(), "the learning rate")
    precision: PrecisionConfig = setting(PrecisionConfig(), "dtypes")
    parallel: ParallelConfig = setting(ParallelConfig(), "the device mesh")
    checkpoint: CheckpointConfig = setting(CheckpointConfig(), "saving")
    evals: EvalsConfig = setting(EvalsConfig(), "held-out loss")
    telemetry: TelemetryConfig = setting(TelemetryConfig(), "reports")

    def check(self, path: str) -> None:
        if self.data.batch_size % self.run.accumulation_steps:
            raise ConfigError(f"{path}.run.accumulation_steps: {self.run.accumulation_steps} does "
                              f"not divide data.batch_size {self.data.batch_size}")
        schedule = self.schedule
        end, field = (self.run.steps, "run.steps") if schedule.steps is None else (
            schedule.steps, "schedule.steps")
        if schedule.start_step >= end:
            raise ConfigError(f"{path}.schedule.start_step: {schedule.start_step} must be less "
                              f"than {field} {end}")
        if schedule.warmup_steps > end - schedule.start_step:
            after = f" - start_step {schedule.start_step}" if schedule.start_step else ""
            raise ConfigError(f"{path}.schedule.warmup_steps: {schedule.warmup_steps} is more than "
                              f"{field} {end}{after}; lower it, or set schedule.steps to the "
                              "length of the schedule")

    def to_config_dict(self) -> ml_collections.ConfigDict:
        """The locked face that config files return."""
        return schema.to_config_dict(self)
