"""What the commands of ``placeopt whatif`` share: their options, the instance that they are about, and the answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from placeopt.arguments import MAX_SEED, MAX_TIME_LIMIT_S
from placeopt.cli.exits import UsageError
from placeopt.cli.files import STREAM, check_sources
from placeopt.cli.output import show, write_out
from placeopt.cli.progress import Ticker
from placeopt.cli.settings import check_jobs
from placeopt.cli.signals import Interruption
from placeopt.errors import BadInput
from placeopt.parallel import HERE, workers

if TYPE_CHECKING:
    from rich.console import RenderableType

    from placeopt.model import Instance
    from placeopt.model.base import Record
    from placeopt.whatif.round_solving import Limits
    from placeopt.whatif.steps import Patch

InstanceFile = Annotated[
    str, typer.Argument(metavar="INSTANCE", help="The cluster and its running jobs: .json, .json.gz or -.")
]
PlanFile = Annotated[
    str | None, typer.Option("--plan", metavar="PLAN", help="Carry out this plan first, then answer the question.")
]
PatchFiles = Annotated[
    list[str] | None,
    typer.Option("--patch", metavar="FILE", help="Apply these changes first (a scenario of steps); repeatable."),
]
Threads = Annotated[
    int | None, typer.Option("--threads", metavar="N", help="Threads of a solver; by default all usable cores.")
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Seed of solvers and of tie-breaking.")]
Jobs = Annotated[int, typer.Option("--jobs", metavar="N", help="Rounds to solve in parallel.")]
On = Annotated[
    str,
    typer.Option(
        "--on",
        metavar="WHERE",
        help="here, dask or ray (with --jobs workers), dask:ADDRESS or ray:ADDRESS (all workers there).",
    ),
]
KeptRows = Annotated[
    str | None,
    typer.Option("--rows", metavar="FILE", help="Append every answer; answers in the file are not computed again."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print no progress.")]
KEEPS = "what is known"
"""What is kept at Ctrl-C, for the message."""


class Answering(NamedTuple):
    """The instance of a question, its progress line, the signal that ends it, and the number of parallel rounds."""

    base: Instance
    ticker: Ticker
    interruption: Interruption
    jobs: int | None = 1


@dataclass(frozen=True, kw_only=True)
class Question:
    """The options of every question about an instance."""

    instance: InstanceFile
    plan: PlanFile = None
    patch: PatchFiles = None
    as_json: AsJson = False
    quiet: Quiet = False

    @property
    def sources(self) -> tuple[str | None, ...]:
        """Files that are read."""
        return (self.instance, self.plan, *(self.patch or ()))

    @contextmanager
    def answering(self) -> Iterator[Answering]:
        """Read the instance; show progress and handle Ctrl-C until the block ends."""
        with Ticker(time.monotonic(), quiet=self.quiet) as ticker, Interruption(KEEPS) as interruption:
            yield Answering(read_base(self.instance, self.plan, self.patch, ticker), ticker, interruption)

    def deliver(self, found: Record, page: Callable[[], list[RenderableType]]) -> None:
        """Print the answer."""
        deliver(found, page, self.as_json)


@dataclass(frozen=True, kw_only=True)
class SolverQuestion(Question):
    """With the options of the solver."""

    threads: Threads = None
    seed: Seed = 0

    def limits(self, time_limit_s: float) -> Limits:
        """Return the limits of the question's rounds; raises `UsageError` where one is out of range."""
        return limits_of(time_limit_s, self.threads, self.seed)


@dataclass(frozen=True, kw_only=True)
class ParallelQuestion(SolverQuestion):
    """With the options of many rounds."""

    jobs: Jobs = 1
    on: On = HERE
    rows: KeptRows = None

    def limits(self, time_limit_s: float) -> Limits:
        """Return the limits of the question's rounds; raises `UsageError` where one, or ``jobs``, is out of range."""
        limits = super().limits(time_limit_s)
        check_jobs(self.jobs)
        return limits

    @contextmanager
    def answering(self) -> Iterator[Answering]:
        """Read the instance and start the workers; show progress and handle Ctrl-C until the block ends."""
        with super().answering() as one, workers(self.on, self.jobs) as width:
            yield one._replace(jobs=width)

    def parallel(self, answering: Answering, unit: str) -> dict[str, Any]:
        """Return the arguments of a function that solves many rounds; progress counts them by ``unit``."""
        return {
            "jobs": answering.jobs,
            "rows": rows_path(self.rows),
            "cancel": answering.interruption.event,
            "on_news": lambda done, total: answering.ticker.doing(f"{done:,} of {total:,} {unit}"),
        }


def read_base(instance: str, plan: str | None, patches: list[str] | None, ticker: Ticker | None) -> Instance:
    """Return the instance after a plan and patches."""
    named = {"INSTANCE": instance, "--plan": plan, **{f"--patch {n}": p for n, p in enumerate(patches or [], 1)}}
    check_sources(named)
    from placeopt.formats.documents import read_instance, read_plan
    from placeopt.formats.files import label
    from placeopt.whatif.from_running import after_plan
    from placeopt.whatif.patch import apply_patch

    changes = [read_patch(path) for path in patches or []]
    base = read_instance(instance)
    if plan is not None:
        carried_out = read_plan(plan)
        try:
            base = after_plan(base, carried_out)
        except BadInput as error:
            raise BadInput(f"{label(plan)}: {error}") from None
    if ticker is not None:
        ticker.doing("working")
    return apply_patch(base, *changes).instance


def read_patch(path: str) -> Patch:
    """Return a patch, the steps that change an instance, from a file."""
    from placeopt.formats.documents import read_document
    from placeopt.whatif.steps import Patch

    return read_document(Patch, path)


def limits_of(time_limit: float, threads: int | None, seed: int) -> Limits:
    """Return the limits of a question's rounds; raises `UsageError` where one is out of range."""
    if not 0 < time_limit <= MAX_TIME_LIMIT_S:
        raise UsageError(f"--time-limit: {time_limit!r}, expected seconds above 0 and up to {MAX_TIME_LIMIT_S}")
    if threads is not None and threads < 1:
        raise UsageError(f"--threads: {threads}, expected 1 or more")
    if not 0 <= seed <= MAX_SEED:
        raise UsageError(f"--seed: {seed}, expected 0 to {MAX_SEED}")
    from placeopt.whatif.round_solving import Limits

    return Limits(time_limit_s=time_limit, threads=threads, seed=seed)


def rows_path(rows: str | None) -> Path | None:
    """Return the file of answers; raises `UsageError` for a standard stream, which cannot be continued."""
    if rows == STREAM:
        raise UsageError("--rows: '-', expected a file")
    return None if rows is None else Path(rows)


def deliver(found: Record, page: Callable[[], list[RenderableType]], as_json: bool) -> None:
    """Print an answer as JSON or as a page."""
    if as_json:
        write_out(found.model_dump_json(indent=2) + "\n")
    else:
        show(*page())
