"""
The estimate of run times behind look-ahead: ``run time of the option x (1 + path excess + interference excess)``.

The path excess grows with the mean path between the job's GPUs, from 0 where they are as close as they can be to the
job's or the policy's spread slowdown where they are as far apart as in a machine (SC'17: 1.30 for two GPUs packed
against spread), and on across the network. The interference excess is that of the policy's model, as if the neighbours
of now stayed for the whole run. A job without traffic has no path excess. An estimate and no more: nothing is proven by
it.
"""

from __future__ import annotations

from placeopt.model import Option
from placeopt.problem import Placement, Problem, State
from placeopt.terms.costs.interference import excess_beside, together
from placeopt.terms.costs.utility import talks


def run_time_ms(state: State, job: int) -> int | None:
    """Expected run time of a placed job beside the others of ``state``, rounded up; None if its option states none."""
    placement = state.placements[job]
    return None if placement is None else run_time_there_ms(state.problem, job, placement, company_of(state, job))


def run_time_there_ms(problem: Problem, job: int, placement: Placement, company: int) -> int | None:
    """Expected run time of a job at a placement with an excess of ``company`` thousandths by its neighbours there."""
    alone = option_of(problem, job, placement.option).run_time_ms
    if alone is None:
        return None
    apart = path_excess(problem, placement, spread_of(problem, job))
    return slowed_ms(alone, apart + company)


def slowed_ms(alone_ms: int, excess: int) -> int:
    """Run time with an excess in thousandths, rounded up."""
    return -(-alone_ms * (1000 + excess) // 1000)


def company_of(state: State, job: int) -> int:
    """Excess of a placed job by its neighbours together, in thousandths."""
    return together(state.problem, excess_beside(state, job).values())


def path_excess(problem: Problem, placement: Placement, spread: int) -> int:
    """Excess run time by the path between a placement's GPUs; ``spread`` is that of the farthest in a machine."""
    if len(placement.gpus) < 2 or not talks(problem, placement.option):
        return 0
    extra = problem.topology.path(placement.gpus) - int(problem.best_path[placement.option])
    if extra <= 0:
        return 0
    n = len(placement.gpus)
    return -(-spread * extra // (n * (n - 1) // 2 * problem.topology.machine_span))


def longest_run_ms(problem: Problem, job: int, option: int) -> int | None:
    """Run time on one machine in the worst place, undisturbed; None where the option states none."""
    alone = option_of(problem, job, option).run_time_ms
    return None if alone is None else slowed_ms(alone, spread_of(problem, job) if talks(problem, option) else 0)


def expected_ends(state: State) -> dict[int, int]:
    """
    Return when the running jobs of ``state`` are expected to end, as far as that is known.

    Stated, or start + run time. An estimate that has passed says nothing about when the job will really end.
    """
    problem, now = state.problem, state.problem.instance.now_ms
    number = {job_id: j for j, job_id in enumerate(problem.job_ids)}
    out: dict[int, int] = {}
    for record in problem.instance.running:
        job, end = number[record.job], record.expected_end_ms
        if end is None:
            length = run_time_ms(state, job)
            end = None if length is None else record.started_ms + length
        if end is not None and end > now:
            out[job] = end
    return out


def option_of(problem: Problem, job: int, option: int) -> Option:
    """Return the record of an option of a job."""
    return problem.instance.jobs[job].option(problem.options.name[option])


def spread_of(problem: Problem, job: int) -> int:
    """Excess run time of a job with its GPUs as far apart as a machine allows, in thousandths."""
    own = problem.instance.jobs[job].communication.spread_slowdown_thousandths
    return problem.policy.postpone.spread_slowdown_thousandths if own is None else own
