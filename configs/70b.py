"""68.98 billion parameters, the shape of Llama 2 70B (arXiv:2307.09288): 80 layers of width 8192.

    python -m maxlm.train --config=configs/70b.py --workdir=runs/70b --config.data.tokens=TOKENS

For 512 accelerators of 80 GB or more (H100, TPU v5p-1024); start the command once on each host,
with --distributed. Heads and inner widths are split over the 8 devices with the fastest links
(tensor), the rest over all others (fsdp): 64 x 8. Weights, gradients and optimizer take 1.1 TB; a
microbatch is two rows a group of 8. 330,000 steps of 4.2 million tokens are 1.4 trillion tokens, 20
a parameter; the original saw 2 trillion.
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
    """The configuration; `70b.py:tiny` is the same in miniature."""
    config = Config(
        run=RunConfig(steps=330_000, accumulation_steps=8),
        model=ModelConfig(
            vocab_size=32000, num_layers=80, embed_dim=8192, num_heads=64, num_kv_heads=8,
            head_dim=128, mlp_dim=28672, remat="full"),
        # Checksums of a terabyte at each start would keep all devices waiting; lengths must do.
        data=DataConfig(sequence_length=4096, batch_size=1024, workers=4,
                        verify=False),
        schedule=ScheduleConfig(learning_rate=1.5e-4, warmup_steps=2000),
        precision=PrecisionConfig(compute="bfloat16"),
        parallel=ParallelConfig(data=1, fsdp=-1, tensor=8),
        checkpoint=CheckpointConfig(every_steps=250),
    )
    return variant(config, name).to_config_dict()
