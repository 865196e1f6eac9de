"""
What a stage of a round is: a condition, and a run that reports what it did; and the pipeline that runs stages.

The pipeline alone times stages, records them, catches their faults and compares what they found.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, Protocol

from placeopt.errors import BadInput, InternalFault, Unsupported
from placeopt.model.plan import Stage as StageRecord
from placeopt.model.plan import StageOutcome
from placeopt.solvers.result import Solution
from placeopt.solving.context import SolveContext
from placeopt.solving.incumbent import Offer, Refused
from placeopt.solving.searching import Searching

LevelName = Literal["value", "cost"]


class StatedReason(str):
    """A reason for skipping a stage that the plan states; others stand in ``SolveContext.skipped`` only."""


def reason_of_binding(context: SolveContext) -> StatedReason | None:
    """Return why a stage that looks at jobs one by one does not run: what it finds is not true of trees."""
    if context.whole.is_plain:
        return None
    return StatedReason("groups, spread and relations of jobs, and slots of GPUs are not supported")


@dataclass(frozen=True)
class StageReport:
    """What a stage did, or one step of it."""

    detail: str = ""  # what was done, in words
    outcome: StageOutcome | None = None
    """None: ``improved`` if the incumbent changed during the stage, else ``proved`` or ``kept``."""
    proved: bool = False  # whether the stage proved something, where ``outcome`` is None
    level: LevelName = "value"  # the level that it worked on: objective and bound in the plan are those
    step: str | None = None  # name of the step; None for the stage's own
    offer: Offer | None = None
    """What came of the latest allocation offered; one that is `Refused` makes the outcome ``failed``."""

    @property
    def refusal(self) -> str | None:
        """The complaint of the referee, None where there is none."""
        return self.offer.why if isinstance(self.offer, Refused) else None


def outcome_without_proof(solution: Solution) -> StageOutcome:
    """Return the outcome of a stage whose solve gave it nothing: no failure where clock, work or user ended that."""
    return "kept" if solution.limit in ("time", "work", "user") and not solution.failed else "failed"


class Stage(Protocol):
    """
    One stage of a round.

    It can only replace the best plan by a checked, better one, or move a bound. Times, records and faults are the
    runner's.
    """

    @property
    def name(self) -> str:
        """The name that plans state."""
        ...

    @property
    def uses_solver(self) -> bool:
        """Whether it solves a model."""
        ...

    def skip_reason(self, context: SolveContext) -> str | None:
        """Return why the stage has nothing to do in this round at this point, None if it runs."""
        ...

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Do the work, and yield a report for every step that the plan states."""
        ...


OUTCOMES: tuple[StageOutcome, ...] = ("failed", "improved", "proved", "kept", "skipped")
"""What a stage that ran several times achieved is the first of these."""
MOST_DETAIL = 256
"""Characters of an exception's message that stand in a stage's detail."""


def run_stages(context: SolveContext, stages: Sequence[Stage]) -> None:
    """Run stages in their order, until one leaves nothing to decide."""
    for stage in stages:
        if context.handover.is_decided:
            return
        run_stage(context, stage)


def take_turns(context: SolveContext, stages: tuple[Stage, ...]) -> None:
    """
    Run stages over and over, in slices of which each is twice as long as the one before.

    So a longer limit begins as a shorter one does, and no stage waits for another that takes long. It ends where all is
    proven, or no stage can do more. The search runs beside the stages; it is alone where all others have ended. One
    stage that is left over has all of the time.
    """
    handover, budget = context.handover, context.budget
    budget.begin_slices()
    while not handover.is_decided:
        handover.is_alone = False
        can_do_more = [stage for stage in stages if reason_to_skip(context, stage) is None]
        parts = [p for stage in can_do_more for p in (stage.parts if isinstance(stage, Relaxations) else (stage,))]
        budget.has_one_stage = sum(reason_to_skip(context, part) is None for part in parts) == 1
        handover.is_alone = not can_do_more
        if handover.is_alone and not any(reason_to_skip(context, stage) is None for stage in stages):
            run_stages(context, stages)  # for their reasons
            return
        run_stages(context, can_do_more if len(can_do_more) == 1 else stages)
        if not budget.next_slice():
            return


def reason_to_skip(context: SolveContext, stage: Stage) -> str | None:
    """Return why a stage does not run at this point, None if it does."""
    return "it has failed" if stage in context.handover.failed else stage.skip_reason(context)


def run_stage(context: SolveContext, stage: Stage) -> bool:
    """
    Run a stage, unless it gives a reason to skip it, and record its reports; return whether it improved or proved.

    A stage that fails in a way that nothing foresees is treated like a solver that crashes: the best plan is a checked
    one, so it is kept, and later stages run. A stage that had narrowed the round before it failed is undone.
    ``BadInput``, ``Unsupported`` and ``InternalFault`` are raised on purpose and pass.
    """
    started, before, gained = time.monotonic(), dict(vars(context)), False
    has_improved = _watch(context)
    try:
        reason = reason_to_skip(context, stage)
        if reason is not None:
            is_new = (stage.name, reason) not in context.skipped
            context.skipped += [(stage.name, reason)] * is_new
            has_run = any(record.name == stage.name for record in context.stages)
            if is_new and not has_run and isinstance(reason, StatedReason):
                _record(context, stage.name, StageReport(reason, "skipped"), started, improved=False)
            return False
        since = started
        searching = context.handover.searching
        with searching.beside() if searching is not None else nullcontext():
            for report in stage.run(context):
                improved = has_improved()
                _record(context, stage.name, report, since, improved=improved)
                gained |= _outcome(report, improved=improved) in ("improved", "proved")
                since = time.monotonic()
        if searching is not None and (searching.is_due or not searching.is_better):
            exchange(context, searching)
    except (BadInput, Unsupported, InternalFault):
        raise
    except Exception as error:  # noqa: BLE001 - a fault in one stage must not cost the plan of another
        if context.problem is not before["problem"]:
            vars(context).update(before)
        note_fault(context, stage, error, started)
    context.budget.stopped()  # the clock may have ended the stage; then the plan says so
    return gained


