"""The options that commands share, their checks, and the instance and answer of a question."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

import typer

from placeopt.arguments import MAX_SEED, MAX_TIME_LIMIT_S
from placeopt.cli.files import STREAM, check_sources, check_target, write_document
from placeopt.cli.output import ExitCode, UsageError, show, write_out
from placeopt.cli.progress import Interruption, Ticker
from placeopt.cli.provenance import KEY, asked_about, provenance, provenance_lines
from placeopt.errors import BadInput
from placeopt.readable import plain

if TYPE_CHECKING:
    from rich.console import RenderableType

    from placeopt.edits import Patch
    from placeopt.model import Instance, Plan
    from placeopt.solving.params import SolveParams
    from placeopt.view import View
    from placeopt.whatif.round_solving import Limits


Document = TypeVar("Document")
MAX_JOBS = 4096
"""Largest number of parallel processes."""


def check_params(params: SolveParams) -> None:
    """Refuse options of a solve that are out of range."""
    from placeopt.solving.methods import METHODS  # only here: it loads every stage

    expect(params.method in METHODS, "--method", params.method, f"one of {', '.join(METHODS)}")
    check_time_limit(params.time_limit_s)
    expect(0 <= params.gap < 1, "--gap", params.gap, "a fraction from 0 up to 1, such as 0.01 for one percent")
    expect(params.threads is None or params.threads >= 1, "--threads", params.threads, "1 or more")
    check_seed(params.seed)
    if params.solver_options and not METHODS[params.method].exact:
        raise UsageError(f"--solver-option: method {params.method!r} runs no exact solver; use another --method")
    memory = params.memory_limit_mib
    expect(memory is None or memory >= 1, "--memory-limit", memory, "1 MiB or more")


def check_time_limit(seconds: float) -> None:
    """Refuse a time limit that is out of range."""
    most = f"seconds above 0 and up to {MAX_TIME_LIMIT_S}"
    expect(0 < seconds <= MAX_TIME_LIMIT_S, "--time-limit", seconds, most)


def check_seed(seed: int) -> None:
    """Refuse a seed that is out of range."""
    expect(0 <= seed <= MAX_SEED, "--seed", seed, f"0 to {MAX_SEED}")


def check_seconds(option: str, value: float) -> None:
    """Refuse seconds that are not above 0, or infinite."""
    expect(0 < value < float("inf"), option, value, "seconds above 0")


def check_jobs(jobs: int) -> None:
    """Refuse a number of parallel processes that is out of range."""
    expect(1 <= jobs <= MAX_JOBS, "--jobs", jobs, f"1 to {MAX_JOBS}")


def parse_solver_options(texts: list[str]) -> dict[str, str]:
    """Read ``K=V`` options; raises `UsageError` at one that is not, or that appears twice."""
    options: dict[str, str] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        expect(bool(name and sign and value), "--solver-option", text, "NAME=VALUE, such as mip_heuristic_effort=0.2")
        expect(name not in options, "--solver-option", text, "each name once")
        options[name] = value
    return options


def check_previous(plan: Plan, instance: Instance, source: str) -> None:
    """Refuse an earlier plan of another round: with another instance's name, or with unknown jobs."""
    if plan.instance.name != instance.name:
        raise BadInput(
            f"{source}: instance.name: {plan.instance.name!r}, expected {instance.name!r}: a plan of the same instance"
        )
    known = {job.id for job in instance.jobs}
    places = [(f"placements[{i}]", entry.job) for i, entry in enumerate(plan.placements)]
    places += [(f"unplaced[{i}]", waiting.job) for i, waiting in enumerate(plan.unplaced)]
    for where, job in places:
        if job not in known:
            raise BadInput(f"{source}: {where}.job: no job {job!r} in the instance")


def expect(holds: bool, option: str, value: object, expected: str) -> None:
    """Raise `UsageError` about the value of an option unless it holds."""
    if not holds:
        raise UsageError(f"{option}: {value!r}, expected {expected}")


