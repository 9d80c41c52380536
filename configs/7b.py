"""6.74 billion parameters, the shape of Llama 2 7B (arXiv:2307.09288): 32 layers of width 4096.

    python -m maxlm.train --config=configs/7b.py --workdir=runs/7b --config.data.tokens=TOKENS

For 64 accelerators of 80 GB or more (H100, TPU v5p-128); start the command once on each host, with
--distributed. Weights, gradients and optimizer take 108 GB, split over all devices (fsdp); a
microbatch is one row a device. 40,000 steps of 4.2 million tokens are 168 billion tokens, 25 a
parameter; the original saw 2 trillion.
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
    """The configuration; `7b.py:tiny` is the same in miniature."""
    config = Config(
        run=RunConfig(steps=40_000, accumulation_steps=16),
        model=ModelConfig(
            vocab_size=32000, num_layers=32, embed_dim=4096, num_heads=32, num_kv_heads=32,
            head_dim=128, mlp_dim=11008, remat="full"),
        # Checksums of a terabyte at each start would keep all devices waiting; lengths must do.
        data=DataConfig(sequence_length=4096, batch_size=1024, workers=4,
                        verify=False),
        schedule=ScheduleConfig(learning_rate=3e-4, warmup_steps=2000),
        precision=PrecisionConfig(compute="bfloat16"),
        parallel=ParallelConfig(data=1, fsdp=-1),
        checkpoint=CheckpointConfig(every_steps=500),
    )
    return variant(config, name).to_config_dict()
