"""Policies of the papers' settings: the named ones of placeopt, and a few of them with one field changed."""

from __future__ import annotations

from functools import cache

from placeopt.scheduling import Scheduling, named_policy

BLACK_BOXES = ("fcfs-asked", "capacity-asked", "min-min-asked", "weighted-fair-asked")
"""GENIE's baselines, to which tasks are black boxes (7.1): each runs in the shape that its owner asks for."""
VARIED: dict[str, tuple[str, dict[str, object]]] = {
    "horus-f-k4": ("horus-f", {"order": {"rule": "clusters", "clusters": 4, "batch": 15}}),
    "horus-f-k5": ("horus-f", {"order": {"rule": "clusters", "clusters": 5, "batch": 15}}),
    **{name: (name.removesuffix("-asked"), {"choice": {"rule": "valued"}}) for name in BLACK_BOXES},
    **{f"dynamoml-{every}s": ("dynamoml", {"interval_ms": 1000 * every}) for every in (15, 60)},
    "soda-no-throttle": ("soda", {"bandwidth": {"rule": "ignore"}}),
    "soda-halved": ("soda", {"bandwidth": {"rule": "throttle", "by": "cores"}}),
    "soda-by-utilisation": ("soda", {"bandwidth": {"rule": "throttle", "by": "cores", "noticed_by": "utilisation"}}),
    **{
        f"{name}-abacus": (base, {"policy": named_policy(base).policy.model_copy(update={"share_mode": "fraction"})})
        for name, base in (("kelp", "kelp-fifo"), ("coda", "coda"))
    },
}
"""
Name -> policy and changed fields: Horus 6.2 (figures 9c, 9d); DynamoML 3.3, whose scheduler acts periodically; SODA
VI-G, without its contention eliminator, V-E, where cores are halved, and figure 17, where services share GPUs.
"""


@cache
def paper_policy(name: str) -> Scheduling:
    """
    Return a policy by name.

    Raises
    ------
    BadInput
        If there is none.
    """
    if name not in VARIED:
        return named_policy(name)
    base, changed = VARIED[name]
    return Scheduling.model_validate({**dict(named_policy(base)), "name": name, **changed})