RoundFile = Annotated[str, typer.Argument(metavar="INSTANCE", help="The round: .json, .json.gz or -.")]
PolicyChoice = Annotated[
    str | None,
    typer.Option(
        "--policy", metavar="NAME|FILE", help="Who runs where: a scheduling policy by name, or a policy in a file."
    ),
]
SchedulingChoice = Annotated[
    str, typer.Option("--policy", metavar="NAME|FILE", help="Who runs where: a scheduling policy by name, or a file.")
]
InstanceFile = Annotated[
    str,
    typer.Argument(
        metavar="INSTANCE", help="A round; add, compare and edit also take a scenario: .json, .json.gz or -."
    ),
]
PlanFile = Annotated[
    str | None, typer.Option("--plan", metavar="PLAN", help="Answer the question for the cluster after this plan.")
]
PatchFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--patch",
        metavar="FILE",
        help="Apply the changes in this file first, steps such as fail or add_nodes; repeatable.",
    ),
]
Threads = Annotated[
    int | None, typer.Option("--threads", metavar="N", help="Threads of a solver; by default all usable cores.")
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Seed of solvers and of tie-breaking.")]
Jobs = Annotated[int, typer.Option("--jobs", metavar="N", help="Rounds to solve in parallel.")]
KeptRows = Annotated[
    str | None,
    typer.Option(
        "--rows", metavar="FILE", help="Append every answer to this file; answers already in it are not computed again."
    ),
]
Prices = Annotated[
    list[str] | None,
    typer.Option(
        "--price", metavar="TYPE=AMOUNT", help="Price of a node of this machine type an hour, as 3.2; repeatable."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]
AsCsv = Annotated[str | None, typer.Option("--csv", metavar="FILE", help="Write the tables of the answer as CSV.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print no progress.")]
QUESTION_S = 60.0
WholeLimit = Annotated[
    float | None,
    typer.Option(
        "--time-limit",
        metavar="S",
        help="Seconds for the whole answer, which says what was not reached; 60 by default, with a scenario no limit.",
        show_default=False,
    ),
]
KEEPS = "the answers so far"
"""What is kept at Ctrl-C, for the message."""


class Answering(NamedTuple):
    """The instance of a question, its progress line, and the signal that ends it."""

    base: Instance
    ticker: Ticker
    interruption: Interruption


@dataclass(frozen=True, kw_only=True)
class Question:
    """The options of every question about an instance."""

    instance: InstanceFile
    plan: PlanFile = None
    patch: PatchFiles = None
    price: Prices = None
    time_limit: WholeLimit = None
    threads: Threads = None
    seed: Seed = 0
    as_json: AsJson = False
    csv: AsCsv = None
    quiet: Quiet = False

    @property
    def sources(self) -> tuple[str | None, ...]:
        """Files that are read."""
        return (self.instance, self.plan, *(self.patch or ()))

    def limits(self) -> Limits:
        """Return the limits of the question; raises `UsageError` where one is out of range."""
        check_target(self.csv, self.sources)
        return limits_of(QUESTION_S if self.time_limit is None else self.time_limit, self.threads, self.seed)

    @contextmanager
    def answering(self) -> Iterator[Answering]:
        """Read the instance; show progress and handle Ctrl-C until the block ends."""
        with Ticker(time.monotonic(), quiet=self.quiet) as ticker, Interruption(KEEPS) as interruption:
            base = self.priced(read_base(self.instance, self.plan, self.patch, ticker))
            asked_about(base)
            yield Answering(base, ticker, interruption)

    def priced(self, base: Document) -> Document:
        """Return the instance, or the scenario, with the prices; raises `UsageError` where a type is unknown."""
        return with_prices(base, self.price)

    def deliver(self, view: View, interruption: Interruption, *, no: bool = False) -> int:
        """Print the answer, and return the exit code; ``no``: the answer is no."""
        deliver(view, as_json=self.as_json, csv=self.csv)
        return interruption.code or (ExitCode.NO if no else ExitCode.DONE)


@dataclass(frozen=True, kw_only=True)
class ParallelQuestion(Question):
    """With the options of many rounds."""

    jobs: Jobs = 1
    rows: KeptRows = None

    def limits(self) -> Limits:
        """Return the limits of the question; raises `UsageError` where one, or ``jobs``, is out of range."""
        check_jobs(self.jobs)
        return super().limits()

    def parallel(self, ticker: Ticker, interruption: Interruption, unit: str) -> dict[str, Any]:
        """Return the arguments of a function that solves many rounds; progress counts them by ``unit``."""
        return {
            "jobs": self.jobs,
            "rows": rows_path(self.rows),
            "cancel": interruption.event,
            "on_news": lambda done, total: ticker.doing(f"{done:,} of {total:,} {unit}"),
        }


def with_prices(document: Document, texts: list[str] | None) -> Document:
    """Return an instance, a scenario or a cluster with prices by machine type, each ``TYPE=AMOUNT``."""
    prices: dict[str, int] = {}
    for text in texts or ():
        name, _, value = text.rpartition("=")
        match = re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,3})?", value)
        valid = bool(name and match) and name not in prices
        expect(valid, "--price", text, "TYPE=AMOUNT with each type once, such as dgx=3.2")
        prices[name] = round(1000 * float(value))
    if not prices:
        return document
    from placeopt.model import Cluster, Instance
    from placeopt.simulation.records.scenario import Scenario

    try:
        if isinstance(document, Cluster):
            return document.with_prices(prices)
        if isinstance(document, Instance):
            return document.model_copy(update={"cluster": document.cluster.with_prices(prices)})
        if isinstance(document, Scenario):
            return document.model_copy(update={"cluster": document.cluster.with_prices(prices)})
    except ValueError as error:
        raise UsageError(f"--price: {error}") from None
    raise UsageError("--price: needs a cluster of machine types and nodes")


