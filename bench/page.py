"""``bench/README.md`` from the results: five headline tables, and what every version compares with the one before."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from curves import memory_section, primal_section, sizes_section
from history import COLUMNS, Cells, history
from rounds import GREEDY, gap_percent
from sections import section, span
from spec import FAILED, Row, latest
from specs import BASELINE, NAMES, read_spec

Results = dict[str, list[Row]]
AUTO = "auto"
LIBRARY_S = 3.0
"""Limit of the stored rounds in spec ``certificates``."""
PUBLISHED = {
    "openb-default": (95.23, 95.39),
    "openb-gpuspec33": (87.84, 94.55),
    "openb-multigpu20": (95.53, 95.65),
}
"""FGD's means over ten orders when 100 % and 130 % have come: Weng et al., ATC'23, results of its simulator."""
HEAD = """\
# Measurements

`python bench/run.py --page` writes this page from `bench/results/`; nothing here is written by hand. Each row of a
result states commit, processor, versions, date and load. Seconds are of the wall clock, on a machine that other work
shares: the column *load* says how much (2 cores; at a load of 2 both are taken), and what is above it makes seconds
longer and plans worse. Values, bounds and gaps are proven or counted, and checked by the referee.

| spec | question | minutes |
|---|---|---:|
"""
COMMANDS = """\
`python bench/run.py SPEC` measures one of them, `all` every one, `--smoke` the smallest round of each within seconds;
it exits with 1 if a round fails, and the failure is a row. `instances/` holds the rounds, and `bench/instances/` the
scripts that make them.
"""
VERSIONS = """\
`python bench/run.py baseline` measures {baseline}. Plans of method `auto`;
gaps are means over the rounds, of the value to its bound and of the cost to its bound; one above 100 % counts as 100.
`bench/baseline.jsonl` has the rows of 9be9233c; to compare the latest results with them, answer by answer:

    python bench/run.py baseline --against bench/baseline.jsonl

A version is kept runnable as a work tree of its commit, with its own environment. The specs of aa40a89d use names that
9be9233c has, too; so in a work tree of that:

    git worktree add ../placeopt-9be9233c 9be9233c
    make -C ../placeopt-9be9233c .venv/.installed
    ../placeopt-9be9233c/.venv/bin/python bench/run.py baseline --out baseline.jsonl
