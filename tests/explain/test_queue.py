"""``explain_all``: reasons as ``explain`` gives them job by job; what changes free, against brute force."""

from __future__ import annotations

from collections import Counter

import pytest

from helpers.instance_edits import beside, fits_somewhere, single_changes
from helpers.plans import plan_for
from placeopt import Instance, Plan, solve
from placeopt.build import instance, job, machine, node
from placeopt.explain import explain, explain_all
from placeopt.model import Policy, Queue, Quota
from strategies import make_round, seeded


def planned(seed: int, *, named: bool) -> tuple[Instance, Plan]:
    """A round with a plan that need not be good, so that jobs wait."""
    round_ = make_round(seeded(seed), changes=seed % 4 == 0 or None, minima=False, resources=named)
    return round_, solve(round_, method="stranding", deterministic=True, time_limit_s=20.0)


@pytest.mark.parametrize("seed", range(900_000, 900_024))
def test_reasons_are_those_of_single_jobs(seed: int) -> None:
    """Every waiting job is counted once, under the reason and the conflict that ``explain`` finds for it."""
    round_, plan = planned(seed, named=seed % 2 == 1)
    queue = explain_all(round_, plan, time_limit_s=60.0)
    assert queue.proven
    counted: Counter[tuple[str, frozenset[str]]] = Counter()
    for unplaced in plan.unplaced:
        one = explain(round_, plan, unplaced.job, time_limit_s=20.0, isolation="thread")
        counted[one.reason or "", frozenset(item.name for item in one.conflict)] += 1
    assert counted == {(one.reason, frozenset(one.constraints)): one.jobs for one in queue.reasons}
    assert all(len(one.examples) == min(one.jobs, 5) for one in queue.reasons)


def test_changes_free_what_brute_force_finds() -> None:
    """Alone: every placement of every job tried in the edited round; together: no more than the most that can."""
    freed = 0
    for seed in range(910_000, 910_030):
        round_, plan = planned(seed, named=True)
        found = {one.change: one for one in explain_all(round_, plan, time_limit_s=60.0).changes}
        waiting = [unplaced.job for unplaced in plan.unplaced]
        for change, edited in single_changes(round_, plan):
            judged = plan.model_copy(update={"policy": plan.policy.model_copy(update={"values": edited.policy})})
            now = {name: fits_somewhere(beside(round_, plan, name, whole_plan=True), name) for name in waiting}
            alone = [
                name
                for name in waiting
                if not now[name] and fits_somewhere(beside(edited, judged, name, whole_plan=True), name)
            ]
            one = found.pop(change, None)
            assert (one.jobs_alone if one is not None else 0) == len(alone), (seed, change)
            if one is not None:
                assert one.jobs_together <= len(alone), (seed, change)
                freed += one.jobs_together
        assert not found
    assert freed > 20


def test_the_best_change_by_hand() -> None:
    """Ten jobs wait for a licence, one for a GPU, one for its queue; a drained node would take one of the ten."""
    kinds = [machine("a", resources={"lic": 1}), machine("b")]
    jobs = [job(f"l{i}", gpus=0, resources={"lic": 1}) for i in range(11)]
    jobs += [job("gpu", gpus=8), job("q", queue="q")]
    policy = Policy(queues=(Queue(id="q", quota=Quota(gpu_milli=0)),))
    nodes = [node("n0", machine="a"), node("n1", machine="b"), node("n2", machine="a", drained=True)]
    round_ = instance(nodes, jobs, machines=kinds, policy=policy)
    plan = plan_for(round_, {"l0": [("n0", [])]}, policy=policy)
    queue = explain_all(round_, plan)
    assert (queue.waiting, queue.kinds, queue.proven) == (12, 3, True)
    assert [(one.reason, one.constraints, one.jobs) for one in queue.reasons] == [
        ("outvoted", ("lic", "drained nodes"), 10),
        ("conflict", ("GPU count",), 1),
        ("policy", ("GPU count", "queue"), 1),
    ]
    assert [(one.change, one.jobs_together, one.jobs_alone) for one in queue.changes] == [
        ("enough lic on every node", 10, 10),
        ("one more node of type 'a'", 1, 10),
        ("undrain all drained nodes (1)", 1, 10),
        ("lift the limits of queue 'q'", 1, 1),
    ]
