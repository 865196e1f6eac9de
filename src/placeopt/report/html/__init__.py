"""Figures and one offline HTML file of rounds, plans, simulations and what-if answers; needs matplotlib."""

from placeopt.report.html.answers import Answer, answer_figures, kind_of
from placeopt.report.html.figure import FORMATS, Figure, can_draw, render
from placeopt.report.html.html import Fact, page
from placeopt.report.html.occupancy import gpu_map
from placeopt.report.html.simulated import Log, gantt, read_log, simulation_figures

__all__ = [
    "FORMATS",
    "Answer",
    "Fact",
    "Figure",
    "Log",
    "answer_figures",
    "can_draw",
    "gantt",
    "gpu_map",
    "kind_of",
    "page",
    "read_log",
    "render",
    "simulation_figures",
]
