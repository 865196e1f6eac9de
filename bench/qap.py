"""
Searches quadratic assignment problems of QAPLIB and prints the gap to the best known value as a table.

    OPENBLAS_NUM_THREADS=1 python bench/qap.py DIR [--time-limit S] [--seed N] [--write bench/qap.md]

DIR holds QAPLIB's .dat and .sln files (qaplib.mgi.polymtl.ca; also in the R package `qap`), which are not kept here.
All of its problems of the families below with at most 40 facilities are solved. The best known value is that of the
.sln file, or what QAPLIB's page states (`STATED`). The tai..a files that have a generator here are also
drawn anew and compared.
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

FAMILIES = ("esc", "kra", "nug", "ste", "tai", "tho")
LARGEST = 40
STATED = {
    "kra32": 88_700,
    "esc32a": 130,
    "esc32b": 168,
    "esc32c": 642,
    "esc32d": 200,
    "esc32h": 438,
    "tai10a": 135_028,
    "tai10b": 1_183_760,
}
"""
Best known values by QAPLIB's page, of problems without a .sln file and of kra32, whose file in the R package states
88,900.
"""


def names_in(folder: Path) -> list[str]:
    """Return the problems of the families that are small enough, by family and size."""
    named = [path.stem for path in folder.glob("*.dat") if path.stem[:3] in FAMILIES]
    sizes = {name: int("".join(letter for letter in name[3:] if letter.isdigit())) for name in named}
    return sorted((name for name in named if sizes[name] <= LARGEST), key=lambda name: (name[:3], sizes[name], name))


def best_known(folder: Path, name: str) -> int:
    """Return the best known value of a problem."""
    stated = STATED.get(name)
    return int((folder / f"{name}.sln").read_text().split()[1]) if stated is None else stated


def main() -> None:
    """Print or write the table."""
    parser = argparse.ArgumentParser(description="Quadratic assignment: gap to the best known value.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--time-limit", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", type=Path)
    arguments = parser.parse_args()
    lines = []
    gaps = []
    for name in names_in(arguments.folder):
        one, other = parse_qaplib((arguments.folder / f"{name}.dat").read_bytes(), name)
        n = len(one)
        if name.startswith("tai") and name.endswith("a") and n in DISTANCE_SEEDS:
            assert (one == taillard(n, DISTANCE_SEEDS[n])).all()
            assert (other == taillard(n, FLOW_SEED)).all()
        known = best_known(arguments.folder, name)
        began, cpu = time.perf_counter(), time.process_time()
        found = solve_quadratic(one, other, time_limit_s=arguments.time_limit, seed=arguments.seed)
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        assert found.cost == (one * other[np.ix_(found.order, found.order)]).sum()
        assert found.bound <= known
        gap = 100 * (found.cost / known - 1) if known else 100.0 * (found.cost > 0)
        gaps.append(gap)
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
        "Bound: Gilmore and Lawler's.\nCrossover and restarts of the search were tried on four of these problems "
        "(docs/decisions.md).\n"
        f"At the best known value: {sum(gap <= 0 for gap in gaps)} of {len(gaps)}; "
        f"the largest gap is {max(gaps):.3f} %.\n\n"
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
