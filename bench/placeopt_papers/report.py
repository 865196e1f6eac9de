"""The report of ``bench papers``: one Markdown page and a CSV file of every table."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from placeopt.formats.files import write_bytes
from placeopt.formats.table import Table, Value, markdown_table
from placeopt.readable import duration
from placeopt_papers.catalogue import PAPERS, SETTINGS, available_policies
from placeopt_papers.records import KINDS, CampaignStart, Constant, PaperRow, PaperSetting
from placeopt_papers.tables import CampaignRows, figure_table, ordering_table, own_table, sensitivity_table

WIDTH = 100
MOST_OWN = 2
"""Columns of our own policies that fit on the page; the CSV file has all."""


@dataclass(frozen=True)
class PapersReport:
    """The tables and the page made of them."""

    page: str
    tables: tuple[Table, ...]


def make_report(
    papers: Sequence[str], settings: Sequence[PaperSetting], rows: Sequence[PaperRow], starts: Sequence[CampaignStart]
) -> PapersReport:
    """
    Return the report.

    Parameters
    ----------
    papers, settings
        Papers and settings of the report.
    rows
        Rows of the campaign; figures without one are marked.
    starts
        Commands that made the rows.
    """
    results = CampaignRows(rows)
    figures, reasons = figure_table(papers, results)
    sensitivity = sensitivity_table(papers, results)
    orderings, why_not = ordering_table(papers, results)
    own = own_table(settings, results)
    page = [
        "# The papers' figures, and ours",
        "",
        *_made_by(rows, starts),
        "",
        *_wrapped(
            "A figure of several seeds is their mean with the half width of Student's interval of 95 %. `ratio` is "
            "ours over the paper's. `why` is the number of a reason below: what decides our value, or why there is "
            "none. What the papers leave out, and what is taken instead: [docs/papers.md](../docs/papers.md). `kind`:"
        ),
        "",
        *(line for kind, text in KINDS.items() for line in _wrapped(f"- `{kind}`: {text}.", indent="  ")),
        "",
        "## Figures",
        "",
        *_figures(figures),
        *_numbered(reasons),
        "",
        *_sensitivity(sensitivity, papers),
        "## Orders of policies",
        "",
        *_wrapped(
            "Neighbours in the paper's order. `tie`: the interval of the differences, seed by seed, holds 0; of one "
            "scenario, equal values."
        ),
        "",
        *_orderings(orderings),
        *_numbered(why_not),
        "",
        *_own_section(own),
        "## Settings",
        "",
        *(line for setting in settings if setting.name in SETTINGS for line in _setting(setting, results)),
    ]
    return PapersReport("\n".join([*page, ""]), (figures, sensitivity, orderings, own))


def write_report(report: PapersReport, folder: Path) -> list[Path]:
    """Write ``papers.md`` and a CSV file of each table; return the paths."""
    files = {"papers.md": report.page, **{f"{table.name}.csv": table.csv() for table in report.tables}}
    for name, text in files.items():
        write_bytes(folder / name, text.encode())
    return [folder / name for name in files]


def aligned_lines(columns: Sequence[str], rows: Sequence[Sequence[Value]], *, right: Sequence[str] = ()) -> list[str]:
    """Return the lines of a Markdown table whose source reads as plain text too; unknown values are left empty."""
    return markdown_table(columns, rows, right=right, aligned=True, unknown="").splitlines()


def _figures(table: Table) -> list[str]:
    """Return a table per paper, the unit beside the paper's value."""
    lines = []
    for key, paper in PAPERS.items():
        rows = [row[1:] for row in table.rows if row[0] == key]
        if rows:
            right = ("paper's", "ours", "ratio", "why")
            lines += [f"### {paper.title}", "", *aligned_lines(table.columns[1:], rows, right=right), ""]
    return lines[:-1]


def _orderings(table: Table) -> list[str]:
    """Return a table for each order."""
    lines: list[str] = []
    for setting, where, measure in dict.fromkeys(row[:3] for row in table.rows):
        rows = [row[3:] for row in table.rows if row[:3] == (setting, where, measure)]
        lines += [f"{where}: `{setting}` by {measure}", "", *aligned_lines(table.columns[3:], rows), ""]
    return lines[:-1]