def read_base(instance: str, plan: str | None, patches: list[str] | None, ticker: Ticker | None) -> Instance:
    """Return the instance after a plan and patches."""
    named = {"INSTANCE": instance, "--plan": plan, **{f"--patch {n}": p for n, p in enumerate(patches or [], 1)}}
    check_sources(named)
    from placeopt.documents.documents import read_instance, read_plan
    from placeopt.documents.files import label
    from placeopt.edits import apply
    from placeopt.whatif.placements import after_plan

    changes = [(path, read_patch(path)) for path in patches or []]
    base = read_instance(instance)
    if plan is not None:
        carried_out = read_plan(plan)
        try:
            base = after_plan(base, carried_out)
        except BadInput as error:
            raise BadInput(f"{label(plan)}: {error}") from None
    if ticker is not None:
        ticker.doing("working")
    for path, patch in changes:
        try:
            base = apply(base, patch.steps)
        except BadInput as error:
            raise BadInput(f"{label(path)}: {error}") from None
    return base


def named_amounts(given: Iterable[str]) -> dict[str, int]:
    """Read ``NAME=N`` of ``--resource``; raises `UsageError` at one that is not."""
    amounts: dict[str, int] = {}
    for text in given:
        name, _, number = text.rpartition("=")
        if not name or not number.isdecimal():
            raise UsageError(f"--resource: {text!r}, expected NAME=N")
        amounts[name] = int(number)
    return amounts


def read_patch(path: str) -> Patch:
    """Return a patch, the steps that change an instance, from a file."""
    from placeopt.documents.documents import read_document
    from placeopt.edits import Patch

    return read_document(Patch, path)


def limits_of(time_limit: float, threads: int | None, seed: int) -> Limits:
    """Return the limits of a question; raises `UsageError` where one is out of range."""
    check_time_limit(time_limit)
    expect(threads is None or threads >= 1, "--threads", threads, "1 or more")
    check_seed(seed)
    from placeopt.whatif.round_solving import Limits

    return Limits(time_limit_s=time_limit, threads=threads, seed=seed)


def rows_path(rows: str | None) -> Path | None:
    """Return the file of answers; raises `UsageError` for a standard stream, which cannot be continued."""
    if rows == STREAM:
        raise UsageError("--rows: '-', expected a file")
    return None if rows is None else Path(rows)


def deliver(
    view: View,
    *,
    as_json: bool,
    csv: str | None = None,
    page: str | None = None,
    beside: Sequence[View] = (),
    quiet: bool = False,
) -> None:
    """
    Print an answer with its provenance, on the terminal or as JSON, and write its tables as CSV and its page.

    ``beside``: Views that the page alone has. ``quiet``: Whether nothing is printed but JSON.
    """
    from placeopt.report.page import page as page_of
    from placeopt.report.terminal import view_page
    from placeopt.view import as_csv

    origin = provenance(view.model_dump(mode="json"))
    whole = view.model_copy(update={KEY: origin})
    if csv is not None:
        write_document(csv, as_csv(view).encode())
    if page is not None:
        write_document(page, page_of([whole, *beside]).encode())
    if as_json:
        write_out(whole.model_dump_json(indent=2) + "\n")
    elif not quiet and csv != STREAM:
        show(*view_page(view), *provenance_page(origin))


def provenance_page(facts: Mapping[str, Any]) -> list[RenderableType]:
    """Return a provenance as dim lines below an answer."""
    from rich.text import Text

    return [Text(""), *(Text(plain(line), style="dim") for line in provenance_lines(facts))]


def with_signature(run: Callable[..., int], like: Callable[..., object], parameters: list[Parameter]) -> None:
    """Give ``run(**options)`` the parameters that typer reads, and name and help of ``like``."""
    signature = Signature(
        [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in parameters], return_annotation=int
    )
    run.__signature__ = signature  # type: ignore[attr-defined]  # what typer reads
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in signature.parameters.values()}
    run.__doc__, run.__name__ = like.__doc__, like.__name__
