"""Everything that may become of one job by itself: where a waiting job may start, what may be done to a running one."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, combinations_with_replacement, islice, product
from math import prod
from typing import Literal

from placeopt.model import Postpone
from placeopt.problem import Move, Placement, Problem, open_state
from placeopt.terms.rules import RULES, QueueShare, fits
from placeopt.terms.rules.capacity import GpuCapacity, NodeCapacity, Uplink

RULES_ABOUT_SUMS = (GpuCapacity, NodeCapacity, QueueShare, Uplink)
"""Rules that running jobs may break together: what stays of a running job is not held to them."""

WorkerPlace = tuple[int, tuple[int, ...]]
"""Node and GPUs of a worker."""


def placements(problem: Problem, job: int) -> Iterator[Placement]:
    """
    Yield every placement at which a waiting job may start beside the running jobs that cannot be removed.

    All options, all numbers of workers of an elastic option, all sets of GPUs; minimal utilities are left out. Workers
    are interchangeable unless the job states traffic between ranks: then each order of the workers is a placement.
    """
    state = open_state(without_minimal_utilities(problem))
    return (placement for placement in all_places(problem, job) if fits(state, job, placement))


def without_minimal_utilities(problem: Problem) -> Problem:
    """Return the round without the rule of minimal utilities, which depends on all other jobs."""
    return replace(problem, policy=problem.policy.model_copy(update={"postpone": Postpone()}))


def combinations_up_to(problem: Problem, most: int) -> int:
    """Return the number of combinations of the waiting jobs' placements; of each job at most ``most`` are counted."""
    waiting = [job for job in range(problem.num_jobs) if job not in problem.running]
    return prod(1 + sum(1 for _ in islice(placements(problem, job), most)) for job in waiting)


def all_places(problem: Problem, job: int) -> Iterator[Placement]:
    """Yield the places of all options of a job, limited only by which GPUs an option may use."""
    ranks_differ = bool(problem.class_communication[problem.job_class[job]].edges)
    for option in problem.options_of(job):
        yield from _places_of_option(problem, option, ranks_differ=ranks_differ)


def _places_of_option(problem: Problem, option: int, *, ranks_differ: bool) -> Iterator[Placement]:
    """Yield every choice of a node for each worker and of distinct GPUs for all workers of a node."""
    workers, gpus_per_worker = int(problem.options.workers[option]), int(problem.options.gpus[option])
    allowed, start = problem.gpu_ok(option), problem.node_gpu_start
    gpus_of = [[g for g in range(int(start[n]), int(start[n + 1])) if allowed[g]] for n in range(problem.num_nodes)]
    nodes_with_room = [node for node, gpus in enumerate(gpus_of) if len(gpus) >= gpus_per_worker]
    if ranks_differ:
        for nodes in product(nodes_with_room, repeat=workers):
            for parts in product(*(combinations(gpus_of[node], gpus_per_worker) for node in nodes)):
                yield Placement(option, nodes, tuple(gpu for part in parts for gpu in part))
    else:
        for nodes in combinations_with_replacement(nodes_with_room, workers):
            distinct = list(dict.fromkeys(nodes))
            for parts in product(*(combinations(gpus_of[n], gpus_per_worker * nodes.count(n)) for n in distinct)):
                yield Placement(option, nodes, tuple(gpu for part in parts for gpu in part))


Change = Literal["kept", "shrunk", "moved", "preempted"]


@dataclass(frozen=True)
class RunningOutcome:
    """What may become of a running job: its placement after the round, the kind of change, and the change's price."""

    placement: Placement | None
    change: Change
    price: int


