"""
Drivers: loops that read a live cluster, decide rounds, and carry out their actions in the host system.

`slurm` and `kubernetes` have a room each. Both share the loop, its pauses, and the line printed after each round.
"""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.drivers.backoff import Backoff, pause_s
    from placeopt.drivers.interval import seconds_of
    from placeopt.drivers.loop import run_rounds
    from placeopt.drivers.round_line import HEADER, RoundReport
    from placeopt.drivers.unreachable import Unreachable

__all__ = [
    "HEADER",
    "Backoff",
    "RoundReport",
    "Unreachable",
    "pause_s",
    "run_rounds",
    "seconds_of",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "backoff": (
            "Backoff",
            "pause_s",
        ),
        "interval": ("seconds_of",),
        "loop": ("run_rounds",),
        "round_line": (
            "HEADER",
            "RoundReport",
        ),
        "unreachable": ("Unreachable",),
    },
)
