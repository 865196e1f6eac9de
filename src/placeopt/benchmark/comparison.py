"""What a benchmark shows: solvers side by side, against a baseline, by instance and by case."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import get_args

from placeopt.benchmark.metrics import (
    penalised_average,
    performance_profile,
    primal_dual_gap,
    shifted_geometric_mean,
    steps,
)
from placeopt.benchmark.records import Verdict
from placeopt.benchmark.scored_cases import NO_ANSWER, ScoredCase, sense_of
from placeopt.formats.table import Table, Value
from placeopt.metrics import Interval, bootstrap_interval

VERDICTS = get_args(Verdict)
RANK = "by gap %, then PAR10 s, then primal-dual s"
"""What `ranked` goes by, in the words of the columns."""


def by_solver(samples: Sequence[ScoredCase]) -> dict[str, list[ScoredCase]]:
    """Return the samples of each solver, solvers in the order of their first."""
    out: dict[str, list[ScoredCase]] = {}
    for sample in samples:
        out.setdefault(sample.solver, []).append(sample)
    return out


def common(samples: Sequence[ScoredCase]) -> list[ScoredCase]:
    """
    Return the samples of the (instance, seed) pairs that every solver has run and can take.

    What one solver cannot take is compared for none; a solver that can take nothing is left out.
    """
    samples = [sample for sample in samples if sample.supported]
    counts: dict[tuple[str, int], set[str]] = defaultdict(set)
    for sample in samples:
        counts[sample.pair].add(sample.solver)
    solvers = {sample.solver for sample in samples}
    return [sample for sample in samples if counts[sample.pair] == solvers]


def ranked(samples: Sequence[ScoredCase]) -> list[str]:
    """
    Return the solvers, best first: by mean gap, then PAR10, then the mean primal-dual integral, then name.

    A solver without an integral comes after those of equal gap and PAR10 that have one.
    """

    def standing(entry: tuple[str, list[ScoredCase]]) -> tuple[float, float, float, str]:
        solver, own = entry
        times = [sample.wall_s if sample.solved else None for sample in own]
        par10 = penalised_average(times, [sample.limit_s for sample in own], 10) or 0.0
        gap, both = fmean(sample.gap for sample in own), _mean(sample.primal_dual_s for sample in own)
        return round(gap, 9), par10, math.inf if both is None else both, solver

    return [solver for solver, _ in sorted(by_solver(samples).items(), key=standing)]


def verdict_table(samples: Sequence[ScoredCase]) -> Table:
    """Return verdicts by solver."""
    rows: list[tuple[Value, ...]] = []
    for solver, own in by_solver(samples).items():
        words = [sample.row.verdict for sample in own]
        rows.append((solver, len(own), *(words.count(word) for word in VERDICTS)))
    return Table("verdicts", "Verdicts", ("solver", "cases", *VERDICTS), tuple(rows))


def summary_table(samples: Sequence[ScoredCase], shift_s: float) -> Table:
    """Return times, penalised averages, gaps and integrals by solver; unsolved cases count their whole limit."""
    rows: list[tuple[Value, ...]] = []
    for solver, own in by_solver(samples).items():
        times = [sample.wall_s if sample.solved else None for sample in own]
        limits = [sample.limit_s for sample in own]
        walls = [sample.wall_s if sample.solved else max(sample.limit_s, sample.wall_s) for sample in own]
        rows.append(
            (
                solver,
                len(own),
                sum(sample.solved for sample in own),
                shifted_geometric_mean(walls, shift_s),
                shifted_geometric_mean([sample.wall_s for sample in own], shift_s),
                shifted_geometric_mean([sample.cpu_s for sample in own], shift_s),
                penalised_average(times, limits, 2),
                penalised_average(times, limits, 10),
                100 * fmean(sample.gap for sample in own),
                _mean(sample.primal_s for sample in own),
                _mean(sample.primal_dual_s for sample in own),
            )
        )
    columns = (
        "solver",
        "cases",
        "proven",
        "wall s",
        "spent s",
        "CPU s",
        "PAR2 s",
        "PAR10 s",
        "gap %",
        "primal s",
        "primal-dual s",
    )
    title = f"Solvers on the cases that all can take and have run; shift {shift_s:g} s; best first: {RANK}"
    return Table("summary", title, columns, tuple(rows))


def comparison_table(samples: Sequence[ScoredCase], baseline: str, shift_s: float) -> Table:
    """
    Return every solver against the baseline, pair by pair, with 95 % intervals.

    A pair is an instance, its seeds averaged: of ``log(wall s + shift)`` for the ratio of times, and of final gaps.
    Wins and losses count instances on which the mean gap is smaller and larger.
    """
    solvers = by_solver(samples)
    rows: list[tuple[Value, ...]] = []
    base = _by_instance(solvers[baseline])
    for solver, own in solvers.items():
        if solver == baseline:
            continue
        mine = _by_instance(own)
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


def best_table(samples: Sequence[ScoredCase]) -> Table:
    """Return every instance once: the best value and bound of all solvers, how many have it, and who had it first."""
    rows: list[tuple[Value, ...]] = []
    for instance, own in sorted(_by_instance(samples).items()):
        right = [sample for sample in own if sample.row.verdict not in NO_ANSWER]
        sense = sense_of(sample.row for sample in own)
        best, least = (max, min) if sense == "max" else (min, max)
        found = best((s.row.answer.objective for s in right if s.row.answer.objective is not None), default=None)
        bound = least((s.row.answer.bound for s in right if s.row.answer.bound is not None), default=None)
        having = [s for s in right if found is not None and s.row.answer.objective == found]
        first = min(having, key=lambda s: (_reached(s, found), s.solver), default=None)
        gap = None if found is None or bound is None else 100 * primal_dual_gap(found, bound)
        rows.append(
            (
                *(instance, own[0].best, found, bound, gap),
                *(len({s.solver for s in having}), len({s.solver for s in own if s.solved})),
                *((None, None) if first is None else (first.solver, _reached(first, found))),
            )
        )
    columns = ("instance", "best known", "found", "bound", "apart %", "solvers", "prove it", "first", "after s")
    return Table("best", "Best by instance: how many solvers find it, and who does first", columns, tuple(rows))


def wrong_table(samples: Sequence[ScoredCase]) -> Table:
    """Return all cases that are wrong or have no answer, with what is the matter."""
    rows = tuple(
        (
            *(sample.row.case.instance, sample.solver, sample.row.case.seed, sample.row.verdict),
            "; ".join(sample.row.answer.refused) or sample.row.answer.message or "contradicts what is known",
        )
        for sample in samples
        if sample.row.verdict in NO_ANSWER
    )
    return Table("wrong", "Wrong, or without an answer", ("instance", "solver", "seed", "verdict", "why"), rows)


def _reached(sample: ScoredCase, value: int | None) -> float:
    """Seconds until a case first had a value."""
    had = (seconds for seconds, objective, *_ in sample.row.trajectory if objective == value)
    return next(had, sample.wall_s)


def instance_table(samples: Sequence[ScoredCase]) -> Table:
    """Return every instance: what is known, and of each solver its worst and best value, proven runs and mean time."""
    found: dict[tuple[str, str], list[ScoredCase]] = defaultdict(list)
    for sample in samples:
        found[(sample.row.case.instance, sample.solver)].append(sample)
    rows: list[tuple[Value, ...]] = []
    names = list(dict.fromkeys(instance for instance, _ in found))
    senses = {name: sense_of(s.row for s in own) for name, own in _by_instance(samples).items()}
    for (instance, solver), own in sorted(found.items(), key=lambda entry: names.index(entry[0][0])):
        values = [sample.row.answer.objective for sample in own]
        there = [value for value in values if value is not None]
        bounds = [sample.row.answer.bound for sample in own if sample.row.answer.bound is not None]
        worst, best = (min, max) if senses[instance] == "max" else (max, min)
        supported = [sample for sample in own if sample.supported]
        rows.append(
            (
                instance,
                solver,
                len(own),
                sum(sample.solved for sample in own),
                own[0].best,
                best(there, default=None),
                worst(there, default=None),
                worst(bounds, default=None),
                100 * fmean(sample.gap for sample in supported) if supported else None,
                _mean(sample.wall_s for sample in supported),
            )
        )
    columns = (
        *("instance", "solver", "runs", "proven", "best known", "best", "worst"),
        *("bound", "gap %", "wall s"),
    )
    return Table("instances", "By instance", columns, tuple(rows))


def case_table(samples: Sequence[ScoredCase]) -> Table:
    """Return every case."""
    columns = (
        *("instance", "solver", "seed", "verdict", "status", "limit", "objective", "bound", "cost", "cost bound"),
        *("wall s", "CPU s", "read s", "peak MiB", "gap %", "primal s", "primal-dual s", "load", "sha256", "message"),
    )
    rows: list[tuple[Value, ...]] = []
    for sample in samples:
        case, answer = sample.row.case, sample.row.answer
        rows.append(
            (
                *(case.instance, sample.solver, case.seed, sample.row.verdict, answer.status, answer.limit),
                *(answer.objective, answer.bound, answer.cost, answer.cost_bound, answer.wall_s, answer.cpu_s),
                *(answer.read_s, answer.peak_mib),
                *((100 * sample.gap, sample.primal_s, sample.primal_dual_s) if sample.supported else (None,) * 3),
                *(max(sample.row.load_before, sample.row.load_after), case.sha256, answer.message),
            )
        )
    return Table("cases", "Cases", columns, tuple(rows))


def profiles(samples: Sequence[ScoredCase]) -> dict[str, list[tuple[float, float]]]:
    """Return performance profiles of wall time over the cases given, which all solvers must have run."""
    pairs = list(dict.fromkeys(sample.pair for sample in samples))
    times: dict[str, Sequence[float | None]] = {}
    for solver, own in by_solver(samples).items():
        at = {sample.pair: sample for sample in own}
        times[solver] = [at[pair].wall_s if at[pair].solved else None for pair in pairs]
    return performance_profile(times)


def gap_shares(samples: Sequence[ScoredCase]) -> dict[str, list[tuple[float, float]]]:
    """Return of every solver the share of cases that end within a gap, as steps over the gap in percent."""
    return {
        solver: steps((100 * sample.gap for sample in own if sample.gap < 1), len(own))
        for solver, own in by_solver(samples).items()
    }


def _by_instance(samples: Sequence[ScoredCase]) -> dict[str, list[ScoredCase]]:
    out: dict[str, list[ScoredCase]] = {}
    for sample in samples:
        out.setdefault(sample.row.case.instance, []).append(sample)
    return out


def _log_time(samples: Sequence[ScoredCase], shift_s: float) -> float:
    walls = (sample.wall_s if sample.solved else max(sample.limit_s, sample.wall_s) for sample in samples)
    return fmean(math.log(wall + shift_s) for wall in walls)


def _mean(values: Iterable[float | None]) -> float | None:
    """Return the mean; None of no values, or where one is unknown."""
    there = list(values)
    known = [value for value in there if value is not None]
    return fmean(known) if known and len(known) == len(there) else None


def _gap(samples: Sequence[ScoredCase]) -> float:
    return fmean(sample.gap for sample in samples)
