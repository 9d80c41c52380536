"""The CPU benchmark: 13.8 million parameters, 4096 tokens a step (see docs/benchmarks.md).

    python -m maxlm.train --config=configs/bench_cpu.py --workdir=runs/bench \\
        --config.data.tokens=TOKENS

For a laptop; `python -m benchmarks.train_cpu` times its step beside those of other trainers. Layers
are unrolled, which XLA:CPU runs faster than a loop over them.
"""

import ml_collections

from maxlm.config import (
    Config,
    DataConfig,
    EvalsConfig,
    ModelConfig,
    RunConfig,
    ScheduleConfig,
    variant,
)


def get_config(name: str = "") -> ml_collections.ConfigDict:
    """The configuration; `bench_cpu.py:tiny` is the same in miniature."""
    config = Config(
        run=RunConfig(steps=200),
        model=ModelConfig(
            vocab_size=8192, num_layers=6, embed_dim=384, num_heads=6, num_kv_heads=6, head_dim=64,
            mlp_dim=1024, tie_embeddings=True, scan_layers=False, loss_chunk=512),
        data=DataConfig(sequence_length=512, batch_size=8),
        schedule=ScheduleConfig(learning_rate=3e-4, warmup_steps=20),
        evals=EvalsConfig(every_steps=100, batches=8),
    )
    return variant(config, name).to_config_dict()
