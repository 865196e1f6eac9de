"""A stage that fails in a way that nothing foresees: the round goes on with its best plan, and says so."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from placeopt.errors import BadInput, InternalFault, Unsupported
from placeopt.solving.context import SolveContext

MOST_DETAIL = 200
"""Characters of an exception's message that stand in a stage's detail."""

T = TypeVar("T")


def guarded(context: SolveContext, name: str, stage: Callable[[], T], otherwise: T) -> T:
    """
    Return what ``stage`` returns; ``otherwise`` if it raises an exception that is not meant to leave a stage.

    The failure is recorded as an outcome ``failed`` of stage ``name``. A crash inside a stage is treated as a crash of
    a solver: the best plan is a checked one, so it is kept, and later stages run. A stage that had narrowed the round
    before it failed is undone. ``BadInput``, ``Unsupported`` and ``InternalFault`` are raised on purpose and pass.
    """
    started, before = time.monotonic(), dict(vars(context))
    try:
        return stage()
    except (BadInput, Unsupported, InternalFault):
        raise
    except Exception as error:  # noqa: BLE001 - a fault in one stage must not cost the plan of another
        if context.problem is not before["problem"]:
            vars(context).update(before)
        note_fault(context, name, error, started)
        return otherwise


def note_fault(context: SolveContext, name: str, error: Exception, started: float) -> None:
    """Record the stage as failed, with the exception and where it was raised."""
    if isinstance(error, MemoryError):
        context.note_limit("memory")
        context.record(name, "failed", started, "out of memory; what was held is kept")
        return
    last = traceback.extract_tb(error.__traceback__)[-1]
    words = " ".join(str(error).split()).encode("ascii", "backslashreplace").decode()[:MOST_DETAIL]
    where = f"{Path(last.filename).name}:{last.lineno}"
    detail = f"internal fault: {type(error).__name__}: {words} ({where}); what was held is kept"
    context.record(name, "failed", started, detail)
