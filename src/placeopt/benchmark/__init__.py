"""
Benchmarks: methods and solvers on named sets of instances, one killable process per case.

`sets` lists the instances, `campaign` plans and runs the cases, `supervise` starts and limits the process of a case,
`child` is that process, `journal` stores the rows. `scored_cases` and `metrics` compute figures from rows, `comparison`
tables, `figures` pictures; `report` writes them. `rechecked` checks everything that was stored again.
"""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.benchmark.campaign import CampaignPlan, CampaignProgress, plan_cases, run_cases
    from placeopt.benchmark.journal import (
        NAME,
        Case,
        CaseAnswer,
        Journal,
        Row,
        RunRecord,
        TrajectoryPoint,
        Verdict,
        read_journal,
    )
    from placeopt.benchmark.linear_files import read_model
    from placeopt.benchmark.rechecked import RecheckedRow, improve_known, recheck
    from placeopt.benchmark.report import BenchmarkReport, make_report, write_report
    from placeopt.benchmark.scored_cases import NO_ANSWER, ScoredCase, judge, score_rows
    from placeopt.benchmark.sets import MADE, SetEntry, known_sets, read_sets
    from placeopt.benchmark.statistics import round_statistics, statistics_page

__all__ = [
    "MADE",
    "NAME",
    "NO_ANSWER",
    "BenchmarkReport",
    "CampaignPlan",
    "CampaignProgress",
    "Case",
    "CaseAnswer",
    "Journal",
    "RecheckedRow",
    "Row",
    "RunRecord",
    "ScoredCase",
    "SetEntry",
    "TrajectoryPoint",
    "Verdict",
    "improve_known",
    "judge",
    "known_sets",
    "make_report",
    "plan_cases",
    "read_journal",
    "read_model",
    "read_sets",
    "recheck",
    "round_statistics",
    "run_cases",
    "score_rows",
    "statistics_page",
    "write_report",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "campaign": (
            "CampaignPlan",
            "CampaignProgress",
            "plan_cases",
            "run_cases",
        ),
        "journal": (
            "Case",
            "CaseAnswer",
            "Journal",
            "NAME",
            "Row",
            "RunRecord",
            "TrajectoryPoint",
            "Verdict",
            "read_journal",
        ),
        "linear_files": ("read_model",),
        "rechecked": (
            "RecheckedRow",
            "improve_known",
            "recheck",
        ),
        "report": (
            "BenchmarkReport",
            "make_report",
            "write_report",
        ),
        "scored_cases": (
            "NO_ANSWER",
            "ScoredCase",
            "judge",
            "score_rows",
        ),
        "sets": (
            "MADE",
            "SetEntry",
            "known_sets",
            "read_sets",
        ),
        "statistics": (
            "round_statistics",
            "statistics_page",
        ),
    },
)
