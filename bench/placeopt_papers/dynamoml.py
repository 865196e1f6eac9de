"""DynamoML: figures and orders that its evaluation reports, and settings that reproduce them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from placeopt.model.scenario import Scenario
from placeopt_papers.metrics import Gain, Value
from placeopt_papers.records import WHOLE_ROUND_POLICIES, Ordering, PaperSetting, ReportedFigure
from placeopt_papers.scenarios.dynamoml import dynamoml_scenario

KEY = "dynamoml"
PLAYED = ("k8s", "k8s-sharing", "k8s-scaling", "dynamoml", *WHOLE_ROUND_POLICIES, "placeopt-elastic")
MEASURES = ("makespan_min", "training_min", "completion_s", "late_percent")


def _mix(jobs: int, seed: int, folder: Path, whole: bool) -> Scenario:
    del folder, whole
    return dynamoml_scenario(jobs=jobs, seed=seed)


SETTINGS = tuple(
    PaperSetting(
        f"dynamoml-{jobs}",
        f"DynamoML 4: {jobs} training jobs, an inference service, four notebooks on 2 x 8 V100",
        partial(_mix, jobs),
        PLAYED,
        MEASURES,
        seeds_most=3,
    )
    for jobs in (12, 16)
)
NO_TIMES = (
    "The paper has no run times: ours are set so that native Kubernetes trains 13 minutes in the mean; single jobs "
    "took far longer there than the mean tells."
)
FIGURES = (
    ReportedFigure(
        "dynamoml-scaling",
        KEY,
        "5.1",
        "whole workload, k8s-scaling",
        "min",
        67,
        Value("dynamoml-12", "k8s-scaling", "makespan_min"),
        NO_TIMES,
    ),
    ReportedFigure(
        "dynamoml-all",
        KEY,
        "5.1",
        "whole workload, dynamoml",
        "min",
        27,
        Value("dynamoml-12", "dynamoml", "makespan_min"),
        NO_TIMES,
    ),
    ReportedFigure(
        "dynamoml-training",
        KEY,
        "5.2",
        "training, dynamoml to k8s-scaling",
        "%",
        -70,
        Gain("dynamoml-12", "dynamoml", "k8s-scaling", "training_min"),
        NO_TIMES,
    ),
    ReportedFigure(
        "dynamoml-sla",
        KEY,
        "5.3",
        "requests late, dynamoml",
        "%",
        0,
        Value("dynamoml-12", "dynamoml", "late_percent"),
        NO_TIMES,
    ),
)
ORDERINGS = tuple(
    Ordering(
        KEY,
        place,
        setting.name,
        measure,
        (("dynamoml",), ("k8s-scaling",)),
        reason=NO_TIMES,
    )
    for setting in SETTINGS
    for place, measure in (("5.1", "makespan_min"), ("5.2", "training_min"), ("5.3", "late_percent"))
)
