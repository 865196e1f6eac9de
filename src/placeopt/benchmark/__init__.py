"""
Benchmarks: methods and solvers on named sets of instances, one killable process per case.

`sets` lists the instances, `campaign` plans and runs the cases, `supervise` starts and limits the process of a case,
`child` is that process, `journal` stores the rows, `verdicts` judges them. `scores` has the figures of each case,
`metrics` their formulas, `tables` compares solvers, and `views` are the answers. `rechecked` checks everything that was
stored again.
"""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.benchmark.campaign import CampaignPlan as CampaignPlan
    from placeopt.benchmark.campaign import CampaignProgress as CampaignProgress
    from placeopt.benchmark.campaign import plan_cases as plan_cases
    from placeopt.benchmark.campaign import run_cases as run_cases
    from placeopt.benchmark.journal import NAME as NAME
    from placeopt.benchmark.journal import Case as Case
    from placeopt.benchmark.journal import CaseAnswer as CaseAnswer
    from placeopt.benchmark.journal import Journal as Journal
    from placeopt.benchmark.journal import Row as Row
    from placeopt.benchmark.journal import RunRecord as RunRecord
    from placeopt.benchmark.journal import read_journal as read_journal
    from placeopt.benchmark.linear_files import read_model as read_model
    from placeopt.benchmark.rechecked import RecheckedRow as RecheckedRow
    from placeopt.benchmark.rechecked import improve_known as improve_known
    from placeopt.benchmark.rechecked import recheck as recheck
    from placeopt.benchmark.scores import score_rows as score_rows
    from placeopt.benchmark.sets import MADE as MADE
    from placeopt.benchmark.sets import SetEntry as SetEntry
    from placeopt.benchmark.sets import known_sets as known_sets
    from placeopt.benchmark.sets import read_sets as read_sets
    from placeopt.benchmark.solu import COST as COST
    from placeopt.benchmark.solu import Known as Known
    from placeopt.benchmark.solu import is_equal as is_equal
    from placeopt.benchmark.solu import read_solu as read_solu
    from placeopt.benchmark.solu import write_solu as write_solu
    from placeopt.benchmark.verdicts import judge as judge
    from placeopt.benchmark.views import checked_view as checked_view
    from placeopt.benchmark.views import report_views as report_views
    from placeopt.benchmark.views import run_view as run_view
    from placeopt.benchmark.views import sets_view as sets_view

__getattr__, __dir__ = lazy_names(__name__)
