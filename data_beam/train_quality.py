"""Trains a text classifier on labelled examples: quality from 0 to 5, or safe and unsafe.

    python -m data_beam.train_quality --examples=LABELLED.jsonl --output=MODEL
    python -m data_beam.train_quality --examples=UNSAFE.jsonl --task=safety --output=MODEL

The examples are JSON lines such as {"text": "...", "label": 3}, or Parquet with these columns.
Labels:

    quality   0 to 5; 5 is best
    safety    1 unsafe (toxic, pornographic, an advertisement for gambling ...), 0 safe

The command writes

    MODEL/model.npz     weights and thresholds
    MODEL/model.json    description of the model; written last
    MODEL/report.json   agreement with the labels of held-out examples, also printed

The features are hashed n-grams: of characters in Chinese and Japanese, of words elsewhere, so one
model works for all languages of its examples. The model is an ordinal logistic regression, trained
without random numbers: the same examples and flags give the same bytes. If the model exists
already, the command does nothing. A few thousand examples suffice; a text of 7.5 kB needs 25 kB of
memory.

Name the folder in a recipe: config.quality.model or config.safety.model, see docs/model_filters.md.
"""

import hashlib
import json
import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse

from data_beam.base import files
from data_beam.models import classifier_training, folder
from data_beam.models.classifier import TASKS, HashedNgrams, Task
from data_beam.runners.progress import StatusLine
from data_beam.sinks import output_folder
from maxlm.cli import command_line
from maxlm.config.schema import ConfigError

_MAX_NGRAMS = 8


def _features(ngrams: HashedNgrams, texts: Sequence[str], features: int, progress: StatusLine
              ) -> scipy.sparse.csr_array:
    """The feature matrix, [texts, features]."""
    columns, values, starts = [], [], [0]
    for number, text in enumerate(texts, 1):
        found, weights = ngrams(text)
        columns.append(found.astype(np.int32))
        values.append(weights)
        starts.append(starts[-1] + len(found))
        progress(f"{number:,} of {len(texts):,} texts read")
    return scipy.sparse.csr_array(
        (np.concatenate(values), np.concatenate(columns), np.array(starts)),
        shape=(len(texts), features))


def train_quality(output: str, task: Task, flags: dict[str, Any]) -> dict[str, Any]:
    """Trains a classifier unless it exists already; returns its report. `flags` are the command's
    other flags, checked.

    Raises ConfigError for examples that cannot be used or too few of them, other files in `output`,
    another run writing it, and a full disk.
    """
    with output_folder.exclusive(output) as path:
        found = classifier_training.read_examples(
            flags["examples"], flags["text_field"], flags["label_field"], task.highest)
        digest = hashlib.sha256(files.read_bytes(flags["examples"])).hexdigest()
        inputs = {**flags, "examples": digest}
        if folder.finished(path, task.kind, inputs) is not None:
            print(f"{path} is complete and was made from these inputs: nothing to do")
            return json.loads(files.read_bytes(f"{path}/{folder.REPORT}"))
        train, held_out = found.split(flags["held_out"], flags["seed"])
        if not len(held_out):
            raise ConfigError(f"--held_out: none of {len(found)} examples is held out; give more "
                              "examples or a larger share")
        labels = sorted(set(train.labels.tolist()))
        if len(labels) < 2:
            raise ConfigError(f"--examples: two different labels are needed; all {len(train)} "
                              f"training examples have the labels {labels}")
        counts = np.bincount(found.labels, minlength=task.highest + 1)
        print("examples by label: " + ", ".join(
            f"{label}: {count:,}" for label, count in enumerate(counts)), flush=True)
        print(f"{len(train):,} for training, {len(held_out):,} held out", flush=True)
        progress = StatusLine(2.0)
        started = time.monotonic()
        ngrams = HashedNgrams(flags["features"], flags["ngrams"])
        model = classifier_training.train(
            _features(ngrams, train.texts, flags["features"], progress), train.labels, flags["l2"],
            lambda iteration, loss: progress(f"iteration {iteration}, loss {loss:.6g}"))
        print(f"trained in {time.monotonic() - started:.1f} s", flush=True)
        scores = np.array([model.score(*ngrams(text)) for text in held_out.texts])
        report = {
            "task": task.name, "labels": counts.tolist(), "trained_on": len(train),
            "held_out": classifier_training.agreement(
                held_out.labels, scores, task.highest + 1, flags["threshold"])}
        text = json.dumps(report, indent=1) + "\n"
        with output_folder.naming_full_disk(path, "model"):
            folder.write(
                path, task.kind, inputs,
                {"weights": model.weights, "thresholds": model.thresholds},
                {"lowest": model.lowest, "features": flags["features"],
                 "ngrams": flags["ngrams"]}, {folder.REPORT: text.encode()})
        return report


