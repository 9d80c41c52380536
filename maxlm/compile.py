"""Compiles the train step for accelerators that this machine does not have, and says what it needs.

    python -m maxlm.compile --config=configs/7b.py --topology=v5p:4x4x4

The chip's own compiler compiles the step that `python -m maxlm.train` would run there. The page
says whether it fits, what takes the memory, what is computed, moved and sent, and how long a step
takes at least. Exit status: 0 when the step fits, 3 when it does not.
"""

if __name__ == "__main__":  # before jax is imported: a real accelerator is not needed
    import os
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import json
from collections.abc import Sequence
from pathlib import Path

from maxlm.analysis import targets
from maxlm.analysis.compiled_step import compile_step
from maxlm.analysis.page import figures, page
from maxlm.analysis.suggestions import suggestions
from maxlm.config import Config, Parser, local_path, resolve_config, run_command, split_overrides

DOES_NOT_FIT = 3


def main(argv: Sequence[str]) -> int:
    parser = Parser(prog="python -m maxlm.compile", description=__doc__, fields=Config)
    parser.add_argument("--config", required=True, help="a config file, for example configs/7b.py")
    parser.add_argument(
        "--topology", required=True,
        help="what to compile for: v5p:4x4x4 or another topology of libtpu; h100x8, or h100x8x4 "
        "for four hosts of eight (a100-40gb, a100-80gb, h100, h200, b200)")
    parser.add_argument("--json", metavar="FILE", help="also write the figures to FILE")
    rest, overrides = split_overrides(argv)
    arguments = parser.parse_args(rest)
    config = resolve_config(Config, arguments.config, overrides)
    target = targets.find(arguments.topology)
    step = compile_step(config, target)
    print(page(step))
    values = figures(step)
    if not step.memory.fits:
        values["suggestions"] = suggestions(step)
        print("\nthe cheapest changes that would make it fit (estimated)")
        for change in values["suggestions"]:
            print(f"  {change['change']}: about {change['peak_bytes'] / 1e9:,.1f} GB a device; "
                  f"{change['cost']}")
        if not values["suggestions"]:
            print("  none of the changes that were tried is enough; use a smaller model")
    if arguments.json:
        path: Path = local_path(arguments.json, "--json")
        path.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
    return 0 if step.memory.fits else DOES_NOT_FIT


if __name__ == "__main__":
    run_command(main)
