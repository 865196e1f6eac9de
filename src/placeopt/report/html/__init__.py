"""Figures and one offline HTML file of rounds, plans, simulations and what-if answers; needs matplotlib."""

from placeopt.report.html.cluster_map import gpu_map
from placeopt.report.html.comparison import comparisons, read_results
from placeopt.report.html.curves import step_figure
from placeopt.report.html.document import Fact, page
from placeopt.report.html.result_table import Column, ResultTable
from placeopt.report.html.results import never_ending_table, plan_table, policy_table
from placeopt.report.html.simulation import gantt, simulation_figures
from placeopt.report.html.simulation_log import SimulationLog, read_log

__all__ = [
    "Column",
    "Fact",
    "ResultTable",
    "SimulationLog",
    "comparisons",
    "gantt",
    "gpu_map",
    "never_ending_table",
    "page",
    "plan_table",
    "policy_table",
    "read_log",
    "read_results",
    "simulation_figures",
    "step_figure",
]
