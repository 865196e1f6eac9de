"""All feasible allocations of a tiny round, and the best of them."""

import numpy as np

from helpers.brute_force.candidates import allowed_outcomes, placements, running_outcomes
from helpers.brute_force.costs import raw_costs
from helpers.brute_force.sums import sums_of
from placeopt.problem import Allocation, IntArray, Placement, Problem, State
from placeopt.terms import weighted_costs
from placeopt.terms.rules.minimal_utility import falls_short

GIVES = ("shrunk", "preempted")
"""Changes that take something from a running job for others."""


def optimum(problem: Problem) -> tuple[int, int, Allocation]:
    """Return the greatest value, the least cost at that value, and an allocation that has both."""
    return Enumeration(problem).best()


class Enumeration:
    """
    All feasible allocations of a round. An allocation is a row: for every job the number of one of its candidates.

    Attributes
    ----------
    candidates
        Per job. A waiting job: None (it waits, number 0), then its placements. A running job: what is left of it after
        each allowed outcome, None where it is preempted; number 0 is to stay as it is.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._possible = {job: running_outcomes(problem, job) for job in sorted(problem.running)}
        self._outcomes = {job: allowed_outcomes(problem, job, all_) for job, all_ in self._possible.items()}
        self.candidates: list[list[Placement | None]] = [
            [outcome.placement for outcome in self._outcomes[job]]
            if job in self._outcomes
            else [None, *placements(problem, job)]
            for job in range(problem.num_jobs)
        ]
        self._values = [self._values_of(job) for job in range(problem.num_jobs)]
        self._sums = sums_of(problem, self.candidates, self._outcomes)
        judges = problem.policy.postpone.rule == "utility"
        jobs = problem.instance.jobs
        self._with_minimum = {j for j in range(len(jobs)) if judges and jobs[j].utility_min_thousandths is not None}
        self._reaches_minimum: dict[tuple[object, ...], bool] = {}

    def _values_of(self, job: int) -> IntArray:
        """Return the value of every candidate, shape (candidates,): that of its option, less the price of a change."""
        value = self.problem.options.value
        values = np.array([0 if p is None else value[p.option] for p in self.candidates[job]], dtype=np.int64)
        if job in self._outcomes:
            values -= np.array([outcome.price for outcome in self._outcomes[job]], dtype=np.int64)
        return values

    def best(self) -> tuple[int, int, Allocation]:
        """Return the greatest value, the least cost at that value, and the first allocation that has both."""
        rows, values = self.rows(0 if self._with_minimum else self._value_of_some_allocation())
        value = int(values.max())
        rows = rows[values == value]
        costs = self.costs(rows)
        return value, int(costs.min()), self.allocation(rows[costs.argmin()])

    def allocation(self, row: IntArray) -> Allocation:
        """Return what a row of candidate numbers stands for."""
        return tuple(of_job[c] for of_job, c in zip(self.candidates, row, strict=True))

    def rows(self, least: int = 0) -> tuple[IntArray, IntArray]:
        """
        Return every feasible allocation of value ``least`` or more, shape (L, J), and the values, shape (L,).

        Rows grow job by job. A row of the jobs so far is dropped only if no later job can repair it: a sum exceeds its
        limit by something new, or even the most valuable candidates of all later jobs do not reach ``least``.
        """
        jobs = len(self.candidates)
        most_value_from = [sum(int(v.max()) for v in self._values[j:]) for j in range(jobs + 1)]
        limits = self._sums.limits
        rows = np.zeros((1, jobs), dtype=np.int64)
        values = np.zeros(1, dtype=np.int64)
        used = np.zeros((1, len(limits)), dtype=np.int64)
        new_used = used.copy()
        for j in range(jobs):
            use, new_use = self._sums.use[j], self._sums.new_use[j]
            total = values[:, None] + self._values[j][None, :]  # (rows, candidates)
            keep = total + most_value_from[j + 1] >= least
            for r in np.flatnonzero(use.any(axis=0)):
                within = used[:, r][:, None] + use[None, :, r] <= limits[r]
                nothing_new = new_used[:, r][:, None] + new_use[None, :, r] == 0
                keep &= within | nothing_new
            row, candidate = np.nonzero(keep)
            rows = rows[row]
            rows[:, j] = candidate
            values = total[row, candidate]
            used, new_used = used[row] + use[candidate], new_used[row] + new_use[candidate]
        for keep in (self._last_submitted_first, self._minimal_utilities):
            kept = keep(rows)
            rows, values = rows[kept], values[kept]
        return rows, values

    def _last_submitted_first(self, rows: IntArray) -> IntArray:
        """
        Return which rows, shape (L,), keep the rule: later submitted jobs of a queue give first.

        A row breaks it if a job is shrunk or preempted while a job of its queue that arrived later could be, and is
        not. As in the referee, it could be if any outcome takes from it, even one that another rule forbids.
        """
        ok = np.ones(len(rows), dtype=bool)
        if not self.problem.policy.changes.last_submitted_first:
            return ok
        jobs = self.problem.instance.jobs
        gives = {
            job: np.array([outcome.change in GIVES for outcome in outcomes])[rows[:, job]]
            for job, outcomes in self._outcomes.items()
        }
        could_give = [job for job, possible in self._possible.items() if any(o.change in GIVES for o in possible)]
        for job in gives:
            for later in could_give:
                if jobs[job].queue == jobs[later].queue and jobs[job].arrival_ms < jobs[later].arrival_ms:
                    ok &= ~gives[job] | gives[later]
        return ok

    def _minimal_utilities(self, rows: IntArray) -> IntArray:
        """Return which rows, shape (L,), place no job below its minimal utility."""
        if not self._with_minimum:
            return np.ones(len(rows), dtype=bool)
        return np.array([self._reaches_minima(row) for row in rows.tolist()], dtype=bool)

    def _reaches_minima(self, row: list[int]) -> bool:
        """
        Tell whether every job of a row that has a minimal utility reaches it.

        The utility of a job depends on the jobs with which it shares a node, and on no others: what is found for it
        beside these is kept for other rows.
        """
        placed = {j: p for j, p in enumerate(self.allocation(np.array(row))) if p}
        for job in self._with_minimum & placed.keys():
            nodes = set(placed[job].nodes)
            together = tuple(k for k, placement in placed.items() if nodes & set(placement.nodes))
            key = (job, *((k, row[k]) for k in together))
            if key not in self._reaches_minimum:
                state = State(self.problem)
                state.load(tuple(placed[k] if k in together else None for k in range(len(row))))
                self._reaches_minimum[key] = not falls_short(state, job)
            if not self._reaches_minimum[key]:
                return False
        return True

    def raw_costs(self, rows: IntArray) -> dict[str, IntArray]:
        """Return every cost of every row by name, shape (L,) each, unweighted."""
        return raw_costs(self.problem, self.candidates, rows)

    def costs(self, rows: IntArray) -> IntArray:
        """Return the cost level of every row, shape (L,): the weighted sum of the costs that the policy counts."""
        total = np.zeros(len(rows), dtype=np.int64)
        weighted = weighted_costs(self.problem)
        if weighted:
            raw = self.raw_costs(rows)
            for cost in weighted:
                total += cost.weight * raw[cost.cost.name]
        return total

    def _value_of_some_allocation(self) -> int:
        """Return a value that some allocation has: running jobs stay, every other takes its best place still free."""
        sums = self._sums
        used = np.zeros(len(sums.limits), dtype=np.int64)
        total = 0
        for job in sorted(range(len(self.candidates)), key=lambda job: job not in self._outcomes):
            number = 1 if job in self._outcomes else len(self.candidates[job])
            use, new_use, values = sums.use[job][:number], sums.new_use[job][:number], self._values[job][:number]
            fitting = np.flatnonzero(((used + use <= sums.limits) | (new_use == 0)).all(axis=1))
            chosen = fitting[values[fitting].argmax()]
            used = used + use[chosen]
            total += int(values[chosen])
        return total
