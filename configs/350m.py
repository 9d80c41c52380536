"""341 million parameters, the size of GPT-2 medium: 24 layers of width 1024, 1024 tokens.

    python -m maxlm.train --config=configs/350m.py --workdir=runs/350m --config.data.tokens=TOKENS

For 8 GPUs of 24 GB or a TPU v5e-8; one GPU of 24 GB holds it too, with
`--config.run.accumulation_steps=64`. Weights, gradients and optimizer take 5.5 GB, split over all
devices (fsdp). 13,000 steps of 0.5 million tokens are 6.8 billion tokens, 20 a parameter
(arXiv:2203.15556); the peak learning rate is the one of this size in arXiv:2005.14165.
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
    """The configuration; `350m.py:tiny` is the same in miniature."""
    config = Config(
        run=RunConfig(steps=13_000, accumulation_steps=16),
        model=ModelConfig(
            vocab_size=32000, num_layers=24, embed_dim=1024, num_heads=16, num_kv_heads=16,
            head_dim=64, mlp_dim=2816, tie_embeddings=True, remat="dots"),
        data=DataConfig(sequence_length=1024, batch_size=512, workers=2),
        schedule=ScheduleConfig(learning_rate=3e-4, warmup_steps=500),
        precision=PrecisionConfig(compute="bfloat16"),
        parallel=ParallelConfig(data=1, fsdp=-1),
        checkpoint=CheckpointConfig(every_steps=1000),
    )
    return variant(config, name).to_config_dict()
