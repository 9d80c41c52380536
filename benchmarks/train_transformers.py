"""Hugging Face transformers' side of benchmarks.train_cpu: LlamaForCausalLM, fused AdamW."""

import json
import sys

from benchmarks.train_worker import Job, Run, serve, tokens_of, torch_steps


def start(job: Job) -> tuple[int, Run]:
    """`compiled` in the job asks for torch.compile."""
    import torch
    import transformers

    torch.manual_seed(0)
    tokens = torch.from_numpy(tokens_of(job))
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**job["model"]))
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=job["learning_rate"], betas=(job["beta1"], job["beta2"]),
        eps=job["epsilon"], weight_decay=job["weight_decay"], fused=True)
    forward = torch.compile(model) if job["compiled"] else model
    return model.num_parameters(), torch_steps(
        job, model, optimizer,
        lambda: forward(input_ids=tokens, labels=tokens, use_cache=False).loss)


if __name__ == "__main__":
    serve(start, json.loads(sys.argv[1]))
