"""
Scheduling policies side by side, seed by seed: ``python bench/scheduling_policies.py --rows ROWS [--out FILE.md]``.

Scenarios: the jobs of SC'17's ``workloads-100`` drawn anew (with replacement, arrivals by a Poisson process of the
same rate); with ``--philly CSV`` windows of Philly with profiles drawn by the seed, of one day, or of several days and
one seed; with ``--sia FOLDER`` Sia's newtrace samples, a file a seed. For every policy the means over the draws, and
the difference to the best of our own policies for a whole trace, draw by draw, with Student's interval of 95 %: where
that holds 0, the two cannot be told apart.

Runs are kept as lines of ``ROWS`` and not run again while scenario, policy and the code that decides are the same.
``--report`` takes rows of any code and counts those of other code. A policy that cannot play a trace, or takes more CPU
time than ``--limit`` for a run, is a row that says so.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import platform
import random
import resource
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from placeopt import PlaceoptError, read_scenario
from placeopt.environment import usable_cores, versions
from placeopt.formats.traces import read_philly, read_sia
from placeopt.generators.philly_scenario import philly_scenario
from placeopt.generators.sia_scenario import sia_scenario
from placeopt.metrics import paired_interval
from placeopt.model import Scenario
from placeopt.simulation import named_policy, policy_names, simulate, summarise, without_utilisation
from placeopt_papers.code_digest import code_digest

PAPERS = Path(__file__).resolve().parent.parent / "instances" / "papers"
OWN = ("placeopt", "placeopt-queue", "placeopt-preemptive")
"""Ours for whole traces, which the others are compared with, figure by figure with the better one."""
FIGURES = ("completion, s", "slowed", "delayed", "wait, s", "stopped, s", "stops", "last end, s")
JUDGED = FIGURES[:3]
UNSTATED = "no data: it goes by utilisation and memory of GPUs, which the trace does not state"
Row = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """A kind of scenario: a title that tells of the first one, and one for each draw: a seed, a file or a day."""

    name: str
    title: Callable[[Scenario], str]
    make: Callable[[int], Scenario]
    draws: list[int]


def drawn_anew(seed: int) -> Scenario:
    """Return as many jobs of ``workloads-100``, drawn with replacement, that arrive at the same rate."""
    told = read_scenario(PAPERS / "sc17-workloads-100.json")
    last = max(arrival.job.arrival_ms for arrival in told.arrivals)
    dice, clock, arrivals = random.Random(seed), 0.0, []
    for i in range(len(told.arrivals)):
        clock += dice.expovariate(len(told.arrivals) / last)
        kind = dice.choice(told.arrivals)
        job = kind.job.model_copy(update={"id": str(i), "arrival_ms": 1 + int(clock)})
        arrivals.append(kind.model_copy(update={"job": job}))
    return told.model_copy(update={"name": f"sc17-drawn-s{seed}", "arrivals": tuple(arrivals)})


def kinds(arguments: argparse.Namespace) -> list[Kind]:
    """Return what was asked for."""
    chosen = []
    seeds = list(range(arguments.first_seed, arguments.first_seed + arguments.seeds))
    if arguments.drawn:
        chosen.append(Kind("drawn", lambda _: "Jobs of SC'17's workloads-100, drawn anew", drawn_anew, seeds))
    if arguments.philly is not None:
        jobs = read_philly(arguments.philly)
        days = [int(day) for day in arguments.from_day.split(",")]

        def philly(draw: int) -> Scenario:
            day, seed = (days[0], draw) if len(days) == 1 else (draw, arguments.first_seed)
            window = {"from_day": day, "days": arguments.days, "load": arguments.load}
            return philly_scenario(jobs, seed=seed, interference="sc17", **window)

        def title(scenario: Scenario) -> str:
            cluster = f"{len(scenario.arrivals):,} jobs on {len(scenario.cluster.nodes)} nodes of 8 GPUs"
            told = (
                f"day {days[0]}: {cluster}" if len(days) == 1 else f"days {arguments.from_day}; the first has {cluster}"
            )
            return f"Philly, {told}, load {arguments.load:g}"

        chosen.append(Kind("philly", title, philly, seeds if len(days) == 1 else days))
    if arguments.sia is not None:
        files = [int(number) for number in arguments.sia_files.split(",")] if arguments.sia_files else seeds

        def sia(number: int) -> Scenario:
            return sia_scenario(read_sia(arguments.sia / f"workload-{number}.csv"), name=f"sia-newtrace-{number}")

        chosen.append(
            Kind(
                "sia",
                lambda scenario: f"Sia's newtrace samples: {len(scenario.arrivals):,} jobs on 64 GPUs",
                sia,
                files,
            )
        )
    return chosen


def played(scenario: Scenario, policy: str, limit_s: int) -> Row:
    """Play one in a process of its own; the row has the CPU time of it and of its solvers."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)

    def play() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s))
        try:
            summary = summarise(simulate(scenario, named_policy(policy)))
        except PlaceoptError as error:
            there.send({"why": f"cannot play it: {error}"})
            return
        values = (
            0.0 if summary.completion_s is None else summary.completion_s.mean,
            float(summary.slowed),
            float(summary.delayed),
            0.0 if summary.wait_s is None else summary.wait_s.mean,
            0.0 if summary.stopped_s is None else summary.stopped_s.mean,
            float(summary.stops),
            summary.last_end_s or 0.0,
        )
        row: Row = {"figures": dict(zip(FIGURES, values, strict=True))}
        if summary.stranded:
            row["why"] = f"{summary.stranded} jobs never end"
        there.send(row)

    before = _children_cpu_s()
    process = context.Process(target=play)
    process.start()
    there.close()
    try:
        row: Row = here.recv()
    except EOFError:
        row = {"why": f"more than {limit_s} s of CPU time"}
    process.join()
    return row | {"cpu_s": _children_cpu_s() - before}


