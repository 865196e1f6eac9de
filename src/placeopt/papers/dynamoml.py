"""DynamoML: what its evaluation reports."""

from __future__ import annotations

from placeopt.papers.records import Figure, Setting

KEY = "dynamoml"
MISSING = "The mix of training, inference and notebooks (4.4) is not simulated yet."
SETTINGS: tuple[Setting, ...] = ()
FIGURES = (
    Figure("dynamoml-k8s", KEY, "4.4", "whole workload, k8s", "min", 67, None, MISSING),
    Figure("dynamoml-all", KEY, "4.4", "whole workload, dynamoml", "min", 27, None, MISSING),
    Figure("dynamoml-training", KEY, "4.4", "training time, dynamoml / k8s", "%", -70, None, MISSING),
    Figure("dynamoml-sla", KEY, "4.4", "SLA violations of inference", "%", 0, None, MISSING),
)
