"""Continues texts with a trained model.

    python -m maxlm.generate --workdir=RUN --prompt="The patient" --prompt="患者"

All prompts are continued in one batch. The result goes to standard output: the prompt and its
continuation, or with --json one object a line.
"""

import json
import math
import os
import time
from collections.abc import Sequence

import jax
import numpy as np

from maxlm.cli.command_line import Parser, run_command
from maxlm.config import ConfigError, split_overrides
from maxlm.models.sampling import Sampling, continue_prompts
from maxlm.parallel.mesh import batch_shards
from maxlm.precision.policy import compute_dtype
from maxlm.telemetry.console import duration, log
from maxlm.training.faults import naming_no_memory
from maxlm.training.runs import Run, open_run

PROGRESS_SECONDS = 5.0  # between lines on standard error


def refuse_what_does_not_fit(run: Run, prompts: int, tokens: int) -> None:
    """Compares the KV cache with the memory of all devices (on the CPU, of the machine), if that is
    known. Without this check, the kernel might kill this process or another one.

    Raises:
      ConfigError: the cache alone is larger than the memory.
    """
    model, devices = run.config.model, run.mesh.devices.flat
    rows = max(prompts, batch_shards(run.mesh))
    size = (2 * model.num_layers * rows * tokens * model.num_kv_heads * model.head_dim
            * compute_dtype(run.config.precision).itemsize)
    if devices[0].platform == "cpu":
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    else:
        memory = sum((device.memory_stats() or {}).get("bytes_limit", math.inf)
                     for device in devices)
    if size > memory:
        raise ConfigError(
            f"--max_tokens: keys and values of {rows} texts of {tokens} tokens take "
            f"{size / 2**30:,.1f} GiB, but there are {memory / 2**30:,.1f} GiB of memory; ask for "
            "fewer tokens or fewer prompts at once")


def main(argv: Sequence[str]) -> int:
    parser = Parser(prog="python -m maxlm.generate", description=__doc__)
    parser.add_argument("--workdir", required=True, help="directory of the training run")
    parser.add_argument("--step", type=int, help="which checkpoint (default: the newest)")
    parser.add_argument("--prompt", action="append", required=True,
                        help="text to continue; may be given several times, and may be empty")
    parser.add_argument("--max_tokens", type=int, default=64,
                        help="most tokens to add to each prompt (default: %(default)s)")
    parser.add_argument("--temperature", type=float, default=0.8,
                        help="0 takes the likeliest token each time; 1 samples as the model "
                        "predicts (default: %(default)s)")
    parser.add_argument("--top_p", type=float, default=0.95,
                        help="sample from the likeliest tokens that together have this probability "
                        "(default: %(default)s)")
    parser.add_argument("--top_k", type=int, default=0,
                        help="sample from the k likeliest tokens; 0 for no limit (default: 0)")
    parser.add_argument("--seed", type=int, default=0,
                        help="the same seed gives the same texts (default: %(default)s)")
    parser.add_argument("--json", action="store_true",
                        help="print objects {prompt, text, tokens, ended} instead of text")
    rest, overrides = split_overrides(argv)
    arguments = parser.parse_args(rest)
    if arguments.max_tokens < 1:
        raise ConfigError(f"--max_tokens: must be at least 1, got {arguments.max_tokens}")
    if not 0 <= arguments.seed < 2**31:
        raise ConfigError(f"--seed: must be from 0 to {2**31 - 1}, got {arguments.seed}")
    for prompt in arguments.prompt:
        try:
            prompt.encode()
        except UnicodeEncodeError as error:  # Python keeps bytes that it could not decode
            raise ConfigError(f"--prompt: not UTF-8 at character {error.start + 1} of "
                              f"{prompt[:40]!a}") from None
    sampling = Sampling(arguments.temperature, arguments.top_k, arguments.top_p, arguments.seed)

    run = open_run(arguments.workdir, arguments.step, overrides)
    tokenizer = run.tokenizer
    prompts = [[tokenizer.bos_id, *tokenizer.encode(prompt)] for prompt in arguments.prompt]
    longest = max(map(len, prompts)) + arguments.max_tokens
    if longest > run.config.data.sequence_length:
        log(f"note: {longest} tokens are more than the {run.config.data.sequence_length} the "
            "model was trained on at once; it may ramble past them")
    refuse_what_does_not_fit(run, len(prompts), longest)
    allowed = np.zeros(run.config.model.vocab_size, bool)
    allowed[: tokenizer.vocab_size] = tokenizer.piece_bytes() > 0  # no BOS, padding, unknown
    allowed[tokenizer.eos_id] = True

    added: list[list[int]] = [[] for _ in prompts]
    ended = [False] * len(prompts)
    began = shown = time.monotonic()
    with (jax.set_mesh(run.mesh),
          naming_no_memory("ask for fewer tokens (--max_tokens) or fewer prompts at once")):
        for count, new in enumerate(continue_prompts(
                run.params, prompts, arguments.max_tokens, allowed, tokenizer.eos_id, sampling,
                run.config.model, run.config.precision), 1):
            now = time.monotonic()
            if now - shown >= PROGRESS_SECONDS:
                shown, left = now, (now - began) / count * (arguments.max_tokens - count)
                log(f"token {count:,} of at most {arguments.max_tokens:,}, "
                    f"{count / (now - began):,.1f} tokens/s in each text, at most {duration(left)} "
                    "left")
            for i, token in enumerate(new):
                if token is not None:
                    added[i].append(token)
    for i, (prompt, tokens) in enumerate(zip(arguments.prompt, added, strict=True)):
        ended[i] = len(tokens) < arguments.max_tokens
        text = tokenizer.decode(tokens)
        if arguments.json:
            print(json.dumps({"prompt": prompt, "text": text, "tokens": tokens,
                              "ended": ended[i]}, ensure_ascii=False))
        else:
            rule = "" if len(prompts) == 1 else f"--- {i + 1} of {len(prompts)} ---\n"
            print(f"{rule}{prompt}{text}")
    return 0


if __name__ == "__main__":
    run_command(main)
