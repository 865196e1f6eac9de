"""Figures and one offline HTML file of rounds, plans, simulations and what-if answers; needs matplotlib."""

from placeopt.report.html.answers import Answer, answer_figures, kind_of
from placeopt.report.html.cluster_map import gpu_map
from placeopt.report.html.document import Fact, page
from placeopt.report.html.simulation import Log, gantt, read_log, simulation_figures

__all__ = [
    "Answer",
    "Fact",
    "Log",
    "answer_figures",
    "gantt",
    "gpu_map",
    "kind_of",
    "page",
    "read_log",
    "simulation_figures",
]
