"""
Searches quadratic assignment problems of QAPLIB and prints the gap to the best known value as a table.

    OPENBLAS_NUM_THREADS=1 python bench/qap.py DIR [--time-limit S] [--seed N] [--write bench/qap.md]

DIR holds QAPLIB's .dat and .sln files (qaplib.mgi.polymtl.ca; also in the R package `qap`), which are not kept here;
the best known value is that of the .sln file. The tai..a files are also drawn anew by their generator and compared.
"""

import argparse
import os
import platform
import time
from pathlib import Path

import numpy as np

from make_qap import DISTANCE_SEEDS, FLOW_SEED, taillard
from placeopt.formats.qaplib import parse_qaplib
from placeopt.rank_mapping.quadratic import solve_quadratic

NAMES = ("nug30", "ste36a", "tai25a", "tai30a", "tai35a", "tai40a", "tho30", "tho40", "kra30a")


def main() -> None:
    """Print or write the table."""
    parser = argparse.ArgumentParser(description="Quadratic assignment: gap to the best known value.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--time-limit", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", type=Path)
    arguments = parser.parse_args()
    lines = []
    for name in NAMES:
        one, other = parse_qaplib((arguments.folder / f"{name}.dat").read_bytes(), name)
        n = len(one)
        if name.startswith("tai") and name.endswith("a"):
            assert (one == taillard(n, DISTANCE_SEEDS[n])).all()
            assert (other == taillard(n, FLOW_SEED)).all()
        known = int((arguments.folder / f"{name}.sln").read_text().split()[1])
        began, cpu = time.perf_counter(), time.process_time()
        found = solve_quadratic(one, other, time_limit_s=arguments.time_limit, seed=arguments.seed)
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        assert found.cost == (one * other[np.ix_(found.order, found.order)]).sum()
        assert found.bound <= known
        gap = 100 * (found.cost / known - 1)
        lines.append(
            f"| {name} | {n} | {found.cost:,} | {known:,} | {gap:.3f} | {found.bound:,} | {seconds:.1f} | {cpu:.1f} |\n"
        )
    command = (
        f"python bench/qap.py DIR --time-limit {arguments.time_limit:g} --seed {arguments.seed} --write bench/qap.md"
    )
    text = (
        "# Quadratic assignment: gap to the best known value\n\n"
        f"By `{command}` with `OPENBLAS_NUM_THREADS={os.environ.get('OPENBLAS_NUM_THREADS', '(unset)')}` on\n"
        f"{platform.machine()}, {os.cpu_count()} cores that other work shared, Python {platform.python_version()}, "
        f"numpy {np.__version__}.\nInstances and best known values: QAPLIB (Burkard, Karisch, Rendl 1997). "
        "Bound: Gilmore and Lawler's.\n\n"
        "| instance | n | cost | best known | gap % | bound | seconds | CPU seconds |\n"
        "|---|---|---|---|---|---|---|---|\n"
    )
    text += "".join(lines)
    if arguments.write is None:
        print(text, end="")
    else:
        arguments.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
