"""The pipeline of a round: it alone times stages, records them, catches their faults and compares what they found."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from pathlib import Path

from placeopt.errors import BadInput, InternalFault, Unsupported
from placeopt.model.plan import Stage as StageRecord
from placeopt.model.plan import StageOutcome
from placeopt.solving.context import SolveContext
from placeopt.solving.stage import Block, Stage, StageReport, StatedReason

MOST_DETAIL = 200
"""Characters of an exception's message that stand in a stage's detail."""


def run_stages(context: SolveContext, stages: tuple[Stage | Block, ...]) -> None:
    """Run stages in their order, until one leaves nothing to decide."""
    for stage in stages:
        if context.handover.is_decided:
            return
        if isinstance(stage, Block):
            reason = stage.skip_reason(context)
            if reason is None:
                run_stages(context, stage.stages)
            else:
                context.skipped.append((stage.name, reason))
        else:
            run_stage(context, stage)


def run_stage(context: SolveContext, stage: Stage) -> None:
    """
    Run a stage, unless it gives a reason to skip it, and record its reports.

    A stage that fails in a way that nothing foresees is treated like a solver that crashes: the best plan is a checked
    one, so it is kept, and later stages run. A stage that had narrowed the round before it failed is undone.
    ``BadInput``, ``Unsupported`` and ``InternalFault`` are raised on purpose and pass.
    """
    started, before = time.monotonic(), dict(vars(context))
    has_improved = _watch(context)
    try:
        reason = stage.skip_reason(context)
        if reason is not None:
            context.skipped.append((stage.name, reason))
            if isinstance(reason, StatedReason):
                _record(context, stage, StageReport(reason, "skipped"), started, improved=False)
            context.handover.improved = False
            return
        since = started
        for report in stage.run(context):
            _record(context, stage, report, since, improved=has_improved())
            since = time.monotonic()
    except (BadInput, Unsupported, InternalFault):
        raise
    except Exception as error:  # noqa: BLE001 - a fault in one stage must not cost the plan of another
        if context.problem is not before["problem"]:
            vars(context).update(before)
        note_fault(context, stage, error, started)
    context.handover.improved = has_improved()


def note_fault(context: SolveContext, stage: Stage, error: Exception, started: float) -> None:
    """Record the stage as failed, with the exception and where it was raised."""
    if isinstance(error, MemoryError):
        context.budget.note_limit("memory")
        detail = "out of memory; what was held is kept"
    else:
        last = traceback.extract_tb(error.__traceback__)[-1]
        words = " ".join(str(error).split()).encode("ascii", "backslashreplace").decode()[:MOST_DETAIL]
        where = f"{Path(last.filename).name}:{last.lineno}"
        detail = f"internal fault: {type(error).__name__}: {words} ({where}); what was held is kept"
    _record(context, stage, StageReport(detail, "failed"), started, improved=False)


def _watch(context: SolveContext) -> Callable[[], bool]:
    """Return a function that compares the incumbent with that of now."""
    incumbent, number = context.incumbent, context.incumbent.number
    return lambda: context.incumbent is not incumbent or incumbent.number != number


def _record(context: SolveContext, stage: Stage, report: StageReport, started: float, *, improved: bool) -> None:
    """Record what a stage did; objective and bound are those of the level it worked on."""
    name, detail, error = report.step or stage.name, report.detail, context.last_solver_error
    if report.refusal is not None:
        detail = "; ".join(part for part in (detail, f"refused by the referee: {report.refusal}") if part)
    if error and error not in detail:
        detail = "; ".join(part for part in (detail, f"a solve failed: {error}") if part)
    context.last_solver_error = ""
    at_value, incumbent, bounds = report.level == "value", context.incumbent, context.bounds
    context.stages.append(
        StageRecord(
            name=name,
            outcome=_outcome(report, improved=improved),
            detail=detail,
            objective=incumbent.value if at_value else incumbent.cost,
            bound=bounds.value if at_value else bounds.cost,
            seconds=context.budget.seconds_since(started),
        )
    )
    context.report(name)


def _outcome(report: StageReport, *, improved: bool) -> StageOutcome:
    if report.refusal is not None:
        return "failed"
    if report.outcome is not None:
        return report.outcome
    return "improved" if improved else "proved" if report.proved else "kept"
