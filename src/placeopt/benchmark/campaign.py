"""A benchmark campaign: plans the cases, runs those that have no row yet, side by side, and stores their rows."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType

from placeopt.benchmark.journal import MAP, SOLUTIONS, Case, Journal, Kind, KnownAtRun, Row, RunRecord
from placeopt.benchmark.sets import SetEntry, read_sets
from placeopt.benchmark.solu import Known, read_solu
from placeopt.benchmark.solver_versions import run_versions
from placeopt.benchmark.supervise import CaseOutcome, run_case
from placeopt.benchmark.verdicts import judge
from placeopt.environment import usable_cores
from placeopt.errors import BadArgument, BadInput
from placeopt.parallel import run_parallel
from placeopt.solvers.registry import SOLVERS, available
from placeopt.solving.methods import METHODS

ALL = "all"
ABLE: Mapping[Kind, Collection[str]] = MappingProxyType(
    {"placement": METHODS, "linear": SOLVERS, "quadratic": (MAP, *SOLVERS)}
)
"""Names that suit a kind of instances."""


@dataclass(frozen=True)
class CampaignPlan:
    """Cases in the order of sets, seeds and solvers; ``left_out``: solvers that suit none of the instances."""

    cases: tuple[Case, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True)
class CampaignProgress:
    """Progress of a campaign: cases done by this run, by earlier runs, and in total; the last row."""

    done: int
    kept: int
    total: int
    row: Row | None = None


def plan_cases(
    sets: Sequence[str],
    solvers: Sequence[str],
    *,
    time_limit_s: float,
    seeds: Sequence[int],
    threads: int,
    permute: bool = False,
    memory_limit_mib: int | None = None,
    instances: Path = Path("instances"),
) -> CampaignPlan:
    """
    Return the cases: every solver on every instance of its kind, with every seed.

    Parameters
    ----------
    sets
        Names of lists in ``instances``, paths of lists or of instances.
    solvers
        Methods of ``placeopt.solve`` for rounds, solvers of the gateway for integer models, those and ``map`` for
        quadratic assignment problems, or ``all``.
    time_limit_s
        Wall-clock seconds of each case.
    seeds
        One case for each of them.
    threads
        Threads of a solver.
    permute
        Every seed also shuffles jobs and nodes, or rows and columns.
    memory_limit_mib
        MiB that a solver may use in addition to what its process has loaded; None: no limit.
    instances
        Folder of the lists.

    Returns
    -------
    CampaignPlan
        The cases, and the solvers that suit none of the instances.

    Raises
    ------
    BadInput
        If a set or a solver is not known, a solver is not installed, or no solver suits any instance.
    """
    items = read_sets(sets, instances)
    names = _solvers(solvers)
    sums = {item.name: item.sha256() for item in items}
    cases = tuple(
        Case(
            instance=item.name,
            path=str(item.path),
            kind=item.kind,
            sha256=sums[item.name],
            solver=name,
            seed=seed,
            time_limit_s=time_limit_s,
            threads=threads,
            permuted=permute,
            memory_limit_mib=memory_limit_mib,
        )
        for item in items
        for seed in seeds
        for name in names
        if name in ABLE[item.kind]
    )
    suiting = set().union(*(ABLE[item.kind] for item in items))
    left_out = tuple(name for name in names if name not in suiting) if ALL not in solvers else ()
    if not cases:
        raise BadInput(f"nothing to run: {_no_case_text(items, names)}")
    return CampaignPlan(cases, left_out)


def run_cases(
    cases: Sequence[Case],
    out: Path,
    *,
    jobs: int | None = 1,
    resume: bool = True,
    solu: Path | None = None,
    command: str = "",
    cancelled: Callable[[], bool] | None = None,
    on_news: Callable[[CampaignProgress], None] | None = None,
) -> list[Row]:
    """
    Run what has not been run, append a row of each case to the folder's journal, and return the rows of all cases.

    Parameters
    ----------
    cases
        As `plan_cases` gives them.
    out
        Folder of journal and solutions; created if missing.
    jobs
        Cases side by side; None: as ``joblib.parallel_config`` says, dask and ray included.
    resume
        Whether cases that have a row are skipped; otherwise all are run, and the later row counts.
    solu
        File of known values; verdicts refer to it, and every row stores the values known of its instance.
    command
        The command line, stored with the environment.
    cancelled
        Called often; true ends the campaign, and cases that were cut off count as not run.
    on_news
        Called once at the beginning and after every row.

    Returns
    -------
    list of Row
        A row of every case, old and new, in the order of the cases.

    Raises
    ------
    BadInput
        If the folder cannot be used, see `Journal`, or the file of known values is malformed.
    """
    known = {} if solu is None else read_solu(solu)
    with Journal(out) as journal:
        wanted = {case.key: case for case in cases}
        to_do = [case for key, case in wanted.items() if not resume or key not in journal.rows]
        kept = len(wanted) - len(to_do)
        if on_news is not None:
            on_news(CampaignProgress(0, kept, len(wanted)))
        if to_do:
            journal.add(
                _run_record(len(journal.runs) + 1, command, jobs, solu, sorted({case.solver for case in to_do}))
            )
        inside = cancelled if jobs is not None else None  # a callable of this process does not reach other machines
        task = partial(run_case, folder=out.resolve() / SOLUTIONS, cancelled=inside, start=Path.cwd())
        done = 0
        for outcome in run_parallel(task, to_do, jobs, prefer="threads", cancelled=cancelled):
            if outcome is None:
                continue
            row = _row(outcome, known.get(outcome.case.instance, Known()), len(journal.runs))
            journal.add(row)
            done += 1
            if on_news is not None:
                on_news(CampaignProgress(done, kept, len(wanted), row))
        return [journal.rows[key] for key in wanted if key in journal.rows]


def _row(outcome: CaseOutcome, known: Known, run: int) -> Row:
    solution = None if outcome.solution is None else str(Path(SOLUTIONS, outcome.solution.name))
    return Row(
        run=run,
        case=outcome.case,
        answer=outcome.answer,
        verdict=judge(outcome.answer, known),
        known=KnownAtRun(value=known.value, bound=known.bound, infeasible=known.infeasible),
        solution=solution,
        trajectory=outcome.trajectory,
        began=outcome.began,
        load_before=outcome.load_before,
        load_after=outcome.load_after,
    )


def _solvers(names: Sequence[str]) -> list[str]:
    """Return the names, ``all`` expanded; raises `BadArgument` for a name that is not known or not installed."""
    installed = available()
    out: list[str] = []
    for name in names:
        if name == ALL:
            out += [*METHODS, *installed, MAP]
        elif name in METHODS or name in installed or name == MAP:
            out.append(name)
        else:
            fault = "is not installed" if name in SOLVERS else "is not known"
            raise BadArgument(
                f"solver {name!r} {fault}; methods: {', '.join(METHODS)}; solvers: {', '.join(installed)}, and for "
                f"quadratic assignment {MAP}"
            )
    return list(dict.fromkeys(out))


def _no_case_text(items: Sequence[SetEntry], names: Sequence[str]) -> str:
    if not items:
        return "the sets are empty"
    able = [name for name in ABLE[items[0].kind] if name not in SOLVERS or name in available()]
    return f"none of {', '.join(names)} takes {items[0].name}; these do: {', '.join(able)}"


def _run_record(number: int, command: str, jobs: int | None, solu: Path | None, solvers: Sequence[str]) -> RunRecord:
    return RunRecord(
        number=number,
        began=datetime.now(UTC).isoformat(timespec="seconds"),
        command=command or " ".join(sys.argv),
        machine={
            "system": f"{platform.system()} {platform.machine()}",
            "processor": _field("/proc/cpuinfo", "model name") or platform.processor() or "unknown",
            "cores": str(usable_cores()),
            "memory_mib": _memory_mib(),
        },
        versions=run_versions(solvers),
        jobs=jobs or 0,
        solu=None if solu is None else str(solu.absolute()),
    )


def _memory_mib() -> str:
    total = _field("/proc/meminfo", "MemTotal")
    return "unknown" if total is None else str(int(total.split()[0]) // 1024)


def _field(path: str, name: str) -> str | None:
    """Return the value of a field of a file in /proc; None if it is missing."""
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.partition(":")[0].strip() == name), None)
