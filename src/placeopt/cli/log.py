"""The log of a solve: JSON lines, each written as it happens, with timings also where the plan has none."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from placeopt.cli.output import write_error
from placeopt.errors import BadInput

if TYPE_CHECKING:
    from placeopt.model import Instance, Plan
    from placeopt.solving.bounds import Progress
    from placeopt.solving.params import SolveParams


class SolveLog:
    """
    Writes ``start``, ``progress``, ``stage`` and ``end`` events; a context manager. Without a path it does nothing.

    A full disk ends the log, not the solve.
    """

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._file: TextIO | None = None
        self._last_news: dict[str, float] = {}
        if path is not None:
            try:
                self._file = Path(path).open("w", encoding="utf-8", buffering=1)  # noqa: SIM115 - closed on exit
            except (OSError, ValueError) as error:
                reason = error.strerror if isinstance(error, OSError) else error
                raise BadInput(f"{path}: cannot be written: {reason}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            try:
                self._file.close()
            except OSError as fault:
                self._give_up(fault)

    def start(self, instance: Instance, params: SolveParams) -> None:
        """Write the instance and the options."""
        self._write("start", instance=instance.name, digest=instance.digest, **asdict(params))

    def progress(self, news: Progress) -> None:
        """Write progress of the round."""
        self._last_news[news.stage] = news.seconds
        self._write(
            "progress",
            seconds=round(news.seconds, 6),
            stage=news.stage,
            value=news.value,
            value_bound=news.value_bound,
            cost=news.cost,
            cost_bound=news.cost_bound,
            gap=news.gap,
        )

    def end(self, plan: Plan, *, read_s: float, total_s: float, code: int) -> None:
        """
        Write the stages with the time at which each ended, the phases, and the result.

        In deterministic mode a stage's ``seconds`` are those since the one before ended, the first one's since the
        instance was read.
        """
        before = read_s
        for stage in plan.stages:
            ended = self._last_news.get(stage.name, before)
            spent = ended - before if stage.seconds is None else stage.seconds
            self._write(
                "stage",
                **stage.model_dump(exclude={"seconds"}),
                seconds=round(spent, 6),
                ended_s=round(ended, 6),
            )
            before = ended
        phases = plan.seconds.model_dump() | {"read": read_s, "total": total_s}
        self._write(
            "end",
            status=plan.status,
            limit=plan.limit,
            gap=plan.gap,
            exit_code=int(code),
            seconds={name: None if spent is None else round(spent, 6) for name, spent in phases.items()},
        )

    def _write(self, event: str, **facts: object) -> None:
        if self._file is None:
            return
        try:
            self._file.write(json.dumps({"event": event, **facts}) + "\n")
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self._file = None
        write_error(f"warning: {self._path}: the log ends here: {error.strerror or error}")
