"""What an importer is, and the command that is made of it: files are checked, read, written and reported in one way."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from placeopt.cli.files import check_sources, check_target, say, summary, write_document
from placeopt.cli.options import Prices, with_prices, with_signature
from placeopt.cli.output import ExitCode, write_error

if TYPE_CHECKING:
    from placeopt.model import Instance
    from placeopt.simulation.records.scenario import Scenario

INPUT = "input file"
"""Marks a parameter of a reader as a file that is read: ``Annotated[str, typer.Option(...), INPUT]``."""
OUTPUTS = {
    "instance": ("INSTANCE", "Write the round: .json, .json.gz or -."),
    "scenario": ("SCENARIO", "Write the scenario: .json, .json.gz or -."),
    "hardware": ("MACHINE", "Write the hardware: .json, .json.gz or -."),
}
"""Kind of document -> placeholder and help of ``--out``."""


@dataclass(frozen=True)
class Imported:
    """
    The document that a reader returns, one line about it, and lines for standard error: what was left out or assumed.
    """

    document: Any
    summary: str
    notes: str | None = None


@dataclass(frozen=True)
class Importer:
    """
    One command of ``placeopt import``.

    Attributes
    ----------
    name
        The command.
    read
        Its parameters are the options of the command, in typer's notation; those that name files carry `INPUT`. The
        command adds ``--out``. Its docstring is the help.
    output
        The kind of document that it writes, a key of `OUTPUTS`.
    example
        A command line, shown at the end of the help.
    """

    name: str
    read: Callable[..., Imported]
    output: Literal["instance", "scenario", "hardware"]
    example: str

    def load(self) -> Callable[..., int]:
        """
        Return the function that the command line runs, as `placeopt.cli.app.Command.load` does.

        Returns
        -------
        callable
            Takes the options of the command as keywords and returns the exit code.
        """
        parameters = list(inspect.signature(self.read, eval_str=True).parameters.values())
        inputs = [
            parameter.name for parameter in parameters if INPUT in getattr(parameter.annotation, "__metadata__", ())
        ]

        def run(out: str, price: list[str] | None, **options: Any) -> int:
            sources: dict[str, str | None] = {}
            for name in inputs:
                given = options[name]
                if isinstance(given, list):
                    sources.update({f"FILE {number}": path for number, path in enumerate(given, start=1)})
                else:
                    sources[f"--{name.replace('_', '-')}"] = given
            check_target(out, sources.values())
            check_sources(sources)
            imported = self.read(**options)
            from placeopt.documents.documents import dumps

            document = with_prices(imported.document, price)
            write_document(out, dumps(document))
            say(imported.summary, out)
            if imported.notes is not None:
                write_error(imported.notes)
            return ExitCode.DONE

        metavar, text = OUTPUTS[self.output]
        option = Annotated[str, typer.Option(metavar=metavar, help=text)]
        target = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, annotation=option)
        parameters.append(inspect.Parameter("price", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Prices))
        num_required = sum(parameter.default is inspect.Parameter.empty for parameter in parameters)
        with_signature(run, self.read, [*parameters[:num_required], target, *parameters[num_required:]])
        return run


def imported_round(round_: Instance, *, notes: str | None = None) -> Imported:
    """
    Return a round with its summary.

    Parameters
    ----------
    round_
        The round that was read.
    notes
        Lines for standard error: what was left out or assumed.

    Returns
    -------
    Imported
        The round, and a summary of one line.
    """
    return Imported(round_, summary(round_), notes)


def imported_snapshot(round_: Instance) -> Imported:
    """Return a round from a resource manager or a trace; the notes say what was left out, in doubt or assumed."""
    from placeopt.importers.import_notes import lines

    return imported_round(round_, notes="\n".join(lines(round_.reading)))


def imported_scenario(scenario: Scenario, *, unit: str = "node", notes: str | None = None) -> Imported:
    """Return a scenario with its summary."""
    return Imported(scenario, summary(scenario, unit), notes)
