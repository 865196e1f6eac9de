"""
The five costs of docs/formulas.md, restated for many allocations at once and apart from the code of ``terms.costs``.

``rows`` has shape (L, J): per allocation and job the number of one of the job's ``candidates``. Each function returns
one cost of every row, shape (L,), in the unit of the formula.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations
from math import gcd

import numpy as np

from helpers.brute_force.sums import amounts_of
from placeopt.model import SlowdownCurve
from placeopt.problem import IntArray, Placement, Problem

Candidates = Sequence[Sequence[Placement | None]]
TypicalWorker = tuple[int, int, int, tuple[bool, ...]]
"""GPUs, share of each in thousandths, CPU millicores, GPU models taken (none: all)."""

HORUS_FITS = {"gtx-1080": (1.32198, -0.00728, 6e-5), "rtx-2080": (1.16664, -0.00302, 4e-5)}  # Horus, fig. 4
TYPICAL_MOST = 1000


def raw_costs(problem: Problem, candidates: Candidates, rows: IntArray) -> dict[str, IntArray]:
    """Return every cost of every row by name, shape (L,) each."""
    fgd = problem.policy.fragmentation.form == "fgd"
    by_curve = problem.policy.interference.model == "curve"
    return {
        "communication": _sum_over_jobs(problem, candidates, rows, job_communication),
        "interference": (interference_by_curve if by_curve else interference_by_pairs)(problem, candidates, rows),
        "fragmentation": (fragmentation_fgd if fgd else fragmentation_partial)(problem, candidates, rows),
        "horus": horus(problem, candidates, rows),
        "resource": _sum_over_jobs(problem, candidates, rows, job_resource),
        "prefer": np.zeros(len(rows), dtype=np.int64),  # of jobs with groups: `helpers.tree_oracle`
        "relations": np.zeros(len(rows), dtype=np.int64),  # of rounds with relations: `helpers.relation_oracle`
    }


def job_communication(problem: Problem, job: int, placement: Placement) -> int:
    """SC'17 eq. 3: over unordered pairs of the job's GPUs, traffic of the two workers x distance."""
    communication = problem.instance.jobs[job].communication
    traffic = {frozenset(edge.ranks): edge.weight for edge in communication.edges}
    per_worker = int(problem.options.gpus[placement.option])
    distance = problem.topology.pair_distances(np.array(placement.gpus, dtype=np.int64)).tolist()
    total = 0
    for a, b in combinations(range(len(placement.gpus)), 2):
        ranks = frozenset((a // per_worker, b // per_worker))
        in_one_worker = len(ranks) == 1
        weight = communication.weight if in_one_worker or not traffic else traffic.get(ranks, 0)
        if weight:
            total += weight * distance[a][b]
    return total


def job_resource(problem: Problem, job: int, placement: Placement) -> int:
    """GENIE eq. 10, as the option states it: ``cost_milli``."""
    del job
    return int(problem.options.cost_milli[placement.option])


def interference_by_pairs(problem: Problem, candidates: Candidates, rows: IntArray) -> IntArray:
    """Models ``pairwise`` and ``worst``: per job the sum, or the largest, of the excesses beside each other job."""
    largest = problem.policy.interference.model == "worst"
    total = np.zeros(len(rows), dtype=np.int64)
    for j in range(len(candidates)):
        of_job = np.zeros(len(rows), dtype=np.int64)
        for k in range(len(candidates)):
            if j != k:
                excess = _excesses(problem, candidates, j, k)[rows[:, j], rows[:, k]]
                of_job = np.maximum(of_job, excess) if largest else of_job + excess
        total += of_job
    return total


def _excesses(problem: Problem, candidates: Candidates, j: int, k: int) -> IntArray:
    """
    Return the excess of j beside k in thousandths, shape (candidates of j, candidates of k).

    It is the one stated for the closest domain (GPU, switch, socket, node) that any of their GPUs share; else 0.
    """
    out = np.zeros((len(candidates[j]), len(candidates[k])), dtype=np.int64)
    profiles = tuple(problem.instance.jobs[job].profile for job in (j, k))
    stated = next((s for s in problem.instance.slowdowns if (s.profile, s.beside) == profiles), None)
    if stated is None:
        return out
    at_level = (
        stated.gpu_thousandths,
        stated.switch_thousandths,
        stated.socket_thousandths,
        stated.node_thousandths,
    )
    domains_j, domains_k = ([_domains(problem, p) for p in candidates[job]] for job in (j, k))
    for c, here in enumerate(domains_j):
        for d, there in enumerate(domains_k):
            shared = (level for level in range(4) if here[level] & there[level])
            closest = next(shared, None)
            out[c, d] = 0 if closest is None else at_level[closest]
    return out


def _domains(problem: Problem, placement: Placement | None) -> tuple[frozenset[int], ...]:
    """Return the GPUs, switches, sockets and nodes of a placement's GPUs, a set each."""
    gpus = [] if placement is None else list(placement.gpus)
    numbers = (np.arange(problem.num_gpus), problem.gpu_switch, problem.gpu_socket, problem.gpu_node)
    return tuple(frozenset(int(number[gpu]) for gpu in gpus) - {-1} for number in numbers)