def running_outcomes(problem: Problem, job: int) -> list[RunningOutcome]:
    """
    List what policy and job allow to be done to a running job (rule ``changes``), to keep it as it is first.

    Shrunk: the chief, rank 0, stays, and at least ``workers_min`` workers, each where it is. Moved: any placement of
    any option but the present one; a part of the workers in place is no move but a restart, at the same price.
    Preempted: stopped. Whether the outcome breaks another rule is for ``allowed_outcomes``.
    """
    policy, placed = problem.policy.changes, problem.running[job]
    outcomes = [RunningOutcome(placed, "kept", 0)]
    if _must_stay(problem, job):
        return outcomes
    record = next(running for running in problem.instance.running if running.job == problem.job_ids[job])
    option = next(option for option in problem.instance.jobs[job].options if option.id == record.option)
    places = _worker_places(problem, placed)
    workers = len(places)
    fewest = option.workers_min or workers
    remaining = [
        (0, *others) for count in range(fewest, workers) for others in combinations(range(1, workers), count - 1)
    ]
    if policy.shrinks_max and record.shrinkable:
        for ranks in remaining:
            price = policy.shrink_price_per_worker * (workers - len(ranks))
            outcomes.append(RunningOutcome(_only_ranks(problem, job, ranks), "shrunk", price))
    if policy.moves_max and record.movable:
        shrunk_places = [[places[rank] for rank in ranks] for ranks in remaining]
        for placement in all_places(problem, job):
            same_option = problem.options.name[placement.option] == record.option
            new_places = _worker_places(problem, placement)
            if not (same_option and new_places == places):
                restarts = same_option and new_places in shrunk_places
                outcomes.append(RunningOutcome(replace(placement, restarts=restarts), "moved", policy.move_price))
    if policy.preemptions_max and record.preemptible:
        outcomes.append(RunningOutcome(None, "preempted", policy.preemption_price))
    return outcomes


def allowed_outcomes(problem: Problem, job: int, outcomes: list[RunningOutcome]) -> list[RunningOutcome]:
    """
    Return those of a running job's outcomes that break no rule by themselves.

    A job that moves keeps all rules, as one that starts. What is left of a shrunk job keeps the rules about its shape;
    rules about sums may stay exceeded.
    """
    state = open_state(without_minimal_utilities(problem))
    state.apply(Move(job, None))
    shape_rules = [rule for rule in RULES if not isinstance(rule, RULES_ABOUT_SUMS)]

    def is_allowed(outcome: RunningOutcome) -> bool:
        if outcome.change == "kept" or outcome.placement is None:
            return True
        if outcome.change == "moved":
            return fits(state, job, outcome.placement)
        return all(rule.fits(state, job, outcome.placement) for rule in shape_rules)

    return [outcome for outcome in outcomes if is_allowed(outcome)]


def _must_stay(problem: Problem, job: int) -> bool:
    """
    Tell whether a running job may not be changed at all because of the way it stands.

    docs/concepts.md has the rule: a job of a single-node option on several nodes, and a job on a GPU that more jobs
    hold than may share one.
    """
    placed, most = problem.running[job], problem.jobs_per_gpu
    if problem.options.bundles[placed.option] == 1 and len(set(placed.nodes)) > 1:
        return True
    holders = [sum(gpu in other.gpus for other in problem.running.values()) for gpu in placed.gpus]
    return most is not None and max(holders, default=0) > most


def _worker_places(problem: Problem, placement: Placement) -> list[WorkerPlace]:
    """Return node and GPUs of every worker, in order of rank."""
    gpus = int(problem.options.gpus[placement.option])
    return [(node, placement.gpus[rank * gpus : (rank + 1) * gpus]) for rank, node in enumerate(placement.nodes)]


def _only_ranks(problem: Problem, job: int, ranks: tuple[int, ...]) -> Placement:
    """Return the running job with only the workers ``ranks``, each where it is, in the option's row of that size."""
    placed, options = problem.running[job], problem.options
    places = [_worker_places(problem, placed)[rank] for rank in ranks]
    size = (options.name[placed.option], len(ranks))
    option = next(o for o in problem.options_of(job) if (options.name[o], options.workers[o]) == size)
    return Placement(option, tuple(node for node, _ in places), tuple(gpu for _, gpus in places for gpu in gpus))
