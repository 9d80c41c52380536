"""1.10 billion parameters, the shape of TinyLlama (arXiv:2401.02385): 22 layers of width 2048.

    python -m maxlm.train --config=configs/1b.py --workdir=runs/1b --config.data.tokens=TOKENS

For 16 accelerators of 40 GB or more (A100, H100, TPU v5p-32); start the command once on each host,
with --distributed. Weights, gradients and optimizer take 18 GB, split over all devices (fsdp); a
microbatch is four rows a device. 50,000 steps of 2.1 million tokens are 105 billion tokens, 95 a
parameter; the original went on to 3 trillion.
"""

import ml_collections

from maxlm.config import (
    CheckpointConfig,
    Config,
    DataConfig,
    ModelConfig,
    ParallelConfig,
    PrecisionConfig,
    RunConfig,
    ScheduleConfig,
    variant,
)


def get_config(name: str = "") -> ml_collections.ConfigDict:
    """The configuration; `1b.py:tiny` is the same in miniature."""
    config = Config(
        run=RunConfig(steps=50_000, accumulation_steps=16),
        model=ModelConfig(
            vocab_size=32000, num_layers=22, embed_dim=2048, num_heads=32, num_kv_heads=4,
            head_dim=64, mlp_dim=5632, remat="full"),
        data=DataConfig(sequence_length=2048, batch_size=1024, workers=4),
        schedule=ScheduleConfig(learning_rate=4e-4, warmup_steps=2000),
        precision=PrecisionConfig(compute="bfloat16"),
        parallel=ParallelConfig(data=1, fsdp=-1),
        checkpoint=CheckpointConfig(every_steps=1000),
    )
    return variant(config, name).to_config_dict()
