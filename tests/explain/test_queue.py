"""``explain_all``: reasons as ``explain`` gives them job by job; what changes free, against brute force."""

from __future__ import annotations

from collections import Counter

from hypothesis import event, given, settings

from helpers.instance_edits import beside, fits_somewhere, single_changes
from helpers.plans import plan_for
from placeopt import Engine, Instance
from placeopt.build import instance, job, machine, node
from placeopt.explain import explain, explain_all
from placeopt.model import Policy, Queue, Quota
from strategies import rounds


@settings(max_examples=settings().max_examples * 2)
@given(rounds(minima=False) | rounds(changes=True, minima=False) | rounds(resources=True, minima=False))
def test_every_statement(engine: Engine, round_: Instance) -> None:
    """
    Beside a plan that need not be good, so that jobs wait.

    Every waiting job is counted once, under the reason and the conflict that ``explain`` finds for it. Changes alone:
    every placement of every job tried in the edited round; together: no more than the most that can.
    """
    plan = engine.solve(round_, method="stranding", deterministic=True, time_limit_s=20)
    queue, waiting = explain_all(round_, plan, time_limit_s=60.0), [unplaced.job for unplaced in plan.unplaced]
    assert queue.proven
    counted: Counter[tuple[str, frozenset[str]]] = Counter()
    for name in waiting:
        one = explain(round_, plan, name, time_limit_s=20.0, isolation="thread")
        counted[one.reason or "", frozenset(item.name for item in one.conflict)] += 1
    assert counted == {(one.reason, frozenset(one.constraints)): one.jobs for one in queue.reasons}
    assert all(len(one.examples) == min(one.jobs, 5) for one in queue.reasons)
    found = {one.change: one for one in queue.changes}
    without = [name for name in waiting if not fits_somewhere(beside(round_, plan, name, whole_plan=True), name)]
    for change, edited in single_changes(round_, plan):
        policy = plan.policy.model_copy(update={"values": edited.policy})
        judged = plan.model_copy(update={"policy": policy})
        alone = sum(fits_somewhere(beside(edited, judged, name, whole_plan=True), name) for name in without)
        freed = found.pop(change, None)
        assert (0 if freed is None else freed.jobs_alone) == alone, change
        assert freed is None or freed.jobs_together <= alone, change
        event("a change frees jobs" if freed else "a change frees none")
    assert not found


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
