"""
How well a job would run at a place: its utility, in thousandths of running as well as it can.

``sc17`` is the formula of SC'17's artifact, ``sum`` is eq. 2 with every term as best over actual. Both are exact: the
rational or its root is compared in integers, and what is returned is rounded down, so ``utility >= minimum`` holds for
the integer just where it holds for the real number.
"""

from __future__ import annotations

from fractions import Fraction

from placeopt.problem import Move, Placement, Problem, State
from placeopt.terms.costs.interference import excess_beside, together

EQUATION_2 = ("communication", "interference", "fragmentation")
"""The costs whose weights are those of the terms of eq. 2: a_cc, a_b, a_d."""
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
    problem, path = state.problem, state.problem.topology.path(placement.gpus)
    excess = list(excess_beside(state, job).values())
    if problem.policy.postpone.utility == "sc17":
        suffered = sum((Fraction(1000, 1000 + e) for e in excess if e), start=Fraction(0)) / max(1, len(excess))
        return _sc17(_path_share(problem, placement.option, path), suffered)
    return _sum(problem, placement.option, path, together(problem, excess), _fragmentation(state, placement))


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
    return Fraction(more, max(1, problem.topology.max_machine_distance) * max(n, n * (n - 1) // 2))


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
    best = int(problem.best_path[option])
    a = [problem.policy.weights[name] for name in EQUATION_2]
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
