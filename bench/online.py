"""
openb by FGD's protocol: ``python bench/online.py [--lists L,..] [--policies P,..] [--seeds S,..] [--out F.md]``.

One pod at a time, none ever leaves, none is tried twice; the authors' own ten orders of pods and of nodes. Prints what
is allocated at 100 and 130 % arrived, in percent of the 6,212 GPUs, beside the means that were published (Weng et al.,
ATC'23, expected results of the simulator), and what any plan in hindsight could have placed, at most.

With ``--results FILE.jsonl`` every run is written down as soon as it ends; runs that stand there are not done again.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from pathlib import Path

from policies import BOUND, PEERS, POLICIES, title

from placeopt.environment import versions
from placeopt_papers.one_at_a_time.arrivals import Arrivals, read_arrivals
from placeopt_papers.one_at_a_time.hindsight import hindsight

INSTANCES = Path(__file__).resolve().parents[1] / "instances"
LISTS = ("default", "gpuspec33", "multigpu20")
SEEDS = range(42, 52)
AT = (100, 130)
"""Percent arrived that are shown."""

PUBLISHED = {
    "default": ((86.30, 87.47), (90.62, 90.85), (91.65, 91.88), (91.78, 92.00), (92.86, 93.08), (95.23, 95.39)),
    "gpuspec33": ((83.87, 86.46), (79.82, 89.14), (81.09, 92.12), (82.22, 93.22), (80.39, 93.09), (87.84, 94.55)),
    "multigpu20": ((86.92, 88.69), (91.85, 92.06), (93.34, 93.56), (93.50, 93.71), (93.73, 93.93), (95.53, 95.65)),
}
"""Means of ten seeds at 100 and 130 % arrived, in the order of ``PEERS``."""


def main() -> int:
    """Run and report."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--lists", default=",".join(LISTS))
    parser.add_argument("--policies", default=",".join((BOUND, *POLICIES)))
    parser.add_argument("--seeds", default=",".join(str(seed) for seed in SEEDS))
    parser.add_argument("--results", type=Path, help="runs done so far; what is missing is added")
    parser.add_argument("--out", type=Path, help="write the table here as well")
    arguments = parser.parse_args()
    lists, policies = arguments.lists.split(","), arguments.policies.split(",")
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    runs: dict[tuple[str, str, int], dict[str, float]] = {}
    if arguments.results is not None and arguments.results.exists():
        for line in arguments.results.read_text(encoding="utf-8").splitlines():
            run = json.loads(line)
            runs[run["list"], run["policy"], run["seed"]] = run
    for name in lists:
        missing = [(p, seed) for seed in seeds for p in policies if (name, p, seed) not in runs]
        if not missing:
            continue
        named = read_arrivals(INSTANCES, name)
        for policy, seed in missing:
            run = measured(named, policy, seed)
            runs[name, policy, seed] = run
            line = json.dumps({"list": name, "policy": policy, "seed": seed, **run})
            print(line, file=sys.stderr, flush=True)
            if arguments.results is not None:
                with arguments.results.open("a", encoding="utf-8") as file:
                    file.write(line + "\n")
    known = ", ".join(f"{package} {version}" for package, version in versions().items())
    total = sum(runs[name, policy, seed]["seconds"] for name in lists for policy in policies for seed in seeds)
    lines = [
        f"`python bench/online.py --lists {arguments.lists} --policies '{arguments.policies}' "
        f"--seeds {arguments.seeds}`, "
        f"Python {platform.python_version()}, {known}; {total:.0f} s of CPU.",
        "",
        "| list | policy | at 100 % | at 130 % | published | difference | 2 standard errors | us a decision |",
        "|---|---|---|---|---|---|---|---|",
        *(row(name, policy, [runs[name, policy, seed] for seed in seeds]) for name in lists for policy in policies),
    ]
    print(*lines, sep="\n")
    if arguments.out is not None:
        arguments.out.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return 0


def measured(named: Arrivals, policy: str, seed: int) -> dict[str, float]:
    """Run a policy on a list in one order; what is allocated at each of ``AT``, CPU seconds, decisions."""
    arrivals, order = named.by_seed(seed)
    started = time.process_time()
    if policy == BOUND:
        allocated = {percent: hindsight(arrivals, order, percent, isolation="thread") for percent in AT}
    else:
        placed = POLICIES[policy](arrivals, order, seed)
        allocated = arrivals.allocated(order, placed)
    seconds = time.process_time() - started
    return {**{str(at): round(allocated[at], 4) for at in AT}, "seconds": round(seconds, 4), "decisions": len(order)}


def row(name: str, policy: str, runs: list[dict[str, float]]) -> str:
    """Return the table's line for a policy on a list."""
    samples = [[run[str(at)] for run in runs] for at in AT]
    means = [statistics.mean(values) for values in samples]
    errors = [2 * statistics.stdev(v) / len(v) ** 0.5 if len(v) > 1 else 0.0 for v in samples]
    cells = [name, title(policy), *(f"{mean:.2f}" for mean in means)]
    peer = policy.partition(":")[0]
    if peer in PEERS:
        published = PUBLISHED[name][PEERS.index(peer)]
        cells.append(" / ".join(f"{value:.2f}" for value in published))
        cells.append(" / ".join(f"{mean - value:+.2f}" for mean, value in zip(means, published, strict=True)))
    else:
        cells += ["", ""]
    per_decision = 1e6 * sum(run["seconds"] for run in runs) / sum(run["decisions"] for run in runs)
    cells += [" / ".join(f"{error:.2f}" for error in errors), "" if policy == BOUND else f"{per_decision:.0f}"]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
