"""What of a round the local search cannot handle, and what it does not know, so that its definition is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from placeopt.problem import Allocation, BoolArray, IntArray, Problem
from placeopt.problem.tree import levels_of
from placeopt.search.hardware import hides_gpus
from placeopt.terms import Weighted
from placeopt.terms.costs.communication import Communication
from placeopt.terms.costs.fragmentation import Fragmentation
from placeopt.terms.costs.interference import Interference
from placeopt.terms.costs.resource import ResourceCost
from placeopt.terms.protocols import Rule
from placeopt.terms.rules.gpu_slots import GpuSlots
from placeopt.terms.rules.minimal_utility import MinimalUtility, applies
from placeopt.terms.rules.relations import RelationsHold
from placeopt.terms.rules.spread import Spread

COVERED = (Communication, Interference, Fragmentation, ResourceCost)
"""The costs of which the state has exact differences."""
MOST_SUM = 1 << 62
"""Sums of the state are integers of 64 bits, and stay below this."""


def what_is_missing(problem: Problem, weighted: tuple[Weighted, ...]) -> str | None:
    """Return the first thing in a round that the local search cannot handle; None where it handles all."""
    return next(_missing(problem, weighted), None)


def _missing(problem: Problem, weighted: tuple[Weighted, ...]) -> Iterator[str]:
    if problem.policy.priorities != "price":
        yield "strict priorities"
    sums = more_than_all(problem) * (1 + len(problem.changeable)) + sum(w.weight * w.worst for w in weighted)
    if sums > MOST_SUM:
        yield "sums beyond 2^62"


def more_than_all(problem: Problem) -> int:
    """Return a price that is higher than what all jobs together may be worth."""
    held = [problem.options.job_class[placement.option] for placement in problem.running.values()]
    most = problem.most_of_class(problem.options.value)
    changes = len(problem.changeable) * (problem.policy.changes.move_price + problem.policy.changes.preemption_price)
    return 1 + int(most[problem.job_class].sum()) + int(most[held].sum()) + changes


def out_of_sight(problem: Problem, allocation: Allocation, seen: Sequence[range]) -> frozenset[int]:
    """Return the jobs that hold GPUs of which the search sees nothing, and the members of their trees: these stay."""
    if not hides_gpus(problem):
        return frozenset()
    sight = {gpu for gpus in seen for gpu in gpus}
    every = [*enumerate(allocation), *problem.running.items()]
    hidden = {job for job, held in every if held is not None and not sight.issuperset(held.gpus)}
    return frozenset(hidden | {job for tree in problem.trees if hidden & {*tree.members} for job in tree.members})


@dataclass(frozen=True, eq=False)
class Judged:
    """
    What of a round the state does not know.

    - ``rules``: What a placement is tried against, but for the rule of trees, which binds several jobs.
    - ``weighted``: Costs of which it has no differences.
    - ``by_edges``: Shape (J,): jobs whose communication is not that of all pairs of their GPUs, or is in a tree.
    - ``paths``: Communication with its weight, for these jobs; nothing where it does not count.
    - ``zones``: Shape (Z, N): domains that several workers or jobs have to share, -1 without, level by level.
    """

    rules: tuple[Rule, ...]
    weighted: tuple[Weighted, ...]
    by_edges: BoolArray
    paths: tuple[Weighted, ...]
    zones: IntArray


def what_is_judged(problem: Problem, weighted: tuple[Weighted, ...]) -> Judged | None:
    """Return what of a round has no exact differences; None where all of it has."""
    options = problem.options
    lies = any(options.spread) or any(options.part_level) or any(len(splits) > 1 for splits in options.splits)
    near = [relation for job in problem.class_member for relation in job.relations if relation.weight is None]
    binds: dict[type[Rule], bool] = {
        Spread: lies,
        GpuSlots: problem.has_geometry,
        RelationsHold: bool(near),
        MinimalUtility: applies(problem),
    }
    rules = tuple(rule() for rule, here in binds.items() if here)
    disturbed = problem.policy.interference.model != "pairwise" or (
        problem.base_load is not None and any(problem.base_load.tenants)
    )
    unknown = (Interference, Fragmentation) if hides_gpus(problem) else (Interference,) if disturbed else ()
    known = tuple(kind for kind in COVERED if kind not in unknown)
    costs = tuple(w for w in weighted if type(w.cost) not in known)
    by_edges = _by_edges(problem)
    paths = tuple(w for w in weighted if isinstance(w.cost, Communication) and by_edges.any())
    if not (rules or costs or paths or problem.trees):
        return None
    return Judged(rules, costs, by_edges, paths, _zones(problem))


def _by_edges(problem: Problem) -> BoolArray:
    """Shape (J,): jobs of several workers with a traffic graph, and members of trees."""
    options = problem.options
    several = problem.most_of_class(options.workers) > 1
    graphs = np.array([bool(traffic.edges) for traffic in problem.class_communication], dtype=bool)
    of_job: BoolArray = (graphs & several)[problem.job_class]
    of_job[list(problem.tree_of)] = True
    return of_job


def _zones(problem: Problem) -> IntArray:
    """Shape (Z, N): the domains of each level that trees, spreads, or relations near others name."""
    named = levels_of(problem.trees) | {rule.level for spread in problem.options.spread for rule in spread}
    hard = problem.relations.every[: problem.relations.hard]
    rows = [problem.split_domain[level] for level in sorted(named)]
    rows += [one.domain for one in hard if one.record.kind == "near"]
    return np.array(rows, dtype=np.int64).reshape(len(rows), problem.num_nodes)
