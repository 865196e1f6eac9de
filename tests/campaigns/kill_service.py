"""
Kill the service at random moments and start it anew: nothing that was answered is lost, nothing is done twice.

Usage: ``python tests/campaigns/kill_service.py [--kills N] [--seeds A-B] [--nodes N] [--jobs N] [--parallel N] [--out
FILE.md]``. ``placeopt serve --stdio`` gets SIGKILL under load, each seed with a folder of its own and its share of the
kills. What is sent and what has to hold after every start: `tests/helpers/service_kills.py`. Exit code 1 if anything
does not hold.
"""

from __future__ import annotations

import argparse
import platform
import random
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from helpers.service_kills import MOMENTS, WEIGHTS, Findings, Kills
from placeopt import generate
from placeopt.environment import usable_cores, versions

ROWS = {
    "idle": "all requests answered",
    "request": "0 to 1.5 times the usual time of the call after a request",
    "answer": "as the answer arrives",
    "round": "while a round with commit is solved, and other calls go on",
    "replay": "between the start of the process and its first answer",
}
COLUMNS = {
    "answer written": ("answered",),
    "open": ("not answered",),
    "key: done before": ("again: done before",),
    "key: done now": ("again: done now", "again: refused"),
    "no key: done": ("no key: done",),
    "no key: not done": ("no key: not done",),
}
KINDS = ("lost", "twice", "bytes", "referee", "other")


def main() -> int:
    """Run the campaign and report."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--kills", type=int, default=200, help="over all seeds")
    parser.add_argument("--seeds", default="0-3", help="first and last")
    parser.add_argument("--jobs", type=int, default=20, help="waiting jobs at first")
    parser.add_argument("--nodes", type=int, default=6, help="nodes of 4 GPUs")
    parser.add_argument("--parallel", type=int, default=2, help="folders at once")
    parser.add_argument("--out", type=Path, help="write the table here as well")
    arguments = parser.parse_args()
    first, last = map(int, arguments.seeds.split("-"))
    seeds, began = range(first, last + 1), time.monotonic()
    shares = [arguments.kills // len(seeds) + (n < arguments.kills % len(seeds)) for n in range(len(seeds))]
    findings = Findings()
    with ProcessPoolExecutor(arguments.parallel) as pool:
        cases = [(seed, share, arguments.jobs, arguments.nodes) for seed, share in zip(seeds, shares, strict=True)]
        for seed, found in zip(seeds, pool.map(one_folder, cases), strict=True):
            findings.add(found)
            print(f"seed {seed}: {time.monotonic() - began:.0f} s, {found}", flush=True)
    text = report(findings, arguments, time.monotonic() - began)
    print(text)
    if arguments.out is not None:
        arguments.out.write_text(text, encoding="utf-8")
    return 1 if findings.faults else 0


def one_folder(case: tuple[int, int, int, int]) -> Findings:
    """Do the kills of one seed; ``case``: seed, number of kills, jobs, nodes."""
    seed, count, jobs, nodes = case
    findings = Findings()
    moments = random.Random(seed).choices(MOMENTS, WEIGHTS, k=count)
    with tempfile.TemporaryDirectory() as folder:
        Kills(Path(folder), generate("preempt", jobs=jobs, nodes=nodes, gpus=4, seed=seed), seed, findings).run(
            iter(moments)
        )
    return findings


def report(findings: Findings, arguments: argparse.Namespace, seconds: float) -> str:
    """Return the table and the faults as Markdown."""
    known = ", ".join(f"{name} {version}" for name, version in versions().items())
    lines = [
        "# Killing the service under load",
        "",
        f"`python tests/campaigns/kill_service.py --kills {arguments.kills} --seeds {arguments.seeds} "
        f"--jobs {arguments.jobs} --nodes {arguments.nodes}`: `placeopt serve --stdio --state DIR` under decisions, "
        "changes of several steps, outcomes, commits of plans, rounds with commit and loads of the cluster, two of "
        "three calls under an `Idempotency-Key`; SIGKILL at a random moment, and a new start on the same folder.",
        "",
        f"{usable_cores()} cores, {platform.system()}, Python {platform.python_version()}, {known}; "
        f"{seconds:.0f} s, the machine shared with other work.",
        "",
        f"| SIGKILL | kills | {' | '.join(COLUMNS)} |",
        "|---" * (len(COLUMNS) + 2) + "|",
    ]
    for moment, words in ROWS.items():
        counts = [sum(findings.counts[moment, name] for name in names) for names in COLUMNS.values()]
        lines.append(f"| {words} | {findings.kills[moment]} | {' | '.join(map(str, counts))} |")
    counts = [sum(findings.counts[moment, name] for moment in ROWS for name in names) for names in COLUMNS.values()]
    lines.append(f"| all | {sum(findings.kills.values())} | {' | '.join(map(str, counts))} |")
    in_round = findings.counts["round", "before the end of the round was known"]
    wrong = [sum(fault.startswith(kind) for fault in findings.faults) for kind in KINDS]
    totals = findings.replays, findings.answered, findings.repeated, findings.entries, *wrong
    lines += [
        "",
        "Answer written: at the kill the answer of the last request stood in the pipe. Open: it did not; such a "
        "request is sent again after the start if it has a key, and was then done before the kill or is done now, and "
        "a third time; without a key the state shows whether it was done, wholly or not at all. In the row of replays "
        f"the request only reads. Of the kills in rounds {in_round} came before the client knew the round's end.",
        "",
        "| starts compared | changes answered | of them sent again under their key | changes in the journals "
        "| lost | twice | other bytes | refused by the referee | other faults |",
        "|---|---|---|---|---|---|---|---|---|",
        f"| {' | '.join(map(str, totals))} |",
        *(["", *(f"- {fault}" for fault in findings.faults)] if findings.faults else []),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
