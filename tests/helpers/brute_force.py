"""
The best allocation of a tiny round by trying all of them: no formulation, no solver, and the costs stated once more.

Every hard rule that couples jobs is a limit on a sum (GPU share, jobs and memory of a GPU; a node's resources; hose
load of an uplink; a queue's use). So a placement is a row of amounts, and an allocation is a choice of rows whose sum
stays below the limits; what concerns one job alone is left to ``terms.rules.fits``, which has the referee as its judge.
Minimal utilities are asked of whole rows.
What may become of a running job is enumerated here from the records, with its price; how many jobs may be changed in
each way are limits on sums like the others. What running jobs hold beyond a limit stands: a sum may exceed its limit
where nothing that starts or moves adds to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, islice, product
from math import gcd, prod

import numpy as np

from placeopt.model.policy import Postpone, SlowdownCurve
from placeopt.problem import Allocation, IntArray, Move, Placement, Problem, State, open_state
from placeopt.terms.objective import weighted_costs
from placeopt.terms.rules.gpu_capacity import GpuMemoryCapacity, GpuShare, JobsPerGpu
from placeopt.terms.rules.minimal_utility import falls_short
from placeopt.terms.rules.node_capacity import NodeCapacity
from placeopt.terms.rules.queue_share import QueueShare
from placeopt.terms.rules.registry import RULES, fits
from placeopt.terms.rules.uplink import Uplink

LIMITS = (GpuShare, JobsPerGpu, GpuMemoryCapacity, NodeCapacity, QueueShare, Uplink)
"""Rules about sums, which running jobs may exceed together."""

HORUS_FITS = {"gtx-1080": (1.32198, -0.00728, 6e-5), "rtx-2080": (1.16664, -0.00302, 4e-5)}  # Horus, fig. 4


def _quadratic(curve: str | SlowdownCurve) -> tuple[float, float, float]:
    if isinstance(curve, str):
        return HORUS_FITS[curve]
    return curve.square_millionths / 1e6, curve.linear_millionths / 1e6, curve.constant_millionths / 1e6


def optimum(problem: Problem) -> tuple[int, int, Allocation]:
    """Return the greatest value, the least cost at that value, and an allocation that has both."""
    return Enumeration(problem).best()


def placements(problem: Problem, job: int) -> Iterator[Placement]:
    """Yield everywhere that a waiting job may start beside the running jobs that must stay."""
    state = open_state(careless(problem))
    return (placement for placement in _everywhere(problem, job) if fits(state, job, placement))


def careless(problem: Problem) -> Problem:
    """Return the round without minimal utilities: company can raise a utility, so they are asked of whole rows."""
    policy = problem.policy.model_copy(update={"postpone": Postpone()})
    return replace(problem, policy=policy)


def _everywhere(problem: Problem, job: int) -> Iterator[Placement]:
    """Yield all places by the GPUs' masks alone; alike workers in one order only."""
    for option in problem.options_of(job):
        yield from _anywhere(problem, option, ordered=bool(_edges(problem, job)))


@dataclass(frozen=True)
class Fate:
    """What may become of a running job: where it is then, what kind of change that is, and its price."""

    placement: Placement | None
    kind: str
    price: int


def fates(problem: Problem, job: int) -> Iterator[Fate]:
    """Yield all that policy and job allow to be done to a running job, lawful or not; to leave it is comes first."""
    held, changes = problem.running[job], problem.policy.changes
    record = next(running for running in problem.instance.running if running.job == problem.job_ids[job])
    yield Fate(held, "kept", 0)
    if _is_fixed(problem, job):
        return
    option = next(option for option in problem.instance.jobs[job].options if option.id == record.option)
    workers, name, at = len(held.nodes), record.option, _places(problem, held)
    parts = [
        (0, *others)
        for number in range((option.workers_min or workers) - 1, workers - 1)
        for others in combinations(range(1, workers), number)
    ]
    if changes.shrinks_max and record.shrinkable:
        for ranks in parts:
            price = changes.shrink_price_per_worker * (workers - len(ranks))
            yield Fate(_remains(problem, job, ranks), "shrunk", price)
    if changes.moves_max and record.movable:
        shrunk = [[at[rank] for rank in ranks] for ranks in parts]
        for placement in _everywhere(problem, job):
            now, same_option = _places(problem, placement), problem.options.name[placement.option] == name
            if not (same_option and now == at):
                part = same_option and now in shrunk
                yield Fate(replace(placement, restarts=part), "moved", changes.move_price)
    if changes.preemptions_max and record.preemptible:
        yield Fate(None, "preempted", changes.preemption_price)


