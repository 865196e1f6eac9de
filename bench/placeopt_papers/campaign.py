"""Runs the simulations of the settings; a simulation that has a current row is not run again."""

from __future__ import annotations

import platform
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path

from placeopt import __version__
from placeopt.environment import usable_cores, versions
from placeopt.parallel import run_parallel
from placeopt.simulation import History, simulate, summarise
from placeopt_papers.catalogue import EVERY_SETTING, FIGURE_MEASURES, available_policies
from placeopt_papers.code_digest import code_digest
from placeopt_papers.journal import open_results, rows_of
from placeopt_papers.measures import allocated, held_over_time, measure_all, percentiles, slowdowns, waits_s
from placeopt_papers.one_at_a_time.protocol import OneAtATime
from placeopt_papers.policies import paper_policy
from placeopt_papers.records import WHOLE_ROUND_POLICIES, CampaignStart, PaperCase, PaperRow, PaperSetting, ResultLine


@dataclass(frozen=True)
class CampaignProgress:
    """Progress of a campaign."""

    done: int
    kept: int
    """Simulations of earlier commands."""
    total: int
    row: PaperRow | None = None


def plan_cases(
    settings: Iterable[PaperSetting], seeds: Sequence[int], *, whole: bool, instances: Path, figures: bool = False
) -> list[PaperCase]:
    """
    Return the cases of settings and seeds.

    Settings without a seed have one case per policy; policies that do not exist and settings whose trace is missing
    have none. Cases that the papers' figures need come first, seed by seed; ``WHOLE_ROUND_POLICIES``, which take
    longest, come last. ``figures``: only those that figures and orders use.
    """
    ranked = [
        (
            policy in WHOLE_ROUND_POLICIES,
            number,
            PaperCase(setting=setting.name, policy=policy, seed=seed, whole=whole and bool(setting.reduced)),
        )
        for setting in settings
        if not setting.needs or (instances / setting.needs).exists()
        for policy in available_policies(setting)
        if not figures or (setting.name, policy) in FIGURE_MEASURES
        for number, seed in enumerate(setting.played(policy, seeds))
    ]
    return [case for _, _, case in sorted(ranked, key=lambda entry: entry[:2])]


def run_cases(
    cases: Sequence[PaperCase],
    out: Path,
    *,
    instances: Path,
    jobs: int = 1,
    command: str = "",
    cancel: threading.Event | None = None,
    on_news: Callable[[CampaignProgress], None] | None = None,
) -> list[PaperRow]:
    """
    Run the cases without a current row and return the rows of ``cases``.

    Parameters
    ----------
    out
        Folder of ``results.jsonl``, which is appended to.
    instances
        Folder of the stored scenarios.
    jobs
        Simulations side by side, in processes.
    cancel
        Ends the campaign between two simulations; with one job it also stops the running simulation.

    Raises
    ------
    BadInput
        If a stored scenario is missing, or the folder cannot be written.
    """
    with open_results(out) as file:
        rows = rows_of(file.found)
        to_do = [case for case in cases if not is_current(case, rows.get(case), instances)]
        kept = len(cases) - len(to_do)
        if on_news is not None:
            on_news(CampaignProgress(0, kept, len(cases)))
        if to_do:
            file.append(ResultLine(start=start_record(command)))
        task = partial(run_case, instances=instances, cancel=cancel if jobs == 1 else None)
        stopped = None if cancel is None else cancel.is_set
        for done, row in enumerate(run_parallel(task, to_do, jobs, prefer="processes", cancelled=stopped), 1):
            if row is None:
                break
            file.append(ResultLine(row=row))
            rows[row.case] = row
            if on_news is not None:
                on_news(CampaignProgress(done, kept, len(cases), row))
        return [rows[case] for case in cases if case in rows]


def run_case(case: PaperCase, *, instances: Path, cancel: threading.Event | None = None) -> PaperRow | None:
    """Run one simulation; None if it was stopped."""
    made = EVERY_SETTING[case.setting].make(case.seed, instances, case.whole)
    started = time.process_time()
    if isinstance(made, OneAtATime):
        figures = allocated(made.allocated(case.policy))
        cpu_s = time.process_time() - started
        return _row(case, made.digest, case.policy, figures, cpu_s)
    history = simulate(made, paper_policy(case.policy), cancel=cancel)
    cpu_s = time.process_time() - started
    return row_of(case, made.digest, history, cpu_s) if history.finished else None


def write_log(case: PaperCase, path: Path, *, instances: Path) -> None:
    """Simulate a case again and write its log, from which bars by GPU are drawn."""
    made = EVERY_SETTING[case.setting].make(case.seed, instances, case.whole)
    if not isinstance(made, OneAtATime):
        simulate(made, paper_policy(case.policy), log=path)


def row_of(case: PaperCase, digest: str, history: History, cpu_s: float) -> PaperRow:
    """Return the row of a finished simulation; ``digest``: of the scenario before its endpoints became jobs."""
    summary = summarise(history)
    row = _row(case, digest, history.scheduling.digest, measure_all(summary, history), cpu_s)
    return row.model_copy(
        update={
            "waits_s": percentiles(waits_s(history)),
            "slowdowns": percentiles(slowdowns(history)),
            "held": held_over_time(history, summary.occupancy.gpus),
            "jobs": summary.jobs,
            "never_end": summary.stranded,
            "why": "; ".join(f"{entry.job}: {entry.why}" for entry in summary.never_ends[:1]),
        }
    )


def _row(case: PaperCase, digest: str, scheduling: str, figures: dict[str, float | None], cpu_s: float) -> PaperRow:
    return PaperRow(
        case=case,
        scenario=digest,
        scheduling=scheduling,
        code=code_of(case),
        version=__version__,
        figures=figures,
        cpu_s=round(cpu_s, 2),
    )


def start_record(command: str) -> CampaignStart:
    """Return a record of the machine, the versions and the command."""
    return CampaignStart(
        began=datetime.now(UTC).isoformat(timespec="seconds"),
        command=command,
        machine={"system": f"{platform.system()} {platform.machine()}", "cores": str(usable_cores())},
        versions={**versions(), "python": platform.python_version()},
    )


def is_current(case: PaperCase, row: PaperRow | None, instances: Path) -> bool:
    """Return whether the row is of the present scenario, policy, code and version, and has all measures."""
    return (
        row is not None
        and row.version == __version__
        and row.code == code_of(case)
        and has_same_inputs(case, row, instances)
    )


def has_same_inputs(case: PaperCase, row: PaperRow, instances: Path) -> bool:
    """Return whether the row is of the present scenario and policy, and has all measures; of whichever code."""
    return (
        row.figures.keys() >= {*EVERY_SETTING[case.setting].measures, *_used(case)}
        and row.scheduling == _scheduling(case)
        and row.scenario == _digest(case.setting, case.seed, case.whole, instances)
    )


def code_of(case: PaperCase) -> str:
    """Return the digest of the code that decides a case today."""
    return code_digest(None if EVERY_SETTING[case.setting].one_at_a_time else paper_policy(case.policy))


def _used(case: PaperCase) -> set[str]:
    return FIGURE_MEASURES.get((case.setting, case.policy), set())


def _scheduling(case: PaperCase) -> str:
    """Return the digest of a case's policy; for scores of greedy their name."""
    return case.policy if EVERY_SETTING[case.setting].one_at_a_time else paper_policy(case.policy).digest


@cache
def _digest(setting: str, seed: int, whole: bool, instances: Path) -> str:
    return EVERY_SETTING[setting].make(seed, instances, whole).digest
