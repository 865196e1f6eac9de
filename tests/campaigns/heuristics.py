"""
Campaign: every heuristic on random rounds with every feature, or on larger ones against the clock.

    python tests/campaigns/heuristics.py small --rounds 5000 --seed 0 --jobs 2 --out FILE.md
    python tests/campaigns/heuristics.py late --rounds 100 --seed 0 --out FILE.md

Small rounds: each method solves each round twice, deterministic. Both plans must pass referee and audit and be equal
byte for byte; value and cost are compared with brute force. Larger rounds, of the generators, with limits drawn from
0.1 to 1 s: how late the plan comes. Ends with code 1 if a plan is refused, two differ, or the 99th percentile of
lateness is above the larger of 10 % of the limit and 0.1 s.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from platform import python_version

import numpy as np
from joblib import Parallel, delayed

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from helpers.brute_force import Enumeration
from helpers.small_rounds import random_round
from placeopt import Engine, Instance, audit, violations
from placeopt.environment import usable_cores
from placeopt.generators import generate
from placeopt.problem import compile_problem
from placeopt.solving.methods import METHODS

CHUNK = 10
CHANGES_EVERY = 4
HEURISTICS = tuple(name for name, method in METHODS.items() if not method.exact and name != "arrangements")
LIMITS_S = (0.1, 0.2, 0.5, 1.0)
SHAPES = (("uniform", 4), ("uniform", 8), ("varied", 4), ("gangs", 8), ("fractions", 4), ("cubemesh", 8))
ALLOWED, ALLOWED_S = 0.1, 0.1


@dataclass
class Tally:
    """What one heuristic did: gaps on small rounds, lateness on larger ones, and everything that was wrong."""

    gaps: list[float] = field(default_factory=list)
    cheapest: list[bool] = field(default_factory=list)
    """Where the value is the greatest: whether the cost is the least."""
    late: list[float] = field(default_factory=list)
    """Seconds past the limit, and the same in parts of what is allowed."""
    excess: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    cut: int = 0
    """Small rounds in which the clock cut in."""

    def add(self, other: Tally) -> None:
        """Take in another one."""
        for name in ("gaps", "cheapest", "late", "excess", "faults"):
            getattr(self, name).extend(getattr(other, name))
        self.cut += other.cut


def main() -> int:
    """Run one part, write its table, and tell whether anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("part", choices=("small", "late"))
    parser.add_argument("--rounds", type=int, default=100, help="round i has seed + i")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="processes for small rounds; larger ones run one at a time")
    parser.add_argument("--methods", default=",".join(HEURISTICS), help="all heuristics, if left out")
    parser.add_argument("--out", type=Path, default=Path("heuristics.md"))
    options = parser.parse_args()
    methods = tuple(options.methods.split(","))
    seeds = range(options.seed, options.seed + options.rounds)
    tallies: dict[str, Tally] = defaultdict(Tally)
    began = time.monotonic()
    if options.part == "small":
        chunks = [seeds[i : i + CHUNK] for i in range(0, len(seeds), CHUNK)]
        run = Parallel(n_jobs=options.jobs, return_as="generator_unordered")
        for done, found in enumerate(run(delayed(small)(chunk, methods) for chunk in chunks), start=1):
            for name, tally in found.items():
                tallies[name].add(tally)
                print(*tally.faults, sep="\n", end="\n" if tally.faults else "", flush=True)
            faults = sum(len(tally.faults) for tally in tallies.values())
            print(f"{done * CHUNK} rounds, {time.monotonic() - began:.0f} s, {faults} faults", flush=True)
    else:
        for name in methods:
            tallies[name] = larger(name, seeds)
            print(f"{name}: {len(seeds)} rounds, {time.monotonic() - began:.0f} s", flush=True)
    command = f"`python tests/campaigns/heuristics.py {options.part} --rounds {options.rounds} --seed {options.seed}"
    command += "`" if methods == HEURISTICS else f" --methods {options.methods}`"
    text = (small_table if options.part == "small" else late_table)(tallies, command)
    options.out.write_text(text, encoding="utf-8")
    print(text)
    return int(any(tally.faults or too_late(tally) for tally in tallies.values()))


def small(seeds: range, methods: Sequence[str]) -> dict[str, Tally]:
    """Solve a small round per seed by every method, twice, and compare with brute force."""
    tallies = {name: Tally() for name in methods}
    with Engine(isolation="thread") as engine:
        for seed in seeds:
            round_ = random_round(np.random.default_rng(seed), changes=seed % CHANGES_EVERY == 0)
            best, least, _ = Enumeration(compile_problem(round_)).best()
            for name, tally in tallies.items():
                try:
                    examine(engine, round_, name, seed, best, least, tally)
                except Exception as error:  # noqa: BLE001 - a round that breaks something is what a campaign looks for
                    tally.faults.append(f"{name}, seed {seed}: {type(error).__name__}: {error}")
    return tallies