def _is_fixed(problem: Problem, job: int) -> bool:
    """Tell whether a running job lies on several nodes against its option, or on a GPU with too many others."""
    held, most = problem.running[job], problem.jobs_per_gpu
    crowds = [sum(gpu in other.gpus for other in problem.running.values()) for gpu in held.gpus]
    apart = problem.options.bundles[held.option] == 1 and len(set(held.nodes)) > 1
    return apart or (most is not None and max(crowds, default=0) > most)


def _places(problem: Problem, placement: Placement) -> list[tuple[int, tuple[int, ...]]]:
    """Node and GPUs of every worker."""
    gpus = int(problem.options.gpus[placement.option])
    parts = [slice(rank * gpus, (rank + 1) * gpus) for rank in range(len(placement.nodes))]
    return [(node, placement.gpus[part]) for node, part in zip(placement.nodes, parts, strict=True)]


def _remains(problem: Problem, job: int, ranks: tuple[int, ...]) -> Placement:
    """Return the running job with only the workers ``ranks``, as they are."""
    held = problem.running[job]
    name, gpus = problem.options.name[held.option], int(problem.options.gpus[held.option])
    option = next(
        o
        for o in problem.options_of(job)
        if (problem.options.name[o], problem.options.workers[o]) == (name, len(ranks))
    )
    kept = [i for rank in ranks for i in range(rank * gpus, (rank + 1) * gpus)]
    return Placement(option, tuple(held.nodes[rank] for rank in ranks), tuple(held.gpus[i] for i in kept))


def space(problem: Problem, most: int) -> int:
    """Return the number of combinations of placements, feasible or not; above ``most`` it stops counting."""
    waiting = [job for job in range(problem.num_jobs) if job not in problem.running]
    return prod(1 + sum(1 for _ in islice(placements(problem, job), most)) for job in waiting)


def _edges(problem: Problem, job: int) -> tuple[object, ...]:
    return problem.class_communication[problem.job_class[job]].edges


def _anywhere(problem: Problem, option: int, *, ordered: bool) -> Iterator[Placement]:
    workers, gpus = int(problem.options.workers[option]), int(problem.options.gpus[option])
    allowed = problem.gpu_ok(option)
    start = problem.node_gpu_start
    at = {n: [g for g in range(int(start[n]), int(start[n + 1])) if allowed[g]] for n in range(problem.num_nodes)}
    roomy = [n for n in at if len(at[n]) >= gpus]
    if ordered:
        for nodes in product(roomy, repeat=workers):
            for held in product(*(combinations(at[n], gpus) for n in nodes)):
                yield Placement(option, nodes, tuple(gpu for part in held for gpu in part))
    else:
        for nodes in combinations_with_replacement(roomy, workers):
            distinct = list(dict.fromkeys(nodes))
            for held in product(*(combinations(at[n], gpus * nodes.count(n)) for n in distinct)):
                yield Placement(option, nodes, tuple(gpu for part in held for gpu in part))


