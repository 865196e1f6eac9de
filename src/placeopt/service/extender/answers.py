"""The answers of an extender: scores of nodes, and the result of filter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from placeopt.live_cluster.ranking import Ranking
from placeopt.service.extender.arguments import ExtenderArgs

BEST = 10
"""``MaxExtenderPriority`` of the protocol."""


def scores_of(ranking: Ranking) -> dict[str, int]:
    """Return node -> 1 to 10: how good it is among the different scores of the ranking."""
    option = {name: i for i, name in enumerate(dict.fromkeys(ranked.option for ranked in ranking.nodes))}
    levels = {(option[ranked.option], ranked.score) for ranked in ranking.nodes}
    ordered = sorted(levels, key=lambda level: (level[0], level[1] is None, level[1] or 0))
    step = {level: i for i, level in enumerate(ordered)}
    return {
        ranked.node: BEST - (BEST - 1) * step[option[ranked.option], ranked.score] // max(1, len(step) - 1)
        for ranked in ranking.nodes
    }


def error_result(error: str) -> dict[str, Any]:
    """Return the result of a filter that was not done."""
    return {"Nodes": None, "NodeNames": None, "FailedNodes": {}, "FailedAndUnresolvableNodes": {}, "Error": error}


def filter_result(
    args: ExtenderArgs, good: Sequence[str], passing: dict[str, str], lasting: dict[str, str], error: str
) -> dict[str, Any]:
    """Return the result in the form of the arguments: node objects, or names."""
    nodes, chosen = None, set(good)
    if args.objects is not None:
        items = args.objects.get("items") or []
        nodes = {**args.objects, "items": [item for item in items if item["metadata"]["name"] in chosen]}
    return {
        "Nodes": nodes,
        "NodeNames": list(good) if args.objects is None else None,
        "FailedNodes": passing,
        "FailedAndUnresolvableNodes": lasting,
        "Error": error,
    }