def exchange(context: SolveContext, searching: Searching) -> None:
    """Let the search and the best plan go on from the better one of both; record what the search found."""
    number, began = context.incumbent.number, time.monotonic()
    offer = searching.exchange()
    if offer is not None:
        level: LevelName = "cost" if context.value_proven else "value"
        report = StageReport(f"{searching.steps} steps beside other stages", level=level, offer=offer)
        _record(context, "annealing", report, began, improved=context.incumbent.number != number)


def note_fault(context: SolveContext, stage: Stage, error: Exception, started: float) -> None:
    """Record the stage as failed, with the exception and where it was raised; it does not run again."""
    context.handover.failed.add(stage)
    if isinstance(error, MemoryError):
        context.budget.note_limit("memory")
        detail = "out of memory; what was held is kept"
    else:
        last = traceback.extract_tb(error.__traceback__)[-1]
        words = " ".join(str(error).split()).encode("ascii", "backslashreplace").decode()[:MOST_DETAIL]
        where = f"{Path(last.filename).name}:{last.lineno}"
        detail = f"internal fault: {type(error).__name__}: {words} ({where}); what was held is kept"
    _record(context, stage.name, StageReport(detail, "failed"), started, improved=False)


def _watch(context: SolveContext) -> Callable[[], bool]:
    """Return a function that compares the incumbent with that of now."""
    incumbent, number = context.incumbent, context.incumbent.number
    return lambda: context.incumbent is not incumbent or incumbent.number != number


def _record(context: SolveContext, stage: str, report: StageReport, started: float, *, improved: bool) -> None:
    """
    Record what a stage did; objective and bound are those of the level it worked on.

    What it did in later slices adds to the same record, which says what it did last, and the most that came of it; a
    fault stays, and so does why a solver failed.
    """
    name, detail = report.step or stage, report.detail
    if report.refusal is not None:
        detail = "; ".join(part for part in (detail, f"refused by the referee: {report.refusal}") if part)
    if context.solver_error:
        context.solver_errors[name], context.solver_error = context.solver_error, ""
    error = context.solver_errors.get(name, "")
    if error not in detail:
        detail = "; ".join(part for part in (detail, f"a solve failed: {error}") if part)
    at_value, incumbent, bounds = report.level == "value", context.incumbent, context.bounds
    outcome, seconds = _outcome(report, improved=improved), context.budget.seconds_since(started)
    at = next((i for i, record in enumerate(context.stages) if record.name == name), len(context.stages))
    for former in context.stages[at : at + 1]:
        detail = former.detail if former.outcome == "failed" and outcome != "failed" else detail
        outcome = min(former.outcome, outcome, key=OUTCOMES.index)
        seconds = None if seconds is None or former.seconds is None else former.seconds + seconds
    context.stages[at : at + 1] = [
        StageRecord(
            name=name,
            outcome=outcome,
            detail=detail,
            objective=incumbent.value if at_value else incumbent.cost,
            bound=bounds.value if at_value else bounds.cost,
            seconds=seconds,
        )
    ]
    context.report(name)


def _outcome(report: StageReport, *, improved: bool) -> StageOutcome:
    if report.refusal is not None:
        return "failed"
    if report.outcome is not None:
        return report.outcome
    return "improved" if improved else "proved" if report.proved else "kept"


def resumes(stage: Stage) -> bool:
    """Return whether a stage goes on in each slice from where it was in the one before; others begin again."""
    return bool(getattr(stage, "resumes", False))


@dataclass(frozen=True)
class Relaxations:
    """
    Runs relaxations of a level, each of which hands prices and plans on to the next, and to the search.

    They run while anything is open and there is time. A plan states them by their own names.
    """

    level: LevelName
    parts: tuple[Stage, ...]
    uses_solver: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """The name that plans state where all of them are skipped."""
        return f"{self.level}-relaxations"

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only while anything is open, and one of them can do more; stated is what one of them states."""
        if reason := context.budget.stop_reason():
            return reason
        if context.is_closed:
            return "the round is proven, or within the gap"
        reasons = [reason_to_skip(context, part) for part in self.parts]
        found = [reason for reason in reasons if reason is not None]
        if len(found) < len(reasons):
            return None
        return next((reason for reason in found if isinstance(reason, StatedReason)), found[-1])

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """
        Run them in their order, each beside the search by itself.

        What goes on in the next slice comes first in all but the first, since it loses nothing where time ends it. What
        begins again in each slice rests in the one after that in which it gained nothing: others have its time, and
        it has four times as long then.
        """
        resting, parts = context.handover.resting, self.parts
        if context.budget.slice:
            parts = tuple(sorted(parts, key=lambda part: not resumes(part)))
        for part in parts:
            if context.handover.searching is not None:
                context.handover.searching.alone()
            if context.is_closed or context.budget.stopped():
                break
            if part in resting and not context.budget.has_one_stage:
                resting.discard(part)
                continue
            begins = reason_to_skip(context, part) is None and not resumes(part)
            if not run_stage(context, part) and begins:
                resting.add(part)
        yield from ()
