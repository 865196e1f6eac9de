"""
How far ``placeopt.solve`` overshoots its time limit: instances x limits.

Usage: ``python tests/campaigns/deadlines.py [--repeats N] [--limits S ...] [--out FILE.md] [INSTANCE ...]``.
Measured from the call to its return, so compiling, checking and starting the solver process count; reading the file
does not. Every plan has to pass referee and audit. Exit code 1 if a plan fails or comes later than the larger of 10 %
and 0.1 s past its limit.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from pathlib import Path

from placeopt import audit, read_instance, solve, violations
from placeopt.environment import usable_cores, versions

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
DEFAULT = (
    "hand/dgx1-tour.json",
    "generated/uniform-50x16x8-s0.json.gz",
    "generated/varied-50x16x4-s0.json.gz",
    "generated/cubemesh-20x4x8-s0.json.gz",
    "generated/gangs-20x16x4-s0.json.gz",
    "openb/openb-first-100.json.gz",
    "openb/openb-first-500.json.gz",
    "openb/openb-first-2000.json.gz",
    "openb/openb-default.json.gz",
)
LIMITS = (0.05, 0.2, 0.5, 1.0, 2.0, 5.0)


def main() -> int:
    """Run the campaign and report."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("instances", nargs="*", type=Path, help="default: nine of the stored ones")
    parser.add_argument("--limits", nargs="+", type=float, default=LIMITS, metavar="S")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, help="write the table here as well")
    arguments = parser.parse_args()
    paths = arguments.instances or [INSTANCES / name for name in DEFAULT]
    lines, faults = [], []
    for path in paths:
        instance, cells = read_instance(path), []
        for limit in arguments.limits:
            late = []
            for _ in range(arguments.repeats):
                began = time.monotonic()
                plan = solve(instance, time_limit_s=limit)
                late.append(time.monotonic() - began - limit)
                wrong = [violation.message for violation in violations(instance, plan)] + audit(instance, plan)
                if late[-1] > max(0.1 * limit, 0.1):
                    wrong.append(f"{late[-1]:.3f} s late; {plan.seconds}")
                faults += [f"- {instance.name}, limit {limit} s: {what}" for what in wrong]
            late.sort()
            cells.append(f"{1000 * late[len(late) // 2]:.0f} / {1000 * late[-1]:.0f}")
        lines.append(f"| {instance.name} | {len(instance.jobs)} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    known = ", ".join(f"{name} {version}" for name, version in versions().items())
    heads = [f"{limit:g} s" for limit in arguments.limits]
    text = "\n".join(
        [
            "# How far a round overshoots its time limit",
            "",
            f"`python tests/campaigns/deadlines.py --repeats {arguments.repeats}`: median / worst of "
            f"{arguments.repeats} calls, milliseconds past the limit, negative: before it.",
            "",
            f"{usable_cores()} cores, Python {platform.python_version()}, {known}.",
            "",
            f"| instance | jobs | {' | '.join(heads)} |",
            "|---" * (2 + len(heads)) + "|",
            *lines,
            "",
            f"{len(faults)} faults.",
            *(["", *faults] if faults else []),
            "",
        ]
    )
    print(text)
    if arguments.out is not None:
        arguments.out.write_text(text, encoding="utf-8")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
