"""Levanter's side of benchmarks.train_cpu: its LlamaLMHeadModel, Adam and `Trainer.train_step`.

Its settings are its defaults but for the shape, the schedule (constant) and two that it runs
faster with on a CPU: layers are unrolled and nothing is computed again. Trackers, checkpoints and
hooks are off.
"""

# pyright: reportMissingImports=false
# Levanter is in another interpreter.
import contextlib
import json
import sys

import numpy as np

from benchmarks.train_worker import Job, Run, serve, tokens_of


def start(job: Job) -> tuple[int, Run]:
    import haliax as hax
    import jax
    import jmp
    import levanter.tracker
    from levanter.layers.rotary import DefaultRotaryEmbeddingsConfig
    from levanter.models.llama import LlamaConfig
    from levanter.models.lm_model import LmExample
    from levanter.optim.config import AdamConfig
    from levanter.tracker.tracker import NoopTracker
    from levanter.trainer import DEFAULT_JAX_CONFIG, Trainer, TrainerConfig
    from levanter.utils.jax_utils import parameter_count

    shape = job["model"]
    model = LlamaConfig(
        max_seq_len=shape["max_position_embeddings"], hidden_dim=shape["hidden_size"],
        intermediate_dim=shape["intermediate_size"], num_layers=shape["num_hidden_layers"],
        num_heads=shape["num_attention_heads"], num_kv_heads=shape["num_key_value_heads"],
        head_dim=shape["head_dim"], layer_norm_epsilon=shape["rms_norm_eps"],
        tie_word_embeddings=shape["tie_word_embeddings"],
        rope=DefaultRotaryEmbeddingsConfig(theta=shape["rope_theta"]),
        gradient_checkpointing=False, scan_layers=False)
    optimizer = AdamConfig(
        learning_rate=job["learning_rate"], lr_schedule="constant", warmup=0,
        weight_decay=job["weight_decay"], beta1=job["beta1"], beta2=job["beta2"],
        epsilon=job["epsilon"], max_grad_norm=job["clip_norm"])
    config = TrainerConfig(
        id="benchmark", mp=jmp.get_policy(f"p=f32,c={job['compute']}"), load_checkpoint=False,
        train_batch_size=job["batch_size"], log_jaxprs=False, log_xla_hlo=False)
    for name, value in DEFAULT_JAX_CONFIG.items():
        jax.config.update(name, value)
    levanter.tracker.set_global_tracker(NoopTracker())

    def loss(model, example, *, key=None):
        return model.compute_next_token_loss(example, key=key)

    trainer = Trainer(config, optimizer.build(config.num_train_steps), loss,
                      add_default_hooks=False)
    contextlib.ExitStack().enter_context(trainer)  # its mesh, for as long as the process lives
    vocabulary, seed = hax.Axis("vocab", shape["vocab_size"]), jax.random.key(0)
    state = trainer.initial_state(seed, model_init=lambda: model.build(vocabulary, key=seed))
    parameters = parameter_count(state.model)
    batch = hax.vmap(LmExample.causal, config.TrainBatch)(
        hax.named(tokens_of(job).astype(np.int32), (config.TrainBatch, model.max_Pos)))

    def run(steps: int) -> float:
        nonlocal state
        value = None
        for _ in range(steps):
            done = trainer.train_step(state, batch)
            state, value = done.state, done.loss
        jax.block_until_ready(jax.tree.leaves(state))
        assert value is not None
        return float(value)

    return parameters, run


if __name__ == "__main__":
    serve(start, json.loads(sys.argv[1]))
