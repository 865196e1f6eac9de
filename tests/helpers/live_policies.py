"""Policies under which campaigns drive real hosts: ours, a system of each paper, baselines, and one that predicts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from placeopt import write_document
from placeopt.scheduling import Prediction, named_policy
from placeopt.systems.predictors import fit_predictor

SYSTEMS = ("rounds", "placeopt", "horus", "dynamoml", "soda", "genie", "topo-aware-p")
BASELINES = ("horus-f", "coda", "kelp-drf", "tetris-cer", "tetris-perf", "min-min", "k8s", "fcfs", "obp")
PREDICTED = "horus-predicted"
PERCENTS = (20, 60)
"""Utilisations between which profiles are measured to alternate."""


NUM_MEASURED = 20
"""Jobs that a predictor is fitted to."""


def policy_of(name: str, folder: Path, profiles: Iterable[str]) -> str:
    """Return a policy as ``--policy`` takes it: its name, or a file of Horus with utilisation predicted by profile."""
    if name != PREDICTED:
        return name
    known = [_measured(f"measured {number}", number) for number in range(NUM_MEASURED)]
    rows = tuple(_measured(profile, number) for number, profile in enumerate(profiles))
    model = fit_predictor("horus-utilisation", known, source="made for a campaign").model_dump(mode="json")
    predicts = Prediction(predictor="horus-utilisation", model=model, table=rows)
    file = folder / "policy.json"
    write_document(file, named_policy("horus").model_copy(update={"name": PREDICTED, "predictions": (predicts,)}))
    return str(file)


def _measured(profile: str, number: int) -> dict[str, str]:
    percent = PERCENTS[number % len(PERCENTS)]
    return {"profile": profile, "number": str(number), "gpu_utilisation_percent": str(percent)}
