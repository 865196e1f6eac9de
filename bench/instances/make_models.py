"""
Write the models of ``instances/``, what is known of them, and the checksums of all files there.

    python bench/instances/make_models.py

Beside a round of the sets `ROUNDS` its value level as ``<name>.value.mps.gz``, and its cost level, at the best known
value, as ``<name>.cost.mps.gz``: each if it has at most `MAX_NONZEROS` non-zeros and states the level exactly, the
second if that value is proven. ``models.test`` lists them. ``<name>.value`` of ``best.solu`` is what is known of the
round itself; ``<name>.cost`` comes from ``placeopt bench report --update``. ``SHA256SUMS`` comes last: coreutils'
``sha256sum -c SHA256SUMS`` verifies it, so this command is the last of those that write there. The same input gives the
same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import time
from pathlib import Path

from placeopt import read_instance
from placeopt.benchmark.sets import MADE, read_sets
from placeopt.benchmark.solu import Known, read_solu, write_solu
from placeopt.documents.files import write_bytes
from placeopt.linear import LinearModel
from placeopt.model import Instance
from placeopt.problem import compile_problem
from placeopt.solvers.export import FORMATS
from placeopt.solving.budget import Budget
from placeopt.solving.context import SolveContext
from placeopt.solving.params import SolveParams
from placeopt.solving.stages.exact import level_model
from placeopt.terms.rules import relaxed

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = ("hand", "generated", "hard", "openb", "real")
MAX_NONZEROS = 20_000
MAX_JOBS_GPUS = 120_000
"""Waiting jobs times GPUs above which no model is tried, to save time: each such round is far above `MAX_NONZEROS`."""
SUMS = "SHA256SUMS"


def main() -> None:
    """Write models, list, known values and checksums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=Path, default=ROOT / "instances", help="folder (default: instances/)")
    folder = parser.parse_args().instances
    for path in folder.rglob("*.mps.gz"):
        path.unlink()
    known = {name: entry for name, entry in read_solu(folder / "best.solu").items() if not name.endswith(".value")}
    listed, size = [], 0
    for entry in read_sets(ROUNDS, folder):
        instance = read_instance(entry.path)
        for level, model in level_models(instance, known.get(entry.name, Known())).items():
            path = entry.path.parent / f"{entry.name}.{level}.mps.gz"
            write_bytes(path, FORMATS["mps"](model))
            listed.append(path.relative_to(folder).as_posix())
            size += path.stat().st_size
            print(f"{path.stat().st_size:>9} {model.num_nonzeros:>6} non-zeros  {listed[-1]}")
            if level == "value":
                known[f"{entry.name}.value"] = known.get(entry.name, Known())
    write_solu(folder / "best.solu", known)
    (folder / "models.test").write_text("".join(f"{name}\n" for name in listed))
    (folder / SUMS).write_text(checksums(folder))
    print(f"{size:>9}  {len(listed)} models")


def level_models(instance: Instance, known: Known) -> dict[str, LinearModel]:
    """Return the models of the value level and the cost level that are small enough, exact, and well defined."""
    problem = compile_problem(instance, None)
    waiting = len(instance.jobs) - len(instance.running)
    if relaxed(problem) or waiting * problem.num_gpus > MAX_JOBS_GPUS:
        return {}
    context = SolveContext(problem, Budget(SolveParams(time_limit_s=math.inf), time.monotonic(), deadline=math.inf))
    levels: dict[str, int | None] = {"value": None}
    exact = all(weighted.cost.form(problem) == "exact" for weighted in context.weighted)
    if context.weighted and exact and known.optimal and isinstance(known.value, int):
        levels["cost"] = known.value
    models = {}
    for level, value in levels.items():
        model = level_model(instance, None, "counts", optimal_value=value)
        if model.num_nonzeros > MAX_NONZEROS:
            break  # the cost level has all rows of the value level
        models[level] = model
    return models


def checksums(folder: Path) -> str:
    """Return the lines of ``sha256sum`` of all files but the checksums themselves and generated rounds."""
    paths = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    kept = [path for path in paths if path != SUMS and not path.startswith(f"{MADE}/")]
    return "".join(f"{hashlib.sha256((folder / path).read_bytes()).hexdigest()}  {path}\n" for path in kept)


if __name__ == "__main__":
    main()
