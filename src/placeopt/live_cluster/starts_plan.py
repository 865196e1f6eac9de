"""Plans that start some waiting jobs beside all that runs: how they are written, and who judges them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from placeopt.check import Judgement
from placeopt.live_cluster.cluster_record import ClusterRecord
from placeopt.model import Placement as PlacementRecord
from placeopt.model import Plan, Policy
from placeopt.model.base import trusted
from placeopt.model.plan import Stage
from placeopt.problem import Allocation, Placement, Problem, State
from placeopt.solving.audit import below_minimum
from placeopt.solving.draft import Recorder, placed_facts, plan_of, proof, value_level
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

    def decided(
        self,
        recorder: Recorder,
        starts: Mapping[str, tuple[int, Placement]],
        state: State | None,
        stage: Mapping[str, Any],
        *,
        bound: int | None = None,
        **stated: Any,
    ) -> tuple[Plan, list[str]]:
        """
        Return the plan of one decision, and what ledger and audit find wrong with it.

        ``starts``: The jobs that start, each with its number in the problem of the decision, and its place. ``state``:
        What was free before, None: places have no slots. ``stage``: Fields of the record of what decided. ``bound``: On
        the value of these jobs.
        """
        problem, placed = recorder.problem, [held for _, held in starts.values()]
        value = int(problem.options.value[[held.option for held in placed]].sum())
        unpriced = self._policy.weights.any_cost
        made = recorder.with_starts([recorder.record(job, held) for job, (_, held) in starts.items()], placed, state)
        fields = {"detail": "", "seconds": None, **stage, "objective": value, "bound": bound}
        plan = self.write(
            made,
            **proof([value_level(value, bound)], unpriced=unpriced),
            facts=placed_facts(problem, placed, len(stated.get("unplaced", ()))),
            stages=(trusted(Stage, fields),),
            **stated,
        )
        faults = [str(violation) for violation in self.judge(plan).violations]
        if applies(problem):
            after = dict(starts.values())
            allocation = (after.get(job, problem.running.get(job)) for job in range(problem.num_jobs))
            faults += below_minimum(problem, tuple(allocation))
        return plan, faults

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
