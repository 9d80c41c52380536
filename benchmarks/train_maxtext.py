"""MaxText's side of benchmarks.train_cpu: its Llama decoder, loss, optimizer and jitted train step.

Its settings are those of its base.yml but for the shape, the schedule (constant) and three that it
runs faster with on a CPU: layers are unrolled, nothing but logits is computed again, and those are
made an eighth at a time. It starts above the loss of chance: embeddings of variance 1, tied, make
large logits.
"""

# pyright: reportMissingImports=false
# MaxText is in another interpreter.
import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.train_worker import Job, Run, serve, tokens_of


def settings(job: Job, folder: str) -> dict[str, object]:
    """MaxText's names for the job."""
    shape = job["model"]
    return {
        "base_emb_dim": shape["hidden_size"], "base_mlp_dim": shape["intermediate_size"],
        "base_num_query_heads": shape["num_attention_heads"],
        "base_num_kv_heads": shape["num_key_value_heads"], "head_dim": shape["head_dim"],
        "base_num_decoder_layers": shape["num_hidden_layers"], "vocab_size": shape["vocab_size"],
        "max_target_length": shape["max_position_embeddings"],
        "logits_via_embedding": shape["tie_word_embeddings"],
        "normalization_layer_epsilon": shape["rms_norm_eps"],
        "rope_max_timescale": int(shape["rope_theta"]),
        "per_device_batch_size": job["batch_size"], "dtype": job["compute"],
        "learning_rate": job["learning_rate"], "lr_schedule_type": "wsd",
        "warmup_steps_fraction": 0.0, "wsd_decay_steps_fraction": 0.0, "steps": 1_000_000,
        "adam_b1": job["beta1"], "adam_b2": job["beta2"], "adam_eps": job["epsilon"],
        "adam_weight_decay": job["weight_decay"], "gradient_clipping_threshold": job["clip_norm"],
        "scan_layers": False, "remat_policy": "none", "num_vocab_tiling": 8,
        "hardware": "cpu", "skip_jax_distributed_system": True, "dataset_type": "synthetic",
        "base_output_directory": folder, "run_name": "benchmark", "enable_checkpointing": False,
        "enable_tensorboard": False, "log_config": False, "monitor_goodput": False,
    }


def start(job: Job) -> tuple[int, Run]:
    os.environ["DECOUPLE_GCLOUD"] = "TRUE"  # its switch for machines without Google Cloud
    import jax
    import maxtext
    from flax import nnx
    from flax.core.spmd import logical_axis_rules
    from maxtext.configs import pyconfig
    from maxtext.trainers.pre_train.train import train_step
    from maxtext.utils import sharding, train_utils

    base = Path(str(maxtext.__file__)).parent / "configs" / "base.yml"
    with tempfile.TemporaryDirectory() as folder:
        config = pyconfig.initialize(["train", str(base)], **settings(job, folder))
        _, _, shardings, _, mesh, *_, train_state = train_utils.setup_train_loop(config, None)
    graph, state = nnx.split(train_state)
    parameters = sum(leaf.size for leaf in jax.tree.leaves(nnx.state(train_state.model, nnx.Param)))
    parameter_shardings, shardings = sharding.maybe_update_params_sharding_with_opt(
        config, shardings)
    step, _ = train_utils.jit_train_and_eval_step(
        config, graph, mesh, state, shardings, train_step, params_shardings=parameter_shardings)

    tokens = tokens_of(job).astype(np.int32)
    ones, places = np.ones_like(tokens), np.tile(np.arange(tokens.shape[1], dtype=np.int32),
                                                 (len(tokens), 1))
    counted = ones.copy()
    counted[:, -1] = 0
    batch = jax.device_put(
        {"inputs": tokens, "inputs_position": places, "inputs_segmentation": ones,
         "targets": np.roll(tokens, -1, axis=1), "targets_position": places,
         "targets_segmentation": counted}, sharding.get_input_data_sharding(config, mesh))

    def run(steps: int) -> float:
        nonlocal state
        metrics = None
        with jax.set_mesh(mesh), logical_axis_rules(config.logical_axis_rules):
            for _ in range(steps):
                state, metrics = step(state, batch)
        jax.block_until_ready(state)
        assert metrics is not None
        return float(metrics["scalar"]["learning/loss"])

    return parameters, run


if __name__ == "__main__":
    serve(start, json.loads(sys.argv[1]))