def _sensitivity(table: Table, papers: Sequence[str]) -> list[str]:
    """Return the section on constants of ours: what each is, and a table for each."""
    if not table.rows:
        return []
    lines = [
        "## Sensitivity",
        "",
        *_wrapped(
            "Constants of ours that were chosen with a figure in view, and the figures at half and at double each of "
            "them: means of the first two seeds, or of one; shares end at 1, utilisation at 100 %."
        ),
        "",
    ]
    for constant in _constants(papers):
        rows = [row[2:] for row in table.rows if row[1] == constant.name]
        if rows:
            text = f"`{constant.name}` = {constant.value}. Chosen by: {constant.chosen}."
            right = table.columns[3:-1]
            lines += [*_wrapped(text), "", *aligned_lines(table.columns[2:], rows, right=right), ""]
    return lines


def _constants(papers: Sequence[str]) -> list[Constant]:
    return list(
        dict.fromkeys(constant for key in papers for figure in PAPERS[key].figures for constant in figure.constants)
    )


def _own_section(own: Table) -> list[str]:
    if not own.rows:
        return []
    return [
        "## placeopt's own policies beside the others",
        "",
        *_wrapped(
            "Differences to each policy of the first two of `placeopt`, `placeopt-rounds`, `placeopt-jct`, "
            "`placeopt-queue` and `prices` that were played, by the seeds that both have, with their interval of 95 %, "
            "and whether ours is better or worse; what cannot be told apart is a tie. Of one seed there is no "
            "interval. `own.csv` has all of ours."
        ),
        "",
        *_own(own),
    ]


def _own(table: Table) -> list[str]:
    """Return a table for every measure of a setting."""
    lines: list[str] = []
    for setting in dict.fromkeys(row[0] for row in table.rows):
        lines += [f"### {setting}", ""]
        for measure in dict.fromkeys(row[1] for row in table.rows if row[0] == setting):
            rows = [row for row in table.rows if row[:2] == (setting, measure)]
            shown = [2, 3, *[i for i in range(4, len(table.columns)) if any(row[i] for row in rows)][:MOST_OWN]]
            columns = (str(measure), *(table.columns[i] for i in shown[1:]))
            lines += [*aligned_lines(columns, [[row[i] for i in shown] for row in rows]), ""]
    return lines


def _made_by(rows: Sequence[PaperRow], starts: Sequence[CampaignStart]) -> list[str]:
    if not starts:
        return ["No runs."]
    last = starts[-1]
    commands = list(dict.fromkeys(f"`{start.command}`" for start in starts))
    machine = ", ".join(f"{key} {value}" for key, value in last.machine.items())
    known = ", ".join(f"{name} {version}" for name, version in last.versions.items())
    cpu_s = sum(row.cpu_s for row in rows)
    return _wrapped(
        f"Made by {'; '.join(commands)}; {machine}; {known}. {len(rows):,} simulations, {duration(cpu_s)} of CPU time, "
        "solver processes not counted."
    )


def _setting(setting: PaperSetting, results: CampaignRows) -> list[str]:
    text = f"- `{setting.name}`: {setting.title}."
    if setting.reduced and not any(row.case.whole for p in setting.policies for row in results.rows(setting.name, p)):
        text += f" Reduced: {setting.reduced}; `--full` plays it whole."
    text += _seeds(setting, results) if setting.seeded else ""
    text += f" Made from {setting.needs}, which is not part of this repository." if setting.needs else ""
    lacking = sorted(set(setting.policies) - set(available_policies(setting)))
    text += f" Not built yet: {', '.join(lacking)}." if lacking else ""
    return _wrapped(text, indent="  ")


def _seeds(setting: PaperSetting, results: CampaignRows) -> str:
    """Return the seeds that were played, by groups of policies with the same seeds."""
    of: dict[str, list[str]] = {}
    for policy in setting.policies:
        seeds = ", ".join(str(row.case.seed) for row in results.rows(setting.name, policy))
        of.setdefault(seeds or "none", []).append(policy)
    most = max(of, key=lambda seeds: len(of[seeds]))
    others = "".join(f"; {', '.join(of[seeds])}: {seeds}" for seeds in of if seeds != most)
    return f" Seeds {most}{others}."


def _numbered(reasons: Sequence[str]) -> list[str]:
    lines = [line for i, reason in enumerate(reasons, 1) for line in _wrapped(f"{i}. {reason}", indent="   ")]
    return ["", *lines] if lines else []


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def listing() -> str:
    """Return the names of papers and settings, for the terminal."""
    lines = []
    for key, paper in PAPERS.items():
        lines += [f"{key}: {paper.title}", *(f"  {setting.name}: {setting.title}" for setting in paper.settings)]
    return "\n".join(lines)
