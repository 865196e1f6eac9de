"""
How fast is the least cost proven: ``python bench/exact_cost.py [--time-limit S] [--method NAME] [--out FILE.md]``.

Rounds of `placeopt generate` in which every job fits, so the value is proven at once and only the cost is open. Every
seed is a row, also those that are not proven. A round is solved by the command ``placeopt solve`` in a process of its
own, from the start of the interpreter to its end: wall clock, and the CPU time of the command and its solver processes.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from placeopt.environment import usable_cores, versions
from placeopt.formats.documents import dumps
from placeopt.generators import generate

ROUNDS = (
    *(("cubemesh", 20, 10, 8, seed) for seed in range(10)),
    *(("uniform", 50, 16, 8, seed) for seed in range(10)),
    *(("uniform", 30, 10, 4, seed) for seed in range(3)),
    *(("uniform", 80, 24, 8, seed) for seed in range(3)),
)


def run(file: Path, method: str, limit: float) -> dict[str, object]:
    """Solve one file; return what a row shows."""
    command = [sys.executable, "-m", "placeopt.cli", "solve", str(file), "--method", method, "--json", "--quiet"]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run([*command, "--time-limit", str(limit)], capture_output=True, text=True, check=False)
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 4):
        raise RuntimeError(f"{file.name}: exit code {done.returncode}: {done.stderr}")
    plan = json.loads(done.stdout)
    level = plan["levels"][-1]
    detail = next((s["detail"] for s in plan["stages"] if s["name"] == "arrangements"), "")
    columns = re.match(r"(\d+) columns", detail)
    return {
        "status": plan["status"],
        "level": level["name"],
        "objective": level["objective"],
        "bound": level["bound"],
        "gap": plan["gap"],
        "wall": wall,
        "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "columns": columns[1] if columns else "-",
    }


def table(method: str, limit: float) -> list[str]:
    """All rows, and the medians of each kind of round."""
    lines = [
        "| round | status | cost | bound | gap | columns | CPU s | wall s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    walls: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for spec, jobs, nodes, gpus, seed in ROUNDS:
            name = f"{spec}-{jobs}x{nodes}x{gpus}"
            file = Path(folder) / f"{name}-s{seed}.json"
            file.write_bytes(dumps(generate(spec, jobs=jobs, nodes=nodes, gpus=gpus, seed=seed)))
            row = run(file, method, limit)
            walls.setdefault(name, []).append(float(str(row["wall"])))
            bound = "-" if row["bound"] is None else f"{row['bound']:,}"
            gap = "-" if row["gap"] is None else f"{100 * float(str(row['gap'])):.3f} %"
            lines.append(
                f"| {name}-s{seed} | {row['status']} | {row['objective']:,} | {bound} | {gap} | {row['columns']} "
                f"| {row['cpu']:.2f} | {row['wall']:.2f} |"
            )
            print(lines[-1], flush=True)
    lines += ["", "Medians of the wall clock, rows that are not proven included:"]
    lines += [f"{name} {statistics.median(times):.2f} s;" for name, times in walls.items()]
    return lines


def main() -> None:
    """Run all rounds, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--time-limit", type=float, default=10.0)
    parser.add_argument("--method", default="auto")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    used = ", ".join(f"{name} {number}" for name, number in versions().items())
    head = [
        "# The least cost, proven",
        "",
        f"`python bench/exact_cost.py --time-limit {arguments.time_limit:g} --method {arguments.method}`, "
        f"{usable_cores()} cores, Python {platform.python_version()}, {used}. A whole command each; "
        "where other work runs on the machine, CPU seconds tell more than the clock.",
        "",
    ]
    text = "\n".join([*head, *table(arguments.method, arguments.time_limit)]) + "\n"
    if arguments.out:
        arguments.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
