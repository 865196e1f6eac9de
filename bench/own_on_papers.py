"""
Ours beside each paper's own system, on the paper's own figures: ``python bench/own_on_papers.py --rows FOLDER``.

The settings are those of ``placeopt bench papers`` (``docs/papers.md``), and the runs are kept as that keeps them: they
are not played again while scenario, policy and the code that decides are the same; ``--report`` takes rows of any code,
and counts those of other code. For each figure the means over the seeds and, seed by seed, the difference of ours to
the paper's own system, with Student's interval of 95 %.
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Literal

from placeopt.environment import usable_cores, versions
from placeopt.metrics import paired_interval
from placeopt_papers.campaign import code_of, run_cases
from placeopt_papers.catalogue import SETTINGS
from placeopt_papers.journal import read_results
from placeopt_papers.measures import MEASURES
from placeopt_papers.records import PaperCase, PaperRow

INSTANCES = Path(__file__).resolve().parent.parent / "instances"


@dataclass(frozen=True)
class Match:
    """Settings of one paper: its own system, the others it compares with, ours, and its figures."""

    settings: tuple[str, ...]
    system: str
    others: tuple[str, ...]
    ours: tuple[str, ...]
    figures: tuple[str, ...]


@dataclass(frozen=True)
class Goal:
    """A limit that one figure of ``placeopt`` is to keep, alone or beside that of another policy, seed by seed."""

    setting: str
    figure: str
    against: str | None
    by: Literal["ratio", "difference"]
    limit: float
    most: bool = True
    """Whether the limit is the most that is allowed, not the least."""

    def row(self, values: dict[tuple[str, str, int], float | None]) -> str:
        """Return the row of the goal; ``values`` by policy, figure and seed."""
        pairs = [
            (value, values.get((self.against, self.figure, seed)) if self.against else 0.0)
            for (policy, figure, seed), value in values.items()
            if (policy, figure) == ("placeopt", self.figure)
        ]
        known = [(value, other) for value, other in pairs if value is not None and other is not None]
        relation = f"{' / ' if self.by == 'ratio' else ' - '}{self.against}" if self.against else ""
        what = f"{MEASURES[self.figure].title}, {MEASURES[self.figure].unit}: placeopt{relation}"
        limit = f"{'<=' if self.most else '>='} {self.limit:g}"
        if not known:
            return f"| {self.setting} | {what} | {limit} | not run | |"
        found = fmean(value / other if self.by == "ratio" else value - other for value, other in known)
        met = found <= self.limit if self.most else found >= self.limit
        return f"| {self.setting} | {what} | {limit} | {found:,.2f} | {'met' if met else 'short'} |"


GOALS = (
    Goal("sc17-artifact-100", "last_end_s", None, "difference", 1320),
    Goal("sc17-artifact-100", "slowed", None, "difference", 0),
    Goal("horus-w-large", "makespan_min", "fcfs", "ratio", 0.69),
    Goal("horus-w-large", "wait_min", "fcfs", "ratio", 0.5),
    Goal("dynamoml-12-lag", "makespan_min", "k8s-scaling", "ratio", 0.4),
    Goal("dynamoml-12-lag", "late_percent", None, "difference", 0),
    Goal("soda-whole", "gpu_at_once_percent", "coda", "difference", 6, most=False),
    *(
        goal
        for setting in ("genie-5", "genie-10", "genie-20")
        for goal in (
            Goal(setting, "in_time_percent", "genie", "difference", 0, most=False),
            Goal(setting, "makespan_h", "genie", "difference", 0),
        )
    ),
)
"""Ratios and limits that were set for ``placeopt``; a mean over seeds, each with the other policy on the same draw."""
SODA_FIGURES = ("utilisation_of_active_percent", "active_percent", "gpu_at_once_percent", "wait_s", "late_percent")
MATCHES = (
    Match(
        ("sc17-table-1", "sc17-workloads-5", "sc17-100x5", "sc17-10kx1k", "sc17-10kx1k-90"),
        "topo-aware-p",
        ("fcfs", "topo-aware"),
        ("placeopt", "placeopt-queue"),
        ("last_end_s", "wait_s", "completion_s", "slowed"),
    ),
    Match(
        ("sc17-artifact-5", "sc17-artifact-100"),
        "sc17-topo-aware-p",
        (),
        ("placeopt", "placeopt-queue"),
        ("last_end_s", "wait_s", "completion_s", "slowed"),
    ),
    Match(
        ("horus-w-small", "horus-w-large"),
        "horus",
        ("fcfs", "obp"),
        ("placeopt", "placeopt-queue"),
        ("makespan_min", "wait_min", "completion_s"),
    ),
    Match(("horus-trace",), "horus-f", ("fcfs",), ("placeopt",), ("wait_min", "makespan_h")),
    Match(
        ("dynamoml-12", "dynamoml-12-lag", "dynamoml-16"),
        "dynamoml",
        ("k8s-scaling",),
        ("placeopt", "placeopt-queue"),
        ("makespan_min", "training_min", "completion_s", "late_percent"),
    ),
    Match(
        ("soda-month", "soda-whole"),
        "soda",
        ("coda",),
        ("placeopt",),
        SODA_FIGURES,
    ),
    Match(
        ("genie-5", "genie-10", "genie-20"),
        "genie",
        ("tetris-cer", "min-min"),
        ("placeopt",),
        ("in_time_percent", "makespan_h", "normalised"),
    ),
)


def seeds_of(setting: str, seeds: int) -> Sequence[int]:
    """Return the seeds of a setting."""
    return SETTINGS[setting].seeds or range(seeds)


def beside(system: str, policy: str, key: str, by: dict[tuple[str, int], PaperRow]) -> str:
    """Return a figure's difference to the paper's own system, over the seeds that both have, and what it means."""
    both = [seed for name, seed in by if name == policy and (system, seed) in by]
    pairs = [(by[policy, seed].figures.get(key), by[system, seed].figures.get(key)) for seed in both]
    told = [(one, other) for one, other in pairs if one is not None and other is not None]
    if not told:
        return ""
    apart = paired_interval([one for one, _ in told], [other for _, other in told]) if len(told) > 1 else None
    mean = fmean(one - other for one, other in told)
    better = (mean > 0) is MEASURES[key].more
    if apart is None:
        return f" ({mean:+,.1f}, {'tie' if not mean else 'better' if better else 'worse'})"
    word = ("better" if better else "worse") if apart.excludes_zero else "tie"
    return f" ({mean:+,.1f} ± {apart.high - apart.mean:,.1f}, {word})"


def standing(tables: Sequence[str]) -> str:
    """Return a line on the figures in which ``placeopt`` is better, tied and worse, over all tables; the last named."""
    count = {"better": 0, "tie": 0, "worse": 0}
    behind: list[str] = []
    heads: list[str] = []
    for line in tables:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] in SETTINGS:
            heads = cells
        elif cells[0].startswith("placeopt ") or cells[0] == "placeopt":
            for head, cell in zip(heads[1:], cells[1:], strict=True):
                for word in count:
                    count[word] += cell.endswith(f"{word})")
                behind += [f"{heads[0]} ({head.strip(', ')})"] * cell.endswith("worse)")
    total, worse = sum(count.values()), ": " + "; ".join(behind) if behind else ""
    return (
        f"Of {total} figures `placeopt` is better in {count['better']}, tied in {count['tie']}, worse in "
        f"{count['worse']}{worse}."
    )


def table(match: Match, setting: str, rows: Sequence[PaperRow], seeds: int) -> list[str]:
    """Return the table of one setting: a row a policy, those without a run, or without one of each seed, told of."""
    lines = [
        f"| {setting} | {' | '.join(f'{MEASURES[key].title}, {MEASURES[key].unit}' for key in match.figures)} |",
        f"|---|{'---:|' * len(match.figures)}",
    ]
    by = {(row.case.policy, row.case.seed): row for row in rows if row.case.setting == setting}
    for policy in (*match.others, match.system, *match.ours):
        mine = sorted(seed for name, seed in by if name == policy)
        if not mine:
            lines.append(f"| {policy} | not run |{' |' * (len(match.figures) - 1)}")
            continue
        cells = []
        for key in match.figures:
            values = [by[policy, seed].figures.get(key) for seed in mine]
            known = [value for value in values if value is not None]
            cell = f"{fmean(known):,.1f}" if known else "-"
            cells.append(cell + (beside(match.system, policy, key, by) if policy in match.ours else ""))
        name = f"**{policy}**" if policy == match.system else policy
        fewer = len(mine) < len(seeds_of(setting, seeds))
        name += f" ({len(mine)} seed{'s' * (len(mine) > 1)} so far)" * fewer
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def main() -> int:
    """Simulate and report."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--rows", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--out", type=Path, help="write the tables here as well")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default="", help="settings, by commas; all if left out")
    parser.add_argument("--report", action="store_true", help="run nothing, report what there is")
    asked = parser.parse_args()
    only = asked.only.split(",") if asked.only else [setting for match in MATCHES for setting in match.settings]
    known = ", ".join(f"{name} {version}" for name, version in versions().items())
    head = [
        "# Ours beside the papers' own systems, on their own figures",
        "",
        f"`python bench/own_on_papers.py --rows FOLDER --seeds {asked.seeds}"
        f"{f' --only {asked.only}' * bool(asked.only)}`, {usable_cores()} cores, Python {platform.python_version()}, "
        f"{known}.",
        "",
        f"Means over seeds 0 to {asked.seeds - 1}; in brackets the difference of ours to the paper's own system "
        "(bold), seed by seed, with its interval of 95 %; of one draw there is none. "
        "Settings: [docs/papers.md](../docs/papers.md).",
        "",
    ]
    lines: list[str] = []
    goals: list[str] = []
    for match in MATCHES:
        for setting in (name for name in match.settings if name in only):
            cases = [
                PaperCase(setting=setting, policy=policy, seed=seed)
                for policy in (match.system, *match.ours, *match.others)
                for seed in seeds_of(setting, asked.seeds)
            ]
            if asked.report:
                there = read_results(asked.rows)[1]
                rows = [there[case] for case in cases if case in there]
            else:
                rows = run_cases(cases, asked.rows, instances=INSTANCES, command="bench/own_on_papers.py")
            lines += ["", *table(match, setting, rows, asked.seeds)]
            values = {
                (row.case.policy, key, row.case.seed): value for row in rows for key, value in row.figures.items()
            }
            goals += [goal.row(values) for goal in GOALS if goal.setting == setting]
            if other := sum(row.code != code_of(row.case) for row in rows):
                lines += ["", f"{other} of {len(rows)} rows are of other code than today's."]
    shown = ["", "| goal | what | limit | ours | |", "|---|---|---:|---:|---|", *goals] if goals else []
    text = "\n".join([*head, standing(lines), *shown, *lines, ""])
    print(text)
    if asked.out is not None:
        asked.out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