def interference_by_curve(problem: Problem, candidates: Candidates, rows: IntArray) -> IntArray:
    """
    Model ``curve``: per job the largest excess over its GPUs that it shares, by their summed utilisation x.

    s(x) - 1 = (f(1) - 1) x up to x = 1, and f(x) - 1 above; f is Horus's quadratic, in thousandths.
    """
    a, b, c = _quadratic(problem.policy.interference.curve)
    jobs, utilisation = _gpu_load(problem, candidates, rows)
    table = [
        round(1000 * ((a + b + c - 1) * p / 100 if p <= 100 else a * (p / 100) * (p / 100) + b * (p / 100) + c - 1))
        for p in range(int(utilisation.max(initial=0)) + 1)
    ]
    excess = np.where(jobs > 1, np.array(table, dtype=np.int64)[utilisation], 0)
    total = np.zeros(len(rows), dtype=np.int64)
    for j, of_job in enumerate(candidates):
        total += (excess * _holds(problem, of_job)[rows[:, j]]).max(axis=1, initial=0)
    return total


def fragmentation_partial(problem: Problem, candidates: Candidates, rows: IntArray) -> IntArray:
    """Form ``partial``: weight of the level x free GPUs, over the domains that are neither empty nor full."""
    busy = _gpu_load(problem, candidates, rows)[0] > 0
    total = np.zeros(len(rows), dtype=np.int64)
    for level in problem.levels:
        for domain in set(level.gpu_to_domain.tolist()) - {-1}:
            inside = level.gpu_to_domain == domain
            used = busy[:, inside].sum(axis=1)
            total += np.where(used > 0, level.weight * (int(inside.sum()) - used), 0)
    return total


def fragmentation_fgd(problem: Problem, candidates: Candidates, rows: IntArray) -> IntArray:
    """
    Form ``fgd`` (Weng et al., ATC'23): GPU share that a worker of the target workload cannot use, expected.

    Node by node and typical worker by typical worker: everything left if the node cannot host the worker, else what is
    left of the GPUs that it does not take. A GPU that may have one job only has nothing left once it has it.
    """
    gpu_left, cpu_left = _what_is_left(problem, candidates, rows)
    typical = typical_workers(problem)
    total = np.zeros(len(rows), dtype=np.int64)
    for n in range(problem.num_nodes):
        here = np.flatnonzero(problem.gpu_node == n)
        left = gpu_left[:, here]
        for (gpus, milli, cpu_millicores, allowed), frequency in typical.items():
            takes = (left >= milli) & np.array(allowed, dtype=bool)[problem.gpu_type[here]]
            hosts = (gpus > 0) & (takes.sum(axis=1) >= gpus) & (cpu_left[:, n] >= cpu_millicores)
            total += frequency * (left.sum(axis=1) - np.where(hosts, (left * takes).sum(axis=1), 0))
    return total


def _what_is_left(problem: Problem, candidates: Candidates, rows: IntArray) -> tuple[IntArray, IntArray]:
    """Return what is left, at least 0: of every GPU in thousandths, shape (L, G); of every node's CPU, shape (L, N)."""
    gpu_left = np.full((len(rows), problem.num_gpus), 1000, dtype=np.int64)
    cpu_left = np.tile(problem.node_capacity[:, 0], (len(rows), 1))
    for j, of_job in enumerate(candidates):
        gpu_used = np.zeros((len(of_job), problem.num_gpus), dtype=np.int64)
        cpu_used = np.zeros((len(of_job), problem.num_nodes), dtype=np.int64)
        for c, placement in enumerate(of_job):
            for key, amount in () if placement is None else amounts_of(problem, j, placement):
                if key[0] == "milli":
                    gpu_used[c, key[1]] += 1000 if problem.jobs_per_gpu == 1 else amount
                elif key[0] == "cpu_millicores":
                    cpu_used[c, key[1]] += amount
        gpu_left -= gpu_used[rows[:, j]]
        cpu_left -= cpu_used[rows[:, j]]
    return np.maximum(gpu_left, 0), np.maximum(cpu_left, 0)


