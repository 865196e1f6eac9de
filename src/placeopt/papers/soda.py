"""SODA: what its evaluation reports."""

from __future__ import annotations

from placeopt.papers.records import Figure, Setting

KEY = "soda"
MISSING = "The month of 30,000 GPU and 75,000 CPU jobs is not simulated yet."
SETTINGS: tuple[Setting, ...] = ()
FIGURES = (
    Figure("soda-fifo", KEY, "VI", "GPU utilisation, FIFO", "%", 45.5, None, MISSING),
    Figure("soda-drf", KEY, "VI", "GPU utilisation, DRF", "%", 45.1, None, MISSING),
    Figure("soda-coda", KEY, "VI", "GPU utilisation, CODA", "%", 59.8, None, MISSING),
    Figure("soda-soda", KEY, "VI", "GPU utilisation, SODA", "%", 65.4, None, MISSING),
    Figure("soda-at-once", KEY, "VI", "GPU jobs that start at once, SODA", "%", 88.2, None, MISSING),
)
