"""
How well, and how long, a job would run at a place: its utility, and the estimate behind look-ahead.

Utility is in thousandths of running as well as it can. ``sc17`` is the formula of SC'17's artifact, ``sum`` is eq. 2
with every term as best over actual. Both are exact: the rational or its root is compared in integers, and what is
returned is rounded down, so ``utility >= minimum`` holds for the integer just where it holds for the real number.

Run time: ``run time of the option x (1 + path excess + interference excess)``. The path excess grows with the mean path
between the job's GPUs, from 0 where they are as close as they can be to the job's or the policy's spread slowdown where
they are as far apart as in a machine (SC'17: 1.30 for two GPUs packed against spread), and on across the network. The
interference excess is that of the policy's model, as if the neighbours of now stayed for the whole run. A job without
traffic has no path excess. An estimate and no more: nothing is proven by it.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from placeopt.model import Option
from placeopt.problem import Move, Placement, Problem, State
from placeopt.terms.costs.interference import excess_beside

FLOOR = Fraction(1, 100)
"""The artifact's floor of t and I."""


def utility(state: State, job: int) -> int:
    """
    Utility of a placed job beside the others of ``state``, by the policy's form; 1000 without GPUs.

    *sc17*: ``0.2 / (sqrt(t) + sqrt(I))``. t = (path - best path) / (longest x max(n, n (n - 1) / 2)) for n GPUs, paths
    summed over pairs, ``longest`` the largest distance in any machine: the artifact's M(2) = 40 and M(3) = 60, and our
    continuation. I = sum of 1 / (1 + e) over the co-runners that slow the job by e > 0, over the number of all
    co-runners. Both at least 0.01. The artifact takes I, a speed, for a cost, so a worse slowdown scores better; its
    thresholds belong to that, and we keep it.

    *sum*: ``a_cc x best path / path + a_b / s + a_d x best w / w``, s = 1 + the job's excess by the policy's model of
    interference, w the mean over the sockets of its nodes of the part that is free, the best one by filling the same
    number of its nodes' free GPUs from the smallest sockets on. 1 where the best is 0. The weights are those of the
    policy, in proportion; thirds where all three are 0.

    A job without traffic does not mind paths. Traffic graphs count as if all pairs talked.
    """
    placement = state.placements[job]
    if placement is None or not placement.gpus:
        return 1000
    problem, path = state.problem, path_of(state.problem, placement)
    excess = list(excess_beside(state, job).values())
    if problem.policy.postpone.utility == "sc17":
        suffered = sum((Fraction(1000, 1000 + e) for e in excess if e), start=Fraction(0)) / max(1, len(excess))
        return _sc17(_path_share(problem, placement.option, path), suffered)
    total = sum(excess) if problem.policy.interference.model == "pairwise" else max(excess, default=0)
    return _sum(problem, placement.option, path, total, _fragmentation(state, placement))


def utility_at(state: State, job: int, placement: Placement) -> int:
    """Utility of a job at ``placement``, wherever ``state`` has it now."""
    undo = state.apply(Move(job, placement))
    result = utility(state, job)
    state.apply(undo)
    return result


def utility_of_path(problem: Problem, option: int, path: int) -> int:
    """Return the most utility that a job in the option can have with its GPUs ``path`` apart: undisturbed."""
    if problem.policy.postpone.utility == "sc17":
        return _sc17(_path_share(problem, option, path), Fraction(0))
    return _sum(problem, option, path, 0, Fraction(1))


def longest_path_for(problem: Problem, option: int, least: int) -> int | None:
    """Return the longest path at which the option can still reach a utility of ``least``; None if at no length."""
    if utility_of_path(problem, option, 0) < least:
        return None
    low, high = 0, most_path(problem, option) + 1
    while high - low > 1:
        middle = (low + high) // 2
        if utility_of_path(problem, option, middle) >= least:
            low = middle
        else:
            high = middle
    return low


def most_path(problem: Problem, option: int) -> int:
    """Path length between all pairs of a job's GPUs that no placement exceeds."""
    n = int(problem.options.workers[option] * problem.options.gpus[option])
    return n * (n - 1) // 2 * problem.topology.max_distance


FEW, MOST_PATHS = 8, 100_000
"""GPUs up to which a placement's path is kept, and how many paths are: look-ahead needs the same ones repeatedly."""


