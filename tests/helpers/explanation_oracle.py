"""Every statement of an explanation tried by brute force: records are edited, and all placements are looked at."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations

from helpers.brute_force import placements, without_minimal_utilities
from helpers.instance_edits import beside, changeable, fits_somewhere, fits_without, groups_of, replaced, resized
from placeopt.edits import apply
from placeopt.explain import Explanation
from placeopt.model import Instance, Job, Option, Plan, Running, Split
from placeopt.model import Placement as PlacementRecord
from placeopt.problem import Move, Placement, Problem, State, compile_problem
from placeopt.terms import cost_delta, weighted_costs
from placeopt.terms.rules import fits
from placeopt.terms.rules.minimal_utility import falls_short


def faults(instance: Instance, plan: Plan, explanation: Explanation) -> list[str]:
    """Return what is wrong in an explanation; empty if nothing."""
    if not explanation.proven and explanation.status == "waiting":
        return ["not proven"]
    if explanation.status == "placed":
        return list(_placed_faults(instance, plan, explanation))
    ran = any(held.job == explanation.job for held in instance.running)
    reached = explanation.plan_reason == "postponed"  # greedy may have missed a place that keeps all minima
    if explanation.plan_reason != explanation.reason and not ran and not reached:
        return [f"{explanation.reason}, but the plan says {explanation.plan_reason}"]
    may_go = changeable(instance, plan)
    after = beside(instance, plan, explanation.job, whole_plan=True)
    staying = beside(instance, plan, explanation.job, whole_plan=False, without=may_go)
    requirements = _asks_utility(instance, explanation.job, after.policy.postpone.rule)
    if fits_somewhere(after, explanation.job):
        if requirements and _reaches(after, instance, explanation.job) is False:
            return [*_postponed_faults(instance, after, explanation)]
        return (
            []
            if explanation.reason in ("not_reached", "outvoted", "policy")
            else [f"fits, but is {explanation.reason}"]
        )
    wrong, could = [], fits_somewhere(staying, explanation.job)
    if explanation.reason != "policy" and (explanation.reason == "outvoted") != could:
        wrong.append(
            f"{explanation.reason}, but beside the running jobs that must stay it {'fits' if could else 'does not'}"
        )
    round_ = staying if explanation.beside == "running" else after
    wrong += _conflict_faults(round_, explanation)
    starts = partial(_starts, instance, explanation.job, requirements)
    wrong += _named_faults(round_, explanation, starts)
    wrong += _preempt_faults(instance, round_, explanation, starts)
    wrong += _outvoted_faults(instance, after, may_go, explanation, starts)
    if requirements:
        return wrong
    wrong += _size_faults(round_, explanation)
    wrong += _domain_faults(round_, explanation)
    wrong += _level_faults(round_, explanation)
    wrong += _step_faults(round_, explanation)
    return wrong


def _asks_utility(instance: Instance, job: str, rule: str) -> bool:
    ran = {held.job for held in instance.running}
    return rule == "utility" and any(
        record.utility_min_thousandths is not None and (record.id == job or record.id not in ran)
        for record in instance.jobs
    )


def _reaches(round_: Instance, instance: Instance, job: str, least: int | None = None) -> bool | None:
    """Tell whether some place keeps all minima, with ``least`` as the job's; None: there is no room."""
    state = State(_asking(round_, instance))
    number = state.problem.job_ids.index(job)
    return _reaches_in(state, number, list(placements(state.problem, number)), least)


def _asking(round_: Instance, instance: Instance) -> Problem:
    """Compile a round of one job in which all that starts in ``instance`` runs; only that and the job are judged."""
    ran = {held.job for held in instance.running} & {held.job for held in round_.running}  # the job may have run, too
    jobs = tuple(
        job.model_copy(update={"utility_min_thousandths": None}) if job.id in ran else job for job in round_.jobs
    )
    return compile_problem(round_.model_copy(update={"jobs": jobs}))


def _reaches_in(state: State, job: int, possible: Sequence[Placement], least: int | None = None) -> bool | None:
    jobs, reached = list(state.problem.instance.jobs), None
    if least is not None:
        jobs[job] = jobs[job].model_copy(update={"utility_min_thousandths": least})
    judged = replace(state.problem, instance=state.problem.instance.model_copy(update={"jobs": jobs}), running={})
    room = without_minimal_utilities(state.problem)
    for placement in possible:
        state.problem = room
        if not fits(state, job, placement):
            continue
        undo = state.apply(Move(job, placement))
        state.problem = judged
        beside = {other for node in placement.nodes for other in state.node_jobs[node]} | {job}
        reached = reached or not any(falls_short(state, other) for other in beside)
        state.apply(undo)
    return reached


