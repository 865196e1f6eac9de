"""
The commands of ``placeopt``: one table, from which the parser is built.

The parser of a command line has only the command that its first words name: loading the modules of all commands and
reading their options takes longer than most commands do.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from placeopt import __version__
from placeopt.cli.output import ExitCode, write_out
from placeopt.cli.provenance import recorded

if TYPE_CHECKING:
    from placeopt.cli.importers.importer import Importer


def _plain_flags(parameters: list[Any]) -> list[Any]:
    """Return the parameters, without a type in the help of those that take no value."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False) and parameter.metavar is None:
            parameter.metavar = ""
    return parameters


class _HelpfulCommand(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _plain_flags(super().get_params(ctx))


class _HelpfulGroup(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _plain_flags(super().get_params(ctx))


class Command(NamedTuple):
    """A command; its module is imported when it is needed."""

    name: str  # also that of its function, whose docstring is the help
    module: str  # in ``placeopt.cli.commands``
    example: str

    def load(self) -> Callable[..., int]:
        """Return the function."""
        found: Callable[..., int] = getattr(import_module(f"placeopt.cli.commands.{self.module}"), self.name)
        return found


class Group(NamedTuple):
    """A command whose second word names what it does."""

    help: str
    example: str
    commands: tuple[Command, ...]


COMMANDS = (
    Command("solve", "solve", "placeopt solve round.json --time-limit 30 --out plan.json"),
    Command("check", "review", "placeopt check round.json plan.json"),
    Command("actions", "actions", "placeopt actions round.json plan.json --as scontrol"),
    Command("audit", "review", "placeopt import slurm ... --out now.json, then placeopt audit now.json --moves 10"),
    Command("judge", "judge", "kubectl get nodes,pods,podgroups -A -o json > k.json; placeopt judge k.json"),
    Command("mcp", "mcp", "placeopt mcp"),
    Command("explain", "review", "placeopt explain round.json plan.json --job train-7"),
    Command("show", "show", "placeopt show round.json plan.json runs --out report.html"),
    Command("map", "map", "placeopt map nug30.dat --time-limit 30 --json"),
    Command("export", "make", "placeopt export round.json --format mps --out round.mps"),
    Command("simulate", "simulate", "placeopt simulate instances/papers/sc17-workloads-5.json --policy fcfs,placeopt"),
    Command(
        "generate", "make", "placeopt generate --spec gangs --jobs 40 --nodes 16 --gpus 8 --seed 1 --out round.json"
    ),
    Command("serve", "serve", "placeopt serve --listen unix:/run/placeopt.sock --state /var/lib/placeopt"),
    Command("doctor", "doctor", "placeopt doctor"),
)
GROUPS = {
    "import": Group(
        "Read rounds and hardware from files of other programs.",
        "placeopt import topo topo-m.txt --id box --out box.json",
        (),  # from the table of importers
    ),
    "bench": Group(
        "Run methods and solvers on sets of instances, and compare them.",
        "placeopt bench run --set tiny --solvers auto,fgd --case-limit 5 --out results",
        (
            Command(
                "run",
                "bench",
                "placeopt bench run --set tiny --solvers auto,fgd --case-limit 5 --seeds 0-4 --out results",
            ),
            Command("report", "bench", "placeopt bench report results --baseline highs --page results.html"),
        ),
    ),
    "slurm": Group(
        "Place the jobs of a running Slurm.",
        "placeopt slurm run --every 15s --own held --dry-run",
        (Command("run", "slurm", "placeopt slurm run --every 15s --own partition=gpu --max-actions 50"),),
    ),
    "whatif": Group(
        "Answer capacity questions: what fits, what fails, what to add, what is better, when the queue is clear.",
        "placeopt whatif fit round.json --job 8xH100",
        (
            Command("fit", "whatif", "placeopt whatif fit round.json --plan plan.json --job 4x8xH100 --together rack"),
            Command("fail", "whatif", "placeopt whatif fail round.json --plan plan.json --level rack"),
            Command(
                "add",
                "whatif",
                "placeopt whatif add round.json --node-type dgx --until placed=all; with a scenario: "
                "placeopt whatif add trace.json --node-type dgx --until 'p95_wait<=30m' --policy fcfs",
            ),
            Command(
                "compare",
                "whatif",
                "placeopt whatif compare round.json --vary demand=80-130:10 --jobs 2 --csv curve.csv; with a scenario: "
                "placeopt whatif compare trace.json --vary arrivals=80-130:10 --policy fcfs --measure p95_wait",
            ),
            Command("defrag", "whatif", "placeopt whatif defrag round.json --plan plan.json --all-movable"),
            Command("edit", "whatif", "placeopt whatif edit round.json --patch scenario.json --out changed.json"),
            Command("clear", "whatif", "placeopt whatif clear round.json --plan plan.json"),
        ),
    ),
    "predict": Group(
        "Fit what systems predict of jobs to tables of your own, and apply it to rounds and scenarios.",
        "placeopt predict fit horus-utilisation measured.csv --out model.json",
        (
            Command("fit", "predict", "placeopt predict fit genie-rates runs.csv --source Slurm --out model.json"),
            Command(
                "apply",
                "predict",
                "placeopt predict apply model.json round.json --table jobs.csv --out new.json",
            ),
            Command("policy", "predict", "placeopt predict policy horus model.json --table jobs.csv --out mine.json"),
            Command("features", "predict", "placeopt predict features *.onnx --batch 32 --out features.csv"),
            Command("table", "predict", "placeopt predict table lucid-jobs single_data.csv --out lucid.csv"),
        ),
    ),
    "kubernetes": Group(
        "Drive a cluster of Kubernetes: place the pods that wait behind placeopt's scheduling gate.",
        "placeopt kubernetes run --every 15s --dry-run",
        (Command("run", "kubernetes", "placeopt kubernetes run --kubeconfig ~/.kube/config --every 15s"),),
    ),
}


VERSION = "--version"
OVERVIEW = ("", "--help", "-h")
"""First words, empty for none, after which commands are listed and none runs."""


def first_words(arguments: Sequence[str]) -> tuple[str, str] | None:
    """Return the words that name the command of a command line, empty for none; None if the first one is unknown."""
    first, second = (*arguments[:2], "", "")[:2]
    if first in GROUPS:
        return first, second
    known = {VERSION, *OVERVIEW, *(command.name for command in COMMANDS)}
    return (first, "") if first in known else None


def build_app(importers: Iterable[Importer], words: tuple[str, str] | None = None) -> typer.Typer:
    """
    Return the parser of the command line, with these importers under ``placeopt import``.

    ``words``: as `first_words` returns them. The parser has the command that they name and no other; where they ask for
    help, its commands have no options. None: it has everything.
    """
    app = typer.Typer(
        name="placeopt",
        cls=_HelpfulGroup,
        add_completion=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
    )
    app.callback(
        invoke_without_command=True,
        epilog="Exit codes: 0 done, 1 the answer is no, 2 usage, 3 bad input, 4 jobs were waiting and none was placed, "
        "5 internal fault, 130 and 143 interrupted with the best plan written.\n\n"
        "Example: placeopt generate --spec uniform --jobs 50 --nodes 16 --gpus 8 --out round.json, "
        "then placeopt solve round.json --out plan.json",
    )(_root)
    first, second = words or (None, None)
    if first == VERSION:
        return app
    commands = {command.name: command for command in COMMANDS}
    for name in _needed(first, (*commands, *GROUPS)):
        if name in commands:
            _add(app, name, commands[name].load(), commands[name].example, bare=first in OVERVIEW)
            continue
        group = GROUPS[name]
        epilog = f"Example: {group.example}"
        sub = typer.Typer(name=name, cls=_HelpfulGroup, no_args_is_help=False, help=group.help, epilog=epilog)
        app.add_typer(sub)
        if first in OVERVIEW:
            continue
        members: dict[str, Command | Importer] = {command.name: command for command in group.commands}
        if name == "import":
            members |= {importer.name: importer for importer in importers}
        for each in _needed(second, members):
            _add(sub, each, members[each].load(), members[each].example, bare=second in OVERVIEW)
    return app


def _needed(word: str | None, names: Iterable[str]) -> list[str]:
    """Return the name that the command line gives, or all names where it gives none of them."""
    known = list(names)
    return [word] if word in known else known


def _version(wanted: bool) -> None:
    if wanted:
        write_out(f"placeopt {__version__}\n")
        raise typer.Exit


def _root(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - its callback answers
        bool, typer.Option(VERSION, callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """
    Optimal placement of jobs on GPU clusters, with a proven gap on every round.

    Files are .json or .json.gz; - is standard input or output.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(ExitCode.USAGE)


def _add(group: typer.Typer, name: str, command: Callable[..., int], example: str, *, bare: bool) -> None:
    """Register a command; its docstring is the help, each paragraph on one line. ``bare``: without its options."""
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    named = name.replace("_", "-")
    register = group.command(name=named, cls=_HelpfulCommand, help=text, epilog=f"Example: {example}")
    register(_listed if bare else recorded(with_shared_options(command)))


def _listed() -> int:
    """Stand for a command that is listed in a help text, and does not run."""
    return ExitCode.USAGE


def with_shared_options(command: Callable[..., int]) -> Callable[..., int]:
    """
    Return a command whose dataclass parameter is replaced by one option for each field of the dataclass.

    At most one parameter is a dataclass, whose fields have typer's annotations; its options follow the command's own. A
    command without such a parameter is returned as it is.
    """
    parameters = inspect.signature(command, eval_str=True).parameters
    shared = next((name for name, parameter in parameters.items() if is_dataclass(parameter.annotation)), None)
    if shared is None:
        return command
    group: Any = parameters[shared].annotation
    hints = get_type_hints(group, include_extras=True)
    names = [field.name for field in fields(group)]
    from placeopt.cli.options import with_signature

    def run(**options: Any) -> int:
        return command(**{shared: group(**{name: options.pop(name) for name in names})}, **options)

    defaults = [
        inspect.Parameter.empty if parameter.default is MISSING else parameter.default for parameter in fields(group)
    ]
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[name])
        for name, default in zip(names, defaults, strict=True)
    ]
    with_signature(run, command, [*(parameter for name, parameter in parameters.items() if name != shared), *added])
    return run
