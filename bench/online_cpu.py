"""
openb with more CPU-only pods, one at a time: ``python bench/online_cpu.py [--seed S] [--policies P,..] [--out F.md]``.

Draws twelve lists of pods from openb's default list, on which CPU binds (see ``drawn``), and plays each by the protocol
of ``bench/online.py``: pods in the order of a seed until 130 % of the GPUs have been requested; none leaves. Prints
what is allocated at 100 and 130 % arrived, in percent of the 6,212 GPUs, and CPU microseconds a decision. ``fgd`` and
``fgd:points`` are FGD as the library and as its authors' simulator compare scores.

With ``--round`` the lists are placed as one round each instead: ``placeopt.solve``, 5 s, gap of the GPU share.
"""

from __future__ import annotations

import argparse
import platform
import sys
from pathlib import Path

import numpy as np
from policies import title

from online import AT, INSTANCES, measured
from placeopt import Instance, solve
from placeopt.environment import usable_cores, versions
from placeopt.model import Job
from placeopt_papers.one_at_a_time.arrivals import Arrivals, arrivals_of, read_arrivals

CPU_FACTORS = (1.6, 2.0, 2.4, 2.8)
"""CPU-only pods, in multiples of those of default."""
NAMED_PERCENT = (10, 20, 30, 40)
"""GPU pods that name GPU models."""
LISTS = 12
POLICIES = ("fgd", "fgd:points", "prices")
ARRIVAL_SEED = 42
TIME_LIMIT_S = 5.0


def main() -> int:
    """Run and report; exit code 1 if ``prices`` is behind on a list."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--seed", type=int, default=1, help="of the drawing")
    parser.add_argument("--lists", type=int, default=LISTS, help="how many lists, from the first on")
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--round", action="store_true", help="place each list as one round instead")
    parser.add_argument("--out", type=Path, help="write the table here as well")
    arguments = parser.parse_args()
    default, named = (read_arrivals(INSTANCES, name) for name in ("default", "gpuspec33"))
    policies = arguments.policies.split(",")
    known = ", ".join(f"{package} {version}" for package, version in versions().items())
    options = " --round" if arguments.round else f" --policies '{arguments.policies}'"
    head = ("gap", "GPU-milli placed", "bound", "seconds") if arguments.round else (*map(title, policies), "ahead by")
    lines = [
        f"`python bench/online_cpu.py --seed {arguments.seed} --lists {arguments.lists}{options}`, "
        f"{usable_cores()} cores, Python {platform.python_version()}, {known}.",
        "",
        f"| CPU-only pods x | of GPU pods name models | pods | {' | '.join(head)} |",
        "|---" * (3 + len(head)) + "|",
    ]
    print(*lines, sep="\n")
    behind = 0
    for number in range(arguments.lists):
        cpu_factor, percent = parameters(number)
        instance = drawn(default, named, cpu_factor, percent, arguments.seed * LISTS + number)
        cells = [f"{cpu_factor:g}", f"{percent} %", f"{len(instance.jobs):,}"]
        if arguments.round:
            cells += solved(instance)
        else:
            runs = [measured(arrivals_of(instance), policy, ARRIVAL_SEED) for policy in policies]
            cells += map(cell, runs)
            ahead = runs[-1][str(AT[-1])] - max((run[str(AT[-1])] for run in runs[:-1]), default=0.0)
            behind += ahead <= 0
            cells.append(f"{ahead:+.2f}")
        lines.append(f"| {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    if arguments.out is not None:
        arguments.out.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return 1 if behind else 0


def parameters(number: int) -> tuple[float, int]:
    """Return the factor of CPU-only pods and the percentage of GPU pods that name models, of list ``number``."""
    turn = number // len(CPU_FACTORS)  # four lists later, another percentage meets the same factor
    return CPU_FACTORS[number % len(CPU_FACTORS)], NAMED_PERCENT[(number + turn) % len(NAMED_PERCENT)]


def drawn(default: Arrivals, named: Arrivals, cpu_factor: float, percent: int, seed: int) -> Instance:
    """
    Draw a list from openb's default list, on the same nodes.

    - CPU-only pods: drawn with replacement, ``cpu_factor`` times as many.
    - GPU pods: as many as before, drawn with replacement. Kinds (CPU, memory, GPUs, share) are drawn by their number
      times a weight of 1/4 to 4; kinds of several GPUs by one to five times that.
    - Shares: each distinct share becomes another one, 0.6 to 1.4 times as large, in hundredths of a GPU.
    - GPU models: ``percent`` of the GPU pods get the models of a pod of gpuspec33 that has as many GPUs.
    """
    random = np.random.default_rng(seed)
    jobs = default.instance.jobs
    demands = [job.options[0].demand for job in jobs]
    without = np.array([demand.gpus == 0 for demand in demands])
    several = float(random.uniform(1, 5))
    kinds = [(d.cpu_millicores, d.memory_mib, d.gpus, d.gpu_milli) for d in demands]
    weight = {kind: 4.0 ** random.uniform(-1, 1) * (several if kind[2] > 1 else 1) for kind in sorted(set(kinds))}
    weights = np.array([weight[kind] for kind in kinds]) * ~without
    cpu_only = random.choice(np.flatnonzero(without), round(cpu_factor * int(without.sum())))
    with_gpus = random.choice(len(jobs), int((~without).sum()), p=weights / weights.sum())
    shares = sorted({d.gpu_milli for d in demands if d.gpus and d.gpu_milli < 1000})
    share = {s: int(np.clip(round(s * random.uniform(0.6, 1.4) / 10) * 10, 10, 990)) for s in shares}
    models: dict[int, list[tuple[str, ...]]] = {}
    for job in named.instance.jobs:
        demand = job.options[0].demand
        if demand.gpu_models:
            models.setdefault(demand.gpus, []).append(demand.gpu_models)
    changed: list[Job] = []
    for number, at in enumerate((*cpu_only.tolist(), *with_gpus.tolist())):
        option, demand = jobs[at].options[0], demands[at]
        update: dict[str, object] = {"gpu_milli": share.get(demand.gpu_milli, demand.gpu_milli)}
        if demand.gpus in models and random.random() < percent / 100:
            update["gpu_models"] = models[demand.gpus][int(random.integers(len(models[demand.gpus])))]
        demand = demand.model_copy(update=update if demand.gpus else {})
        option = option.model_copy(update={"demand": demand, "value": demand.gpus * demand.gpu_milli or option.value})
        changed.append(jobs[at].model_copy(update={"id": f"pod-{number:05}", "options": (option,)}))
    return default.instance.model_copy(
        update={"name": f"openb-cpu-{cpu_factor:g}-models-{percent}-seed-{seed}", "jobs": tuple(changed)}
    )


def cell(run: dict[str, float]) -> str:
    """Return percent allocated at each of ``AT``, and microseconds a decision."""
    points = " / ".join(f"{run[str(at)]:.2f}" for at in AT)
    return f"{points}, {1e6 * run['seconds'] / run['decisions']:.0f} us"


def solved(instance: Instance) -> list[str]:
    """Solve the list as one round; return gap of the GPU share, what is placed, its bound, seconds."""
    plan = solve(instance, time_limit_s=TIME_LIMIT_S)
    placed, bound = plan.facts["gpu_milli_placed"], plan.facts["gpu_milli_bound"]
    seconds = plan.seconds.total or 0.0
    return [f"{100 * (bound - placed) / placed:.3f} %", f"{placed:,}", f"{bound:,}", f"{seconds:.2f}"]


if __name__ == "__main__":
    sys.exit(main())
