"""Runs side by side, and a file of rows from which those that are done are taken."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from placeopt.formats.json_lines import JsonLinesFile
from placeopt.metrics import t_interval
from placeopt.parallel import run_parallel
from placeopt.simulation.replay.goals import Goal, measures
from placeopt.simulation.replay.playing import Setup, play
from placeopt.simulation.replay.records import Played, ReplayPoint

News = Callable[[Played], None]


class Runs:
    """
    Carries out runs, each once; a context manager.

    Parameters
    ----------
    rows
        A file that every finished run is appended to, and from which runs of earlier calls are taken.
    jobs
        Runs side by side, in processes; None: as ``joblib.parallel_config`` says, dask and ray included.
    cancel
        Set it from another thread: nothing new is begun, and what is cut off does not count.
    on_news
        Told of every run that is done here.
    """

    def __init__(
        self,
        rows: Path | None = None,
        *,
        jobs: int | None = 1,
        cancel: threading.Event | None = None,
        on_news: News | None = None,
    ) -> None:
        self._jobs, self._cancel, self._on_news = jobs, cancel, on_news
        self._stack = ExitStack()
        self._file = (
            None if rows is None else self._stack.enter_context(JsonLinesFile(rows, Played, "a run of a scenario"))
        )
        found = self._file.found if self._file is not None else ()
        self._done = {row.key: row for row in found if row.measures.keys() >= set(measures())}
        self._old = frozenset(self._done)
        self.kept = 0
        """Runs that were asked for and stood in the file already."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def over(self) -> bool:
        """Whether it was cancelled."""
        return self._cancel is not None and self._cancel.is_set()

    def rows_of(self, setups: Sequence[Setup]) -> list[Played | None]:
        """Carry out those that have no row, and return the rows; None for what was cut off."""
        wanted = {setup.key: setup for setup in setups}
        self.kept += sum(key in self._old for key in wanted)
        to_do = [setup for key, setup in wanted.items() if key not in self._done]
        inside = self._cancel if self._jobs == 1 else None  # no event reaches another process
        for row in run_parallel(partial(play, cancel=inside), to_do, self._jobs, cancelled=lambda: self.over):
            if row is None:
                continue
            self._done[row.key] = row
            if self._file is not None:
                self._file.append(row)
            if self._on_news is not None:
                self._on_news(row)
        return [self._done.get(setup.key) for setup in setups]


def spot_of(setting: str, rows: Sequence[Played | None], measure: str, goal: Goal | None) -> ReplayPoint | None:
    """Return a setting over all draws; None if a run of it was cut off."""
    whole = [row for row in rows if row is not None]
    if len(whole) < len(rows):
        return None
    values = [row.measures[measure] for row in whole]
    known = [value for value in values if value is not None]
    interval = t_interval(known) if len(known) == len(values) else None
    mean = sum(known) / len(known) if len(known) == len(values) else None
    low, high = (max(0.0, interval.low), interval.high) if interval is not None else (mean, mean)  # none is negative
    met = None
    if goal is not None:
        sides = {goal.meets(low), goal.meets(high)}
        met = sides.pop() if len(sides) == 1 else None
    return ReplayPoint(
        setting=setting,
        nodes=whole[0].nodes,
        values=tuple(values),
        mean=mean,
        low=low,
        high=high,
        stranded=max(row.stranded for row in whole),
        met=met,
        cut=sum(row.cut for row in whole),
    )
