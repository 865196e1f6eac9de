"""Plans that start some waiting jobs beside all that runs: how they are written, and who judges them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from placeopt.check import Judgement
from placeopt.live_cluster.cluster_record import ClusterRecord
from placeopt.model import Placement as PlacementRecord
from placeopt.model import Plan, Policy
from placeopt.problem import Allocation, Placement, Problem, State
from placeopt.solving.audit import below_minimum
from placeopt.solving.draft import Recorder, plan_of
from placeopt.terms.rules.minimal_utility import applies


class StartsPlan:
    """
    Plans for some jobs of a cluster (``Plan.asked``), which the ledger judges by what they touch.

    The form of rounds over the waiting jobs alone, and of all decisions for some jobs.
    """

    is_whole: ClassVar[bool] = False

    def __init__(self, record: ClusterRecord, policy: Policy, beside: int = 0) -> None:
        """``beside``: value of the running jobs."""
        self._record, self._policy, self.beside = record, policy, beside

    def write(self, placements: Sequence[PlacementRecord], **stated: Any) -> Plan:
        """
        Return the plan that starts jobs, with the shares that they are granted beside what runs.

        ``stated``: Further fields of it. It is for these jobs alone, unless ``asked`` says otherwise.
        """
        unread, held = self._record.unread, tuple(self._record.granted(placements))
        fields = {
            "of": "reading" if unread else "cluster",
            "unread": unread,
            "asked": tuple([placement.job for placement in held]),
            "placements": held,
        }
        return plan_of(self._record, self._policy, **{**fields, **stated})

    def faults(self, plan: Plan, problem: Problem, starts: Mapping[int, Placement]) -> list[str]:
        """Return what ledger and audit find wrong with a plan whose placements in ``problem`` are ``starts``."""
        faults = [str(violation) for violation in self.judge(plan).violations]
        if applies(problem):
            after = (starts.get(job, problem.running.get(job)) for job in range(problem.num_jobs))
            faults += below_minimum(problem, tuple(after))
        return faults

    def prepare(self) -> None:
        """Nothing: these plans name no digest."""

    def draft(self, problem: Problem, allocation: Allocation, recorder: Recorder) -> Plan:
        """Return the plan of the jobs that start; who waits is stated only where priorities are strict."""
        placed = [(job, held) for job, held in enumerate(allocation) if held is not None]
        made = recorder.records(placed, State(problem) if problem.has_geometry else None)
        if self._policy.priorities != "strict":
            return self.write(made)
        waiting = recorder.waiting([job for job, held in enumerate(allocation) if held is None])
        return self.write(made, asked=problem.job_ids, unplaced=tuple(waiting))

    def judge(self, plan: Plan, since: Plan | None = None) -> Judgement:
        """Return what the ledger finds; limits that running jobs exceed are stated by whole plans alone."""
        return Judgement(self._record.ledger.violations(self._record, plan, since=since), [])
