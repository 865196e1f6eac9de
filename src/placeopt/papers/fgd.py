"""FGD: what its simulator reports of openb, by a protocol of its own."""

from __future__ import annotations

from placeopt.papers.records import Figure

KEY = "fgd"
ELSEWHERE = (
    "Pods come one at a time, none leaves and none is tried twice: bench/online.py plays that protocol, and "
    "bench/online.md has ours, at most 0.08 points off."
)
ALLOCATED = (
    ("random", 86.30, 87.47),
    ("dot-product", 90.62, 90.85),
    ("gpu-clustering", 91.65, 91.88),
    ("gpu-packing", 91.78, 92.00),
    ("best-fit", 92.86, 93.08),
    ("fgd", 95.23, 95.39),
)
FIGURES = tuple(
    Figure(f"fgd-{name}-{at}", KEY, "openb, default", f"{name}: GPUs allocated at {at} %", "%", value, None, ELSEWHERE)
    for name, *values in ALLOCATED
    for at, value in zip((100, 130), values, strict=True)
)