class Enumeration:
    """
    All feasible allocations of a round, as rows of candidate numbers; 0 is to wait.

    Attributes
    ----------
    candidates
        Per job, None and its placements; for a running job what may become of it, to stay as it is first.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._possible = {job: list(fates(problem, job)) for job in sorted(problem.running)}
        self._fates = {job: self._lawful(job) for job in self._possible}
        self.candidates: list[list[Placement | None]] = [
            [fate.placement for fate in self._fates[job]] if job in self._fates else [None, *placements(problem, job)]
            for job in range(problem.num_jobs)
        ]
        self._values = [
            np.array([0 if p is None else problem.options.value[p.option] for p in of_job], dtype=np.int64)
            for of_job in self.candidates
        ]
        for job, of_job in self._fates.items():
            self._values[job] -= np.array([fate.price for fate in of_job], dtype=np.int64)
        self._held = [_held(problem, of_job) for of_job in self.candidates]
        self._use, self._limit, self._starts = self._amounts()
        minimum = problem.policy.postpone.rule == "utility"
        jobs = problem.instance.jobs
        self._judged = {j for j in range(len(jobs)) if minimum and jobs[j].utility_min_thousandths is not None}
        self._known: dict[tuple[object, ...], bool] = {}

    def _lawful(self, job: int) -> list[Fate]:
        """Leave out what breaks a rule by itself: what remains of a job must still lie as its option asks."""
        state = open_state(careless(self.problem))
        state.apply(Move(job, None))

        def lawful(fate: Fate) -> bool:
            if fate.kind == "kept" or fate.placement is None:
                return True
            if fate.kind == "moved":
                return fits(state, job, fate.placement)
            return all(rule.fits(state, job, fate.placement) for rule in RULES if not isinstance(rule, LIMITS))

        return [fate for fate in self._possible[job] if lawful(fate)]

    def best(self) -> tuple[int, int, Allocation]:
        """Return the greatest value, the least cost at that value, and the first allocation that has both."""
        rows, values = self.rows(0 if self._judged else self._greedy_value())
        value = int(values.max())
        rows = rows[values == value]
        costs = self.costs(rows)
        return value, int(costs.min()), self.allocation(rows[costs.argmin()])

    def allocation(self, row: IntArray) -> Allocation:
        """Return what a row of candidate numbers stands for."""
        return tuple(of_job[c] for of_job, c in zip(self.candidates, row, strict=True))

    def rows(self, least: int = 0) -> tuple[IntArray, IntArray]:
        """Return every feasible allocation of value ``least`` or more, shape (L, J), and the values, shape (L,)."""
        jobs = len(self.candidates)
        rest = np.cumsum([int(v.max()) for v in self._values][::-1])[::-1].tolist()
        rest.append(0)
        rows = np.zeros((1, jobs), dtype=np.int64)
        used = np.zeros((1, len(self._limit)), dtype=np.int64)
        started = used.copy()  # of it by what starts or moves
        values = np.zeros(1, dtype=np.int64)
        for j in range(jobs):
            total = values[:, None] + self._values[j][None, :]
            keep = total + rest[j + 1] >= least
            for r in range(len(self._limit)):
                use = self._use[j][:, r]
                if use.any():
                    within = used[:, r][:, None] + use[None, :] <= self._limit[r]
                    keep &= within | (started[:, r][:, None] + self._starts[j][:, r][None, :] == 0)
            at, candidate = np.nonzero(keep)
            rows = rows[at]
            rows[:, j] = candidate
            used = used[at] + self._use[j][candidate]
            started = started[at] + self._starts[j][candidate]
            values = total[at, candidate]
        ordered = self._in_order(rows)
        rows, values = rows[ordered], values[ordered]
        if self._judged:
            useful = np.array([self._is_useful(row) for row in rows.tolist()], dtype=bool)
            rows, values = rows[useful], values[useful]
        return rows, values

    def _is_useful(self, row: list[int]) -> bool:
        """Tell whether nobody falls short of its minimal utility; jobs without a node in common are judged apart."""
        placed = {j: p for j, p in enumerate(of_job[c] for of_job, c in zip(self.candidates, row, strict=True)) if p}
        for j in self._judged & placed.keys():
            beside = tuple(k for k, p in placed.items() if set(p.nodes) & set(placed[j].nodes))
            key = (j, *((k, row[k]) for k in beside))
            if key not in self._known:
                state = State(self.problem)
                state.load(tuple(placed[k] if k in beside else None for k in range(len(row))))
                self._known[key] = not falls_short(state, j)
            if not self._known[key]:
                return False
        return True

    def _in_order(self, rows: IntArray) -> IntArray:
        """Rows in which nothing is taken from a job while a later one of its queue could give and gives nothing."""
        ok = np.ones(len(rows), dtype=bool)
        if not self.problem.policy.changes.last_submitted_first:
            return np.flatnonzero(ok)
        giving = {job: np.array([f.kind in ("shrunk", "preempted") for f in of]) for job, of in self._fates.items()}
        jobs = self.problem.instance.jobs
        for job, gives in giving.items():
            for later, could in giving.items():
                one_queue = jobs[job].queue == jobs[later].queue
                if one_queue and jobs[job].arrival_ms < jobs[later].arrival_ms and self._could_give(later):
                    ok &= ~gives[rows[:, job]] | could[rows[:, later]]
        return np.flatnonzero(ok)

    def _could_give(self, job: int) -> bool:
        """Tell whether the job may be preempted, or shrunk to its minimum, as the referee counts it."""
        return any(fate.kind in ("shrunk", "preempted") for fate in self._possible[job])

    def raw_costs(self, rows: IntArray) -> dict[str, IntArray]:
        """Return every cost of every row, shape (L,) each, from the definitions in the documentation."""
        return {
            "communication": self._alone(rows, _communication),
            "interference": self._interference(rows),
            "fragmentation": self._fragmentation(rows),
            "horus": self._horus(rows),
            "resource": self._alone(rows, lambda problem, _, p: int(problem.options.cost_milli[p.option])),
        }

    def costs(self, rows: IntArray) -> IntArray:
        """Return the cost level of every row, shape (L,)."""
        total = np.zeros(len(rows), dtype=np.int64)
        weighted = weighted_costs(self.problem)
        if weighted:
            raw = self.raw_costs(rows)
            for w in weighted:
                total += w.weight * raw[w.cost.name]
        return total

    def _greedy_value(self) -> int:
        """Return the value of some allocation: running jobs as they are, every other to the first best place left."""
        used = np.zeros(len(self._limit), dtype=np.int64)
        total = 0
        for job in sorted(range(len(self._use)), key=lambda job: job not in self.problem.running):
            use, values = self._use[job], self._values[job]
            if job in self._fates:
                use, values = use[:1], values[:1]
            within, starts = used + use <= self._limit, self._starts[job][: len(use)]
            fit = np.flatnonzero((within | (starts == 0)).all(axis=1))
            chosen = fit[values[fit].argmax()]
            used = used + use[chosen]
            total += int(values[chosen])
        return total

    def _amounts(self) -> tuple[list[IntArray], IntArray, list[IntArray]]:
        """
        Per job, shape (candidates, R): what each uses of every limited thing; the limits, shape (R,); and per job what
        those use that may not add to an exceeded limit: all but what stays of a running job.
        """
        limit = _limits(self.problem)
        keys = {key: r for r, key in enumerate(limit)}
        use, starts = [], []
        for job, of_job in enumerate(self.candidates):
            amounts = np.zeros((len(of_job), len(keys)), dtype=np.int64)
            for c, placement in enumerate(of_job):
                if placement is not None:
                    for key, amount in _uses(self.problem, job, placement):
                        if key in keys:
                            amounts[c, keys[key]] += amount
                if job in self._fates and ("changes", self._fates[job][c].kind) in keys:
                    amounts[c, keys["changes", self._fates[job][c].kind]] = 1
            use.append(amounts)
            stays = [job in self._fates and self._fates[job][c].kind in ("kept", "shrunk") for c in range(len(of_job))]
            counted = np.array([key[0] == "changes" for key in keys], dtype=bool)
            starts.append(np.where(np.array(stays, dtype=bool)[:, None] & ~counted[None, :], 0, amounts))
        room = np.array(list(limit.values()), dtype=np.int64)
        most = sum((amounts.max(axis=0) for amounts in use), start=np.zeros(len(room), dtype=np.int64))
        binds = np.flatnonzero(most > room)
        return [amounts[:, binds] for amounts in use], room[binds], [amounts[:, binds] for amounts in starts]

    def _alone(self, rows: IntArray, cost: object) -> IntArray:
        """Sum of a cost that each job has by itself."""
        total = np.zeros(len(rows), dtype=np.int64)
        for j, of_job in enumerate(self.candidates):
            table = np.array([0 if p is None else cost(self.problem, j, p) for p in of_job], dtype=np.int64)  # type: ignore[operator]
            total += table[rows[:, j]]
        return total

    def _per_gpu(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """Return jobs on every GPU and their summed utilisation, shape (L, G) each."""
        jobs = np.zeros((len(rows), self.problem.num_gpus), dtype=np.int64)
        use = jobs.copy()
        for j, of_job in enumerate(self.candidates):
            percent = [0 if p is None else int(self.problem.options.utilisation[p.option]) for p in of_job]
            held = self._held[j][rows[:, j]]
            jobs += held
            use += held * np.array(percent, dtype=np.int64)[rows[:, j]][:, None]
        return jobs, use

    def _fragmentation(self, rows: IntArray) -> IntArray:
        if self.problem.policy.fragmentation.form == "fgd":
            return self._fgd(rows)
        busy = self._per_gpu(rows)[0] > 0
        total = np.zeros(len(rows), dtype=np.int64)
        for level in self.problem.levels:
            for domain in set(level.gpu_to_domain.tolist()) - {-1}:
                inside = level.gpu_to_domain == domain
                used = busy[:, inside].sum(axis=1)
                total += np.where(used > 0, level.weight * (int(inside.sum()) - used), 0)
        return total

    def _fgd(self, rows: IntArray) -> IntArray:
        """Weng et al.'s F, node by node and typical worker by typical worker."""
        problem, single = self.problem, self.problem.jobs_per_gpu == 1
        left = np.full((len(rows), problem.num_gpus), 1000, dtype=np.int64)
        cpu = np.tile(problem.node_capacity[:, 0], (len(rows), 1))
        for j, of_job in enumerate(self.candidates):
            held, cores = (
                np.zeros((len(of_job), problem.num_gpus), int),
                np.zeros((len(of_job), problem.num_nodes), int),
            )
            for c, placement in enumerate(of_job):
                for key, amount in () if placement is None else _uses(problem, j, placement):
                    if key[0] == "milli":
                        held[c, key[1]] += 1000 if single else amount
                    elif key[0] == "cpu_millicores":
                        cores[c, key[1]] += amount
            left -= held[rows[:, j]]
            cpu -= cores[rows[:, j]]
        left = np.maximum(left, 0)
        total = np.zeros(len(rows), dtype=np.int64)
        models = np.array([problem.type_model[t] for t in problem.gpu_type])
        for n in range(problem.num_nodes):
            here = np.flatnonzero(problem.gpu_node == n)
            idle = left[:, here].sum(axis=1)
            for (gpus, milli, cores_asked, allowed), parts in _typical(problem).items():
                takes = (left[:, here] >= milli) & np.array([not allowed or m in allowed for m in models[here]], bool)
                hosts = (gpus > 0) & (takes.sum(axis=1) >= gpus) & (np.maximum(cpu[:, n], 0) >= cores_asked)
                total += parts * (idle - np.where(hosts, (left[:, here] * takes).sum(axis=1), 0))
        return total

    def _horus(self, rows: IntArray) -> IntArray:
        horus = self.problem.policy.horus
        a, b, c = _quadratic(self.problem.policy.interference.curve)
        jobs, use = self._per_gpu(rows)
        table = [
            round(horus.utilisation_thousandths * (a * x * x + b * x + c))
            for x in (p / 100 for p in range(int(use.max(initial=0)) + 1))
        ]

        def memory(problem: Problem, _: int, placement: Placement) -> int:
            need = int(problem.options.gpu_memory_mib[placement.option])
            sizes = [int(problem.gpu_memory_mib[gpu]) for gpu in placement.gpus]
            return sum(round(Fraction(horus.memory_thousandths * need, size)) for size in sizes if size)

        on_gpus = np.where(jobs > 0, np.array(table, dtype=np.int64)[use], 0).sum(axis=1)
        return self._alone(rows, memory) + on_gpus

    def _interference(self, rows: IntArray) -> IntArray:
        model = self.problem.policy.interference.model
        if model == "curve":
            return self._by_curve(rows)
        total = np.zeros(len(rows), dtype=np.int64)
        for j in range(len(self.candidates)):
            mine = np.zeros(len(rows), dtype=np.int64)
            for k in range(len(self.candidates)):
                if j != k:
                    excess = self._excesses(j, k)[rows[:, j], rows[:, k]]
                    mine = np.maximum(mine, excess) if model == "worst" else mine + excess
            total += mine
        return total

    def _by_curve(self, rows: IntArray) -> IntArray:
        a, b, c = _quadratic(self.problem.policy.interference.curve)
        jobs, use = self._per_gpu(rows)
        table = [
            round(1000 * ((a + b + c - 1) * p / 100 if p <= 100 else a * (p / 100) * (p / 100) + b * (p / 100) + c - 1))
            for p in range(int(use.max(initial=0)) + 1)
        ]
        excess = np.where(jobs > 1, np.array(table, dtype=np.int64)[use], 0)
        held = [self._held[j][rows[:, j]] for j in range(len(self.candidates))]
        return sum(((excess * here).max(axis=1, initial=0) for here in held), start=np.zeros(len(rows), dtype=np.int64))

    def _excesses(self, j: int, k: int) -> IntArray:
        """Shape (candidates of j, candidates of k): excess of j beside k in thousandths."""
        problem = self.problem
        mine, theirs = (problem.instance.jobs[job].profile for job in (j, k))
        found = [s for s in problem.instance.slowdowns if (s.profile, s.beside) == (mine, theirs)]
        out = np.zeros((len(self.candidates[j]), len(self.candidates[k])), dtype=np.int64)
        if not found:
            return out
        at_level = (
            found[0].gpu_thousandths,
            found[0].switch_thousandths,
            found[0].socket_thousandths,
            found[0].node_thousandths,
            0,
        )
        domains = [[_domains(problem, p) for p in self.candidates[job]] for job in (j, k)]
        for c, here in enumerate(domains[0]):
            for d, there in enumerate(domains[1]):
                out[c, d] = at_level[next((i for i in range(4) if here[i] & there[i]), 4)]
        return out