def _children_cpu_s() -> float:
    """Return the CPU time of all processes that were started and have ended, theirs included: solvers too."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def rows_of(kind: Kind, policies: list[str], path: Path, limit_s: int) -> dict[str, list[Row]]:
    """Return the rows of each policy, a draw each; what the file has not of today's code is played, unless limit 0."""
    known: dict[tuple[str, str], Row] = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if "figures" not in row or row["figures"].keys() >= set(FIGURES):
                known[row["scenario"], row["scheduling"]] = row
    by_policy: dict[str, list[Row]] = {name: [] for name in policies}
    scenarios = {draw: kind.make(draw) for draw in kind.draws}
    for name in policies:
        for draw, scenario in scenarios.items():
            key = scenario.digest, named_policy(name).digest
            row = known.get(key)
            if without_utilisation(scenario, named_policy(name)):
                by_policy[name].append({"why": UNSTATED})
                break
            if row is None and not limit_s:
                by_policy[name].append({"why": "not run yet"})
                break
            code = code_digest(named_policy(name))
            if row is None or (limit_s and row.get("code") != code):
                row = played(scenario, name, limit_s)
                row |= {"kind": kind.name, "draw": draw, "policy": name, "scenario": key[0], "scheduling": key[1]}
                row["code"] = code
                with path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
            by_policy[name].append(row)
            if "figures" not in row:
                break  # the other seeds would tell the same
    return by_policy


def compared(by_policy: dict[str, list[Row]]) -> list[str]:
    """Return the table of one kind of scenario."""
    able = {name: rows for name, rows in by_policy.items() if all("figures" in row for row in rows)}

    def of(name: str, figure: str) -> list[float]:
        return [row["figures"][figure] for row in able[name]]

    ours = [name for name in OWN if name in able]
    base = {figure: min(ours, key=lambda policy: fmean(of(policy, figure))) for figure in FIGURES}
    lines = [
        f"| policy | {' | '.join(FIGURES)} | CPU, s |",
        f"|---|{'---:|' * (len(FIGURES) + 1)}",
    ]
    verdicts: dict[str, tuple[list[str], list[str]]] = {figure: ([], []) for figure in JUDGED}
    for name in sorted(able, key=lambda policy: fmean(of(policy, FIGURES[0]))):
        cells = []
        why = "; ".join(dict.fromkeys(row["why"] for row in able[name] if "why" in row))
        for figure in FIGURES:
            cell = f"{fmean(of(name, figure)):,.1f}"
            apart = None if name == base[figure] else paired_interval(of(name, figure), of(base[figure], figure))
            if apart is not None and figure in verdicts:
                tie = not apart.excludes_zero
                cell += f" ({apart.mean:+,.1f} ± {apart.high - apart.mean:,.1f}{', tie' if tie else ''})"
                if name not in OWN and not why and (tie or apart.mean < 0):
                    verdicts[figure][tie].append(name)
            cells.append(cell)
        cpu = fmean(row["cpu_s"] for row in able[name])
        lines.append(f"| {name}{f' ({why})' if why else ''} | {' | '.join(cells)} | {cpu:.1f} |")
    for name in sorted(by_policy.keys() - able.keys()):
        why = next(row["why"] for row in by_policy[name] if "figures" not in row)
        lines.append(f"| {name} | {' '.join(why.split())} |{' |' * len(FIGURES)}")
    rivals = [name for name, rows in able.items() if not any("why" in row for row in rows)]

    def ahead_of(policy: str, figure: str) -> list[str]:
        """Return who is better beyond doubt."""
        apart = {other: paired_interval(of(other, figure), of(policy, figure)) for other in rivals if other != policy}
        return [name for name, by in apart.items() if by is not None and by.excludes_zero and by.mean < 0]

    def standing(policy: str) -> str:
        places = (f"{figure.split(',')[0]} behind {', '.join(ahead_of(policy, figure)) or 'none'}" for figure in JUDGED)
        return f"{policy}: {', '.join(places)}"

    words = []
    for figure, (better, ties) in verdicts.items():
        told = f"{figure}: {base[figure]}, " + (f"behind {', '.join(better)}" if better else "behind none")
        words.append(told + (f", not to be told apart from {', '.join(ties)}" if ties else ""))
    told = f"Each of ours by itself, beside all others and beyond doubt. {'; '.join(map(standing, ours))}."
    return ["Best of ours, beside which differences stand. " + "; ".join(words) + ".", "", told, "", *lines]


