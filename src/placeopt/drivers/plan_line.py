"""What a line about a round says of its plan."""

from __future__ import annotations

from hashlib import sha256

from placeopt.model import Plan
from placeopt.solving.bounds import relative_gap


def plan_digest(plan: Plan) -> str:
    """Return 16 hexadecimal digits of SHA-256 over what a plan places."""
    text = "\n".join(placement.model_dump_json() for placement in plan.placements)
    return sha256(text.encode()).hexdigest()[:16]


def value_gap(plan: Plan) -> float | None:
    """Return by what share of the proven bound a plan's value may be below the best one; None without a bound."""
    return relative_gap(plan.levels[0].objective, plan.levels[0].bound)
