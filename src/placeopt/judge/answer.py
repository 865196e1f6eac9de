"""``judge``: the one entry."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

from placeopt.arguments import checked
from placeopt.check import violations
from placeopt.deadline import Deadline
from placeopt.edits import unread_in
from placeopt.errors import BadInput, OutOfTime
from placeopt.explain.question import Question, Tools, compile_round, tools
from placeopt.judge.gains import gains, single_additions
from placeopt.judge.records import Judgement, Stranded, WaitingJobs
from placeopt.judge.regret import regret_of
from placeopt.judge.stranded import idle_gpus, stranded
from placeopt.judge.waiting import judge_waiting, judged_kinds
from placeopt.model import Instance, Plan
from placeopt.whatif import after_plan, plan_of
from placeopt.whatif.plan_review import SHOWN

PARTS = ("regret, all that runs fixed", "waiting jobs", "regret, with changes", "gains")
"""Parts that solve rounds, in their order; each has an equal part of the time that is left."""
Tell = Callable[[str], None]


@checked
def judge(
    instance: Instance,
    plan: Plan | None = None,
    *,
    time_limit_s: float = 60.0,
    cancel: threading.Event | None = None,
    on_progress: Tell | None = None,
) -> Judgement:
    """
    Judge what a scheduler did: how far it is from the best, and what it overlooked.

    Parameters
    ----------
    instance
        The round; of a live cluster as `live_round` makes it of a reading.
    plan
        What another scheduler decided, as a plan of the round, whose policy counts; `placeopt.whatif.plan_of` makes one
        of placements. None: what runs is the plan, and all other jobs wait.
    time_limit_s
        Wall-clock seconds of the call. What is not answered by then is named in ``open``.
    cancel
        Set it from another thread to end as if the time were over.
    on_progress
        Called with a sentence about the current activity.

    Returns
    -------
    Judgement
        The regret with all that runs fixed and with the changes that policy and jobs allow; per kind of waiting job
        whether it fits, or the smallest set of changes that lets it start; idle GPUs that no waiting job can use; and
        what a node, a quota or a drained node more would bring. Places and sets of changes are accepted by the referee.

    Raises
    ------
    BadInput
        If the plan is for some jobs only, or running jobs contradict each other.
    """
    if not 0 < time_limit_s < math.inf:
        raise BadInput(f"time_limit_s: {time_limit_s}, expected seconds above 0")
    deadline, tell = Deadline(time_limit_s, cancel), on_progress or (lambda _: None)
    if plan is None:
        plan = plan_of(instance, ())
    if plan.asked is not None:
        raise BadInput("plan: is for some jobs only; expected a plan of the whole round")
    tell("checking the plan")
    if broken := violations(instance, plan):
        messages = tuple(f"{one.rule}: {one.message}" for one in broken[:SHOWN])
        return Judgement(violations=messages, seconds=round(deadline.spent_s, 4))
    judged = instance.model_copy(update={"policy": plan.policy.values})
    with tools("process", deadline) as by:
        return _Judge(judged, plan, by, tell).judgement()


class _Judge:
    """One call: a valid plan of a round under its policy, and what is not whole yet."""

    def __init__(self, instance: Instance, plan: Plan, by: Tools, tell: Tell) -> None:
        self._instance, self._plan, self._by, self._tell = instance, plan, by, tell
        self._parts_left = len(PARTS)
        self._open: dict[str, str] = {}

    def judgement(self) -> Judgement:
        """Return all parts, the most important ones first."""
        instance, plan, solver = self._instance, self._plan, self._by.solver
        self._tell("the best plan while all that runs stays")
        fixed, ranking, best = regret_of(solver, instance, plan, "fixed", self._part())
        waiting, idle, lost = self._after()
        self._tell("the best plan with the changes that are allowed")
        free, _, _ = regret_of(solver, instance, plan, "changes", self._part())
        found = gains(solver, instance, ranking, best, self._part(), self._tell)
        if (missing := len(list(single_additions(instance))) - len(found)) > 0:
            self._open["gains"] = f"{missing:,} changes were not tried: no time left"
        unread = unread_in(instance)
        statements = [fixed.proven, free.proven, *(one.proven for one in waiting), *(one.proven for one in found)]
        return Judgement(
            regrets=(fixed, free),
            waiting=tuple(waiting),
            idle_gpus=idle,
            stranded=tuple(lost),
            gains=tuple(found),
            open=self._open,
            proven=not self._open and all(statements),
            of="reading" if unread.names else "cluster",
            unread=unread.names,
            seconds=round(self._by.deadline.spent_s, 4),
        )

    def _part(self) -> Deadline:
        """Return the end of the next part: an equal share of what is left."""
        deadline, self._parts_left = self._by.deadline, self._parts_left - 1
        return Deadline(deadline.left_s / (self._parts_left + 1), deadline)

    def _after(self) -> tuple[list[WaitingJobs], int, list[Stranded]]:
        """Return the jobs that wait once the plan is carried out, the idle GPUs, and those that are stranded."""
        after = after_plan(self._instance, self._plan)
        rest = plan_of(after, ())
        kinds = judged_kinds(after, rest)
        round_ = compile_round(after, rest, [kind.first.id for kind in kinds])
        questions = {kind.first.id: Question(after, rest, kind.first, self._by, round_) for kind in kinds}
        waiting = judge_waiting(after, kinds, questions, self._part(), self._tell)
        self._tell("which idle GPUs no waiting job can use")
        idle = int(idle_gpus(round_).sum())
        try:
            return waiting, idle, stranded(round_, kinds, questions)
        except OutOfTime as error:
            self._open["stranded"] = str(error)
            return waiting, idle, []