def path_of(problem: Problem, placement: Placement) -> int:
    """Path length between all pairs of a placement's GPUs, each pair once."""
    gpus = placement.gpus
    if len(gpus) < 2:
        return 0
    if len(gpus) > FEW:
        return int(problem.topology.pair_distances(np.array(gpus, dtype=np.int64)).sum()) // 2
    known = problem.topology.known_paths
    path = known.get(gpus)
    if path is None:
        if len(known) >= MOST_PATHS:
            known.clear()
        path = known[gpus] = int(problem.topology.pair_distances(np.array(gpus, dtype=np.int64)).sum()) // 2
    return path


def talks(problem: Problem, option: int) -> bool:
    """Return whether a job in the option has several GPUs and any traffic between them."""
    options = problem.options
    traffic = problem.class_communication[options.job_class[option]]
    return bool(options.workers[option] * options.gpus[option] > 1 and (traffic.weight or traffic.edges))


def _path_share(problem: Problem, option: int, path: int) -> Fraction:
    """Return t of the form ``sc17``."""
    more = path - int(problem.best_path[option])
    if more <= 0 or not talks(problem, option):
        return Fraction(0)
    n = int(problem.options.workers[option] * problem.options.gpus[option])
    return Fraction(more, max(1, problem.topology.max_machine_distance()) * max(n, n * (n - 1) // 2))


def _sc17(t: Fraction, i: Fraction) -> int:
    """Return the largest u of 0..1000 with ``u (sqrt(t) + sqrt(i)) <= 200``, without a root."""
    t, i = max(t, FLOOR), max(i, FLOOR)
    low, high = 0, 1001
    while high - low > 1:
        u = (low + high) // 2
        rest = 40_000 - u * u * (t + i)  # 2 u^2 sqrt(t i) must be at most that
        if rest >= 0 and 4 * u**4 * t * i <= rest * rest:
            low = u
        else:
            high = u
    return low


def _sum(problem: Problem, option: int, path: int, excess: int, fragmentation: Fraction) -> int:
    weights, best = problem.policy.weights, int(problem.best_path[option])
    a = (weights.communication, weights.interference, weights.fragmentation)
    a_cc, a_b, a_d = a if any(a) else (1, 1, 1)
    path_term = Fraction(best, path) if talks(problem, option) and 0 < best < path else Fraction(1)
    total = a_cc * path_term + a_b * Fraction(1000, 1000 + excess) + a_d * fragmentation
    return int(1000 * total / (a_cc + a_b + a_d))


def _fragmentation(state: State, placement: Placement) -> Fraction:
    """Return best w over w (SC'17 eq. 5) on the placement's nodes."""
    problem = state.problem
    own = {gpu for gpu in placement.gpus if state.gpu_jobs[gpu] == 1}
    free_now = free_best = Fraction(0)
    for node in dict.fromkeys(placement.nodes):
        sockets: dict[int, list[int]] = {}
        for gpu in range(int(problem.node_gpu_start[node]), int(problem.node_gpu_start[node + 1])):
            sockets.setdefault(int(problem.gpu_socket[gpu]), []).append(gpu)
        left = sum(gpu in own for gpus in sockets.values() for gpu in gpus)
        for gpus in sorted(sockets.values(), key=len):
            free = sum(state.gpu_jobs[gpu] == 0 for gpu in gpus)
            could = free + sum(gpu in own for gpu in gpus)
            taken = min(left, could)
            left -= taken
            free_now += Fraction(int(free), len(gpus))
            free_best += Fraction(int(could - taken), len(gpus))
    return free_best / free_now if free_best < free_now and free_best else Fraction(1)


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


def together(problem: Problem, excesses: Iterable[int]) -> int:
    """Excess by several neighbours at once: their sum, or the worst of them."""
    return sum(excesses) if problem.policy.interference.model == "pairwise" else max(excesses, default=0)


def path_excess(problem: Problem, placement: Placement, spread: int) -> int:
    """Excess run time by the path between a placement's GPUs; ``spread`` is that of the farthest in a machine."""
    if len(placement.gpus) < 2 or not talks(problem, placement.option):
        return 0
    extra = path_of(problem, placement) - int(problem.best_path[placement.option])
    if extra <= 0:
        return 0
    n = len(placement.gpus)
    return -(-spread * extra // (n * (n - 1) // 2 * problem.topology.machine_span))


def longest_run_ms(problem: Problem, job: int, option: int) -> int | None:
    """Run time on one machine in the worst place, undisturbed; None where the option states none."""
    alone = option_of(problem, job, option).run_time_ms
    if alone is None:
        return None
    return -(-alone * (1000 + (spread_of(problem, job) if talks(problem, option) else 0)) // 1000)


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
