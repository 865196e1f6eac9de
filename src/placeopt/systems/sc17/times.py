"""Times that SC'17's artifact measured, by kind of job, from ``times.csv``."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from placeopt.model import Slowdown


@dataclass(frozen=True)
class Times:
    """
    Of kinds ``<network>-<batch>-<GPUs>``, such as ``alexnet-1-2``.

    Attributes
    ----------
    run_time_ms
        Alone, in one socket; of 3 GPUs across both, for there is no other way.
    spread_thousandths
        Excess of two GPUs across sockets.
    slowdowns
        Excess beside another kind in the same socket. Two jobs of 2 GPUs were measured across the sockets, so theirs
        includes the excess of that.
    """

    run_time_ms: dict[str, int]
    spread_thousandths: dict[str, int]
    slowdowns: tuple[Slowdown, ...]

    def among(self, kinds: set[str]) -> tuple[Slowdown, ...]:
        """Return the slowdowns between these kinds."""
        return tuple(slowdown for slowdown in self.slowdowns if slowdown.profile in kinds and slowdown.beside in kinds)


@cache
def sc17_times() -> Times:
    """Read the table; comment lines state its source and licence."""
    text = files("placeopt.systems.sc17").joinpath("times.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
    alone = [row for row in rows if not row["beside"]]
    return Times(
        run_time_ms={row["kind"]: int(row["run_time_ms"]) for row in alone},
        spread_thousandths={row["kind"]: int(row["excess_thousandths"]) for row in alone},
        slowdowns=tuple(
            Slowdown(profile=row["kind"], beside=row["beside"], socket_thousandths=int(row["excess_thousandths"]))
            for row in rows
            if row["beside"]
        ),
    )
