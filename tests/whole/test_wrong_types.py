"""Values of wrong types, and names of nothing, to every public call: refused in words."""

import inspect
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import placeopt
from placeopt import (
    BadInput,
    PlaceoptError,
    audit,
    edits,
    generate,
    importers,
    read_instance,
    solve,
    violations,
    whatif,
)
from placeopt.arguments import checked
from placeopt.benchmark import read_solu
from placeopt.documents import dumps, loads
from placeopt.explain import explain
from placeopt.importers import topo
from placeopt.live_cluster import changes_between
from placeopt.model import Instance, Plan
from placeopt.partition import split
from placeopt.scheduling import named_policy
from placeopt.simulation import round_at, summarise
from placeopt.whatif import running_as_plan

ROUND = generate("uniform", jobs=3, nodes=2, gpus=2, seed=0)
PLAN = solve(ROUND, time_limit_s=1, isolation="thread", method="random")
RIGHT = {"instance": ROUND, "plan": PLAN, "job": ROUND.jobs[0], "machines": 1, "parts": 2}
WRONG: list[Any] = [None, 5, "x", 3.5, {}, [1], object(), b"x", True]
CALLS = [
    *(one for room in (placeopt, whatif) for one in (getattr(room, name) for name in room.__all__)
      if inspect.isfunction(one)),
    importers.KubernetesObjects,
    *(getattr(importers, f"read_{name}") for name in ("openb", "slurm", "kubernetes")),
    *(read_solu, topo.read_topo, topo.read_machine, explain, split, loads, dumps, named_policy, round_at, summarise),
    *(running_as_plan, changes_between, placeopt.instance_from_columns, placeopt.cluster_from_columns),
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_values_of_wrong_types_are_refused(
    call: Callable[..., object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """For each argument in turn, the others right; whatever comes out, nothing untyped does."""
    monkeypatch.chdir(tmp_path)  # a writer may well take "x" for a file
    parameters = [p for p in inspect.signature(call).parameters.values() if p.kind is not p.VAR_KEYWORD]
    needed = [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
    for tried in needed:
        for value in WRONG:
            given = {p.name: value if p is tried else RIGHT.get(p.name, "x") for p in needed}
            first = [given.pop(p.name) for p in needed if p.kind is not p.KEYWORD_ONLY]
            try:
                call(*first, **given)
            except PlaceoptError:
                continue


TOLD: list[tuple[Callable[..., object], tuple[Any, ...], str]] = [
    (violations, ({}, PLAN), "instance: dict, expected an Instance"),
    (violations, (ROUND, None), "plan: NoneType, expected a Plan"),
    (audit, (ROUND, "plan.json"), "plan: str, expected a Plan"),
    (whatif.slots, ({},), "instance: dict, expected an Instance, as read_instance gives it"),
    (partial(whatif.slots, sizes=[1, "2"]), (ROUND,), "sizes: list of int, str, expected a Sequence of int"),
    (whatif.fit, (ROUND, "8xH100"), "job: str, expected a Job"),
    (edits.apply, (ROUND, 1), "steps: int, expected a Sequence of Step"),
    (read_instance, (None,), "path: NoneType, expected the name of a file"),
    (placeopt.write_document, ("x", {}), "document: dict, expected a Record"),
    (loads, (Instance, 5), "data: int, expected a bytes, or text"),
    (whatif.fit, (ROUND,), "fit: missing a required argument: 'job'"),
]


@pytest.mark.parametrize(("call", "arguments", "words"), TOLD)
def test_a_wrong_argument_is_named_with_its_type(
    call: Callable[..., object], arguments: tuple[Any, ...], words: str
) -> None:
    with pytest.raises(BadInput, match=words):
        call(*arguments)


def test_names_of_nothing_in_a_plan() -> None:
    """A job or node that is not there, to `audit` and to `review`."""
    placed = next(p for p in PLAN.placements)
    strange = placed.model_copy(update={"job": "gone"})
    told = audit(ROUND, PLAN.model_copy(update={"placements": (strange,)}))
    assert told[0].startswith("cannot be rescored: ")
    assert "no job 'gone'" in told[0]
    lost = placed.assignments[0].model_copy(update={"node": "gone"})
    elsewhere = placed.model_copy(update={"assignments": (lost,)})
    assert audit(ROUND, PLAN.model_copy(update={"placements": (elsewhere,)}))[0].startswith("cannot be rescored: ")
    for one in (strange, elsewhere):
        judged = whatif.review(ROUND, whatif.plan_of(ROUND, [one]))
        assert not judged.valid
        assert any("gone" in line for line in judged.violations)


def test_checked_leaves_right_values_alone() -> None:
    """Numbers of numpy, subclasses, None where it is allowed, any number of positional ones."""

    @checked
    def call(plan: Plan | None, *sizes: int, by: float = 1.0, stop: threading.Event | None = None) -> object:
        return plan, sizes, by, stop

    import numpy as np

    assert call(None, 1, np.int64(2), by=3) == (None, (1, 2), 3, None)
    for wrong in (lambda: call(None, True), lambda: call(None, 1.0), lambda: call(None, by="1"), lambda: call(5)):
        with pytest.raises(BadInput):
            wrong()