def of_other_code(by_policy: dict[str, list[Row]]) -> list[str]:
    """Return a line that counts the rows of other code than today's, by policy; none where there are none."""
    stale = {
        name: sum("scenario" in row and row.get("code") != code_digest(named_policy(name)) for row in rows)
        for name, rows in by_policy.items()
    }
    told = ", ".join(f"{name} {count}" for name, count in stale.items() if count)
    return ["", f"Rows of other code than today's: {told}."] if told else []


def main(arguments: Iterable[str] | None = None) -> int:
    """Simulate and report."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--out", type=Path, help="write the tables here as well")
    parser.add_argument("--rows", type=Path, required=True, help="runs, appended to and read again")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--policies", default="all", help="names, or all that there are")
    parser.add_argument("--drawn", action="store_true", help="jobs of workloads-100 drawn anew")
    parser.add_argument("--philly", type=Path, help="the trace, as Sia's simulator keeps it")
    parser.add_argument("--from-day", default="40", help="a day, or several by commas, of one seed then")
    parser.add_argument("--days", type=int, default=1)
    parser.add_argument("--load", type=float, default=0.9)
    parser.add_argument("--sia", type=Path, help="folder of Sia's workload-1.csv, workload-2.csv, ...")
    parser.add_argument("--sia-files", default="", help="numbers of these files, by commas; the seeds if left out")
    parser.add_argument("--limit", type=int, default=600, help="seconds of CPU time of a run")
    parser.add_argument("--report", action="store_true", help="run nothing, report what there is")
    asked = parser.parse_args(None if arguments is None else list(arguments))
    policies = policy_names() if asked.policies == "all" else asked.policies.split(",")
    policies = list(dict.fromkeys([*OWN, *policies]))
    known = ", ".join(f"{name} {version}" for name, version in versions().items())
    command = f"python bench/scheduling_policies.py --rows ROWS --first-seed {asked.first_seed} --seeds {asked.seeds}"
    command += f" --policies {asked.policies} --limit {asked.limit}" + " --drawn" * asked.drawn
    if asked.philly is not None:
        command += f" --philly CSV --from-day {asked.from_day} --days {asked.days} --load {asked.load:g}"
    if asked.sia is not None:
        command += " --sia FOLDER" + f" --sia-files {asked.sia_files}" * bool(asked.sia_files)
    lines = [
        "# Scheduling policies side by side",
        "",
        f"`{command}`, {usable_cores()} cores, Python {platform.python_version()}, {known}.",
        "",
        f"Means over draws (seeds, days or samples); in brackets the difference to the best of {', '.join(OWN)} in "
        "that figure, draw by draw, with its interval of 95 %. slowed: jobs that were in their places, restarts "
        "included, more than 10 % longer than they take alone and well placed; delayed: those that took so much "
        "longer from first start to end, what they waited after stops (stopped) included. CPU: with solvers.",
    ]
    for kind in kinds(asked):
        by_policy = rows_of(kind, policies, asked.rows, 0 if asked.report else asked.limit)
        lines += ["", f"## {kind.title(kind.make(kind.draws[0]))}", "", *compared(by_policy), *of_other_code(by_policy)]
    text = "\n".join([*lines, ""])
    print(text)
    if asked.out is not None:
        asked.out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