def _postponed_faults(instance: Instance, after: Instance, explanation: Explanation) -> Iterator[str]:
    """No place keeps all minima: the best one, and the fewest GPUs to free."""
    place = explanation.best_place
    if explanation.reason != "postponed" or place is None:
        yield f"below its minimal utility everywhere, but {explanation.reason}"
        return
    reached = [_reaches(after, instance, explanation.job, place.utility + more) for more in (0, 1)]
    if not place.falls_short and reached != [True, False]:
        yield f"the utility of {place} is {'not reached' if not reached[0] else 'exceeded'}"
    starts = partial(_starts, instance, explanation.job, True)
    yield from _named_faults(after, explanation, starts)
    yield from _preempt_faults(instance, after, explanation, starts)


def _named_faults(round_: Instance, explanation: Explanation, starts: Callable[[Instance], bool]) -> Iterator[str]:
    """Without those that are named it starts."""
    for named in (explanation.remedies.preempt, explanation.outvoted_by):
        if named is not None:
            gone = {rival.job for rival in named.jobs}
            if not starts(_without(round_, gone)):
                yield f"without {gone} it does not start"


def _without(round_: Instance, gone: Collection[str]) -> Instance:
    return round_.model_copy(update={"running": tuple(held for held in round_.running if held.job not in gone)})


def _starts(instance: Instance, job: str, judged: bool, round_: Instance) -> bool:
    """Tell whether a job fits in a round and, where minimal utilities count, keeps them all there."""
    return bool(_reaches(round_, instance, job)) if judged else fits_somewhere(round_, job)


def _record(instance: Instance, job: str) -> Job:
    return next(record for record in instance.jobs if record.id == job)


def _conflict_faults(round_: Instance, explanation: Explanation) -> Iterator[str]:
    """Infeasible together and with nothing else; feasible without any one."""
    job = _record(round_, explanation.job)
    kept = [constraint.group for constraint in explanation.conflict]
    dropped = [group for group in groups_of(job) if group not in kept]
    full = in_full(round_, explanation)
    if not kept:
        yield "no conflict named"
    if (full or "gpu_count" in kept) and fits_without(round_, explanation.job, dropped):
        yield f"conflict {kept} is feasible"
    for group in kept:
        expressible = full or ("gpu_count" in kept and group != "gpu_count")
        if expressible and not fits_without(round_, explanation.job, [*dropped, group]):
            yield f"conflict {kept} stays one without {group}"


def in_full(round_: Instance, explanation: Explanation) -> bool:
    """
    Tell whether edits of records can say all that the conflict does.

    A job without GPUs uses the other part of the links, so no record says of one that talks: only its GPUs are gone.
    """
    options = _record(round_, explanation.job).options
    talks = any(option.demand.network_bandwidth_mbps and option.workers > 1 for option in options)
    return not talks or not any(option.demand.gpus for option in options)


def _with_option(round_: Instance, job: str, option: Option) -> bool:
    record = _record(round_, job).model_copy(update={"options": (option,)})
    edges = record.communication.model_copy(update={"edges": ()})
    record = record.model_copy(update={"communication": edges})
    return fits_somewhere(round_.model_copy(update={"jobs": replaced(round_.jobs, record)}), job)


def _step_faults(round_: Instance, explanation: Explanation) -> Iterator[str]:
    """Every remedy as a patch: the job fits in the round that it makes."""
    remedies = explanation.remedies
    stated = {name for name, remedy in remedies if remedy and name not in ("said", "none", "steps", "changes")}
    if stated != {name.split(":")[0] for name in remedies.steps}:
        yield f"remedies {stated}, steps of {remedies.steps.keys()}"
    patches = {**remedies.steps, **{one.change: one.steps for one in remedies.changes}}
    for name, steps in patches.items():
        if not fits_somewhere(apply(round_, steps), explanation.job):
            yield f"{name}: does not fit after {steps}"


def _size_faults(round_: Instance, explanation: Explanation) -> Iterator[str]:
    best = 0
    for option in _record(round_, explanation.job).options:
        for workers in range(1, option.workers_min or option.workers):
            smaller = resized(option, workers)
            if smaller is not None and _with_option(round_, explanation.job, smaller):
                best = max(best, workers)
    stated = explanation.remedies.workers_max
    if (0 if stated is None else stated.workers) != best:
        yield f"workers_max {stated}, true is {best}"


