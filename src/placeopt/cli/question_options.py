"""What the commands about scenarios share: their options, the instance that they ask about, and the answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from placeopt.arguments import MAX_SEED, MAX_TIME_LIMIT_S
from placeopt.cli.exits import UsageError
from placeopt.cli.files import STREAM, check_sources
from placeopt.cli.output import show, write_out
from placeopt.cli.progress import Ticker
from placeopt.cli.signals import Interruption
from placeopt.errors import BadInput

if TYPE_CHECKING:
    from rich.console import RenderableType

    from placeopt.model import Instance
    from placeopt.model.base import Record
    from placeopt.whatif.capacity import Limits
    from placeopt.whatif.steps import Patch

InstanceFile = Annotated[
    str, typer.Argument(metavar="INSTANCE", help="The cluster and what runs: .json, .json.gz or -.")
]
PlanFile = Annotated[str | None, typer.Option("--plan", metavar="PLAN", help="Ask about the time after this plan.")]
PatchFiles = Annotated[
    list[str] | None,
    typer.Option("--patch", metavar="FILE", help="Ask about the instance after a scenario; repeatable."),
]
Threads = Annotated[
    int | None, typer.Option("--threads", metavar="N", help="Threads of a solver; left out, all cores.")
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Seed of solvers and ties.")]
Jobs = Annotated[int, typer.Option("--jobs", metavar="N", help="Scenarios side by side.")]
On = Annotated[
    str,
    typer.Option(
        "--on",
        metavar="WHERE",
        help="here, dask, ray (with so many workers), dask:ADDRESS or ray:ADDRESS (all there).",
    ),
]
KeptRows = Annotated[
    str | None,
    typer.Option("--rows", metavar="FILE", help="Append every answer; what stands there is not worked out again."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.")]
KEEPS = "what is known"
"""What is kept at Ctrl-C."""


def read_base(instance: str, plan: str | None, patches: list[str] | None, ticker: Ticker | None) -> Instance:
    """Read the instance that the question is about."""
    named = {"INSTANCE": instance, "--plan": plan, **{f"--patch {n}": p for n, p in enumerate(patches or [], 1)}}
    check_sources(named)
    from placeopt.formats.documents import read_instance, read_plan
    from placeopt.formats.files import label
    from placeopt.whatif.after_plan import after_plan
    from placeopt.whatif.patch import apply_patch

    read = [read_patch(path) for path in patches or []]
    base = read_instance(instance)
    if plan is not None:
        carried_out = read_plan(plan)
        try:
            base = after_plan(base, carried_out)
        except BadInput as error:
            raise BadInput(f"{label(plan)}: {error}") from None
    if ticker is not None:
        ticker.doing("working")
    return apply_patch(base, *read).instance


class Asked(NamedTuple):
    """What a question is about, and how to tell what is done, and to be stopped."""

    base: Instance
    ticker: Ticker
    interruption: Interruption


@contextmanager
def asking(instance: str, plan: str | None, patches: list[str] | None, *, quiet: bool) -> Iterator[Asked]:
    """Read the instance that a question is about; while it is answered, progress is shown and Ctrl-C listened to."""
    with Ticker(time.monotonic(), quiet=quiet) as ticker, Interruption(KEEPS) as interruption:
        yield Asked(read_base(instance, plan, patches, ticker), ticker, interruption)


def read_patch(path: str) -> Patch:
    """Read a scenario's steps from a file."""
    from placeopt.formats.documents import loads
    from placeopt.formats.files import label, read_bytes
    from placeopt.whatif.steps import Patch

    return loads(Patch, read_bytes(path), source=label(path))


def limits_of(time_limit: float, threads: int | None, seed: int) -> Limits:
    """Return the limits of a question's rounds; raises `UsageError` where one is out of range."""
    if not 0 < time_limit <= MAX_TIME_LIMIT_S:
        raise UsageError(f"--time-limit: {time_limit!r}, expected seconds above 0 and up to {MAX_TIME_LIMIT_S}")
    if threads is not None and threads < 1:
        raise UsageError(f"--threads: {threads}, expected 1 or more")
    if not 0 <= seed <= MAX_SEED:
        raise UsageError(f"--seed: {seed}, expected 0 to {MAX_SEED}")
    from placeopt.whatif.capacity import Limits

    return Limits(time_limit_s=time_limit, threads=threads, seed=seed)


def rows_path(rows: str | None) -> Path | None:
    """Return the file of answers; raises `UsageError` for a standard stream, which cannot be gone on with."""
    if rows == STREAM:
        raise UsageError("--rows: '-', expected a file")
    return None if rows is None else Path(rows)


def deliver(found: Record, page: Callable[[], list[RenderableType]], as_json: bool) -> None:
    """Print the answer."""
    if as_json:
        write_out(found.model_dump_json(indent=2) + "\n")
    else:
        show(*page())
