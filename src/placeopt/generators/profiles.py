"""
Six job profiles with communication weights and pairwise slowdowns, after Amaral et al. (SC'17).

Weights are those of section 5.1: 4 tiny batch, 3 small, 2 medium, 1 big. Figure 6 (two AlexNet jobs of 2 GPUs on one
machine) gives, as text: tiny beside tiny up to 30 % slower, tiny beside big 24 %, small beside big 21 %, big barely
slowed at all. The figures in between are ours, and so is that GoogLeNet, which gains far less from peer-to-peer
traffic in figure 4, suffers half of what AlexNet does.
"""

from placeopt.model import Slowdown

PROFILES = ("alexnet-tiny", "alexnet-small", "alexnet-medium", "alexnet-big", "googlenet-tiny", "googlenet-big")
WEIGHTS = (4, 3, 2, 1, 4, 1)
"""Communication weight of each profile, for jobs of two GPUs or more; one GPU does not communicate."""

_SUFFERED = {
    "tiny": {"tiny": 300, "small": 280, "medium": 260, "big": 240},
    "small": {"tiny": 260, "small": 240, "medium": 225, "big": 210},
    "medium": {"tiny": 100, "small": 90, "medium": 80, "big": 70},
}
"""Batch of the slowed job -> of the other -> excess in thousandths of the solo time. Big batches do not suffer."""


def slowdowns() -> tuple[Slowdown, ...]:
    """
    Pairwise slowdowns of all profiles.

    The excess holds for jobs that share a GPU, a switch or a socket: the artifact of the paper counts only neighbours
    in the same socket, so jobs in different sockets of a machine do not disturb each other here.
    """
    pairs = []
    for profile in PROFILES:
        net, batch = profile.split("-")
        for beside in PROFILES:
            excess = _SUFFERED.get(batch, {}).get(beside.split("-")[1], 0) // (2 if net == "googlenet" else 1)
            if excess:
                pairs.append(
                    Slowdown(
                        profile=profile,
                        beside=beside,
                        gpu_thousandths=excess,
                        switch_thousandths=excess,
                        socket_thousandths=excess,
                    )
                )
    return tuple(pairs)