def examine(engine: Engine, round_: Instance, name: str, seed: int, best: int, least: int, tally: Tally) -> None:
    """Solve twice; note the gap and all that is wrong."""
    plan, again = (engine.solve(round_, method=name, seed=seed, deterministic=True) for _ in range(2))
    faults = [violation.message for violation in violations(round_, plan)] + audit(round_, plan)
    cut = "time" in (plan.limit, again.limit)  # on a machine so busy nothing is promised
    tally.cut += cut
    if not cut and plan.model_dump_json() != again.model_dump_json():
        faults.append("another plan with the same seed")
    found = plan.levels[0].objective
    if found > best:
        faults.append(f"value {found} above the best, {best}")
    tally.faults += [f"{name}, seed {seed}: {fault}" for fault in faults]
    tally.gaps.append((best - found) / max(1, best))
    if found == best and len(plan.levels) > 1:
        tally.cheapest.append(plan.levels[1].objective == least)


def larger(name: str, seeds: range) -> Tally:
    """Solve a generated round per seed with a limit, and note how late the plan comes."""
    tally = Tally()
    with Engine() as engine:
        engine.solve(generate("uniform", jobs=5, nodes=2, gpus=4, seed=0), method=name)  # the solver process is warm
        for seed in seeds:
            rng = np.random.default_rng(seed)
            spec, gpus = SHAPES[int(rng.integers(len(SHAPES)))]
            jobs, limit = int(rng.integers(50, 1500)), LIMITS_S[int(rng.integers(len(LIMITS_S)))]
            round_ = generate(spec, jobs=jobs, nodes=max(4, jobs // 8), gpus=gpus, seed=seed)
            assert round_.digest  # computed once, at the reader's expense
            began = time.monotonic()
            plan = engine.solve(round_, method=name, time_limit_s=limit, seed=seed)
            late = time.monotonic() - began - limit
            tally.late.append(late)
            tally.excess.append(late / max(ALLOWED * limit, ALLOWED_S))
            faults = [violation.message for violation in violations(round_, plan)] + audit(round_, plan)
            tally.faults += [f"{name}, {round_.name}: {fault}" for fault in faults]
    return tally


def too_late(tally: Tally) -> bool:
    """Whether the 99th percentile of lateness is above what is allowed."""
    return bool(tally.excess) and float(np.percentile(tally.excess, 99)) > 1


def small_table(tallies: dict[str, Tally], command: str) -> str:
    """Return the results on small rounds as Markdown."""
    lines = [
        "# Heuristics: how near they come",
        "",
        *made_with(command),
        "",
        "Small rounds with every feature (`helpers.small_rounds`), against brute force: gap of value in percent of the",
        "best, and how often the cost is the least where the value is the greatest. Each is solved twice,",
        "deterministic; both plans pass referee and audit and are equal byte for byte, or it is a fault. Where the",
        f"clock cuts in on a busy machine, {sum(tally.cut for tally in tallies.values())} times here, equality is not",
        "asked for.",
        "",
        "| method | rounds | best value in | mean gap | 95 % below | worst | least cost in | faults |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, tally in tallies.items():
        gaps = 100 * np.array(tally.gaps)
        figures = [f"{100 * (gaps == 0).mean():.1f} %", f"{gaps.mean():.2f}", f"{np.percentile(gaps, 95):.1f}"]
        figures += [f"{gaps.max():.0f}", f"{100 * np.mean(tally.cheapest or [0]):.1f} %", str(len(tally.faults))]
        lines.append(f"| {' | '.join([name, str(len(gaps)), *figures])} |")
    return "\n".join([*lines, *faults_of(tallies)])


def late_table(tallies: dict[str, Tally], command: str) -> str:
    """Return the results against the clock as Markdown."""
    lines = [
        "# Heuristics: how late they come",
        "",
        *made_with(command),
        "",
        f"Generated rounds of 50 to 1,500 jobs, limits of {', '.join(map(str, LIMITS_S))} s: milliseconds past the",
        "limit, negative: before it. Allowed at the 99th percentile: the larger of 10 % and 0.1 s.",
        "",
        "| method | rounds | median | p99 | worst | too late | faults |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, tally in tallies.items():
        late = 1000 * np.array(tally.late)
        figures = [f"{figure:.0f}" for figure in (np.percentile(late, 50), np.percentile(late, 99), late.max())]
        figures += [str(sum(excess > 1 for excess in tally.excess)), str(len(tally.faults))]
        lines.append(f"| {' | '.join([name, str(len(late)), *figures])} |")
    late_ones = [name for name, tally in tallies.items() if too_late(tally)]
    lines += ["", f"Later than allowed at the 99th percentile: {', '.join(late_ones) or 'none'}."]
    return "\n".join([*lines, *faults_of(tallies)])


def made_with(command: str) -> list[str]:
    """Return lines that name command, machine and versions."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("placeopt", "highspy", "ortools", "numpy"))
    return [f"{command};", f"{usable_cores()} cores, Python {python_version()}, {packages}."]


def faults_of(tallies: dict[str, Tally]) -> list[str]:
    """Return lines for all that was wrong."""
    faults = [fault for tally in tallies.values() for fault in tally.faults]
    return ["", f"{len(faults)} faults.", *(f"- {fault}" for fault in faults[:50]), ""]


if __name__ == "__main__":
    sys.exit(main())
