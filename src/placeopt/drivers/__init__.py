"""
Drivers: loops that read a live cluster, decide rounds, and carry out their actions in the host system.

`slurm` and `kubernetes` have a room each. Both share the loop, its pauses, and the line printed after each round.
"""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.drivers.answers import Unreachable as Unreachable
    from placeopt.drivers.backoff import Backoff as Backoff
    from placeopt.drivers.backoff import pause_s as pause_s
    from placeopt.drivers.interval import seconds_of as seconds_of
    from placeopt.drivers.loop import run_rounds as run_rounds
    from placeopt.drivers.round_report import HEADER as HEADER
    from placeopt.drivers.round_report import DoneAction as DoneAction
    from placeopt.drivers.round_report import Outcome as Outcome
    from placeopt.drivers.round_report import RoundReport as RoundReport

__getattr__, __dir__ = lazy_names(__name__)
