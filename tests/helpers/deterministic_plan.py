"""Solves a round of the library in deterministic mode, compiled or from its source; prints seconds and a digest."""

import hashlib
import sys
import time
from importlib.machinery import FileFinder, SourceFileLoader
from pathlib import Path

import placeopt

FORM, FILE, LIMIT_S = sys.argv[1:]
COMPILED_ROOMS = ("search", "formulations/fillings")
if FORM == "source":  # without a loader of compiled modules
    for room in COMPILED_ROOMS:
        folder = str(Path(placeopt.__file__).parent / room)
        sys.path_importer_cache[folder] = FileFinder(folder, (SourceFileLoader, [".py"]))

from campaigns.monotony import solved  # noqa: E402 - after the choice of the form
from placeopt import read_instance  # noqa: E402
from placeopt.search import is_compiled  # noqa: E402
from placeopt.solving import Solver  # noqa: E402

if __name__ == "__main__":
    assert is_compiled() == (FORM == "compiled"), FORM
    began = time.monotonic()
    with Solver() as solver:
        plan = solved(solver, read_instance(FILE), float(LIMIT_S))
    figures = [(level.objective, level.bound) for level in plan.levels]
    text = f"{figures} {plan.limit} {[placed.model_dump_json() for placed in plan.placements]}"
    print(f"{time.monotonic() - began:.2f}", plan.limit, hashlib.sha256(text.encode()).hexdigest())
