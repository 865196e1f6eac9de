"""Policies under which campaigns drive real hosts: ours, systems of the papers, baselines, and copies of some."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from placeopt import write_document
from placeopt.scheduling import Prediction, Scheduling, named_policy
from placeopt.systems.predictors import fit_predictor

SYSTEMS = ("rounds", "placeopt", "horus", "dynamoml", "soda", "genie", "topo-aware-p")
BASELINES = ("horus-f", "coda", "kelp-drf", "tetris-cer", "tetris-perf", "min-min", "k8s", "fcfs", "obp")
COPIES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "fcfs-asked": ("fcfs", {"choice": {"rule": "valued"}}, {}),
    "topo-aware-p-waits": ("topo-aware-p", {}, {"changes": {}}),
}
"""
Name -> a named policy, and what its copy states otherwise, of itself and of its rounds: owners choose the option
(GENIE 7.1), and a job waits for utility rather than that others are stopped for it, which hosts may allow (SC'17).
"""
PREDICTED = "horus-predicted"
PERCENTS = (20, 60)
"""Utilisations between which profiles are measured to alternate."""


NUM_MEASURED = 20
"""Jobs that a predictor is fitted to."""


def policy_of(name: str, folder: Path, profiles: Iterable[str]) -> str:
    """Return a policy as ``--policy`` takes it: its name, or the file of a copy or of Horus with predictions."""
    file = folder / "policy.json"
    if name in COPIES:
        file.write_text(json.dumps(_copy(name)), encoding="utf-8")
    elif name == PREDICTED:
        write_document(file, _predicted(profiles))
    else:
        return name
    return str(file)


def _copy(name: str) -> dict[str, Any]:
    base, changed, in_rounds = COPIES[name]
    stated = named_policy(base).model_dump(mode="json", exclude_unset=True)
    return {**stated, "name": name, **changed, "policy": {**stated.get("policy", {}), **in_rounds}}


def _predicted(profiles: Iterable[str]) -> Scheduling:
    known = [_measured(f"measured {number}", number) for number in range(NUM_MEASURED)]
    rows = tuple(_measured(profile, number) for number, profile in enumerate(profiles))
    model = fit_predictor("horus-utilisation", known, source="made for a campaign").model_dump(mode="json")
    predicts = Prediction(predictor="horus-utilisation", model=model, table=rows)
    return named_policy("horus").model_copy(update={"name": PREDICTED, "predictions": (predicts,)})


def _measured(profile: str, number: int) -> dict[str, str]:
    percent = PERCENTS[number % len(PERCENTS)]
    return {"profile": profile, "number": str(number), "gpu_utilisation_percent": str(percent)}