def typical_workers(problem: Problem) -> dict[TypicalWorker, int]:
    """
    Return the workers of the target workload with their frequencies.

    Those that the policy states, or the most frequent ones of all jobs of the round, each in its first option, until
    95 % of the workers are covered. Workers that may use the same GPU models of the cluster are alike. Frequencies have
    no common divisor; where they sum to more than 1000 they are
    scaled to that sum by largest remainder.
    """
    stated = problem.policy.fragmentation.target

    def takes(models: tuple[str, ...]) -> tuple[bool, ...]:
        return tuple(not models or model in models for model in problem.type_model)

    counts: dict[TypicalWorker, int] = {}
    for target in stated:
        key = (target.gpus, target.gpu_milli, target.cpu_millicores, takes(target.gpu_models))
        counts[key] = counts.get(key, 0) + target.count
    for job in () if stated else problem.instance.jobs:
        demand = job.options[0].demand
        milli = demand.gpu_milli if demand.gpus else 1
        key = (demand.gpus, milli, demand.cpu_millicores, takes(demand.gpu_models))
        counts[key] = counts.get(key, 0) + job.options[0].workers
    kept: dict[TypicalWorker, int] = {}
    for key in sorted(counts, key=lambda key: (-counts[key], key)):
        if stated or sum(kept.values()) < Fraction(95, 100) * sum(counts.values()):
            kept[key] = counts[key]
    divisor = gcd(*kept.values()) or 1
    total = sum(kept.values()) // divisor
    if total <= TYPICAL_MOST:
        return {key: count // divisor for key, count in kept.items()}
    exact = {key: Fraction(TYPICAL_MOST * count, total * divisor) for key, count in kept.items()}
    frequency = {key: int(share) for key, share in exact.items()}
    for key in sorted(exact, key=lambda key: frequency[key] - exact[key])[: TYPICAL_MOST - sum(frequency.values())]:
        frequency[key] += 1
    return frequency


def horus(problem: Problem, candidates: Candidates, rows: IntArray) -> IntArray:
    """Horus eq. 7-10: over GPUs in use, w1 x memory used / capacity, rounded per job, + w2 x f(utilisation)."""
    stated = problem.policy.costs.get("horus")
    w1, w2 = (stated.memory_thousandths, stated.utilisation_thousandths) if stated else (500, 500)
    a, b, c = _quadratic(problem.policy.interference.curve)
    jobs, utilisation = _gpu_load(problem, candidates, rows)
    table = [
        round(w2 * (a * x * x + b * x + c))
        for x in (percent / 100 for percent in range(int(utilisation.max(initial=0)) + 1))
    ]

    def job_memory(problem: Problem, job: int, placement: Placement) -> int:
        del job
        need = int(problem.options.gpu_memory_mib[placement.option])
        sizes = [int(problem.gpu_memory_mib[gpu]) for gpu in placement.gpus]
        return sum(round(Fraction(w1 * need, size)) for size in sizes if size)

    by_utilisation = np.where(jobs > 0, np.array(table, dtype=np.int64)[utilisation], 0).sum(axis=1)
    return _sum_over_jobs(problem, candidates, rows, job_memory) + by_utilisation


def _quadratic(curve: str | SlowdownCurve) -> tuple[float, float, float]:
    """Return the coefficients of f, the highest power first."""
    if isinstance(curve, str):
        return HORUS_FITS[curve]
    return curve.square_millionths / 1e6, curve.linear_millionths / 1e6, curve.constant_millionths / 1e6


def _sum_over_jobs(
    problem: Problem, candidates: Candidates, rows: IntArray, cost: Callable[[Problem, int, Placement], int]
) -> IntArray:
    """Return the sum of a cost that each placed job has by itself."""
    total = np.zeros(len(rows), dtype=np.int64)
    for j, of_job in enumerate(candidates):
        table = np.array([0 if p is None else cost(problem, j, p) for p in of_job], dtype=np.int64)
        total += table[rows[:, j]]
    return total


def _gpu_load(problem: Problem, candidates: Candidates, rows: IntArray) -> tuple[IntArray, IntArray]:
    """Return the number of jobs on every GPU and their summed utilisation in percent, shape (L, G) each."""
    jobs = np.zeros((len(rows), problem.num_gpus), dtype=np.int64)
    utilisation = jobs.copy()
    for j, of_job in enumerate(candidates):
        percent = [0 if p is None else int(problem.options.utilisation[p.option]) for p in of_job]
        holds = _holds(problem, of_job)[rows[:, j]]
        jobs += holds
        utilisation += holds * np.array(percent, dtype=np.int64)[rows[:, j]][:, None]
    return jobs, utilisation


def _holds(problem: Problem, of_job: Sequence[Placement | None]) -> IntArray:
    """Return 1 where a candidate holds a GPU, shape (candidates, G)."""
    holds = np.zeros((len(of_job), problem.num_gpus), dtype=np.int64)
    for c, placement in enumerate(of_job):
        if placement is not None and placement.gpus:
            holds[c, list(placement.gpus)] = 1
    return holds
