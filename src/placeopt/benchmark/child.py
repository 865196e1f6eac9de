"""
One case in a process of its own: ``python -m placeopt.benchmark.child``.

Reads a case and the name of a file for the solution, a JSON line, from its standard input. Writes JSON lines: the phase
when solving begins and when judging does, a point whenever objective or bound has changed, and at the end the answer.
When its input closes, it leaves.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from placeopt.benchmark.records import Case, CaseAnswer, TrajectoryPoint
from placeopt.benchmark.resource_usage import peak_mib
from placeopt.errors import PlaceoptError, Unsupported

RUNNERS = {
    "placement": ("placeopt.benchmark.placement_case", "place_round"),
    "linear": ("placeopt.benchmark.linear_case", "solve_model"),
}
"""Loaded when asked for: a model needs no engine."""


def main() -> None:
    """Run the case and leave."""
    request = json.loads(sys.stdin.readline())
    threading.Thread(target=_watch_input, daemon=True).start()
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what solvers print is no answer
    case, target = Case.model_validate_json(json.dumps(request["case"])), Path(request["solution"])

    def tell(kind: str, value: object) -> None:
        out.write(json.dumps({kind: value}) + "\n")
        out.flush()

    module, name = RUNNERS[case.kind]
    try:
        answer: CaseAnswer = getattr(importlib.import_module(module), name)(
            case, target, _points(lambda p: tell("point", p)), lambda p: tell("phase", p)
        )
    except Unsupported as error:
        answer = CaseAnswer(status="unsupported", message=f"{type(error).__name__}: {error}")
    except PlaceoptError as error:
        answer = CaseAnswer(status="error", message=f"{type(error).__name__}: {error}")
    tell("answer", answer.model_copy(update={"peak_mib": peak_mib()}).model_dump(mode="json"))


def _points(tell: Callable[[TrajectoryPoint], None]) -> Callable[[TrajectoryPoint], None]:
    """Pass on what differs from the last point in more than its time."""
    last: list[tuple[int | None, ...]] = []

    def take(point: TrajectoryPoint) -> None:
        if not last or last[-1] != point[1:]:
            last[:] = [point[1:]]
            tell(point)

    return take


def _watch_input() -> None:
    """Leave with whoever asked."""
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    main()
