"""nanoGPT's side of benchmarks.train_cpu: the GPT class and the optimizer of its model.py.

Its design is GPT-2's: learned positions, LayerNorm, and a GELU layer of four times the width, which
at mlp_dim = 8/3 of the width has as many parameters as a gated one. Biases are off, which its own
comment calls a bit better and faster.
"""

# pyright: reportMissingImports=false
# model.py is in the checkout.
import json
import sys

from benchmarks.train_worker import Job, Run, serve, tokens_of, torch_steps


def start(job: Job) -> tuple[int, Run]:
    """`folder` in the job is the checkout; `compiled` asks for torch.compile, its default."""
    import torch
    sys.path.insert(0, job["folder"])
    from model import GPT, GPTConfig

    torch.manual_seed(0)
    shape = job["model"]
    tokens = torch.from_numpy(tokens_of(job))
    targets = tokens.roll(-1, dims=1)
    targets[:, -1] = -1  # ignored
    model = GPT(GPTConfig(
        block_size=tokens.shape[1], vocab_size=shape["vocab_size"],
        n_layer=shape["num_hidden_layers"], n_head=shape["num_attention_heads"],
        n_embd=shape["hidden_size"], dropout=0.0, bias=False))
    optimizer = model.configure_optimizers(
        job["weight_decay"], job["learning_rate"], (job["beta1"], job["beta2"]), "cpu")
    forward = torch.compile(model) if job["compiled"] else model
    return model.get_num_params(non_embedding=False), torch_steps(
        job, model, optimizer, lambda: forward(tokens, targets)[1])


if __name__ == "__main__":
    serve(start, json.loads(sys.argv[1]))
