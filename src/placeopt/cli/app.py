"""The commands of ``placeopt``: one table, from which the parser is built."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import Annotated, Any, NamedTuple, get_type_hints

import typer

from placeopt import __version__
from placeopt.cli.commands import bench, whatif, whatif_rounds
from placeopt.cli.commands.bench_papers import papers
from placeopt.cli.commands.doctor import doctor
from placeopt.cli.commands.make import export, generate
from placeopt.cli.commands.report import report
from placeopt.cli.commands.review import audit, check, explain
from placeopt.cli.commands.show import show
from placeopt.cli.commands.simulate import simulate
from placeopt.cli.commands.solve import solve
from placeopt.cli.importers.importer import Importer
from placeopt.cli.options import with_signature
from placeopt.cli.output import ExitCode, write_out


class Group(NamedTuple):
    """A command whose second word names what it does."""

    help: str
    example: str
    commands: tuple[tuple[Callable[..., int], str], ...]
    """Function and example of each; the function's name is the command's, its docstring the help."""


COMMANDS: tuple[tuple[Callable[..., int], str], ...] = (
    (solve, "placeopt solve round.json --time-limit 30 --out plan.json"),
    (check, "placeopt check round.json plan.json"),
    (audit, "placeopt import slurm ... --out now.json, then placeopt audit now.json --moves 10"),
    (explain, "placeopt explain round.json plan.json --job train-7"),
    (show, "placeopt show plan.json --instance round.json"),
    (report, "placeopt report round.json plan.json runs --out report.html --figures figures"),
    (export, "placeopt export round.json --format mps --out round.mps"),
    (simulate, "placeopt simulate instances/papers/sc17-workloads-5.json --policy fcfs,placeopt"),
    (generate, "placeopt generate --spec gangs --jobs 40 --nodes 16 --gpus 8 --seed 1 --out round.json"),
    (doctor, "placeopt doctor"),
)
GROUPS = {
    "import": Group(
        "Read rounds and hardware from files of other programs.",
        "placeopt import topo topo-m.txt numactl.txt --out box.json",
        (),  # from the table of importers
    ),
    "bench": Group(
        "Run methods and solvers on sets of instances, and compare them.",
        "placeopt bench run --set tiny --solvers auto,fgd --time-limit 5 --out results",
        (
            (bench.run, "placeopt bench run --set tiny --solvers auto,fgd --time-limit 5 --seeds 0-4 --out results"),
            (bench.report, "placeopt bench report results --baseline highs"),
            (bench.check, "placeopt bench check results --update"),
            (bench.list, "placeopt bench list"),
            (bench.statistics, "placeopt bench statistics --out instances/STATISTICS.md"),
            (papers, "placeopt bench papers --only sc17 --seeds 0-4 --out papers"),
        ),
    ),
    "whatif": Group(
        "Answer capacity questions: what fits, what stays free, what fails, what to add.",
        "placeopt whatif fit round.json --job 8xH100",
        (
            (whatif.fit, "placeopt whatif fit round.json --plan plan.json --job 4x8xH100 --together rack"),
            (whatif.slots, "placeopt whatif slots round.json --sizes 8,64"),
            (whatif.fail, "placeopt whatif fail round.json --plan plan.json --level rack --k 1 --all"),
            (
                whatif.add,
                "placeopt whatif add round.json --node-type dgx --until placed=all; with a scenario: "
                "placeopt whatif add trace.json --node-type dgx --until 'p95_wait<=30m' --policy fcfs",
            ),
            (
                whatif_rounds.sweep,
                "placeopt whatif sweep round.json --vary demand=80-130:10 --jobs 2 --csv curve.csv; with a scenario: "
                "placeopt whatif sweep trace.json --vary arrivals=80-130:10 --policy fcfs --measure p95_wait",
            ),
            (whatif_rounds.swap, "placeopt whatif swap round.json --of v100-8 --by h100-8 --patch types.json"),
            (whatif_rounds.price, "placeopt whatif price round.json --of node,rack"),
            (whatif_rounds.defrag, "placeopt whatif defrag round.json --plan plan.json --level node --all-movable"),
            (whatif.apply, "placeopt whatif apply round.json --patch scenario.json --out changed.json"),
        ),
    ),
}


def build_app(importers: Sequence[Importer]) -> typer.Typer:
    """Return the parser of the command line, with these importers under ``placeopt import``."""
    app = typer.Typer(
        name="placeopt",
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
    for function, example in COMMANDS:
        _add(app, function.__name__, function, example)
    for name, group in GROUPS.items():
        sub = typer.Typer(name=name, no_args_is_help=False, help=group.help, epilog=f"Example: {group.example}")
        for function, example in group.commands:
            _add(sub, function.__name__, function, example)
        for importer in importers if name == "import" else ():
            _add(sub, importer.name, importer.command(), importer.example)
        app.add_typer(sub)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        write_out(f"placeopt {__version__}\n")
        raise typer.Exit


def _root(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - its callback answers
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """
    Optimal placement of jobs on GPU clusters, with a proven gap on every round.

    Files are .json or .json.gz; - is standard input or output.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(ExitCode.USAGE)


def _add(group: typer.Typer, name: str, command: Callable[..., int], example: str) -> None:
    """Register a command; its docstring is the help, each paragraph on one line."""
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    group.command(name=name.replace("_", "-"), help=text, epilog=f"Example: {example}")(with_shared_options(command))


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
