"""A small corpus for the tests of plans, and what they compare."""

import numpy as np

from maxlm.config import DataConfig

PACKINGS = ("concat", "best_fit")
LENGTHS = {
    "web": [[5, 9, 40, 3], [], [7, 2, 2, 17]],
    "code": [[100, 4], [6, 6, 6]],
    "law": [[3]],
}


def config(path, **fields):
    defaults = {"tokens": str(path), "sequence_length": 16, "batch_size": 4}
    return DataConfig(**{**defaults, **fields})


def equal(one, two):
    return all(np.array_equal(one[name], two[name]) for name in one)


def source_order(plan, name, count):
    return [(location.epoch, location.row) for location in map(plan.locate, range(count))
            if location.source == name]


def passes(plan, steps):
    """`Plan.passed_epochs`, from the place of every row."""
    sizes = {source["name"]: source["rows_per_epoch"] for source in plan.describe()["sources"]}
    counts, passed = dict.fromkeys(sizes, 0), {}
    for step in range(1, steps + 1):
        for row in range(plan.batch_size):
            name = plan.locate((step - 1) * plan.batch_size + row).source
            counts[name] += 1
            epochs, rest = divmod(counts[name] - 1, sizes[name])
            if rest == 0 and epochs in (1, *(2**n for n in range(2, 20))):
                passed.setdefault(step, {})[name] = epochs
    return passed
