"""Figures and one offline HTML file of rounds, plans, simulations and what-if answers; needs matplotlib."""

from placeopt.report.html.answers import WhatIfAnswer, answer_figures, answer_type
from placeopt.report.html.cluster_map import gpu_map
from placeopt.report.html.document import Fact, page
from placeopt.report.html.simulation import SimulationLog, gantt, read_log, simulation_figures

__all__ = [
    "Fact",
    "SimulationLog",
    "WhatIfAnswer",
    "answer_figures",
    "answer_type",
    "gantt",
    "gpu_map",
    "page",
    "read_log",
    "simulation_figures",
]