def _show(report: dict[str, Any], task: Task) -> None:
    held_out = report["held_out"]
    print(f"on {held_out['documents']:,} held-out examples:")
    for name in ("accuracy", "accuracy_of_the_commonest_label", "quadratic_weighted_kappa",
                 "spearman", "mean_absolute_error"):
        print(f"  {name.replace('_', ' '):<34}{held_out[name]:>8.3f}")
    print(f"  {task.above} (score at least {held_out['threshold']:g}): precision "
          f"{held_out['precision']:.3f}, recall {held_out['recall']:.3f}, F1 {held_out['f1']:.3f}")
    print("  label by row, rounded score by column:")
    for label, row in enumerate(held_out["confusion"]):
        print(f"  {label}" + "".join(f"{count:>8,}" for count in row))


def main(argv: Sequence[str]) -> int:
    """The command; see the module's docstring."""
    parser = command_line.Parser(prog="python -m data_beam.train_quality", description=__doc__)
    parser.add_argument("--examples", required=True, help="labelled texts, JSON lines or Parquet")
    parser.add_argument("--output", required=True, help="folder of the model")
    parser.add_argument("--task", choices=tuple(TASKS), default="quality",
                        help="what the labels mean (quality)")
    parser.add_argument("--text_field", default="text", help="field with the text (text)")
    parser.add_argument("--label_field", default="label", help="field with the label (label)")
    parser.add_argument("--held_out", type=float, default=0.1,
                        help="share of the examples to hold out for evaluation (0.1)")
    parser.add_argument("--seed", type=int, default=0, help="selects the held-out examples (0)")
    parser.add_argument("--features", type=float, default=2**18,
                        help="buckets of the n-grams, a power of two (262144)")
    parser.add_argument("--ngrams", type=int, default=2, help="tokens of the longest n-grams (2)")
    parser.add_argument("--l2", type=float, default=0.01,
                        help="strength of the L2 penalty on the weights (0.01)")
    parser.add_argument("--threshold", type=float,
                        help="score from which a text is kept, or unsafe, in the report (2 for "
                        "quality, 0.5 for safety)")
    flags = vars(parser.parse_args(argv))
    task = TASKS[flags.pop("task")]
    if flags["threshold"] is None:
        flags["threshold"] = task.threshold
    for name, least, most in (("held_out", 0, 1), ("l2", 0, math.inf),
                              ("threshold", 0, task.highest)):
        if not least < flags[name] < most:
            raise ConfigError(f"--{name}: must be above {least} and below {most:g}, got "
                              f"{flags[name]:g}")
    features = int(flags["features"]) if math.isfinite(flags["features"]) else 0
    if features != flags["features"] or features.bit_count() != 1 or not 16 <= features <= 2**28:
        raise ConfigError("--features: must be a power of two from 16 to 268435456, got "
                          f"{flags['features']:g}")
    flags["features"] = features
    if not 1 <= flags["ngrams"] <= _MAX_NGRAMS:
        raise ConfigError(f"--ngrams: must be from 1 to {_MAX_NGRAMS}, got {flags['ngrams']}")
    if not 0 <= flags["seed"] < 2**64:
        raise ConfigError(f"--seed: must be at least 0, got {flags['seed']}")
    output = flags.pop("output")
    _show(train_quality(output, task, flags), task)
    print(f"model: {output}")
    return 0


if __name__ == "__main__":
    command_line.run_command(main)
