"""Every statement of an explanation tried by brute force: records are edited, and all placements are looked at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from edits import beside, fits_somewhere, fits_without, replaced, resized
from numpy.random import Generator

from brute_force import placements
from placeopt.explain import Explanation
from placeopt.explain.ask import DROP_ORDER
from placeopt.explain.records import Alternative
from placeopt.model import Instance, Job, Option, Plan, Split
from placeopt.problem import Move, Problem, State, compile_problem
from placeopt.terms.objective import cost_delta, weighted_costs
from placeopt.terms.rules import fits

MOST_JOBS = 8
"""Jobs whose subsets are tried, at most."""


def with_flags(instance: Instance, rng: Generator) -> Instance:
    """Make about half of the running jobs preemptible."""
    flagged = tuple(
        running.model_copy(update={"preemptible": bool(rng.random() < 0.6)}) for running in instance.running
    )
    return instance.model_copy(update={"running": flagged})


def faults(instance: Instance, plan: Plan, found: Explanation) -> list[str]:
    """Return what is wrong in an explanation; empty if nothing."""
    if not found.proven and found.status == "waiting":
        return ["not proven"]
    if found.status == "placed":
        return [*_placed_faults(instance, plan, found, elsewhere=False), *_placed_faults(instance, plan, found, True)]
    after, before = (beside(instance, plan, found.job, whole_plan=whole) for whole in (True, False))
    fits_after, fits_before = fits_somewhere(after, found.job), fits_somewhere(before, found.job)
    if fits_after:
        return [] if found.reason in ("not_reached", "outvoted", "policy") else [f"fits, but is {found.reason}"]
    wrong = []
    if (found.reason == "conflict") and fits_before:
        wrong.append("conflict, but it fits beside the running jobs")
    if found.reason == "outvoted" and not fits_before:
        wrong.append("outvoted, but it does not fit beside the running jobs")
    round_ = before if found.beside == "running" else after
    wrong += _conflict_faults(round_, found)
    wrong += _size_faults(round_, found)
    wrong += _domain_faults(round_, found)
    wrong += _level_faults(round_, found)
    wrong += _gpu_faults(round_, found)
    wrong += _preempt_faults(instance, plan, found)
    wrong += _outvoted_faults(instance, plan, found)
    return wrong


def _record(instance: Instance, job: str) -> Job:
    return next(one for one in instance.jobs if one.id == job)


def _conflict_faults(round_: Instance, found: Explanation) -> Iterator[str]:
    """Infeasible together and with nothing else; feasible without any one."""
    job = _record(round_, found.job)
    levels = {split.level for option in job.options for split in option.splits}
    groups = [group for group in DROP_ORDER if group != "split"] + [f"split:{level}" for level in levels]
    kept = [constraint.group for constraint in found.conflict]
    dropped = [group for group in groups if group not in kept]
    talks = any(option.demand.network_bandwidth_mbps and option.workers > 1 for option in job.options)
    if not kept:
        yield "no conflict named"
    if talks and any(option.demand.gpus for option in job.options):
        return  # without GPUs its record uses the other part of the links: no edit says "no GPUs" alone
    if fits_without(round_, found.job, dropped):
        yield f"conflict {kept} is feasible"
    for group in kept:
        if not fits_without(round_, found.job, [*dropped, group]):
            yield f"conflict {kept} stays one without {group}"


def _with_option(round_: Instance, job: str, option: Option) -> bool:
    record = _record(round_, job).model_copy(update={"options": (option,)})
    edges = record.communication.model_copy(update={"edges": ()})
    record = record.model_copy(update={"communication": edges})
    return fits_somewhere(round_.model_copy(update={"jobs": replaced(round_.jobs, record)}), job)


def _size_faults(round_: Instance, found: Explanation) -> Iterator[str]:
    best = 0
    for option in _record(round_, found.job).options:
        for workers in range(1, option.workers_min or option.workers):
            smaller = resized(option, workers)
            if smaller is not None and _with_option(round_, found.job, smaller):
                best = max(best, workers)
    stated = found.remedies.workers_max
    if (0 if stated is None else stated.workers) != best:
        yield f"workers_max {stated}, true is {best}"


def _domain_faults(round_: Instance, found: Explanation) -> Iterator[str]:
    options = _record(round_, found.job).options
    stated = {one.level: one.domains for one in found.remedies.domains_min}
    for level in {split.level for option in options for split in option.splits}:
        true = [
            domains
            for option in options
            if any(split.level == level for split in option.splits)
            for domains in range(1, option.workers + 1)
            if (edited := _spread(option, level, domains)) is not None and _with_option(round_, found.job, edited)
        ]
        if stated.get(level) != min(true, default=None):
            yield f"domains_min of {level} {stated.get(level)}, true is {min(true, default=None)}"


def _spread(option: Option, level: str, domains: int) -> Option | None:
    exact = any(split.level == level and split.workers is not None for split in option.splits)
    if exact and option.workers % domains:
        return None
    splits = tuple(
        split
        if split.level != level
        else Split(level=level, domains=domains, workers=None if split.workers is None else option.workers // domains)
        for split in option.splits
    )
    return option.model_copy(update={"splits": splits})


def _level_faults(round_: Instance, found: Explanation) -> Iterator[str]:
    levels = {"node", *(domain.level for domain in round_.cluster.domains)}
    fitting = {
        level
        for level in levels
        for option in _record(round_, found.job).options
        if _with_option(round_, found.job, _free(option, (Split(level=level, domains=1),)))
    }
    anywhere = any(_with_option(round_, found.job, _free(o, ())) for o in _record(round_, found.job).options)
    order = ["node", "rack", "zone", "cluster"]
    true = min([*fitting, *(["cluster"] if anywhere else [])], key=order.index, default=None)
    if found.remedies.level != true:
        yield f"level {found.remedies.level}, true is {true}"


def _free(option: Option, splits: tuple[Split, ...]) -> Option:
    return option.model_copy(update={"single_node": False, "splits": splits})


def _gpu_faults(round_: Instance, found: Explanation) -> Iterator[str]:
    """Free sets of busy GPUs, the small ones first, until the job fits."""
    problem = compile_problem(round_)
    job = problem.job_ids.index(found.job)
    idle = compile_problem(
        round_.model_copy(update={"running": (), "jobs": tuple(j for j in round_.jobs if j.id == found.job)})
    )
    rows = [o for o in problem.options_of(job) if problem.options.gpus[o]]
    shift = problem.options_of(job)[0] - idle.options_of(0)[0] if rows else 0
    possible = [type(p)(p.option + shift, p.nodes, p.gpus) for p in placements(idle, 0) if idle.options.gpus[p.option]]
    busy = [g for g in range(problem.num_gpus) if State(problem).gpu_jobs[g]]
    stated = found.remedies.gpus_to_free
    true = next(
        (
            size
            for size in range(len(busy) + 1)
            for gpus in combinations(busy, size)
            if _fits_with_freed(problem, job, possible, gpus)
        ),
        None,
    )
    if (None if stated is None else len(stated.gpus)) != true:
        yield f"gpus_to_free {stated}, true is {true}"
    if stated is not None:
        ids = {name: n for n, name in enumerate(problem.node_ids)}
        named = [int(problem.node_gpu_start[ids[one.node]]) + one.gpu for one in stated.gpus]
        if not _fits_with_freed(problem, job, possible, named):
            yield f"freeing {stated.gpus} does not do"


def _fits_with_freed(problem: Problem, job: int, possible: Sequence[object], gpus: Sequence[int]) -> bool:
    state = State(problem)
    for placement in problem.running.values():
        each = problem.options.demand[placement.option] // max(1, int(problem.options.gpus[placement.option]))
        for gpu in set(gpus) & set(placement.gpus):
            state.node_free[problem.gpu_node[gpu]] += each
    freed = np.array(sorted(gpus), dtype=np.int64)
    state.gpu_free_milli[freed], state.gpu_jobs[freed] = 1000, 0
    state.gpu_free_memory[freed] = problem.gpu_memory_mib[freed]
    return any(fits(state, job, p) for p in possible)  # type: ignore[arg-type]


def _cheapest(
    instance: Instance, plan: Plan, found: Explanation, jobs: dict[str, int], *, whole_plan: bool
) -> tuple[int, int] | None:
    """Return the least price of jobs without which it fits, and of those sets the least number of jobs."""
    best = None
    for size in range(len(jobs) + 1):
        for gone in combinations(jobs, size):
            price = sum(jobs[one] for one in gone)
            if best is None or (price, size) < best:
                round_ = beside(instance, plan, found.job, whole_plan=whole_plan, without=gone)
                if fits_somewhere(round_, found.job):
                    best = (price, size)
    return best


def _values(instance: Instance, plan: Plan) -> dict[str, int]:
    problem = compile_problem(beside(instance, plan, "", whole_plan=True), plan.policy.values)
    return {problem.job_ids[j]: int(problem.options.value[p.option]) for j, p in problem.running.items()}


def _preempt_faults(instance: Instance, plan: Plan, found: Explanation) -> Iterator[str]:
    values, price = _values(instance, plan), plan.policy.values.changes.preemption_price
    may = {r.job: values[r.job] + price for r in instance.running if r.preemptible and r.job in values}
    stated = found.remedies.preempt
    true = None
    if may and len(may) <= MOST_JOBS:
        true = _cheapest(instance, plan, found, may, whole_plan=found.beside == "plan")
    if (None if stated is None else (stated.price, len(stated.jobs))) != true:
        yield f"preempt {stated}, true is {true}"


def _outvoted_faults(instance: Instance, plan: Plan, found: Explanation) -> Iterator[str]:
    running = {one.job for one in instance.running}
    rivals = {job: value for job, value in _values(instance, plan).items() if job not in running}
    stated = found.outvoted_by
    if found.reason == "outvoted" and stated is None:
        yield "outvoted by nobody"
    if stated is not None and len(rivals) <= MOST_JOBS:
        true = _cheapest(instance, plan, found, rivals, whole_plan=True)
        if (stated.value, len(stated.jobs)) != true:
            yield f"outvoted by {stated}, true is {true}"


def _placed_faults(instance: Instance, plan: Plan, found: Explanation, elsewhere: bool) -> Iterator[str]:
    """Compare with all places that the job could have while the others stay."""
    round_ = beside(instance, plan, found.job, whole_plan=True)
    problem = compile_problem(round_, plan.policy.values)
    weighted = weighted_costs(compile_problem(instance, plan.policy.values))
    job = problem.job_ids.index(found.job)
    state = State(problem)
    now = plan.placement_of(found.job)
    held = {a.node for a in now.assignments} if now is not None else set()
    best = min(
        (
            (-int(problem.options.value[p.option]), cost_delta(state, Move(job, p), weighted))
            for p in placements(problem, job)
            if not elsewhere or any(problem.node_ids[node] not in held for node in p.nodes)
        ),
        default=None,
    )
    stated: Alternative | None = found.elsewhere if elsewhere else found.best
    spot = None if stated is None or stated.spot is None else (-stated.spot.value, stated.spot.cost)
    bounded = stated is not None and not stated.proven and spot is not None and best is not None and spot >= best
    if spot != best and not bounded:  # a term whose linear form only bounds it leaves the best place unproven
        yield f"{'elsewhere' if elsewhere else 'best'} {spot}, true is {best}"
