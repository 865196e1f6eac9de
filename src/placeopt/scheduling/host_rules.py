"""What a policy does where memory bandwidth runs short, and with the replicas of endpoints: rules that hosts follow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from placeopt.scheduling.rules import BANDWIDTH, REPLICAS, Rule

if TYPE_CHECKING:
    from placeopt.scheduling.policy import Scheduling


class Throttle(Rule):
    """How CPU jobs are held back where memory bandwidth runs short, and how that is noticed (SODA V-E)."""

    by: Literal["bandwidth", "cores"] = "bandwidth"
    """
    ``bandwidth``: they get what other jobs leave (Intel's Memory Bandwidth Allocation); ``cores``: half of their cores,
    with which they go at half their pace and use half of their bandwidth; other jobs start on the cores that they
    leave, and they get them back once bandwidth suffices for all and the cores are free.
    """
    noticed_by: Literal["bandwidth", "utilisation"] = "bandwidth"
    """
    ``bandwidth``: a node's use is measured; ``utilisation``: the GPUs of a job there drop from their utilisation alone
    by ``drop_percent`` or more.
    """
    drop_percent: Annotated[int, Field(ge=1, le=99)] = 10
    """A drop of utilisation that counts as contention, in percent of that alone; ours, the paper says significantly."""

    def check(self, scheduling: Scheduling) -> None:
        if self.by == "cores" and scheduling.rounds == "whole":
            raise ValueError("bandwidth: by 'cores' goes with rounds 'each'")


class Replicas(Rule):
    """How many replicas an endpoint has, and where they run."""

    load_percent: Annotated[int, Field(ge=1, le=100)] = 80
    """Largest load of a replica, as a part of its rate; it determines their number, at least one (SODA V-D 1)."""
    on_cpu: bool = False
    """
    Whether CPU cores alone serve endpoints where they can, and one replica with GPUs would do; not where CPU jobs wait
    for these cores while GPUs are idle (SODA V-D 2).
    """


for name, parameters in (("reserve", Rule), ("ignore", Rule), ("throttle", Throttle)):
    BANDWIDTH.register(name, None, parameters)
for name in ("follow", "ahead", "peak", "first"):
    REPLICAS.register(name, None, Replicas)
