"""A large configuration in miniature: the same kind of network and run, done in seconds."""

import dataclasses

from maxlm.config.schema import ConfigError
from maxlm.config.trainer import Config

_VOCAB_SIZE = 8192
"""As `data_beam.train_tokenizer` makes by default, so that the run can read its tokens."""


def shrink(config: Config) -> Config:
    """The same run, small enough for any machine: about a million parameters and 4 steps.

    Kept: grouped or full attention, tied or separate head, remat and scanning, packing, dtypes,
    optimizer, schedule, and which mesh axes are used. Reduced: widths, depth, rows, tokens and
    steps. For trying a configuration on a laptop, and for the tests that run every documented
    command.
    """
    grouped = config.model.num_kv_heads < config.model.num_heads
    accumulation = min(config.run.accumulation_steps, 2)
    return dataclasses.replace(
        config,
        run=dataclasses.replace(config.run, steps=4, accumulation_steps=accumulation),
        model=dataclasses.replace(
            config.model, vocab_size=min(config.model.vocab_size, _VOCAB_SIZE), num_layers=2,
            embed_dim=64, num_heads=4, num_kv_heads=2 if grouped else 4, head_dim=16, mlp_dim=128,
            loss_chunk=min(config.model.loss_chunk, 128)),
        data=dataclasses.replace(config.data, sequence_length=64, batch_size=8 * accumulation),
        schedule=dataclasses.replace(
            config.schedule, warmup_steps=min(config.schedule.warmup_steps, 1), steps=None),
        parallel=dataclasses.replace(
            config.parallel, tensor=config.parallel.tensor if config.parallel.tensor == -1
            else min(config.parallel.tensor, 2)),
        checkpoint=dataclasses.replace(config.checkpoint, every_steps=2),
        evals=dataclasses.replace(config.evals, batches=1),
        telemetry=dataclasses.replace(config.telemetry, log_every=1),
    )


def variant(config: Config, name: str) -> Config:
    """What follows the colon in `--config=configs/7b.py:tiny`: nothing, or `tiny` (see `shrink`).

    Raises:
      ConfigError: any other name.
    """
    if name not in ("", "tiny"):
        raise ConfigError(f"--config: no variant {name!r}; write FILE.py, or FILE.py:tiny for the "
                          "same run in miniature")
    return shrink(config) if name else config
