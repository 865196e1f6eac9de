"""``placeopt solve``: one round, from file to checked plan."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, TextIO

import typer

from placeopt.cli.files import STREAM, check_sources, check_target, read_policy, write_document
from placeopt.cli.options import PolicyChoice, RoundFile, check_params, check_previous, expect, parse_solver_options
from placeopt.cli.output import ExitCode, show, write_error
from placeopt.cli.progress import Interruption, Ticker
from placeopt.errors import BadInput, only_documented
from placeopt.solvers.pool import Worker
from placeopt.solving.params import SolveParams

if TYPE_CHECKING:
    from placeopt.model import Instance, Plan
    from placeopt.scheduling.policy import Scheduling
    from placeopt.solving.bounds import Progress


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

    def __exit__(self, *_: object) -> None:
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


DEFAULT_TIME_LIMIT_S = 10.0
LEAST_S = 0.001
"""Left to a policy where reading took the time limit: its decision is stated even so."""
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "PYDANTIC_DISABLE_PLUGINS": "__all__"}
"""
Settings of other packages, made before they load unless the caller has set them: no method uses NumPy's own threads,
and pydantic looks through all installed packages for plugins.
"""
FIRST_SOLVER = "highs"
"""Solves the relaxation that most methods begin with."""


def solve(
    context: typer.Context,
    instance: RoundFile,
    method: Annotated[
        str, typer.Option(metavar="NAME", help="auto, or a method such as stranding or counts; a wrong name lists all.")
    ] = "auto",
    policy: PolicyChoice = None,
    time_limit: Annotated[
        float, typer.Option(metavar="S", help="Time limit in seconds, start and reading included.")
    ] = DEFAULT_TIME_LIMIT_S,
    gap: Annotated[float, typer.Option(metavar="G", help="Stop at this relative gap; 0.01 is one percent.")] = 0.0,
    threads: Annotated[
        int | None, typer.Option(metavar="N", help="Threads of a solver; by default all usable cores.")
    ] = None,
    memory_limit: Annotated[
        int | None, typer.Option(metavar="MIB", help="MiB that a solve may use beyond the loaded data.")
    ] = None,
    solver_option: Annotated[
        list[str] | None, typer.Option(metavar="K=V", help="Option of the exact solver, by its own name; repeatable.")
    ] = None,
    previous: Annotated[
        str | None,
        typer.Option(metavar="PLAN", help="An earlier plan as a hint; the running jobs are those of the instance."),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of solvers and of tie-breaking.")] = 0,
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="Same input, same plan, byte for byte: one thread, no timings.")
    ] = False,
    log: Annotated[str | None, typer.Option(metavar="FILE", help="Write progress and timings as JSON lines.")] = None,
    out: Annotated[
        str | None, typer.Option(metavar="PLAN", help="Write the plan: .json, .json.gz, or - for standard output.")
    ] = None,
    certificate: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Afterwards search proofs of what the plan claims, as long as the time limit again, and write them.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON instead of a summary.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print neither summary nor progress.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print what each stage did, too.")] = False,
) -> int:
    """
    Place the waiting jobs of a round, prove a bound on the result, and print a summary.

    Ctrl-C stops with the best plan so far; a second one quits at once. Progress goes to standard error after 2 s.
    Exit code 4: jobs were waiting and none was placed.
    """
    started: float = context.obj  # before Python was up: the time limit is that of the whole command
    params = SolveParams(
        method=method,
        time_limit_s=time_limit,
        gap=gap,
        threads=threads,
        seed=seed,
        deterministic=deterministic,
        memory_limit_mib=memory_limit,
        solver_options=parse_solver_options(solver_option or []),
    )
    check_sources({"INSTANCE": instance, "--previous": previous, "--policy": policy})
    check_target(out, (instance, previous, policy, log))
    check_target(log, (instance, previous, policy))
    check_target(certificate, (instance, previous, policy, log, out))
    with ExitStack() as stack:
        for name, setting in ENVIRONMENT.items():
            os.environ.setdefault(name, setting)
        worker = stack.enter_context(Worker((FIRST_SOLVER,)))  # it loads its solver beside what follows
        check_params(params)
        from placeopt.documents.documents import read_instance, read_plan
        from placeopt.model import Policy
        from placeopt.solving.api import Solver

        chosen = None if policy is None else read_policy(policy)
        scheduling = None if isinstance(chosen, Policy) else chosen
        if scheduling is not None:
            expect(method == "auto", "--method", method, f"auto: scheduling policy {scheduling.name!r} has its own")
            expect(previous is None, "--previous", previous, f"none beside scheduling policy {scheduling.name!r}")
        solver = stack.enter_context(Solver(chosen if isinstance(chosen, Policy) else None, worker=worker))
        journal = stack.enter_context(SolveLog(log))
        ticker = stack.enter_context(Ticker(started, quiet=quiet))
        round_ = read_instance(instance)
        earlier = None
        if previous is not None:
            earlier = read_plan(previous)
            check_previous(earlier, round_, previous)
        journal.start(round_, params)
        ticker.doing("first plan")

        def on_progress(news: Progress) -> None:
            ticker.news(news)
            journal.progress(news)

        with Interruption() as interruption:  # until all is written
            read_s = time.monotonic() - started
            news: dict[str, Any] = {"cancel": interruption.event, "on_progress": on_progress}
            if scheduling is None:
                solved = only_documented(solver.solve)
                plan = solved(round_, **params.keywords(), previous=earlier, read_s=read_s, **news)
            else:
                left = replace(params, time_limit_s=max(params.time_limit_s - read_s, LEAST_S))
                plan = _under(scheduling, round_, left, **news)
            solver.kill()  # its processes end while the plan is written
            total_s = time.monotonic() - started
            ticker.stop()
            for stage in plan.stages:  # the plan is valid nevertheless
                if stage.outcome == "failed":
                    write_error(f"warning: stage {stage.name} failed: {stage.detail}")
            _warn_of_estimates(round_, plan)
            _deliver(plan, out, as_json=as_json, quiet=quiet, verbose=verbose)
            code = interruption.code or _judge(round_, plan)
        journal.end(plan, read_s=read_s, total_s=total_s, code=code)
    if certificate is not None:
        _certify(round_, plan, certificate, time_limit)
    return code


def _under(scheduling: Scheduling, round_: Instance, params: SolveParams, **news: Any) -> Plan:
    from placeopt.scheduling import plan_round

    return only_documented(plan_round)(round_, scheduling, **params.keywords(), **news)


def _certify(round_: Instance, plan: Plan, target: str, seconds: float) -> None:
    from placeopt.certificates import certify
    from placeopt.documents.documents import dumps

    proven = only_documented(certify)(round_, plan, time_limit_s=seconds)
    write_document(target, dumps(proven))
    without = [claim for claim in proven.claims if claim.proof is None]
    if without:
        write_error(f"not certified: {without[0].claim}: {without[0].why}{_and_more(without)}")


def _and_more(claims: Sequence[object]) -> str:
    return f"; and {len(claims) - 1:,} more" if len(claims) > 1 else ""


def _deliver(plan: Plan, out: str | None, *, as_json: bool, quiet: bool, verbose: bool) -> None:
    """Write the plan, then print the summary, also where writing failed."""
    from placeopt.documents.documents import dumps

    data = dumps(plan) if out is not None or as_json else b""
    to_screen = as_json or out == STREAM
    fault = None
    if out is not None and out != STREAM:
        try:
            write_document(out, data)
        except BadInput as error:
            fault = error
    if to_screen:
        write_document(STREAM, data)
    elif not quiet:
        from placeopt.report.terminal import view_page
        from placeopt.report.views import plan_view

        show(*view_page(plan_view(plan, stages=verbose)))
    if fault is not None:
        raise fault


def _warn_of_estimates(instance: Instance, plan: Plan) -> None:
    """Print a warning if look-ahead needs run time estimates that waiting jobs do not state."""
    if plan.policy.values.postpone.rule != "lookahead":
        return
    running = {held.job for held in instance.running}
    lacking = [
        job.id
        for job in instance.jobs
        if job.id not in running and any(option.run_time_ms is None for option in job.options)
    ]
    if lacking:
        more = f" and {len(lacking) - 1:,} more" if len(lacking) > 1 else ""
        write_error(
            f"warning: look-ahead uses run time estimates, and {lacking[0]}{more} of the waiting jobs state none "
            "(run_time_ms of their options)"
        )


def _judge(instance: Instance, plan: Plan) -> ExitCode:
    """Done, unless jobs were waiting and none of them was placed."""
    running = {held.job for held in instance.running}
    waited = len(instance.jobs) > len(running)
    placed = any(placement.job not in running for placement in plan.placements)
    return ExitCode.NOTHING_PLACED if waited and not placed else ExitCode.DONE
