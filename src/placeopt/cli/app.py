"""The commands of ``placeopt``, by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated

import typer

from placeopt import __version__
from placeopt.cli.commands import bench, whatif, whatif_defrag, whatif_rounds
from placeopt.cli.commands.audit import audit
from placeopt.cli.commands.bench_papers import papers
from placeopt.cli.commands.check import check
from placeopt.cli.commands.doctor import doctor
from placeopt.cli.commands.explain import explain
from placeopt.cli.commands.export import export
from placeopt.cli.commands.generate import generate
from placeopt.cli.commands.import_ import kubernetes, openb, openb_trace, philly, sc17, sia, slurm, topo
from placeopt.cli.commands.report import report
from placeopt.cli.commands.show import show
from placeopt.cli.commands.simulate import simulate
from placeopt.cli.commands.solve import solve
from placeopt.cli.exits import ExitCode
from placeopt.cli.output import write_out

app = typer.Typer(
    name="placeopt",
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        write_out(f"placeopt {__version__}\n")
        raise typer.Exit


@app.callback(
    invoke_without_command=True,
    epilog="Exit codes: 0 done, 1 the answer is no, 2 usage, 3 bad input, 4 jobs were waiting and none was placed, "
    "5 internal fault, 130 and 143 interrupted with the best plan written.\n\n"
    "Example: placeopt generate --spec uniform --jobs 50 --nodes 16 --gpus 8 --out round.json, "
    "then placeopt solve round.json --out plan.json",
)
def _root(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - its callback answers
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """
    Optimal placement of jobs on GPU clusters, with a proven gap on every round.

    Placeopt reads and writes .json and .json.gz; - is a standard stream.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(ExitCode.USAGE)


imports = typer.Typer(
    name="import",
    no_args_is_help=False,
    help="Read rounds and hardware from other people's files.",
    epilog="Example: placeopt import topo topo-m.txt numactl.txt --out box.json",
)

benchmarks = typer.Typer(
    name="bench",
    no_args_is_help=False,
    help="Run methods and solvers on sets of instances, and compare them.",
    epilog="Example: placeopt bench run --set tiny --solvers auto,fgd --time-limit 5 --out results",
)

questions = typer.Typer(
    name="whatif",
    no_args_is_help=False,
    help="Ask about capacity: what fits, what is left, what fails, what to add.",
    epilog="Example: placeopt whatif fit round.json --job 8xH100",
)


def _add(group: typer.Typer, command: Callable[..., int], example: str) -> None:
    """Register a command under its function's name; its docstring is its help, each paragraph wrapped anew."""
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    words = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    group.command(name=command.__name__.replace("_", "-"), help=words, epilog=f"Example: {example}")(command)


_add(app, solve, "placeopt solve round.json --time-limit 30 --out plan.json")
_add(app, check, "placeopt check round.json plan.json")
_add(app, audit, "placeopt import slurm ... --out now.json, then placeopt audit now.json --moves 10")
_add(app, explain, "placeopt explain round.json plan.json --job train-7")
_add(app, show, "placeopt show plan.json --instance round.json")
_add(app, report, "placeopt report round.json plan.json runs --out report.html --figures figures")
_add(app, export, "placeopt export round.json --format mps --out round.mps")
_add(app, simulate, "placeopt simulate instances/papers/sc17-workloads-5.json --policy fcfs,placeopt")
_add(app, generate, "placeopt generate --spec gangs --jobs 40 --nodes 16 --gpus 8 --seed 1 --out round.json")
_add(imports, openb, "placeopt import openb --nodes nodes.csv --pods pods.csv --limit 500 --out round.json")
_add(imports, openb_trace, "placeopt import openb-trace --nodes nodes.csv --pods pods.csv --out openb-trace.json.gz")
_add(imports, sc17, "placeopt import sc17 --workload w.json --infrastructure i.json --profile p.json --out s.json")
_add(imports, philly, "placeopt import philly --trace philly.csv.gz --from-day 30 --days 3 --out philly.json.gz")
_add(
    imports, slurm, "placeopt import slurm --nodes nodes.json --jobs jobs.json --topology topology.conf --out now.json"
)
_add(
    imports,
    kubernetes,
    "kubectl get nodes,pods,podgroups -A -o json > k.json; placeopt import kubernetes k.json --out now.json",
)
_add(imports, sia, "placeopt import sia --workload workload-1.csv --out sia.json.gz")
_add(imports, topo, "placeopt import topo topo-m.txt numactl.txt --id dgx --out dgx.json")
app.add_typer(imports)
_add(benchmarks, bench.run, "placeopt bench run --set tiny --solvers auto,fgd --time-limit 5 --seeds 0-4 --out results")
_add(benchmarks, bench.report, "placeopt bench report results --baseline highs")
_add(benchmarks, bench.check, "placeopt bench check results --update")
_add(benchmarks, bench.list, "placeopt bench list")
_add(benchmarks, bench.statistics, "placeopt bench statistics --out instances/STATISTICS.md")
_add(benchmarks, papers, "placeopt bench papers --only sc17 --seeds 0-4 --out papers")
app.add_typer(benchmarks)
_add(questions, whatif.fit, "placeopt whatif fit round.json --plan plan.json --job 4x8xH100 --together rack")
_add(questions, whatif.slots, "placeopt whatif slots round.json --sizes 8,64")
_add(questions, whatif.fail, "placeopt whatif fail round.json --plan plan.json --level rack --k 1 --all")
_add(questions, whatif.add, "placeopt whatif add round.json --node-type dgx --until placed=all")
_add(
    questions, whatif_rounds.sweep, "placeopt whatif sweep round.json --vary demand=80-130:10 --jobs 2 --csv curve.csv"
)
_add(questions, whatif_rounds.swap, "placeopt whatif swap round.json --of v100-8 --by h100-8 --patch types.json")
_add(questions, whatif_rounds.price, "placeopt whatif price round.json --of node,rack")
_add(questions, whatif_defrag.defrag, "placeopt whatif defrag round.json --plan plan.json --level node --all-movable")
_add(questions, whatif.apply, "placeopt whatif apply round.json --patch scenario.json --out changed.json")
app.add_typer(questions)
_add(app, doctor, "placeopt doctor")
