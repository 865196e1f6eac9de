"""Whole rounds over the waiting jobs alone: what runs is a load on the nodes, so a round costs by what waits."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar

from placeopt.check import Violation
from placeopt.errors import InternalFault
from placeopt.heuristics import SCORES
from placeopt.live_cluster.cluster_record import ClusterRecord
from placeopt.live_cluster.partial_plan import plan_fields
from placeopt.model import Plan, Policy
from placeopt.model.base import trusted
from placeopt.model.plan import Level
from placeopt.problem import Allocation, Problem, State
from placeopt.problem.gpu_slots import with_starts
from placeopt.solving.audit import audit
from placeopt.solving.bounds import relative_gap
from placeopt.solving.context import SolveContext
from placeopt.solving.draft import Recorder
from placeopt.solving.finish import timed
from placeopt.solving.methods import Method
from placeopt.solving.waiting_reasons import reasons


def needs_running_jobs(record: ClusterRecord, policy: Policy, method: Method) -> str | None:
    """
    Return why a round cannot be solved without the records of the running jobs, None if it can.

    It can where no running job may be changed and nothing asks which of them are on a GPU, only what is free.
    """
    changes = policy.changes
    if (changes.moves_max or changes.shrinks_max or changes.preemptions_max) and any(
        held.movable or held.shrinkable or held.preemptible for held in record.running.values()
    ):
        return "running jobs may be changed"
    if policy.postpone.rule != "none":
        return f"policy.postpone.rule {policy.postpone.rule!r} looks at running jobs"
    if policy.interference.model == "curve":
        return "interference by a curve of utilisation looks at running jobs"
    if policy.fragmentation.form == "fgd":
        return "fragmentation fgd measures against the mix of all jobs"
    if "weighted_fair" in (policy.order, method.greedy.order):
        return "the order weighted_fair counts what running jobs hold"
    score = method.greedy.score
    if score in SCORES and not SCORES[score].local:
        return f"score {score!r} looks at running jobs"
    return None


class WaitingPlan:
    """Plans that list the waiting jobs alone (``Plan.asked``); the ledger judges what they touch."""

    states_costs: ClassVar[bool] = False

    def __init__(self, record: ClusterRecord, policy: Policy, beside: int) -> None:
        """``beside``: value of the running jobs."""
        self._record, self._policy, self.beside = record, policy, beside

    def prepare(self) -> None:
        """Nothing: these plans name no digest."""

    def draft(self, problem: Problem, allocation: Allocation, recorder: Recorder) -> Plan:
        """Return the plan, without reasons, objective and the rest."""
        placed = [(job, held) for job, held in enumerate(allocation) if held is not None]
        made = recorder.records(placed)
        if problem.has_geometry:
            made = with_starts(problem, made, [held for _, held in placed], State(problem).gpu_slots)
        fields = plan_fields(
            self._record,
            self._policy,
            0,
            None,
            asked=problem.job_ids,
            placements=tuple(self._record.granted(made)),
            unplaced=tuple(recorder.waiting([job for job, held in enumerate(allocation) if held is None])),
        )
        return trusted(Plan, fields)

    def judge(self, draft: Plan) -> tuple[Sequence[Violation], Sequence[Violation]]:
        """Return what the ledger finds wrong; limits that running jobs exceed are stated by whole plans alone."""
        return self._record.ledger.violations(self._record, draft), ()

    def finish(
        self, context: SolveContext, read_s: float | None, compile_s: float, solve_s: float, *, explain: bool = True
    ) -> Plan:
        """
        Return the plan of a round whose stages are over, as ``solving.finish`` does: value and bound of its jobs.

        Raises ``InternalFault`` if ledger or audit object; always a bug.
        """
        best, bounds, budget = context.incumbent, context.bounds, context.budget
        checking = time.monotonic()
        draft = best.read()
        final = State(context.problem, best.allocation)
        closed, unpriced = best.value == bounds.whole_value, self._policy.weights.any_cost
        placed = [held for held in best.allocation if held is not None]
        total = context.problem.options.total_milli.tolist()
        update = {
            "unplaced": tuple(reasons(context, final, explain=explain).values()),
            "status": "optimal" if closed and not unpriced else "feasible",
            "limit": "none" if closed else context.limit,
            "levels": (Level(name="value", sense="max", objective=best.value, bound=bounds.whole_value),),
            "gap": (None if unpriced else 0.0) if closed else relative_gap(best.value, bounds.whole_value),
            "bound_relaxes": () if closed else context.bounds.relaxes,
            "facts": {
                "gpu_milli_placed": sum(total[held.option] for held in placed),
                "jobs_placed": len(placed),
                "jobs_waiting": context.problem.num_jobs - len(placed),
            },
            "stages": tuple(context.stages),
            "seed": budget.params.seed,
        }
        plan = draft.model_copy(update=update)
        broken = self._record.ledger.violations(self._record, plan)
        faults = [violation.message for violation in broken] + audit(context.instance, plan, context.whole)
        if faults:
            raise InternalFault(f"the final plan was refused: {faults[0]}")
        return timed(plan, budget, checking, read_s=read_s, compile_s=compile_s, solve_s=solve_s)
