"""13.02 billion parameters, the shape of Llama 2 13B (arXiv:2307.09288) at 2048 tokens.

    python -m maxlm.train --config=configs/13b.py --workdir=runs/13b --config.data.tokens=TOKENS

40 layers, 40 heads, width 5120. For 128 accelerators of 80 GB or more (H100, TPU v5p-256); start
the command once on each host, with --distributed. Weights, gradients and optimizer take 208 GB,
split over all devices (fsdp); a microbatch is two rows a device. 65,000 steps of 4.2 million tokens
are 273 billion tokens, 21 a parameter; the original saw 2 trillion, in rows of 4096.
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
    """The configuration; `13b.py:tiny` is the same in miniature."""
    config = Config(
        run=RunConfig(steps=65_000, accumulation_steps=8),
        model=ModelConfig(
            vocab_size=32000, num_layers=40, embed_dim=5120, num_heads=40, num_kv_heads=40,
            head_dim=128, mlp_dim=13824, remat="full"),
        # Checksums of a terabyte at each start would keep all devices waiting; lengths must do.
        data=DataConfig(sequence_length=2048, batch_size=2048, workers=4,
                        verify=False),
        schedule=ScheduleConfig(learning_rate=3e-4, warmup_steps=2000),
        precision=PrecisionConfig(compute="bfloat16"),
        parallel=ParallelConfig(data=1, fsdp=-1),
        checkpoint=CheckpointConfig(every_steps=500),
    )
    return variant(config, name).to_config_dict()
