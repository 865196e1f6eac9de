"""What the commands that drive a cluster share: options, and a line a round."""

from __future__ import annotations

import time
from collections import Counter
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer

from placeopt.cli.output import MAX_WIDTH, write_error, write_out
from placeopt.readable import number, plural

if TYPE_CHECKING:
    from placeopt.drivers.round_report import RoundReport
    from placeopt.scheduling import Telemetry

MAX_ACTIONS = 100_000
HEADER_EVERY = 20
"""Rounds between two headers of the table."""

Every = Annotated[str, typer.Option(metavar="TIME", help="From one round to the next, such as 15s or 2m.")]
Rounds = Annotated[int | None, typer.Option(metavar="N", help="End after as many rounds.")]
RuleChoice = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="JSON: what priorities and classes are worth, which may be preempted."),
]


TelemetryChoice = Annotated[
    str | None,
    typer.Option(
        metavar="URL|FILE", help="Where the use of GPUs is measured: a Prometheus server with DCGM's metrics, or JSON."
    ),
]


def read_telemetry(text: str | None) -> Telemetry | None:
    """Return where use is measured; None: nowhere."""
    from placeopt.scheduling.prometheus import Prometheus
    from placeopt.scheduling.telemetry import TelemetryFile

    if text is None:
        return None
    return Prometheus(text) if "://" in text else TelemetryFile(text)


class RoundTable:
    """Writes rounds to standard output, and messages about the host system to standard error."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._rounds = 0
        self._fired: Counter[str] = Counter()

    def add(self, report: RoundReport) -> None:
        """Write a round."""
        from placeopt.drivers.round_report import HEADER

        if self._as_json:
            write_out(f"{report.json()}\n")
        else:
            header = "" if self._rounds % HEADER_EVERY else f"{HEADER}\n"
            write_out(f"{header}{report.line()}\n")
        self._rounds += 1
        self._fired.update(report.fired)

    def close(self) -> None:
        """Say, for people, how often each mechanism of the policy acted in all rounds."""
        if self._fired and not self._as_json:
            acted = "; ".join(f"{what} {number(count)}" for what, count in sorted(self._fired.items()))
            write_out("\n".join(wrap(f"in {plural(self._rounds, 'round')}: {acted}", MAX_WIDTH)) + "\n")

    @staticmethod
    def message(text: str) -> None:
        """Write a message, with the time."""
        write_error(f"{time.strftime('%H:%M:%S')} {text}")
