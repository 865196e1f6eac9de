"""Tables of a benchmark: solvers side by side, against a baseline, by instance and by case."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean
from typing import get_args

from placeopt.benchmark.journal import Verdict
from placeopt.benchmark.metrics import (
    penalised_average,
    performance_profile,
    primal_dual_gap,
    shifted_geometric_mean,
    steps,
)
from placeopt.benchmark.scored_cases import NO_ANSWER, ScoredCase, sense_of
from placeopt.benchmark.solu import Number, is_equal
from placeopt.benchmark.table import Table, Value
from placeopt.simulation.statistics import Interval, bootstrap_interval

VERDICTS = get_args(Verdict)
RANK = "by gap %, then PAR10 s, then primal-dual s"
"""The order of `ranked`, in the words of the columns."""


def by_solver(scored_cases: Sequence[ScoredCase]) -> dict[str, list[ScoredCase]]:
    """Return the scored cases of each solver, solvers in the order of their first case."""
    return _grouped(scored_cases, lambda scored: scored.solver)


def common(scored_cases: Sequence[ScoredCase]) -> list[ScoredCase]:
    """
    Return the scored cases of the (instance, seed) pairs that every solver has run and supports.

    A pair that one solver does not support is compared for none; a solver that supports no pair is left out.
    """
    scored_cases = [scored for scored in scored_cases if scored.supported]
    counts: dict[tuple[str, int], set[str]] = defaultdict(set)
    for scored in scored_cases:
        counts[scored.pair].add(scored.solver)
    solvers = {scored.solver for scored in scored_cases}
    return [scored for scored in scored_cases if counts[scored.pair] == solvers]


def ranked(scored_cases: Sequence[ScoredCase]) -> list[str]:
    """
    Return the solvers, best first: by mean gap, then PAR10, then the mean primal-dual integral, then name.

    A solver without an integral comes after those of equal gap and PAR10 that have one.
    """

    def standing(entry: tuple[str, list[ScoredCase]]) -> tuple[float, float, float, str]:
        solver, cases = entry
        times = [scored.proven_s for scored in cases]
        par10 = penalised_average(times, [scored.limit_s for scored in cases], 10) or 0.0
        gap, both = fmean(scored.gap for scored in cases), _mean(scored.primal_dual_s for scored in cases)
        return round(gap, 9), par10, math.inf if both is None else both, solver

    return [solver for solver, _ in sorted(by_solver(scored_cases).items(), key=standing)]


def verdict_table(scored_cases: Sequence[ScoredCase]) -> Table:
    """Return the number of verdicts of each kind by solver."""
    rows: list[tuple[Value, ...]] = []
    for solver, cases in by_solver(scored_cases).items():
        words = [scored.row.verdict for scored in cases]
        rows.append((solver, len(cases), *(words.count(word) for word in VERDICTS)))
    return Table("verdicts", "Verdicts", ("solver", "cases", *VERDICTS), tuple(rows))


def summary_table(scored_cases: Sequence[ScoredCase], shift_s: float) -> Table:
    """Return times, penalised averages, gaps and integrals by solver; unsolved cases count their whole limit."""
    rows: list[tuple[Value, ...]] = []
    for solver, cases in by_solver(scored_cases).items():
        times = [scored.proven_s for scored in cases]
        limits = [scored.limit_s for scored in cases]
        rows.append(
            (
                solver,
                len(cases),
                sum(scored.solved for scored in cases),
                shifted_geometric_mean([scored.spent_s for scored in cases], shift_s),
                shifted_geometric_mean([scored.wall_s for scored in cases], shift_s),
                shifted_geometric_mean([scored.cpu_s for scored in cases], shift_s),
                penalised_average(times, limits, 2),
                penalised_average(times, limits, 10),
                100 * fmean(scored.gap for scored in cases),
                _mean(scored.primal_s for scored in cases),
                _mean(scored.primal_dual_s for scored in cases),
            )
        )
    columns = (
        *("solver", "cases", "proven", "wall s", "spent s", "CPU s", "PAR2 s", "PAR10 s"),
        *("gap %", "primal s", "primal-dual s"),
    )
    title = f"Solvers on the cases that all can take and have run; shift {shift_s:g} s; best first: {RANK}"
    return Table("summary", title, columns, tuple(rows))


def comparison_table(scored_cases: Sequence[ScoredCase], baseline: str, shift_s: float) -> Table:
    """
    Return every solver against the baseline, pair by pair, with 95 % intervals.

    A pair is an instance, its seeds averaged: of ``log(wall s + shift)`` for the ratio of times, and of final gaps.
    Wins and losses count instances on which the mean gap is smaller and larger.
    """
    solvers = by_solver(scored_cases)
    rows: list[tuple[Value, ...]] = []
    base = _by_instance(solvers[baseline])
    for solver, cases in solvers.items():
        if solver == baseline:
            continue
        mine = _by_instance(cases)
        names = [name for name in base if name in mine]
        log_ratios = [_log_time(mine[name], shift_s) - _log_time(base[name], shift_s) for name in names]
        gaps = [100 * (_gap(mine[name]) - _gap(base[name])) for name in names]
        ratio, gap = paired_interval(log_ratios), paired_interval(gaps)
        if ratio is None or gap is None:
            continue
        rows.append(
            (
                solver,
                len(names),
                *(math.exp(value) for value in (ratio.mean, ratio.low, ratio.high)),
                *(gap.mean, gap.low, gap.high),
                sum(value < 0 for value in gaps),
                sum(value == 0 for value in gaps),
                sum(value > 0 for value in gaps),
            )
        )
    columns = (
        *("solver", "instances", "time ratio", "ratio low", "ratio high"),
        *("gap points", "gap low", "gap high", "wins", "ties", "losses"),
    )
    title = f"Against {baseline}: ratio of times below 1 is faster, gap points below 0 are better; 95 % intervals"
    return Table("comparison", title, columns, tuple(rows))


def paired_interval(differences: Sequence[float]) -> Interval | None:
    """
    Return the mean of paired differences with its bootstrap interval; equal to it for one pair, None for no pairs.

    Pairs must be independent: runs of one instance with several seeds are one pair, their mean. With fewer than about
    ten pairs such intervals are too narrow.
    """
    if len(differences) == 1:
        return Interval(differences[0], differences[0], differences[0])
    return bootstrap_interval(differences)


def best_table(scored_cases: Sequence[ScoredCase]) -> Table:
    """Return per instance the best value and bound of all solvers, how many found it, and which one first."""
    rows: list[tuple[Value, ...]] = []
    for instance, cases in sorted(_by_instance(scored_cases).items()):
        right = [scored for scored in cases if scored.row.verdict not in NO_ANSWER]
        sense = sense_of(scored.row for scored in cases)
        best, least = (max, min) if sense == "max" else (min, max)
        objective = best((s.row.answer.objective for s in right if s.row.answer.objective is not None), default=None)
        bound = least((s.row.answer.bound for s in right if s.row.answer.bound is not None), default=None)
        having = [s for s in right if objective is not None and _is(s.row.answer.objective, objective)]
        first = min(having, key=lambda s: (_reached(s, objective), s.solver), default=None)
        gap = None if objective is None or bound is None else 100 * primal_dual_gap(objective, bound)
        rows.append(
            (
                *(instance, cases[0].best, objective, bound, gap),
                *(len({s.solver for s in having}), len({s.solver for s in cases if s.solved})),
                *((None, None) if first is None else (first.solver, _reached(first, objective))),
            )
        )
    columns = ("instance", "best known", "found", "bound", "apart %", "solvers", "prove it", "first", "after s")
    return Table("best", "Best by instance: how many solvers find it, and who does first", columns, tuple(rows))


def wrong_table(scored_cases: Sequence[ScoredCase]) -> Table:
    """Return all cases that are wrong or have no answer, with the reason."""
    rows = tuple(
        (
            *(scored.row.case.instance, scored.solver, scored.row.case.seed, scored.row.verdict),
            "; ".join(scored.row.answer.refused) or scored.row.answer.message or "contradicts what is known",
        )
        for scored in scored_cases
        if scored.row.verdict in NO_ANSWER
    )
    return Table("wrong", "Wrong, or without an answer", ("instance", "solver", "seed", "verdict", "why"), rows)


def _is(one: Number | None, other: Number | None) -> bool:
    return one is not None and other is not None and is_equal(one, other)


def _reached(scored: ScoredCase, value: Number | None) -> float:
    """Return the seconds until a case first reported a value."""
    had = (seconds for seconds, objective, *_ in scored.row.trajectory if _is(objective, value))
    return next(had, scored.wall_s)


def instance_table(scored_cases: Sequence[ScoredCase]) -> Table:
    """Return per instance and solver the known value, worst and best value found, proven runs and mean time."""
    grouped: dict[tuple[str, str], list[ScoredCase]] = defaultdict(list)
    for scored in scored_cases:
        grouped[(scored.row.case.instance, scored.solver)].append(scored)
    rows: list[tuple[Value, ...]] = []
    names = list(dict.fromkeys(instance for instance, _ in grouped))
    senses = {name: sense_of(s.row for s in cases) for name, cases in _by_instance(scored_cases).items()}
    for (instance, solver), cases in sorted(grouped.items(), key=lambda entry: names.index(entry[0][0])):
        values = [scored.row.answer.objective for scored in cases]
        there = [value for value in values if value is not None]
        bounds = [scored.row.answer.bound for scored in cases if scored.row.answer.bound is not None]
        worst, best = (min, max) if senses[instance] == "max" else (max, min)
        supported = [scored for scored in cases if scored.supported]
        rows.append(
            (
                instance,
                solver,
                len(cases),
                sum(scored.solved for scored in cases),
                cases[0].best,
                best(there, default=None),
                worst(there, default=None),
                worst(bounds, default=None),
                100 * fmean(scored.gap for scored in supported) if supported else None,
                _mean(scored.wall_s for scored in supported),
            )
        )
    columns = (
        *("instance", "solver", "runs", "proven", "best known", "best", "worst"),
        *("bound", "gap %", "wall s"),
    )
    return Table("instances", "By instance", columns, tuple(rows))


def case_table(scored_cases: Sequence[ScoredCase]) -> Table:
    """Return one row per case."""
    columns = (
        *("instance", "solver", "seed", "verdict", "status", "limit", "objective", "bound", "cost", "cost bound"),
        *("wall s", "CPU s", "read s", "peak MiB", "gap %", "primal s", "primal-dual s", "load", "sha256", "message"),
    )
    rows: list[tuple[Value, ...]] = []
    for scored in scored_cases:
        case, answer = scored.row.case, scored.row.answer
        rows.append(
            (
                *(case.instance, scored.solver, case.seed, scored.row.verdict, answer.status, answer.limit),
                *(answer.objective, answer.bound, answer.cost, answer.cost_bound, answer.wall_s, answer.cpu_s),
                *(answer.read_s, answer.peak_mib),
                *((100 * scored.gap, scored.primal_s, scored.primal_dual_s) if scored.supported else (None,) * 3),
                *(max(scored.row.load_before, scored.row.load_after), case.sha256, answer.message),
            )
        )
    return Table("cases", "Cases", columns, tuple(rows))


def profiles(scored_cases: Sequence[ScoredCase]) -> dict[str, list[tuple[float, float]]]:
    """Return performance profiles of wall time over the cases given, which all solvers must have run."""
    pairs = list(dict.fromkeys(scored.pair for scored in scored_cases))
    times: dict[str, Sequence[float | None]] = {}
    for solver, cases in by_solver(scored_cases).items():
        at = {scored.pair: scored for scored in cases}
        times[solver] = [at[pair].proven_s for pair in pairs]
    return performance_profile(times)


def gap_shares(scored_cases: Sequence[ScoredCase]) -> dict[str, list[tuple[float, float]]]:
    """Return by solver the share of cases that end within a gap, as steps over the gap in percent."""
    return {
        solver: steps((100 * scored.gap for scored in cases if scored.gap < 1), len(cases))
        for solver, cases in by_solver(scored_cases).items()
    }


def _by_instance(scored_cases: Sequence[ScoredCase]) -> dict[str, list[ScoredCase]]:
    return _grouped(scored_cases, lambda scored: scored.row.case.instance)


def _grouped(scored_cases: Sequence[ScoredCase], name: Callable[[ScoredCase], str]) -> dict[str, list[ScoredCase]]:
    out: dict[str, list[ScoredCase]] = {}
    for scored in scored_cases:
        out.setdefault(name(scored), []).append(scored)
    return out


def _log_time(scored_cases: Sequence[ScoredCase], shift_s: float) -> float:
    return fmean(math.log(scored.spent_s + shift_s) for scored in scored_cases)


def _mean(values: Iterable[float | None]) -> float | None:
    """Return the mean; None if there are no values or one is unknown."""
    there = list(values)
    known = [value for value in there if value is not None]
    return fmean(known) if known and len(known) == len(there) else None


def _gap(scored_cases: Sequence[ScoredCase]) -> float:
    return fmean(scored.gap for scored in scored_cases)