"""
ROUNDS = """\
`python bench/run.py library middle large openb real long`. Plans of method `auto`; medians over the rounds of a row.
The gap of the value is to the proven bound, that of the cost to the bound that holds for all plans of that value (-: no
bound). *Above greedy*: the value beside that of method `stranding` under the same limit; *below greedy*: rounds in
which greedy's is greater.
"""
UNSEEN = """\
`python bench/run.py unseen`. Rounds of 40, 80, 200 and 400 jobs on 8, 16, 32 and 64 nodes of 4, 8 and 16 GPUs, five
seeds each, digits of the commit that was measured: nothing was tuned on them. Gaps in percent over all rounds of a row,
as above; a cost without a bound counts as 100. *Best first*: rounds in which each heuristic made the best first plan.
"""
ONLINE = """\
`python bench/run.py online`. openb's pods come one after the other, none leaves and none is tried twice, until 130 %
of the GPUs have been asked for: percent of the GPUs allocated, means over orders, beside the means that FGD's authors
published for orders of their own (ATC'23).
"""
SIMULATION = """\
`python bench/run.py simulation`. Means over the jobs of a scenario, by scheduling policy; *slowed*: jobs that took
longer than alone on their GPUs. The figures that papers print, beside ours, are in
[papers/README.md](../papers/README.md).
"""
WAITS = """\
`python bench/run.py waits`. Jobs of one run time fill a cluster of 2 x 2 GPUs for 40 run times, and one job, named by
what it is or asks for, arrives after two: for how many mean run times it waits, by scheduling policy; above 20 it
starves. Policies of papers that let smaller jobs overtake let it starve, as their files say; those of placeopt hold
room for it after ten.
"""
PROOFS = """\
`python bench/run.py proofs`. Small rounds, two or three nodes of four GPUs with up to eight jobs, in which one cost
counts alone, 5 s each: of how many the least cost is proven, in the first version measured, which had an exact form of
every cost, and in the last, which has one form of each ([why](../docs/decisions.md#13-one-linear-form-for-each-cost)).
"""
CERTIFICATES = """\
`python bench/run.py certificates`. What plans claim, and how much of it `tools/verify.py` verifies from the round and a
certificate ([why and how](../docs/files.md#certificate)): bounds on value, jobs that fit nowhere, bounds on cost. The
plan has 3 s in the library and 10 s beyond, the search of proofs 10 s; the most that a round took, and its KiB as plain
JSON. *Wrong*: certificates made wrong on purpose, from those of these rounds, and how many of them were refused. Random
rounds are of every generator, 4 to 24 jobs on 2 to 6 nodes, with 1 s for each. Answers of `whatif`, `explain` and
`audit` carry no certificate: of those that N+1 holds or that no moves free a place, none is certified.
"""
LIVE = """\
`python bench/run.py live differences service`. Calls of a resource manager to a busy cluster of nodes of 8 GPUs:
milliseconds of the wall clock. Over HTTP every change is on disk before its reply.
"""
SOLVERS = """\
`python bench/run.py solvers`. 5 s a case, one thread; gaps are to the best value known (`instances/best.solu`).
"""
CAMPAIGNS = """\
`make night`, or one of them as [tests/README.md](../tests/README.md) says: checks that run for hours, each on new
random cases. *Faults* are cases that came out as they must not.
"""
FAILURES = """\
The latest results that are failures.
"""


def page(rows: list[Row]) -> str:
    """Return the page of all rows, those of the baseline first."""
    results: Results = {}
    for row in latest(rows):
        results.setdefault(row["spec"], []).append(row)
    specs = "".join(f"| `{name}` | {read_spec(name).question} | {read_spec(name).minutes:g} |\n" for name in NAMES)
    baseline = ", ".join(f"`{name}`" for name in BASELINE)
    sections = (
        COMMANDS,
        section("Versions", VERSIONS.format(baseline=baseline), rows, COLUMNS, history(rows)),
        rounds_section(results),
        sizes_section(results.get("curve", [])),
        unseen_section(results.get("unseen", [])),
        primal_section([row for row in rows if row["spec"] == "primal"]),
        online_section(results.get("online", [])),
        proofs_section([row for row in rows if row["spec"] == "proofs"]),
        certificates_section(results.get("certificates", [])),
        simulation_section(results.get("simulation", [])),
        waits_section(results.get("waits", [])),
        live_section(results),
        memory_section(results.get("memory", [])),
        solvers_section(results.get("solvers", [])),
        campaigns_section(results.get("campaigns", [])),
        failures_section(results),
    )
    return HEAD + specs + "\n" + "".join(sections)


def rounds_section(results: Results) -> str:
    """Return how far plans are from their bounds, by size, and beside greedy's."""
    lines = []
    for name, which in (("library", most_jobs(50)), ("library", least_jobs(51)), ("middle", None)):
        lines.append(rounds_line(name, [row for row in results.get(name, []) if which is None or which(row)]))
    groups: dict[tuple[str, float], list[Row]] = {}
    for row in (row for name in ("large", "openb", "real", "long") for row in results.get(name, [])):
        groups.setdefault((row["round"], row.get("limit_s", 0.0)), []).append(row)
    lines += [rounds_line(name, rows) for (name, _), rows in groups.items()]
    measured = [row for spec in ("library", "middle", "large", "openb") for row in results.get(spec, [])]
    columns = ("rounds", "number", "jobs", "limit s", "seconds", "value gap %", "worst", "cost gap %", "worst")
    more = ("proven", "value above greedy %", "below greedy", "load")
    return section("Rounds by size", ROUNDS, measured, (*columns, *more), [line for line in lines if line])


def most_jobs(jobs: int) -> Callable[[Row], bool]:
    """Return a filter of rounds of at most so many jobs."""
    return lambda row: bool(row.get("jobs", 0) <= jobs)


def least_jobs(jobs: int) -> Callable[[Row], bool]:
    """Return a filter of rounds of at least so many jobs."""
    return lambda row: bool(row.get("jobs", 0) >= jobs)


def rounds_line(name: str, rows: list[Row]) -> Cells | None:
    """Return the line of some rounds; None if there are none."""
    rows = [row for row in rows if FAILED not in row]
    ours = [row for row in rows if row["method"] == AUTO]
    greedy: dict[object, int] = {
        (row["round"], row["limit_s"]): row["value"] for row in rows if row["method"] == GREEDY
    }
    if not ours:
        return None
    values = [gap_percent(row["value"], row["value_bound"]) for row in ours]
    costs = [gap_percent(row["cost"], row["cost_bound"]) for row in ours if row["cost"]]
    pairs = [(row["value"], greedy[key]) for row in ours if (key := (row["round"], row["limit_s"])) in greedy]
    above = [100 * (value - other) / max(1, abs(other)) for value, other in pairs]
    return (
        name,
        len(ours),
        span([row["jobs"] for row in ours]),
        span([row["limit_s"] for row in ours]),
        f"{statistics.median(row['seconds'] for row in ours):.2f}",
        *middle_and_worst(values),
        *middle_and_worst(costs),
        sum(row["status"] == "optimal" for row in ours),
        f"{statistics.median(above):.2f}" if above else None,
        sum(a < b for a, b in pairs),
        span([row["load"] for row in ours]),
    )


def middle_and_worst(gaps: list[float | None]) -> tuple[str, str]:
    """Return the median and the greatest gap; those without a bound are infinite."""
    known = [float("inf") if gap is None else gap for gap in gaps]
    if not known:
        return "", ""
    found = (statistics.median_high(known), max(known))
    return tuple("-" if gap == float("inf") else f"{gap:.3g}" for gap in found)  # type: ignore[return-value]


def unseen_section(rows: list[Row]) -> str:
    """Return the distributions of gaps on unseen rounds, by generator, by size and over all."""
    rows = [row for row in rows if FAILED not in row]
    groups: dict[tuple[str, float], list[Row]] = {}
    for row in rows:
        spec, _, shape = row["round"].partition("-")
        jobs, nodes, gpus = shape.split("x")
        for name in (spec, f"{jobs} jobs, {nodes} nodes", f"nodes of {gpus} GPUs", "all"):
            groups.setdefault((name, row["limit_s"]), []).append(row)
    lines = []
    for (name, limit_s), some in sorted(groups.items(), key=lambda one: (one[0][1], one[0][0] == "all")):
        figures = [spread_of([gap for row in some for gap in row[key]]) for key in GAPS]
        first = " / ".join(
            str(sum(row[f"first_{heuristic}"] for row in some)) for heuristic in ("greedy", "drb", "swaf")
        )
        counts = [sum(row[key] for row in some) for key in ("rounds", "proven", "below_greedy")]
        seconds = max(row["seconds_most"] for row in some)
        lines.append(
            (name, limit_s, *counts, *figures[0], *figures[1], first, seconds, span([r["load"] for r in some]))
        )
    of_gap = ("median", "9 of 10", "worst")
    columns = ("rounds", "limit s", "number", "proven", "below greedy", *(f"value gap: {name}" for name in of_gap))
    more = (*(f"cost gap: {name}" for name in of_gap), "best first: greedy / DRB / SWAF", "most seconds", "load")
    return section("Unseen rounds", UNSEEN, rows, (*columns, *more), lines)


GAPS = ("value_gap_percent", "cost_gap_percent")


def spread_of(gaps: list[float]) -> tuple[str | None, ...]:
    """Return the median of gaps, what nine of ten do not exceed, and the worst; nothing of none."""
    if not gaps:
        return None, None, None
    ordered = sorted(gaps)
    return tuple(
        f"{gap:.3g}" for gap in (statistics.median(ordered), ordered[(9 * len(ordered) - 1) // 10], ordered[-1])
    )


def online_section(rows: list[Row]) -> str:
    """Return what is allocated when pods come one at a time, beside what FGD's authors published."""
    lines = [
        (
            row["round"],
            f"`{row['method']}`",
            *(row[key] for key in ("orders", "at_100_percent", "at_130_percent")),
            " / ".join(f"{one:.2f}" for one in PUBLISHED.get(row["round"], ())),
            f"{row['us_a_decision']:.0f}",
            row["load"],
        )
        for row in rows
        if FAILED not in row
    ]
    columns = ("pods", "method", "orders", "% at 100 %", "% at 130 %", "FGD published", "us a decision", "load")
    return section("One at a time", ONLINE, rows, columns, lines)


def simulation_section(rows: list[Row]) -> str:
    """Return how long jobs wait and take under scheduling policies."""
    keys = ("jobs", "wait_s", "completion_s", "makespan_s", "stops", "slowed", "decision_cpu_ms_a_job", "load")
    lines = [(row["round"], f"`{row['method']}`", *(row[key] for key in keys)) for row in rows if FAILED not in row]
    names = ("jobs", "wait s", "completion s", "makespan s", "stops", "slowed", "CPU ms a job", "load")
    return section("Simulation and papers", SIMULATION, rows, ("scenario", "policy", *names), lines)


def waits_section(rows: list[Row]) -> str:
    """Return how long a job waits behind each stream, a line for each policy."""
    found = [row for row in rows if FAILED not in row]
    streams = tuple(dict.fromkeys(row["stream"] for row in found))
    waits = {(row["round"], row["stream"]): row["victim_wait_runs"] for row in found}
    policies = dict.fromkeys(row["round"] for row in found)
    lines = [(f"`{policy}`", *(waits.get((policy, one)) for one in streams)) for policy in policies]
    return section("Waits behind a stream", WAITS, rows, ("policy", *streams), lines)


def proofs_section(rows: list[Row]) -> str:
    """Return of how many small rounds the least cost is proven, in the first version measured and in the last."""
    versions: dict[str, list[Row]] = {}
    for row in rows:
        if FAILED not in row:
            versions.setdefault(row["round"], []).append(row)
    lines = []
    for name, (first, *others) in versions.items():
        now = (others or [first])[-1]
        beyond = round(100 * (now["cost"] - first["cost"]) / max(first["cost"], 1), 1)
        proven = first["costs_proven"], now["costs_proven"]
        lines.append((name, now["rounds"], *proven, beyond, now["worst_gap_percent"], now["load"]))
    columns = ("cost", "rounds", "proven before", "proven now", "cost above before %", "worst gap %", "load")
    return section("Proofs of the least cost", PROOFS, rows, columns, lines)


def certificates_section(rows: list[Row]) -> str:
    """Return the shares of claims that are certified, over the library and for each large round."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if FAILED not in row:
            name = "library" if row.get("limit_s") == LIBRARY_S else row["round"]
            groups.setdefault("small, random" if "rounds" in row else name, []).append(row)
    kinds = ("value", "does not fit", "cost")
    lines: list[Cells] = []
    for name, some in groups.items():
        proven = [
            f"{sum(row[f'{kind}_verified'] for row in some)} of {claims}" if claims else None
            for kind in kinds
            for claims in [sum(row.get(f"{kind}_claims", 0) for row in some)]
        ]
        most = [max((row[key] for row in some if key in row), default=None) for key in ("certify_s", "verify_s", "kib")]
        tried, refused = (sum(row.get(key, 0) for row in some) for key in ("tried", "refused"))
        wrong = f"{refused} of {tried}" if tried else None
        number = sum(row.get("rounds", 1) for row in some)
        if name == "small, random":
            most = [None, None, None]  # that of all of them together is no figure of a round
        lines.append((name, number, *proven, *most, wrong, span([row["load"] for row in some])))
    columns = ("rounds", "number", *kinds, "search s", "check s", "KiB", "wrong, refused", "load")
    return section("Certificates", CERTIFICATES, rows, columns, lines)


def live_section(results: Results) -> str:
    """Return how long calls take."""
    keys = ("call", "calls", "p50_ms", "p99_ms", "calls_a_second", "load")
    through = {"live": "`Engine`", "differences": "`Engine`", "service": "HTTP"}
    rows = [row for spec in through for row in results.get(spec, []) if FAILED not in row]
    lines = [(f"{through[row['spec']]}, {row['round']}", *(row.get(key) for key in keys)) for row in rows]
    columns = ("through", "call", "calls", "p50 ms", "p99 ms", "calls a second", "load")
    return section("Live calls", LIVE, rows, columns, lines)


def solvers_section(rows: list[Row]) -> str:
    """Return the gaps that solvers reach for assignment problems and mixed-integer programs."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if FAILED not in row:
            groups.setdefault((row["round"], row["method"]), []).append(row)
    lines = []
    for (name, method), some in groups.items():
        able = [row for row in some if row["verdict"] != "unsupported"]
        known = [row for row in able if row["value"] is not None and row["known"] is not None]
        gaps = [100 * abs(row["value"] - row["known"]) / max(1, abs(row["known"])) for row in known]
        seconds = [row["seconds"] for row in able]
        mean = statistics.mean(gaps) if gaps else None
        proven = sum(row["verdict"] in ("ok", "solved") for row in able)
        best = sum(gap < 1e-6 for gap in gaps)
        figures = (None if mean is None else f"{mean:.3g}", f"{statistics.median(seconds):.2f}" if seconds else None)
        lines.append((name, f"`{method}`", len(able), proven, best, *figures, span([row["load"] for row in some])))
    columns = ("problems", "solver", "cases", "proven", "best known value", "mean gap %", "median s", "load")
    return section("QAP, GAP, MIP", SOLVERS, rows, columns, lines)


def campaigns_section(rows: list[Row]) -> str:
    """Return what long tests have tried, and how often it went wrong."""
    lines = [
        (
            f"`{row['round']}`",
            "; ".join(f"{times:,} {kind}" for kind, times in row["kinds"].items()),
            len(row["faults"]),
            f"{row['seconds'] / 60:.0f}",
            f"`{row['commit']}`",
            row["load"],
        )
        for row in rows
    ]
    return section("Long tests", CAMPAIGNS, rows, ("what", "tried", "faults", "minutes", "commit", "load"), lines)


def failures_section(results: Results) -> str:
    """Return every latest row that failed."""
    rows = [row for some in results.values() for row in some if FAILED in row]
    lines = [(f"`{row['spec']}`", row["round"], row.get("method"), row[FAILED], row["date"]) for row in rows]
    return section("Failed", FAILURES, rows, ("spec", "round", "method", "why", "date"), lines)
