"""Whole queues of larger rounds: reasons, conflicts and changes, against decisions about each job by itself."""

from __future__ import annotations

from collections import Counter

import pytest

from helpers.instance_edits import single_changes
from helpers.live_engine import engine_of, places
from made_rounds import generate
from placeopt import Instance, solve
from placeopt.explain import explain, explain_all
from placeopt.model import Demand
from placeopt.whatif import after_plan


def with_licences(round_: Instance) -> Instance:
    """Let every third job need a licence, give half of the machine types two, and drain every tenth node."""
    jobs = list(round_.jobs)
    for j, job in list(enumerate(jobs))[::3]:
        demands = [Demand(**{**dict(option.demand), "resources": {"licence": 1}}) for option in job.options]
        pairs = zip(job.options, demands, strict=True)
        options = tuple(option.model_copy(update={"demand": demand}) for option, demand in pairs)
        jobs[j] = job.model_copy(update={"options": options})
    two = {"resources": {"licence": 2}}
    machines = tuple(
        type(one).model_validate({**dict(one), **two}) if m % 2 == 0 else one
        for m, one in enumerate(round_.cluster.machines)
    )
    nodes = tuple(one.model_copy(update={"drained": n % 10 == 1}) for n, one in enumerate(round_.cluster.nodes))
    cluster = round_.cluster.model_copy(update={"machines": machines, "nodes": nodes})
    return round_.model_copy(update={"cluster": cluster, "jobs": tuple(jobs)})


def fitting(round_: Instance, waiting: list[str]) -> set[str]:
    """Return the jobs that an engine starts beside what runs, each by itself."""
    with engine_of(round_) as engine:
        return {name for name in waiting if places(engine.place([name], explain=False))}


@pytest.mark.parametrize("spec", ["uniform", "fractions", "licences"])
def test_every_statement(spec: str) -> None:
    """Of 200 jobs on 16 nodes more than half wait."""
    round_ = generate("varied" if spec == "licences" else spec, jobs=200, nodes=16, gpus=8, seed=1)
    if spec == "licences":
        round_ = with_licences(round_)
    plan = solve(round_, method="stranding", time_limit_s=60)
    queue, waiting = explain_all(round_, plan, time_limit_s=60), [unplaced.job for unplaced in plan.unplaced]
    assert queue.proven
    after = {"running": after_plan(round_, plan).running}
    there = fitting(round_.model_copy(update=after), waiting)
    without = [name for name in waiting if name not in there]
    alone = fitting(round_, without)
    true = Counter("outvoted" if name in alone else "conflict" for name in without)
    stated: Counter[str] = Counter()
    for reason in queue.reasons:
        stated[reason.reason] += reason.jobs if reason.constraints else 0
        for name in reason.examples:
            found = explain(round_, plan, name, time_limit_s=60, isolation="thread")
            assert (found.reason, {one.name for one in found.conflict}) == (reason.reason, set(reason.constraints))
    assert +stated == true
    freed = {one.change: one.jobs_alone for one in queue.changes}
    for change, edited in single_changes(round_, plan):
        assert freed.pop(change, 0) == len(fitting(edited.model_copy(update=after), without)), change
    assert not freed
    assert queue.changes
    assert len(without) > 100
