"""What a resource manager's priorities and classes decide: the value of a job, and whether others may replace it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from placeopt.documents.documents import read_document
from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.stated_marks import STATED
from placeopt.model.base import MAX_VALUE, Name, Record

MARKS = ("movable", "preemptible")
"""Flags of running jobs that their owners may set: see `annotation_marks` and `comment_marks`."""
ANNOTATION, WORD = "placeopt.io/", "placeopt."
"""What stands before the flag in an annotation of a pod, and in a word of a Slurm job's comment."""
_TRUTH = {"true": True, "false": False}

ValuePerGpu = Annotated[int, Field(ge=1, le=1_000_000)]


class PriorityRule(Record):
    """
    Value and preemption of the jobs that an importer reads.

    A class is a QOS or partition of Slurm, or a priority class of Kubernetes. A GPU of a job is worth what
    ``value_per_gpu_of`` states for its class; else ``value_per_gpu``, multiplied by ``1 + percent_per_doubling / 100``
    for each binary digit of its priority (divided, where the priority is below 0). Few values result, and a priority
    that grows with the waiting time seldom changes them.
    """

    value_per_gpu: ValuePerGpu = 1000
    """Value of a GPU of a job of priority 0."""
    value_without_gpus: ValuePerGpu = 1
    """Value of a job without GPUs, of priority 0; it changes with the priority as that of a GPU does."""
    percent_per_doubling: Annotated[int, Field(ge=0, le=100)] = 25
    """What a doubling of the priority adds to the value; 0: the priority does not count."""
    value_per_gpu_of: dict[Name, ValuePerGpu] = Field(default_factory=dict)
    """Class -> value of a GPU, whatever the priority. Slurm: QOS first, then partition."""
    preemptible_below: Annotated[int, Field(ge=-(2**31), le=2**32)] = -10
    """
    Running jobs of a lower priority are preemptible. The default is that of Kubernetes' cluster autoscaler
    (``--expendable-pods-priority-cutoff``); no priority of Slurm is below 0.
    """
    preemptible: dict[Name, bool] = Field(default_factory=dict)
    """Class -> whether its running jobs are preemptible, whatever the priority and the manager's own settings."""

    def gpu_value(self, priority: int, classes: Iterable[str]) -> int:
        """Return the value of one GPU of a job; ``classes``: those that it belongs to, the first listed one counts."""
        for name in classes:
            if name in self.value_per_gpu_of:
                return self.value_per_gpu_of[name]
        return _scaled(self.value_per_gpu, self.percent_per_doubling, priority)

    def value(self, gpus: int, gpu_value: int) -> int:
        """Return the value of a job of that many GPUs; ``gpu_value``: as returned by `gpu_value`."""
        alone = max(1, gpu_value * self.value_without_gpus // self.value_per_gpu)
        return min(gpu_value * gpus or alone, MAX_VALUE)

    def may_preempt(self, priority: int, classes: Iterable[str], *, stated: bool = False) -> bool:
        """Return whether a running job is preemptible; ``stated``: whether the manager's own settings make it so."""
        for name in classes:
            if name in self.preemptible:
                return self.preemptible[name]
        return stated or priority < self.preemptible_below


@cache
def _scaled(base: int, percent: int, priority: int) -> int:
    steps = priority.bit_length()
    more, less = int((100 + percent) ** steps), int(100**steps)
    return max(1, base * more // less if priority >= 0 else base * less // more)


DEFAULT_RULE = PriorityRule()


def priority_rule(rule: PriorityRule | str | Path | None) -> PriorityRule:
    """Return the rule that an importer was given, as a record or a JSON file; the default for None."""
    if isinstance(rule, PriorityRule):
        return rule
    return DEFAULT_RULE if rule is None else read_document(PriorityRule, rule)


def annotation_marks(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return the marks among a pod's annotations, by name, with their values."""
    return {name: annotations[key] for name in (*MARKS, *STATED) if (key := ANNOTATION + name) in annotations}


def comment_marks(text: str) -> dict[str, str]:
    """Return the marks among the words of a Slurm job's comment, by name; the word alone means ``true``."""
    words = (word.partition("=") for word in text.replace(",", " ").replace(";", " ").split())
    values = {key: value if equals else "true" for key, equals, value in words}
    return {name: values[key] for name in (*MARKS, *STATED) if (key := WORD + name) in values}


def flags_of(marks: Iterable[Mapping[str, str]], by_rule: bool, job: str, notes: ImportNotes) -> tuple[bool, bool]:
    """
    Return whether a running job is movable, and preemptible.

    ``marks``: Of each of its parts, by name. A part without a mark is as it would be without any marks, ``by_rule`` of
    preemption, and the job is what all of its parts are. ``notes`` counts the jobs whose marks cannot be read; they are
    neither movable nor preemptible.
    """
    parts = list(marks)
    flags = {"movable": False, "preemptible": by_rule}
    for flag in MARKS:
        values = {_TRUTH.get(part[flag]) if flag in part else flags[flag] for part in parts}
        if None in values:
            notes.keep(f"mark {flag} is neither true nor false: neither movable nor preemptible", job)
            return False, False
        flags[flag] = all(values)
    return flags["movable"], flags["preemptible"]
