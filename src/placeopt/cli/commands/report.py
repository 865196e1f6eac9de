"""``placeopt report``: rounds, plans and simulations as one offline HTML file and as figures."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from placeopt.cli.files import STREAM, check_sources, check_target, peek, say, write_document
from placeopt.cli.output import ExitCode, UsageError
from placeopt.errors import BadInput
from placeopt.readable import duration, plural

if TYPE_CHECKING:
    from placeopt.benchmark.figure import Figure
    from placeopt.model import Instance, Plan
    from placeopt.report.html import Fact, ResultTable, SimulationLog
    from placeopt.simulation.records.scenario import Scenario

LOG, SUMMARIES = ".jsonl", "summaries.json"
NEEDED = {"scenario", "policy", "seed", "jobs", "ended", "stranded", "finished", "never_ends", "wait_s", "makespan_s"}
"""Keys by which summaries are recognised."""
SHOWN = 5
"""Jobs named that never end."""


def report(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="Instances, plans beside their instance, scenarios, logs or folders of simulations, earlier reports; "
            "recognised by content.",
        ),
    ],
    out: Annotated[str, typer.Option(metavar="HTML", help="File to write; its name ends in .html.")],
    before: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Results before a change, of the same kinds, or a report of them; the page begins with what changed. "
            "May be repeated.",
        ),
    ] = None,
    figures: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Also write each figure there: SVG, PNG, PDF and CSV.")
    ] = None,
    title: Annotated[str, typer.Option(metavar="TEXT", help="Title of the page.")] = "placeopt report",
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing.")] = False,
) -> int:
    """
    Draw the results of other commands as one HTML file: plans and simulations.

    The file opens without a network. With --before it compares two sets of results, or two earlier reports. The command
    needs matplotlib (the extra 'plot').
    """
    older = before or []
    check_sources({path: path for path in [*inputs, *older]})
    check_target(out, [*inputs, *older])
    if out != STREAM and not out.lower().endswith((".html", ".htm")):
        raise UsageError(
            f"--out: {out}, expected a name that ends in .html; --figures FOLDER writes each figure as PDF"
        )
    if figures is not None and Path(figures).exists() and not Path(figures).is_dir():
        raise UsageError(f"--figures: {figures!r}, expected a folder")
    from placeopt.benchmark.figure import FORMATS
    from placeopt.report.html import comparisons, page

    now, earlier = _Inputs(inputs), _Inputs(older)
    drawn, tables = now.figures(earlier), now.tables()
    if older:
        tables = [*comparisons(earlier.results(), now.results()), *tables]
    command = shlex.join(
        ["placeopt", "report", *inputs, *(word for path in older for word in ("--before", path)), "--out", out]
    )
    write_document(out, page(title, command, now.facts(), drawn, tables, now.results()).encode())
    if figures is not None:
        from placeopt.documents.files import make_folder

        folder = make_folder(figures)
        for figure in drawn:
            for name, data in figure.files(FORMATS).items():
                write_document(str(folder / name), data)
    if not quiet and out != STREAM:
        each = f", and each to {figures}" if figures is not None else ""
        say(f"{plural(len(drawn), 'figure')}{each}", out)
    return ExitCode.DONE


def read_summaries(summaries: Any, source: str) -> list[Mapping[str, Any]]:
    """Return the summaries that ``simulate --out`` or ``--json`` wrote."""
    if not isinstance(summaries, list) or not all(
        isinstance(s, dict) and keys >= NEEDED for s in summaries for keys in [s.keys()]
    ):
        raise BadInput(f"{source}: expected the summaries of simulations, as 'placeopt simulate --json' prints them")
    return summaries


class _Inputs:
    """What was read, by kind."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.instances: list[Instance] = []
        self.plans: list[tuple[str, Plan]] = []
        self.scenarios: list[Scenario] = []
        self.summaries: list[Mapping[str, Any]] = []
        self.stored: list[ResultTable] = []
        self._log_files: list[Path] = []
        for path in paths:
            self._read(path)
        self.logs = self._read_logs()

    def _read(self, path: str) -> None:
        """Read a file, or find the logs and summaries of a folder."""
        if path != STREAM and Path(path).is_dir():
            logs = sorted(Path(path).glob(f"*{LOG}"))
            if not logs:
                raise BadInput(f"{path}: no logs of simulations in it (*{LOG})")
            self._log_files += logs
            if (Path(path) / SUMMARIES).exists():
                self._read_document(str(Path(path) / SUMMARIES))
        elif path.endswith(LOG):
            self._log_files.append(Path(path))
        elif path.lower().endswith((".html", ".htm")):
            from placeopt.documents.files import read_bytes
            from placeopt.report.html import read_results

            self.stored += read_results(read_bytes(path).decode("utf-8", "replace"), path)
        else:
            self._read_document(path)

    @property
    def scenario(self) -> Scenario | None:
        """The one that the logs are of, if it is clear which."""
        return self.scenarios[0] if len(self.scenarios) == 1 else None

    def _read_logs(self) -> list[SimulationLog]:
        """Read the logs, in the order of the summaries; the scenario states the jobs that run from the beginning."""
        from placeopt.report.html import read_log

        running = () if self.scenario is None else self.scenario.running
        order = {summary["policy"]: i for i, summary in enumerate(self.summaries)}
        logs = [read_log(log, running) for log in self._log_files]
        return sorted(logs, key=lambda log: order.get(log.policy, len(order)))

    def _read_document(self, path: str) -> None:
        from placeopt.documents.documents import as_record
        from placeopt.model import Instance, Plan
        from placeopt.simulation.records.scenario import Scenario

        document, source, keys = peek(path)
        if Path(path).name == SUMMARIES or isinstance(document, list):
            self.summaries += read_summaries(document, source)
        elif "cluster" in keys and keys & {"arrivals", "physics"}:
            self.scenarios.append(as_record(Scenario, document, source))
        elif "cluster" in keys:
            self.instances.append(as_record(Instance, document, source))
        elif "placements" in keys:
            self.plans.append((source, as_record(Plan, document, source)))
        else:
            held = f"has {', '.join(sorted(keys)[:6])}" if keys else "is not a JSON object"
            raise BadInput(
                f"{source}: {held}; expected an instance, a plan, a scenario, a log or summaries of simulations"
            )

    def tables(self) -> list[ResultTable]:
        """Return the tables at the top of the page: policies, jobs that never end, and results of earlier reports."""
        from placeopt.report.html import never_ending_table, policy_table

        tables = []
        if self.logs or self.summaries:
            tables.append(policy_table(self.summaries, self.logs, self.scenario))
            stuck = never_ending_table(self.summaries, self.logs)
            tables += [] if stuck is None else [stuck]
        return [*tables, *self.stored]

    def results(self) -> list[ResultTable]:
        """Return all results as tables, by which two reports are compared."""
        from placeopt.report.html import plan_table

        tables = self.tables()
        if self.plans:
            tables.append(plan_table([plan for _, plan in self.plans]))
        return tables

    def figures(self, before: _Inputs) -> list[Figure]:
        """Return the figures of everything that was read; logs from before are drawn behind the others."""
        from placeopt.report.html import gpu_map, simulation_figures

        drawn = []
        told = {ref: instance for instance in self.instances for ref in [instance.digest]}
        for number, (source, plan) in enumerate(self.plans):
            instance = told.get(plan.instance.digest or "")
            if instance is None:
                raise BadInput(f"{source}: a plan of {plan.instance.name!r}; name the file of that instance too")
            drawn.append(gpu_map(instance, plan, name=f"plan-{number}"))
        planned = {plan.instance.digest for _, plan in self.plans}
        left = [instance for digest, instance in told.items() if digest not in planned]
        drawn += [gpu_map(instance, name=f"round-{number}") for number, instance in enumerate(left)]
        if self.logs:
            drawn += simulation_figures(self.logs, self.scenario, before.logs, before.scenario)
        return drawn

    def facts(self) -> list[Fact]:
        """Return facts about the figures: sizes, results, seeds, versions, notes."""
        from placeopt import __version__
        from placeopt.importers.import_notes import lines
        from placeopt.report.html import Fact

        facts = [Fact("placeopt", __version__)]
        for instance in self.instances:
            facts.append(
                Fact(
                    f"round {instance.name}",
                    f"{plural(len(instance.cluster.nodes), 'node')}, {plural(len(instance.jobs), 'job')}",
                )
            )
            if instance.note:
                facts.append(Fact("its data", " ".join([instance.note, *lines(instance.reading)])))
        for source, plan in self.plans:
            levels = "; ".join(
                f"{level.name} {level.objective:,}, bound {'unknown' if level.bound is None else f'{level.bound:,}'}"
                for level in plan.levels
            )
            facts.append(
                Fact(f"plan {source}", f"{plan.status}, {levels}; policy {plan.policy.name}, seed {plan.seed}")
            )
        for scenario in self.scenarios:
            words = (
                f"{plural(len(scenario.arrivals), 'job')}, {plural(len(scenario.cluster.nodes), 'node')}, rule "
                f"{scenario.physics.rule}"
            )
            facts.append(Fact(f"scenario {scenario.name}", f"{words}. {scenario.note}".strip()))
        for log in self.logs:
            words = f"{len(log.ends):,} of {plural(len(log.arrivals), 'job')} ended"
            if log.stranded:
                shown = ", ".join(log.stranded[:SHOWN])
                more = f" and {len(log.stranded) - SHOWN:,} more" if len(log.stranded) > SHOWN else ""
                words += f", {len(log.stranded):,} never end ({shown}{more})"
            words += f", {len(log.starts):,} started"
            facts.append(Fact(f"simulation {log.name}", f"{words}; {duration(log.end_ms / 1000)}"))
        return facts
