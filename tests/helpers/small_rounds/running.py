"""What is laid over a small round: running jobs, drained and tainted nodes, changes, minimal utilities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from helpers.brute_force import placements
from helpers.plan_records import assignments_of, plan_of
from helpers.small_rounds.dice import Dice
from helpers.small_rounds.jobs import TAINTS
from placeopt.check import judge
from placeopt.model import Changes, Instance, Postpone, Running
from placeopt.problem import Move, Placement, Problem, State, compile_problem
from placeopt.terms.rules import fits


def with_running(dice: Dice, instance: Instance, chance: float) -> Instance:
    """Let some jobs run, each somewhere it fits, now and then with more than the share it asked for."""
    problem = compile_problem(instance)
    state = State(problem)
    for job in range(problem.num_jobs):
        open_to = [p for p in placements(problem, job) if fits(state, job, p)] if dice.chance(chance) else []
        if open_to:
            largest = max(len(p.nodes) for p in open_to)
            if dice.chance(0.5):
                open_to = [p for p in open_to if len(p.nodes) == largest]  # so that there is something to shrink
            state.apply(Move(job, dice.pick(open_to)))
    running = _running_records(problem, state.placements)
    out = instance.model_copy(update={"running": _with_extra_shares(dice, instance, running)})
    now = compile_problem(out)
    if any(judge(out, plan_of(now, tuple(now.running.get(j) for j in range(now.num_jobs))))):
        raise AssertionError("running jobs that fit are refused by the referee")
    return out


def _with_extra_shares(dice: Dice, instance: Instance, running: tuple[Running, ...]) -> tuple[Running, ...]:
    """Let jobs hold more than their requests, as far as limits and GPUs allow: any file may say so."""
    demands = {(job.id, option.id): option.demand for job in instance.jobs for option in job.options}
    held: Counter[tuple[str, str]] = Counter()
    for run in running:
        for a in run.assignments:
            held.update({(a.node, gpu): milli for gpu, milli in a.gpus.items()})
    out = []
    for run in running:
        demand, assignments = demands[run.job, run.option], []
        for a in run.assignments:
            gpus = {}
            for gpu, milli in a.gpus.items():
                gpus[gpu] = milli
                if demand.gpu_milli_limit is not None:
                    free = max(0, 1000 - held[a.node, gpu])
                    gpus[gpu] = dice.number(milli, min(demand.gpu_milli_limit, milli + free))
                    held[a.node, gpu] += gpus[gpu] - milli
            assignments.append(a.model_copy(update={"gpus": gpus}))
        out.append(run.model_copy(update={"assignments": tuple(assignments)}))
    return tuple(out)


def _running_records(problem: Problem, held: Sequence[Placement | None]) -> tuple[Running, ...]:
    """Write the placements of the running jobs as records."""
    return tuple(
        Running(
            job=problem.job_ids[j],
            option=problem.options.name[placement.option],
            assignments=assignments_of(problem, placement),
        )
        for j, placement in enumerate(held)
        if placement is not None
    )


def with_barriers(dice: Dice, instance: Instance) -> Instance:
    """Drain and taint nodes; what runs there stays."""
    nodes = tuple(
        node.model_copy(
            update={
                "drained": dice.chance(0.1 if node.id != "n0" else 0.03),
                "taints": tuple(dice.some(TAINTS)) if dice.chance(0.15) else (),
            }
        )
        for node in instance.cluster.nodes
    )
    return instance.model_copy(update={"cluster": instance.cluster.model_copy(update={"nodes": nodes})})


def with_changes(dice: Dice, instance: Instance) -> Instance:
    """Allow the running jobs to be changed, each in some of the ways."""
    most = (0, 1, 1, 2, 5)
    prices = [dice.pick((0, 0, 1, 2, 4)) for _ in range(3)]
    changes = Changes(
        moves_max=dice.pick(most),
        preemptions_max=dice.pick(most),
        shrinks_max=dice.pick(most),
        move_price=prices[0],
        preemption_price=prices[1],
        shrink_price_per_worker=prices[2],
        last_submitted_first=dice.chance(0.3),
    )
    running = tuple(
        run.model_copy(
            update={"movable": dice.chance(0.6), "shrinkable": dice.chance(0.8), "preemptible": dice.chance(0.6)}
        )
        for run in instance.running
    )
    policy = instance.policy.model_copy(update={"changes": changes})
    return instance.model_copy(update={"running": running, "policy": policy})


def with_minima(dice: Dice, instance: Instance) -> Instance:
    """Let jobs wait below a minimal utility; those whose options state a utility of their own keep what they have."""
    postpone = Postpone(rule="utility", utility=dice.pick(("sum", "sc17")))
    jobs = tuple(
        job
        if any(option.utility_thousandths is not None for option in job.options)
        else job.model_copy(update={"utility_min_thousandths": dice.pick((None, 100, 253, 300, 500, 683, 800, 1000))})
        for job in instance.jobs
    )
    return instance.model_copy(
        update={"jobs": jobs, "policy": instance.policy.model_copy(update={"postpone": postpone})}
    )