def _domain_faults(round_: Instance, explanation: Explanation) -> Iterator[str]:
    options = _record(round_, explanation.job).options
    stated = {remedy.level: remedy.domains for remedy in explanation.remedies.domains_min}
    for level in {split.level for option in options for split in option.splits}:
        true = [
            domains
            for option in options
            if any(split.level == level for split in option.splits)
            for domains in range(1, option.workers + 1)
            if (edited := _spread(option, level, domains)) is not None and _with_option(round_, explanation.job, edited)
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


def _level_faults(round_: Instance, explanation: Explanation) -> Iterator[str]:
    levels = {"node", *(domain.level for domain in round_.cluster.domains)}
    fitting = {
        level
        for level in levels
        for option in _record(round_, explanation.job).options
        if _with_option(round_, explanation.job, _free(option, (Split(level=level, domains=1),)))
    }
    anywhere = any(
        _with_option(round_, explanation.job, _free(o, ())) for o in _record(round_, explanation.job).options
    )
    order = ["node", "rack", "zone", "cluster"]
    true = min([*fitting, *(["cluster"] if anywhere else [])], key=order.index, default=None)
    if explanation.remedies.level != true:
        yield f"level {explanation.remedies.level}, true is {true}"


def _free(option: Option, splits: tuple[Split, ...]) -> Option:
    return option.model_copy(update={"single_node": False, "splits": splits})


def _cheapest(round_: Instance, starts: Callable[[Instance], bool], prices: dict[str, int]) -> tuple[int, int] | None:
    """Return the least price of jobs without which a job starts, and of those sets the least number of jobs."""
    best = None
    for size in range(len(prices) + 1):
        for gone in combinations(prices, size):
            price = sum(prices[name] for name in gone)
            if (best is None or (price, size) < best) and starts(_without(round_, gone)):
                best = (price, size)
    return best


def _values(round_: Instance) -> dict[str, int]:
    problem = compile_problem(round_)
    return {problem.job_ids[j]: int(problem.options.value[p.option]) for j, p in problem.running.items()}


def _preempt_faults(
    instance: Instance, round_: Instance, explanation: Explanation, starts: Callable[[Instance], bool]
) -> Iterator[str]:
    changes, flags = round_.policy.changes, {r.job for r in instance.running if r.preemptible}
    prices = {job: value + changes.preemption_price for job, value in _values(round_).items() if job in flags}
    stated = explanation.remedies.preempt
    if changes.last_submitted_first:
        return  # tried by hand in test_remedies
    true = _cheapest(round_, starts, prices) if prices else None
    if (None if stated is None else (stated.price, len(stated.jobs))) != true:
        yield f"preempt {stated}, true is {true}"


def _outvoted_faults(
    instance: Instance,
    after: Instance,
    may_go: set[str],
    explanation: Explanation,
    starts: Callable[[Instance], bool],
) -> Iterator[str]:
    running = {held.job for held in instance.running}
    values, stated = _values(after), explanation.outvoted_by
    started = {job: value for job, value in values.items() if job not in running}
    if explanation.reason == "conflict" and stated is not None:
        yield f"a conflict is outvoted by {stated}"
    if explanation.reason != "outvoted":
        return
    changed = {job: value for job, value in values.items() if job not in running or job in may_go}
    true = _cheapest(after, starts, started) or _cheapest(after, starts, changed)
    if (None if stated is None else (stated.value, len(stated.jobs))) != true:
        yield f"outvoted by {stated}, true is {true}"


def _where(held: PlacementRecord) -> list[object]:
    """Return option, nodes and workers; granted shares may change while a job stays."""
    return [held.option, *((assignment.node, assignment.workers) for assignment in held.assignments)]


def _named(problem: Problem, placement: Placement) -> tuple[object, ...]:
    return problem.options.name[placement.option], placement.nodes, placement.gpus


def _placed_faults(instance: Instance, plan: Plan, explanation: Explanation) -> Iterator[str]:
    """Compare with all places that the job could have while the others stay."""
    round_ = beside(instance, plan, explanation.job, whole_plan=True)
    whole = compile_problem(instance, plan.policy.values)
    problem, weighted = replace(compile_problem(round_, plan.policy.values), target=whole.target), weighted_costs(whole)
    job = problem.job_ids.index(explanation.job)
    state = State(problem)
    now = plan.placement_of(explanation.job)
    places = [p for p in placements(problem, job) if fits(state, job, p)]  # whatever their utility
    if round_.policy.postpone.rule == "utility":
        asking = _asking(round_, instance)  # its options have other numbers
        kept = {_named(asking, p) for p in placements(asking, job) if _reaches_in(State(asking), job, [p])}
        places = [p for p in places if _named(problem, p) in kept]
    ran = next((running for running in instance.running if running.job == explanation.job), None)
    stays = now is not None and ran is not None and _where(ran) == _where(now)
    if now is not None and stays:
        runs = Running(job=now.job, option=now.option, assignments=now.assignments)
        there = compile_problem(round_.model_copy(update={"running": (*round_.running, runs)}), plan.policy.values)
        places.append(there.running[job])  # it may stay where no job may start any more
    best = min(
        ((-int(problem.options.value[p.option]), cost_delta(state, Move(job, p), weighted)) for p in places),
        default=None,
    )
    stated = explanation.best
    spot = None if stated is None or stated.spot is None else (-stated.spot.value, stated.spot.cost)
    if stated is not None and stated.spot is not None and explanation.spot is not None:
        gain = stated.spot.value - explanation.spot.value, explanation.spot.cost - stated.spot.cost
        if (stated.gain_value, stated.gain_cost) != gain:
            yield f"gains {stated.gain_value} and {stated.gain_cost}, true are {gain}"
    bounded = stated is not None and not stated.proven and spot is not None and best is not None and spot >= best
    neighbours = stated is not None and not stated.proven and round_.policy.postpone.rule == "utility"
    if spot != best and not bounded and not (spot is None and neighbours):  # what only bounds leaves the best unproven
        yield f"best {spot}, true is {best}"
