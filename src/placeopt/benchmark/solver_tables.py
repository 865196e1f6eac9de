"""Tables of a benchmark in the forms of the field: seconds by instance, scaled means, rows for IPET, settings."""

from __future__ import annotations

from collections.abc import Sequence

from placeopt.benchmark.comparison import by_solver, ranked
from placeopt.benchmark.journal import RunRecord
from placeopt.benchmark.metrics import shifted_geometric_mean
from placeopt.benchmark.scored_cases import ScoredCase, sense_of
from placeopt.benchmark.table import Table, Value
from placeopt.solvers.registry import SOLVERS

SHIFTS_S = (1.0, 10.0)
"""Shifts of the scaled means: this project's cases take seconds, those of the field's public benchmarks minutes."""
VIRTUAL_BEST = "virtual best"
LONGEST = 8
"""Most solvers whose seconds by instance fit the page."""
IPET_STATUS = {
    "ok": "ok",
    "solved": "solved_not_verified",
    "better": "better",
    "timeout": "timelimit",
    "fail": "fail",
    "abort": "fail_abort",
    "unsupported": "missing",
}
IPET_LIMITS = {"memory": "memlimit", "work": "nodelimit"}
IPET_COLUMNS = (
    *("ProblemName", "Solver", "Settings", "Status", "SolvingTime", "TimeLimit", "PrimalBound", "DualBound"),
    *("OptVal", "Objsense", "PrimalIntegral"),
)


def seconds_table(scored_cases: Sequence[ScoredCase]) -> Table:
    """Return the seconds of each proven case, and the verdict of every other one: an instance a row, as Mittelmann."""
    at = {(*scored.pair, scored.solver): scored for scored in scored_cases}
    names = ranked([scored for scored in scored_cases if scored.supported])
    rows: list[tuple[Value, ...]] = []
    for instance, seed in sorted({scored.pair for scored in scored_cases}):
        cells = (at.get((instance, seed, name)) for name in names)
        rows.append((instance, seed, *(None if scored is None else _seconds(scored) for scored in cells)))
    title = "Seconds by instance: proven in so many, or the verdict; a dash was not run"
    return Table("seconds", title, ("instance", "seed", *names), tuple(rows))


def _seconds(scored: ScoredCase) -> Value:
    return scored.wall_s if scored.solved else scored.row.verdict


def scaled_table(shared: Sequence[ScoredCase]) -> Table:
    """
    Return the shifted geometric means of wall time with both shifts, and how often they are the best solver's.

    A case without proof counts its limit. The virtual best takes of every case the fastest solver.
    """
    times = {name: {s.pair: s.spent_s for s in cases} for name, cases in by_solver(shared).items()}
    proven = {name: sum(scored.solved for scored in cases) for name, cases in by_solver(shared).items()}
    if len(times) > 1:
        pairs = next(iter(times.values()))
        times[VIRTUAL_BEST] = {pair: min(of[pair] for name, of in times.items()) for pair in pairs}
        proven[VIRTUAL_BEST] = len({scored.pair for scored in shared if scored.solved})
    means = {
        name: [shifted_geometric_mean(list(of.values()), shift) or 0.0 for shift in SHIFTS_S]
        for name, of in times.items()
    }
    least = [min((of[i] for name, of in means.items() if name != VIRTUAL_BEST), default=0.0) for i in (0, 1)]
    rows = [
        (
            name,
            proven[name],
            *(part for mean, best in zip(of, least, strict=True) for part in (mean, _scaled(mean, best))),
        )
        for name, of in sorted(means.items(), key=lambda entry: entry[1])
    ]
    columns = ("solver", "proven", *(part for s in SHIFTS_S for part in (f"s, shift {s:g}", f"scaled, shift {s:g}")))
    return Table("scaled", "Shifted geometric means of seconds, scaled to the best solver's", columns, tuple(rows))


def _scaled(mean: float, best: float) -> float | None:
    return mean / best if best > 0 else None


def ipet_table(scored_cases: Sequence[ScoredCase]) -> Table:
    """Return a row per case under the keys and status words of IPET (Interactive Performance Evaluation Tools)."""
    senses: dict[str, int] = {}
    for scored in scored_cases:
        name = scored.row.case.instance
        if name not in senses:
            alike = [other.row for other in scored_cases if other.row.case.instance == name]
            senses[name] = -1 if sense_of(alike) == "max" else 1
    rows: list[tuple[Value, ...]] = []
    for scored in scored_cases:
        case, answer = scored.row.case, scored.row.answer
        status = IPET_STATUS[scored.row.verdict]
        rows.append(
            (
                *(case.instance, scored.solver, f"seed-{case.seed}"),
                IPET_LIMITS.get(answer.limit, status) if status == "timelimit" else status,
                *(answer.wall_s, case.time_limit_s, answer.objective, answer.bound),
                *(scored.best, senses[case.instance], scored.primal_s if scored.supported else None),
            )
        )
    return Table("ipet", "Rows for IPET", IPET_COLUMNS, tuple(rows))


def settings_table(runs: Sequence[RunRecord], scored_cases: Sequence[ScoredCase]) -> Table:
    """Return the version of every solver, of the last run that states one, and what is set beyond the limits."""
    versions: dict[str, str] = {}
    for run in runs:
        versions |= run.versions
    rows = []
    for name in sorted({scored.row.case.solver for scored in scored_cases}):
        entry = SOLVERS.get(name)
        own = versions.get(name) or (None if entry is None else f"{entry.package} {versions.get(entry.package, '?')}")
        of = f"placeopt {versions.get('placeopt', '?')}" if entry is None else own
        rows.append((name, of, "" if entry is None else entry.settings))
    title = "Versions and options; all are asked for proofs (gap 0) with the same limit, threads and seed"
    return Table("settings", title, ("solver", "version", "options beyond these"), tuple(rows))


def is_short(table: Table) -> bool:
    """Return whether seconds by instance fit the page."""
    return len(table.columns) - 2 <= LONGEST
