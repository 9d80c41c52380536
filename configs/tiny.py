"""5.3 million parameters, the quickstart's model: about four minutes on a laptop's CPU.

    python -m maxlm.train --config=configs/tiny.py --workdir=runs/tiny --config.data.tokens=TOKENS

TOKENS is a directory of `python -m data_beam.tokenize`, its vocabulary at most 8192. Any machine
will do: 2 CPU cores and 2 GB of memory are enough. One device or several, data parallel.
"""

import ml_collections

from maxlm.config import (
    CheckpointConfig,
    Config,
    DataConfig,
    EvalsConfig,
    ModelConfig,
    RunConfig,
    ScheduleConfig,
    variant,
)


def get_config(name: str = "") -> ml_collections.ConfigDict:
    """The configuration; `tiny.py:tiny` is a run of seconds."""
    config = Config(
        run=RunConfig(steps=450),
        model=ModelConfig(
            vocab_size=8192, num_layers=4, embed_dim=256, num_heads=4, num_kv_heads=4, head_dim=64,
            mlp_dim=704, tie_embeddings=True, scan_layers=False),
        data=DataConfig(sequence_length=256, batch_size=8, packing="best_fit"),
        schedule=ScheduleConfig(learning_rate=2e-3, warmup_steps=45),
        checkpoint=CheckpointConfig(every_steps=50, keep=2),
        evals=EvalsConfig(every_steps=150, batches=16),
    )
    return variant(config, name).to_config_dict()
