"""
How far fitted predictions are from measured profiles: ``python bench/predictions.py FOLDER [--out FILE.md]``.

``FOLDER`` holds ``sia/<model>/placements-<type>.csv`` of siasosp23/artifacts and Gavel's
``gavel_simulation_throughputs.json.gz``. Rates are fitted by GENIE's lightweight profiling and by all runs, with
GENIE's model and with ours of the time of a step; all are compared with all runs. Interference is compared over pairs
left out of the fit.
"""

from __future__ import annotations

import argparse
import gzip
import platform
import sys
from pathlib import Path

import numpy as np

from placeopt.predict import fit_interference, fit_rate, fit_step, gavel_pairs, lightweight, relative_errors, sia_runs
from placeopt.predict.interference import ZEROS

GAVEL = "gavel_simulation_throughputs.json.gz"
SIA_SOURCE, GAVEL_SOURCE = "siasosp23/artifacts, sia-simulator/traces", "stanford-futuredata/gavel"


def main() -> int:
    """Fit, compare, report."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, help="write the table here as well")
    arguments = parser.parse_args()
    text = "\n".join(
        [
            "# Fitted predictions against measured profiles",
            "",
            f"`python bench/predictions.py FOLDER`, Python {platform.python_version()}, numpy {np.__version__}.",
            "",
            "Relative errors of rates over all runs, in percent: mean / 95th percentile. GENIE reports a mean below 5",
            "and a 95th percentile below 11 on its own profiles, which are not published. Its penalty is the same part",
            "of the rate at every batch; here synchronising takes a time of its own, so small batches lose more.",
            "",
            "| job type on GPU type | runs | uneven, left out | few runs | GENIE, few | GENIE, all | ours, few |"
            " ours, all |",
            "|---|---:|---:|---:|---:|---:|---:|---:|",
            *rates(arguments.folder / "sia"),
            "",
            "| interference: GPU type | pairs | zeros, left out | types | error of 1 + excess on pairs left out |",
            "|---|---:|---:|---:|---:|",
            *pairs(arguments.folder / GAVEL),
            "",
        ]
    )
    print(text)
    if arguments.out is not None:
        arguments.out.write_text(text, encoding="utf-8")
    return 0


def rates(folder: Path) -> list[str]:
    """Return the rows of all profiles, and one of all errors together."""
    rows, kept = [], [[], [], [], []]
    for path in sorted(folder.glob("*/placements-*.csv")):
        runs, uneven = sia_runs(path.read_text(encoding="utf-8"), where=str(path))
        name = f"{path.parent.name} on {path.stem.removeprefix('placements-')}"
        if not any(run.nodes * run.gpus == 1 for run in runs):
            rows.append(f"| {name} | {len(runs)} | {uneven} | none on one GPU | | | | |")
            continue
        few = lightweight(runs)
        measured = [run.rate for run in runs]
        cells = []
        ways = ((fit_rate, few), (fit_rate, runs), (fit_step, few), (fit_step, runs))
        for (fit, some), errors in zip(ways, kept, strict=True):
            model = fit(name, some, source=SIA_SOURCE)
            predicted = [model.rate(run.nodes, run.gpus, run.batch) for run in runs]
            errors += [abs(p - m) / m for p, m in zip(predicted, measured, strict=True)]
            relative = relative_errors(predicted, measured)
            cells.append(f"{100 * relative.mean:.1f} / {100 * relative.p95:.1f}")
        rows.append(f"| {name} | {len(runs)} | {uneven} | {len(few)} | {' | '.join(cells)} |")
    together = [f"{100 * np.mean(errors):.1f} / {100 * np.percentile(errors, 95):.1f}" for errors in kept]
    return [*rows, f"| all | {len(kept[0])} | | | {' | '.join(together)} |"]


def pairs(path: Path) -> list[str]:
    """Return a row for every type of GPU."""
    text = gzip.decompress(path.read_bytes()).decode()
    rows = []
    for worker in ("k80", "p100", "v100"):
        measured, left = gavel_pairs(text, worker, where=str(path))
        model = fit_interference(worker, measured, source=GAVEL_SOURCE, licence="MIT", left_out=left)
        zero = left.get(ZEROS, 0)  # the others are of jobs of several GPUs
        errors = f"{100 * model.errors.mean:.1f} / {100 * model.errors.p95:.1f}"
        rows.append(f"| {worker} | {len(measured)} | {zero} | {len(model.profiles)} | {errors} |")
    return rows


if __name__ == "__main__":
    sys.exit(main())
