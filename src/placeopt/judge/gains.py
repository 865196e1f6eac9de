"""What single changes of the cluster would bring: the best plan of the round, with what runs fixed, after each."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from placeopt.deadline import Deadline
from placeopt.edits import AnyStep, ChangeQueue, Drain, apply, copy_of, more_nodes
from placeopt.explain.changes import UNLIMITED
from placeopt.judge.ranking import Ranking, gained
from placeopt.judge.records import Gain
from placeopt.judge.rounds import Best, best_plan
from placeopt.model import Instance
from placeopt.solving import Solver

Change = tuple[str, AnyStep]
"""In words, and as a step."""


def single_additions(instance: Instance) -> Iterator[Change]:
    """Yield one more node of each machine type, each quota lifted, and one drained node of each sort back."""
    cluster = instance.cluster
    for machine in dict.fromkeys(node.machine for node in cluster.nodes):
        yield f"one more node of type {machine!r}", more_nodes(instance, machine)
    for queue in instance.policy.queues:
        yield f"lift the limits of queue {queue.id!r}", ChangeQueue(do="change_queue", queue=queue.id, fields=UNLIMITED)
    held = {(part.node, one.job) for one in instance.running for part in one.assignments}
    busy = {node for node, _ in held}
    seen = set()
    for node in cluster.nodes:
        sort = (copy_of(node, "alike").model_dump_json(), node.id if node.id in busy else "")
        if node.drained and sort not in seen:
            seen.add(sort)
            yield f"node {node.id!r} back, that is drained", Drain(do="undrain", nodes=(node.id,))


def gains(
    solver: Solver,
    instance: Instance,
    ranking: Ranking,
    before: Best,
    deadline: Deadline,
    tell: Callable[[str], None],
) -> list[Gain]:
    """
    Return what each change brings, the most first; those for which there was no time are left out.

    ``before``: The best plan by ``ranking`` with what runs fixed.
    """
    changes = list(single_additions(instance))
    found: list[Gain] = []
    for number, (said, step) in enumerate(changes):
        if deadline.is_set():
            break
        tell(f"what would help: change {number + 1:,} of {len(changes):,}, {said}")
        share = Deadline(deadline.left_s / (len(changes) - number), deadline)
        after = best_plan(solver, apply(instance, [step]), ranking, "fixed", share, before.plan)
        jobs, gpu_milli = gained(after.score, before.score)
        proven = before.proven and after.proven
        found.append(Gain(change=said, steps=(step,), jobs=jobs, gpu_milli=gpu_milli, proven=proven))
    return sorted(found, key=lambda one: (-one.jobs, -one.gpu_milli, one.change))
