"""Which checkpoints are good, as judged from the steps and the evaluation that follow them.

A checkpoint is saved as a *candidate*. It becomes *good* when `checkpoint.confirm_steps` steps
after it and the next evaluation are sound, and *rejected* when the run diverges before that. A step
is sound when its numbers are finite, its update is small enough, and its loss is not far above the
lowest one that a good checkpoint had. No step follows the checkpoint of the last step; it becomes
good when the run ends with sound steps.

    RUN/checkpoint_status.json    {"losses": {"train": 5.9, ...}, "checkpoints": {"100": "good"}}
"""

import collections
import json
import math
import os
import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path

from maxlm.config import CheckpointConfig, ConfigError

FILE = "checkpoint_status.json"
CANDIDATE, GOOD, REJECTED = "candidate", "good", "rejected"
_TRAIN = "train"


class CheckpointStatus:
    """The status of each checkpoint of a run. Every process has the same one.

    Attributes:
      evaluation_set: identifies the rows that evaluations score; None when the run has no
        evaluations, so that only steps decide.
      of: step -> status.
    """

    def __init__(self, config: CheckpointConfig, evaluation_set: str | None = None):
        self._config = config
        self.evaluation_set = evaluation_set
        self.of: dict[int, str] = {}
        # "train" or evaluation set -> the loss that later losses are compared with: at first the
        # run's first loss, then the lowest loss at which a checkpoint was confirmed.
        self._reference: dict[str, float] = {}
        self._recent: collections.deque[float] = collections.deque(maxlen=config.confirm_steps)
        self._above = 0  # steps in a row whose loss is above the limit
        self._last_above = 0  # the last such step
        self._evaluated: tuple[int, float] | None = None  # step and loss of the last evaluation

    def read(self, path: Path, steps: Iterable[int]) -> None:
        """Loads the stored status of existing checkpoints; those without one are candidates.

        Raises:
          ConfigError: the file is damaged.
        """
        stored = _read(path)
        self._reference = {name: float(loss) for name, loss in stored["losses"].items()}
        self.of = {step: stored["checkpoints"].get(str(step), CANDIDATE) for step in sorted(steps)}

    def write(self, path: Path) -> None:
        """Replaces the file by a rename, so a kill leaves the old one or the new one."""
        temporary = path.with_name(path.name + ".tmp")
        with temporary.open("w", encoding="utf-8") as file:
            json.dump({"losses": self._reference, "checkpoints": self.of}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)

    def add(self, step: int) -> None:
        """Registers a checkpoint that is being saved. The initial weights (step 0) are good."""
        self.of[step] = CANDIDATE if step else GOOD

    def last_good(self) -> int | None:
        return max((step for step, status in self.of.items() if status == GOOD), default=None)

    def after_step(self, step: int, metrics: Mapping[str, float]) -> str | None:
        """Judges the metrics of a train step; returns why the run has diverged, or None."""
        for name in ("loss", "grad_norm", "update_norm", "param_norm"):
            if not math.isfinite(metrics[name]):
                return f"the {name} of step {step} is {metrics[name]}"
        ratio = metrics["update_norm"] / max(metrics["param_norm"], 1e-30)
        if ratio > self._config.max_update_ratio:
            return (f"the update of step {step} has {ratio:.3g} times the norm of the weights; "
                    f"checkpoint.max_update_ratio allows {self._config.max_update_ratio:g}")
        limit = self._limit(_TRAIN, metrics["loss"])
        if metrics["loss"] <= limit:
            self._above = 0
            self._recent.append(metrics["loss"])
            self._confirm(step)
            return None
        self._above, self._last_above = self._above + 1, step
        if self._above < self._config.confirm_steps:
            return None
        return (f"the loss of the last {self._above} steps is above {limit:.4g} (step {step}: "
                f"{metrics['loss']:.4g}); {self._explained(_TRAIN)}")

    def after_evaluation(self, step: int, loss: float) -> str | None:
        """Judges a held-out loss; returns why the run has diverged, or None."""
        assert self.evaluation_set is not None
        if not math.isfinite(loss):
            return f"the held-out loss of step {step} is {loss}"
        limit = self._limit(self.evaluation_set, loss)
        if loss > limit:
            return (f"the held-out loss of step {step} is {loss:.4g}, above {limit:.4g}; "
                    f"{self._explained(self.evaluation_set)}")
        self._evaluated = step, loss
        self._confirm(step)
        return None

    def after_last_step(self, step: int) -> str | None:
        """Judges the end of the run; returns why its last steps are not sound, or None."""
        if self._above:
            return (f"the loss of the last {self._above} steps is above "
                    f"{self._limit(_TRAIN, 0):.4g}; {self._explained(_TRAIN)}")
        self._confirm(step, last=True)
        return None

    def reject_candidates(self) -> None:
        """Rejects all candidates, because the run has diverged."""
        self.of = {step: REJECTED if status == CANDIDATE else status
                   for step, status in self.of.items()}

    def preserved(self) -> set[int]:
        """The steps whose checkpoints stay on disk.

        These are the newest `checkpoint.keep` good ones, all rejected ones, and of the candidates:
        the newest, from which an interrupted run resumes; the newest that `confirm_steps` steps
        already follow, because it can be confirmed next; and the oldest of the others, which
        will replace it. If good ones and these candidates are fewer than `checkpoint.keep`, the
        newest remaining candidates are kept too.
        """
        good = sorted(step for step, status in self.of.items() if status == GOOD)
        candidates = sorted(step for step, status in self.of.items() if status == CANDIDATE)
        followed = [step for step in candidates
                    if candidates[-1] - step >= self._config.confirm_steps]
        others = candidates[len(followed):]
        rejected = [step for step, status in self.of.items() if status == REJECTED]
        kept = {*good[-self._config.keep:], *followed[-1:], *others[:1], *others[-1:]}
        further = [step for step in reversed(candidates) if step not in kept]
        return kept.union(further[:max(0, self._config.keep - len(kept))], rejected)

    def _limit(self, name: str, loss: float) -> float:
        return self._reference.setdefault(name, loss) + self._config.max_loss_increase

    def _explained(self, name: str) -> str:
        return (f"that is {self._reference[name]:.4g}, which the run had before, and "
                f"checkpoint.max_loss_increase {self._config.max_loss_increase:g}")

    def _confirm(self, step: int, last: bool = False) -> None:
        """Makes candidates good that enough sound steps and an evaluation follow."""
        evaluated = math.inf if self.evaluation_set is None else (
            self._evaluated[0] if self._evaluated else -1)

        def confirmed(candidate: int) -> bool:
            since = max(candidate, self._last_above)
            return last or (step - since >= self._config.confirm_steps and evaluated > candidate)

        ready = [candidate for candidate, status in self.of.items()
                 if status == CANDIDATE and confirmed(candidate)]
        if not ready:
            return
        self.of |= dict.fromkeys(ready, GOOD)
        if self._recent:
            self._lower(_TRAIN, statistics.fmean(self._recent))
        if self.evaluation_set and self._evaluated:
            self._lower(self.evaluation_set, self._evaluated[1])

    def _lower(self, name: str, loss: float) -> None:
        self._reference[name] = min(self._reference.get(name, math.inf), loss)


def newest_not_rejected(workdir: Path, steps: Iterable[int]) -> int | None:
    """The newest of these checkpoints that was not rejected.

    Raises:
      ConfigError: the status file is damaged.
    """
    stored = _read(workdir / FILE)["checkpoints"]
    return max((step for step in steps if stored.get(str(step)) != REJECTED), default=None)


def _read(path: Path) -> dict[str, dict]:
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        losses, checkpoints = stored["losses"], stored["checkpoints"]
        valid = all(math.isfinite(loss) for loss in losses.values()) and (
            set(checkpoints.values()) <= {CANDIDATE, GOOD, REJECTED})
    except FileNotFoundError:
        return {"losses": {}, "checkpoints": {}}
    except (ValueError, KeyError, TypeError, AttributeError):
        valid = False
    if not valid:
        raise ConfigError(f"{path}: damaged; delete it to have all checkpoints of the run judged "
                          "again")
    return {"losses": losses, "checkpoints": checkpoints}
