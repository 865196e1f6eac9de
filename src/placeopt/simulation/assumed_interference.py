"""What traces do not state: how jobs slow each other. Nothing is assumed of them, or they are kinds of SC'17."""

from __future__ import annotations

from typing import Literal

from placeopt.generators.job_kinds import PROFILES, WEIGHTS, slowdowns
from placeopt.model import Communication, Slowdown

Assumed = Literal["none", "sc17"]
"""``none``: no job slows another, whatever its place. ``sc17``: each job is one of six kinds of SC'17, drawn."""
SPREAD_THOUSANDTHS = {"alexnet-tiny": 249, "alexnet-small": 230, "alexnet-medium": 19, "alexnet-big": 9}
"""
Two GPUs across sockets against two in one, measured by SC'17's artifact (batch 1, 4, 64, 128): what a job of several
GPUs loses where they are as far apart as a machine allows.
"""
SPREAD_THOUSANDTHS |= {"googlenet-tiny": 29, "googlenet-big": 9}
DIVIDED = 1000
"""
Excess run time in thousandths beside a job on the same GPU, on top of what one in the same socket costs: jobs request
whole GPUs, and one that is shared is divided in time.
"""
WHOLE_GPUS = "whole-gpus"
"""Profile of jobs that ask for whole GPUs, where nothing else is known of them: a GPU that two share is divided."""


def assumed_kind(assumed: Assumed, kind: int, gpus: int) -> tuple[str, Communication]:
    """Return profile and communication of a job of whole GPUs; ``kind``: index in the profiles of SC'17."""
    if assumed == "none":
        return WHOLE_GPUS, Communication()
    profile = PROFILES[kind]
    if gpus < 2:
        return profile, Communication()
    return profile, Communication(weight=WEIGHTS[kind], spread_slowdown_thousandths=SPREAD_THOUSANDTHS[profile])


def assumed_slowdowns(assumed: Assumed) -> tuple[Slowdown, ...]:
    """Return the slowdowns of these profiles by neighbours, with a GPU that is shared divided in time."""
    if assumed == "none":
        return (Slowdown(profile=WHOLE_GPUS, beside=WHOLE_GPUS, gpu_thousandths=DIVIDED),)
    stated = {(slowdown.profile, slowdown.beside): slowdown for slowdown in slowdowns()}
    every = (
        stated.get((profile, beside)) or Slowdown(profile=profile, beside=beside)
        for profile in PROFILES
        for beside in PROFILES
    )
    return tuple(
        slowdown.model_copy(update={"gpu_thousandths": DIVIDED + slowdown.gpu_thousandths}) for slowdown in every
    )
