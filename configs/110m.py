"""110 million parameters, the size of GPT-2 small: 12 layers of width 768, 1024 tokens.

    python -m maxlm.train --config=configs/110m.py --workdir=runs/110m --config.data.tokens=TOKENS

For one GPU of 16 GB or more, or one TPU host; weights, gradients and optimizer take 1.8 GB. Data
parallel over all devices, up to 16 (a microbatch is 16 rows). 4200 steps of 0.5 million tokens are
2.2 billion tokens, 20 a parameter (arXiv:2203.15556); the peak learning rate is the one of this
size in arXiv:2005.14165.
"""

import ml_collections

from maxlm.config import (
    CheckpointConfig,
    Config,
    DataConfig,
    ModelConfig,
    PrecisionConfig,
    RunConfig,
    ScheduleConfig,
    variant,
)


def get_config(name: str = "") -> ml_collections.ConfigDict:
    """The configuration; `110m.py:tiny` is the same in miniature."""
    config = Config(
        run=RunConfig(steps=4200, accumulation_steps=32),
        model=ModelConfig(
            vocab_size=32000, num_layers=12, embed_dim=768, num_heads=12, num_kv_heads=12,
            head_dim=64, mlp_dim=2048, tie_embeddings=True, remat="dots"),
        data=DataConfig(sequence_length=1024, batch_size=512, workers=2),
        schedule=ScheduleConfig(learning_rate=6e-4, warmup_steps=200),
        precision=PrecisionConfig(compute="bfloat16"),
        checkpoint=CheckpointConfig(every_steps=500),
    )
    return variant(config, name).to_config_dict()