def _typical(problem: Problem) -> dict[tuple[int, int, int, tuple[str, ...]], int]:
    """Typical workers and their frequencies: counts, scaled to 1000 by largest remainder if they sum to more."""
    counts: dict[tuple[int, int, int, tuple[str, ...]], int] = {}
    stated = problem.policy.fragmentation.target
    for one in stated:
        key = (one.gpus, one.gpu_milli, one.cpu_millicores, tuple(sorted(one.gpu_models)))
        counts[key] = counts.get(key, 0) + one.count
    for job in () if stated else problem.instance.jobs:
        demand = job.options[0].demand
        key = (
            demand.gpus,
            demand.gpu_milli if demand.gpus else 1,
            demand.cpu_millicores,
            tuple(sorted(demand.gpu_models)),
        )
        counts[key] = counts.get(key, 0) + job.options[0].workers
    kept: dict[tuple[int, int, int, tuple[str, ...]], int] = {}
    for key in sorted(counts, key=lambda key: (-counts[key], key)):
        if stated or sum(kept.values()) < Fraction(95, 100) * sum(counts.values()):
            kept[key] = counts[key]
    common = gcd(*kept.values()) or 1
    total = sum(kept.values()) // common
    if total <= 1000:
        return {key: count // common for key, count in kept.items()}
    exact = {key: Fraction(1000 * count, total * common) for key, count in kept.items()}
    parts = {key: int(share) for key, share in exact.items()}
    for key in sorted(exact, key=lambda key: parts[key] - exact[key])[: 1000 - sum(parts.values())]:
        parts[key] += 1
    return parts


def _domains(problem: Problem, placement: Placement | None) -> tuple[frozenset[int], ...]:
    """GPUs, switches, sockets and nodes of a placement's GPUs."""
    gpus = [] if placement is None else list(placement.gpus)
    return tuple(
        frozenset(int(part[gpu]) for gpu in gpus) - {-1}
        for part in (np.arange(problem.num_gpus), problem.gpu_switch, problem.gpu_socket, problem.gpu_node)
    )


def _held(problem: Problem, of_job: list[Placement | None]) -> IntArray:
    """Shape (candidates, G): 1 where the candidate holds the GPU."""
    held = np.zeros((len(of_job), problem.num_gpus), dtype=np.int64)
    for c, placement in enumerate(of_job):
        if placement is not None and placement.gpus:
            held[c, list(placement.gpus)] = 1
    return held


def _communication(problem: Problem, job: int, placement: Placement) -> int:
    communication = problem.instance.jobs[job].communication
    between = {frozenset(edge.ranks): edge.weight for edge in communication.edges}
    per_worker = int(problem.options.gpus[placement.option])
    distance = problem.topology.pair_distances(np.array(placement.gpus, dtype=np.int64)).tolist()
    total = 0
    for a, b in combinations(range(len(placement.gpus)), 2):
        ranks = frozenset((a // per_worker, b // per_worker))
        inside = len(ranks) == 1 or not between
        weight = communication.weight if inside else between.get(ranks, 0)
        if weight:
            total += weight * distance[a][b]
    return total


def _limits(problem: Problem) -> dict[tuple[object, ...], int]:
    """Return every limit on a sum over jobs."""
    policy, cluster = problem.policy, problem.instance.cluster
    machines = {machine.id: machine for machine in cluster.machines}
    limits: dict[tuple[object, ...], int] = {
        ("changes", "moved"): policy.changes.moves_max,
        ("changes", "shrunk"): policy.changes.shrinks_max,
        ("changes", "preempted"): policy.changes.preemptions_max,
    }
    for gpu in range(problem.num_gpus):
        if policy.share_mode == "fraction":
            limits["milli", gpu] = 1000
        if policy.share_mode == "exclusive" or policy.jobs_per_gpu_max:
            limits["jobs", gpu] = policy.jobs_per_gpu_max or 1
        limits["gpu_memory", gpu] = int(problem.gpu_memory_mib[gpu])
    usable = policy.usable
    for n, node in enumerate(cluster.nodes):
        machine = machines[node.machine]
        limits["cpu_millicores", n] = machine.cpu_millicores
        limits["memory_mib", n] = machine.memory_mib
        if machine.memory_bandwidth_mbps is not None:
            limits["memory_bandwidth_mbps", n] = machine.memory_bandwidth_mbps * usable.memory_bandwidth_percent // 100
        if machine.pcie_bandwidth_mbps is not None:
            limits["pcie_bandwidth_mbps", n] = machine.pcie_bandwidth_mbps * usable.pcie_bandwidth_percent // 100
        _limit_link(limits, problem, ("node", n), machine.network_bandwidth_mbps)
    for d, domain in enumerate(cluster.domains):
        _limit_link(limits, problem, ("domain", d), domain.uplink_mbps)
    listed = [machines[node.machine] for node in problem.given.cluster.nodes]
    total = (
        1000 * sum(len(machine.gpus) for machine in listed),
        sum(machine.cpu_millicores for machine in listed),
        sum(machine.memory_mib for machine in listed),
    )
    for queue in policy.queues:
        for amount, all_of_it in zip(("gpu_milli", "cpu_millicores", "memory_mib"), total, strict=True):
            quota, share = getattr(queue.quota, amount), queue.dominant_share_percent
            ceilings = []
            if quota is not None:
                ceilings.append(quota + (getattr(queue.borrow, amount) or 0))
            if share is not None:
                ceilings.append(all_of_it * (share + queue.borrow_percent) // 100)
            if ceilings:
                limits["queue", queue.id, amount] = min(ceilings)
    return limits


def _limit_link(
    limits: dict[tuple[object, ...], int], problem: Problem, link: tuple[str, int], mbps: int | None
) -> None:
    if mbps is not None:
        limits["link", *link, True] = mbps * problem.policy.usable.network_gpu_jobs_percent // 100
        limits["link", *link, False] = mbps * problem.policy.usable.network_cpu_jobs_percent // 100


def _uses(problem: Problem, job: int, placement: Placement) -> Iterator[tuple[tuple[object, ...], int]]:
    """Yield what a placement adds to which sum."""
    record = problem.instance.jobs[job]
    demand = next(o for o in record.options if o.id == problem.options.name[placement.option]).demand
    workers = len(placement.nodes)
    for gpu in placement.gpus:
        yield ("milli", gpu), demand.gpu_milli
        yield ("jobs", gpu), 1
        yield ("gpu_memory", gpu), demand.gpu_memory_mib
    for node in placement.nodes:
        for name in ("cpu_millicores", "memory_mib", "memory_bandwidth_mbps", "pcie_bandwidth_mbps"):
            yield (name, node), getattr(demand, name)
    yield ("queue", record.queue, "gpu_milli"), demand.gpu_milli * len(placement.gpus)
    yield ("queue", record.queue, "cpu_millicores"), workers * demand.cpu_millicores
    yield ("queue", record.queue, "memory_mib"), workers * demand.memory_mib
    inside: dict[tuple[str, int], int] = {}
    for node in placement.nodes:
        for link in [("node", node), *(("domain", d) for d in problem.topology.node_ancestors(node))]:
            inside[link] = inside.get(link, 0) + 1
    for link, count in inside.items():
        yield ("link", *link, demand.gpus > 0), min(count, workers - count) * demand.network_bandwidth_mbps
