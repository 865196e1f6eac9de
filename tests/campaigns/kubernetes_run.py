"""
Two drivers of Kubernetes in a cluster where much goes wrong: nothing is started twice, gangs start whole.

Usage: ``python tests/campaigns/kubernetes_run.py [--seeds A-B] [--pods N] [--nodes N] [--out FILE.md]``. The cluster is
the small API server of the tests with its kube-scheduler, kubelets and controller; `tests/helpers/kubernetes_storm.py`
says what goes wrong. Exit code 1 if anything does not hold.
"""

from __future__ import annotations

import argparse
import platform
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from helpers.kubernetes_storm import Findings, Storm
from placeopt.environment import usable_cores, versions


def main() -> int:
    """Run the campaign and report."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--seeds", default="0-4", help="0-4, or one")
    parser.add_argument("--pods", type=int, default=500)
    parser.add_argument("--nodes", type=int, default=24)
    parser.add_argument("--out", type=Path, help="write the table here as well")
    arguments = parser.parse_args()
    first, _, last = arguments.seeds.partition("-")
    found: dict[int, tuple[Findings, float]] = {}
    for seed in range(int(first), int(last or first) + 1):
        began = time.process_time()
        with tempfile.TemporaryDirectory() as folder:
            findings = Storm(Path(folder) / "kubeconfig.json", seed, arguments.pods, arguments.nodes).run()
        found[seed] = findings, time.process_time() - began
        print(seed, findings, flush=True)
    text = report(found, arguments)
    print(text)
    if arguments.out is not None:
        arguments.out.write_text(text, encoding="utf-8")
    return 1 if any(findings.faults for findings, _ in found.values()) else 0


def report(found: dict[int, tuple[Findings, float]], arguments: argparse.Namespace) -> str:
    """Return the tables as Markdown."""
    known = versions()
    lines = [
        "# Two drivers of Kubernetes in a cluster where much goes wrong",
        "",
        f"`python tests/campaigns/kubernetes_run.py --seeds {arguments.seeds} --pods {arguments.pods} "
        f"--nodes {arguments.nodes}`: the API server is that of the tests; no real one was there. Two drivers with a "
        "Lease of 1 s take turns; it is taken away, they end and begin anew. An action starts a pod or a gang; "
        "undone: not all gates of a gang could be lifted, and the pods that were lifted were evicted. Faults: a gate "
        "lifted twice, a pod bound twice, a gang that stayed half lifted, a pod of a gang that started before the gang "
        "ran as a whole, a pod that never ran to its end. Seconds of "
        "wall time hold the server and everything around it, on a machine that others used.",
        "",
        f"{usable_cores()} cores, Python {platform.python_version()}, placeopt {known['placeopt']}, "
        f"ortools {known['ortools']}, highspy {known['highspy']}.",
        "",
        "| seed | pods | of them ended | gangs | actions | undone | turns | CPU seconds | seconds | faults |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    events: Counter[str] = Counter()
    for seed, (one, cpu_s) in found.items():
        events.update(one.events)
        lines.append(
            f"| {seed} | {one.pods} | {one.ended} | {one.gangs} | {one.actions} | {one.undone} | {one.turns} "
            f"| {cpu_s:.0f} | {one.seconds:.0f} | {len(one.faults)} |"
        )
    lines += ["", "| what went wrong | times |", "|---|---|"]
    lines += [f"| {name} | {count:,} |" for name, count in sorted(events.items())]
    lines += [f"- {fault}" for one, _ in found.values() for fault in one.faults]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
