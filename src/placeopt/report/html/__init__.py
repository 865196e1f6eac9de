"""Figures of what-if answers with matplotlib, and the map of the live page: both until these are views."""

from placeopt.report.html.answers import WhatIfAnswer, answer_figures, answer_type
from placeopt.report.html.failures import failures_figure

__all__ = ["WhatIfAnswer", "answer_figures", "answer_type", "failures_figure"]
