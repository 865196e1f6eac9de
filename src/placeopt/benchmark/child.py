"""
The process of one case: ``python -m placeopt.benchmark.child``.

Reads a case and the name of a file for the solution, a JSON line, from its standard input. Writes JSON lines: the phase
when solving begins and checking begins, a point whenever objective or bound has changed, and at the end the answer.
The process exits when its input closes.
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
"""Modules are imported on use: an integer model needs no engine."""


def main() -> None:
    """Run the case that standard input describes."""
    request = json.loads(sys.stdin.readline())
    threading.Thread(target=_watch_input, daemon=True).start()
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of solvers goes to standard error
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
    """Return a callback that passes on points that differ from the last one in more than time."""
    last: list[tuple[int | None, ...]] = []

    def take(point: TrajectoryPoint) -> None:
        if not last or last[-1] != point[1:]:
            last[:] = [point[1:]]
            tell(point)

    return take


def _watch_input() -> None:
    """Exit when the parent process closes standard input."""
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    main()
