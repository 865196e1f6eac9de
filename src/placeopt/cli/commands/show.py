"""``placeopt show``: documents and stored answers on the terminal, or as JSON, CSV or one offline page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from placeopt.cli.files import SIMULATIONS, STREAM, check_sources, check_target, parsed, say, write_document
from placeopt.cli.options import AsJson, provenance_page
from placeopt.cli.output import ExitCode, UsageError, can_unicode, output_width
from placeopt.cli.output import show as print_page
from placeopt.errors import BadInput
from placeopt.readable import plain, plural

if TYPE_CHECKING:
    from rich.console import RenderableType

    from placeopt.report.views import Source
    from placeopt.simulation import Scenario
    from placeopt.view import View

FORMS = ("text", "json", "csv", "html")
LOG = ".jsonl"


def show(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Rounds, plans beside their rounds, scenarios, machines, clusters, policies, answers that --json "
            "wrote, logs of simulations, the folder of simulate --out: .json, .json.gz, .jsonl or -.",
        ),
    ],
    form: Annotated[
        str | None,
        typer.Option("--as", metavar="|".join(FORMS), help="Form; by default by the ending of --out, else text."),
    ] = None,
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write there; .html is one page that needs no network.")
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Of two answers: what became better, worse or other from first to second.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """
    Show documents and answers, or compare two answers.

    Round: nodes, jobs, demand, and the GPUs by job. Plan: value and gap, who waits and why, costs by term, and with its
    round the GPUs by job. Simulations: policies side by side, and from their logs who waits and who holds GPUs over
    time. For PNG or PDF, print the page, as in chromium --headless --print-to-pdf=out.pdf page.html.
    """
    form = _form(form, out, as_json=as_json)
    check_sources({f"FILE {number}": path for number, path in enumerate(files, start=1)})
    check_target(out, files)
    from placeopt.report.views import log_views, read_log, views_of
    from placeopt.view import compare as compared

    logs, documents = _read(files)
    views = views_of(documents)
    if compare:
        if len(views) != 2:
            raise UsageError(f"--compare: {plural(len(views), 'answer')} in {', '.join(files)}, expected two")
        changed = compared(*views)
        views, documents = [changed, *views] if form == "html" else [changed], []
    elif logs:
        scenario = _scenario(documents)
        running = () if scenario is None else scenario.running
        views += log_views([read_log(log, running) for log in logs], scenario)
    if form == "text" and out in (None, STREAM):
        _print(views, documents)
        return ExitCode.DONE
    write_document(out or STREAM, _written(views, form))
    if out not in (None, STREAM):
        say(plural(len(views), "view"), str(out))
    return ExitCode.DONE


def _form(stated: str | None, out: str | None, *, as_json: bool) -> str:
    """Return the form of what is written: as stated, or by the ending of the file."""
    if stated is not None and stated not in FORMS:
        raise UsageError(f"--as: {stated!r}, expected {', '.join(FORMS)}")
    if as_json and stated not in (None, "json"):
        raise UsageError(f"--as: {stated!r} beside --json; name one of the two")
    if stated or as_json:
        return stated or "json"
    ending = "" if out is None else Path(out.removesuffix(".gz")).suffix.lower().removeprefix(".")
    if ending in FORMS:
        return ending
    if out not in (None, STREAM):
        raise UsageError(f"--out: {out}: its ending names no form, expected .html, .json or .csv, or --as FORM")
    return "text"


def _read(files: Sequence[str]) -> tuple[list[Path], list[Source]]:
    """Return the logs that are named or stand in folders, and the documents."""
    logs: list[Path] = []
    documents: list[Source] = []
    for path in files:
        if path != STREAM and Path(path).is_dir():
            found = sorted(Path(path).glob(f"*{LOG}"))
            stored = Path(path) / SIMULATIONS
            if not found and not stored.exists():
                raise BadInput(f"{path}: no logs of simulations in it (*{LOG}), and no {SIMULATIONS}")
            logs += found
            documents += _documents(str(stored)) if stored.exists() else []
        elif path.endswith(LOG):
            logs.append(Path(path))
        else:
            documents += _documents(path)
    return logs, documents


def _documents(path: str) -> list[Source]:
    """Return the document of a file, or those of a list of them."""
    from placeopt.documents import as_any
    from placeopt.report.views import RECORDS, Source

    document, source = parsed(path)
    if not isinstance(document, list):
        return [Source(source, as_any(document, source, RECORDS))]
    return [Source(source, as_any(one, f"{source}: [{i}]", RECORDS)) for i, one in enumerate(document)]


def _scenario(documents: Sequence[Source]) -> Scenario | None:
    """Return the scenario that the logs are of, if it is clear which."""
    from placeopt.simulation import Scenario

    scenarios = [one.document for one in documents if isinstance(one.document, Scenario)]
    return scenarios[0] if len(scenarios) == 1 else None


def _written(views: Sequence[View], form: str) -> bytes:
    """Return views as a file: one as it is, several as a list."""
    from placeopt.documents import dumps
    from placeopt.report.page import page
    from placeopt.view import as_csv

    if form == "html":
        return page(views).encode()
    if form == "csv":
        return "\n".join(map(as_csv, views)).encode()
    if form == "json" and len(views) == 1:
        return dumps(views[0])
    if form == "json":
        facts = [view.model_dump(mode="json", exclude_defaults=True) | {"document": view.document} for view in views]
        return (json.dumps(facts, ensure_ascii=False, indent=1) + "\n").encode()
    raise UsageError("--as: 'text' goes to standard output, without --out")


def _print(views: Sequence[View], documents: Sequence[Source]) -> None:
    from rich.text import Text

    from placeopt.report.terminal import view_page
    from placeopt.report.text.palette import ASCII, BLOCKS

    glyphs = BLOCKS if can_unicode() else ASCII
    parts: list[RenderableType] = []
    drawn = [view for view in views if _is_picture(view)]
    for view in views:
        if view in drawn:
            continue
        parts += [*([Text(""), Text("")] if parts else []), *view_page(view, glyphs=glyphs, width=output_width())]
        parts += provenance_page(view.provenance) if "command" in view.provenance else []
    for picture in _pictures(views, documents):
        parts += [Text(""), picture]
    if drawn:
        titles = "; ".join(plain(view.title) for view in drawn)
        parts += [
            *([Text("")] if parts else []),
            Text(f"drawn on the page, with --out FILE.html: {titles}", style="dim"),
        ]
    print_page(*parts)


def _is_picture(view: View) -> bool:
    """Return whether a view says nothing but by its chart, of a kind that terminals do not draw."""
    is_map = view.chart is not None and view.chart.kind == "map"
    return not (is_map or view.figures or any(table.shown for table in view.tables))


def _pictures(views: Sequence[View], documents: Sequence[Source]) -> list[RenderableType]:
    """Return the links of each machine that stands alone, and of each round of one node with the jobs on its GPUs."""
    from placeopt.model import Instance, Machine
    from placeopt.report.text import machine_picture

    records = [one.document for one in documents]
    rounds = [one for one in records if isinstance(one, Instance) and len(one.cluster.nodes) == 1]
    machines = {one.digest: one.cluster.machine_of(one.cluster.nodes[0]) for one in rounds}
    pictures: list[RenderableType] = [machine_picture(one, {}) for one in records if isinstance(one, Machine)]
    for view in views:
        machine = machines.get(view.provenance.get("instance", {}).get("digest"))
        if machine is not None and view.chart is not None:
            jobs = {int(row[1] or 0): str(row[4]) for row in view.table(view.chart.table).rows if row[4] is not None}
            held = {gpu: job for gpu, job in jobs.items() if gpu < len(machine.gpus)}
            pictures.append(machine_picture(machine, held))
    return pictures
