"""The stored rows of ``bench papers``, and the pages that are made from them without a simulation."""

from __future__ import annotations

import shlex
from pathlib import Path

from placeopt import BadInput
from placeopt.formats.json_lines import JsonLinesFile, read_json_lines
from placeopt_papers.catalogue import EVERY_SETTING, FIGURE_MEASURES, PAPERS
from placeopt_papers.journal import EXPECTED, read_results, rows_of
from placeopt_papers.records import KINDS, CampaignStart, PaperCase, PaperRow, ResultLine, SameValues
from placeopt_papers.report import aligned_lines, make_report
from placeopt_papers.tables import CampaignRows, headline_table

BEGIN, END = "<!-- begin: bench/papers_table.py -->", "<!-- end -->"
"""Around the table in ``bench/README.md``."""


def store_rows(folders: list[Path], path: Path) -> int:
    """
    Store the rows of results folders that figures and orders use; return how many.

    Only the measures that these use are kept, and of a case the row of the last folder that has it. Names of folders
    in the commands are replaced. Comparisons with later code are kept for rows of the code that they are of.
    """
    starts: list[CampaignStart] = []
    rows: dict[PaperCase, PaperRow] = {}
    for folder in folders:
        began, found = read_results(folder)
        starts += began
        rows |= found
    compared = read_compared(path) if path.exists() else []
    path.unlink(missing_ok=True)
    with JsonLinesFile(path, ResultLine, EXPECTED) as file:
        for start in starts:
            file.append(ResultLine(start=start.model_copy(update={"command": _without_folder(start.command)})))
        kept = [row for row in rows.values() if (row.case.setting, row.case.policy) in FIGURE_MEASURES]
        for row in sorted(kept, key=lambda row: (row.case.setting, row.case.policy, row.case.seed)):
            file.append(ResultLine(row=_short(row)))
        for same in compared:
            if same.earlier in {row.code for row in kept}:
                file.append(ResultLine(same=same))
    return len(kept)


def read_stored(path: Path) -> tuple[list[CampaignStart], list[PaperRow]]:
    """
    Return the stored starts and rows.

    Raises
    ------
    BadInput
        If the file is missing or a line is no record.
    """
    lines = read_json_lines(path, ResultLine, EXPECTED)
    return [line.start for line in lines if line.start is not None], list(rows_of(lines).values())


def read_compared(path: Path) -> list[SameValues]:
    """Return the stored comparisons of rows with later code; raises like ``read_stored``."""
    return [line.same for line in read_json_lines(path, ResultLine, EXPECTED) if line.same is not None]


def add_compared(found: list[SameValues], path: Path) -> None:
    """Append comparisons to the stored rows."""
    with JsonLinesFile(path, ResultLine, EXPECTED) as file:
        for same in found:
            file.append(ResultLine(same=same))


def headline_block(rows: list[PaperRow]) -> str:
    """Return the lines of ``bench/README.md`` between the markers."""
    table = headline_table(CampaignRows(rows))
    right = ("theirs", "ours", "ratio")
    kinds = [f"- `{kind}`: {text}" for kind, text in KINDS.items()]
    return "\n".join([BEGIN, "", *aligned_lines(table.columns, table.rows, right=right), "", *kinds, "", END])


def papers_page(starts: list[CampaignStart], rows: list[PaperRow]) -> str:
    """Return ``bench/papers.md``: all figures, the sensitivity of the fitted ones, the orders, the settings."""
    played = {row.case.setting for row in rows}
    settings = [setting for name, setting in EVERY_SETTING.items() if name in played]
    return make_report(list(PAPERS), settings, rows, starts).page


def with_block(text: str, block: str) -> str:
    """
    Return a page with the block between the markers replaced.

    Raises
    ------
    BadInput
        If the page has no markers.
    """
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise BadInput(f"README.md: no {BEGIN} ... {END}")
    return head + block + tail


def _without_folder(command: str) -> str:
    """Return a command with the name of its results folder replaced: it is of the machine that ran it."""
    words = shlex.split(command)
    return shlex.join("results" if i and words[i - 1] == "--out" else word for i, word in enumerate(words))


def _short(row: PaperRow) -> PaperRow:
    used = FIGURE_MEASURES[row.case.setting, row.case.policy]
    figures = {name: value for name, value in row.figures.items() if name in used}
    return row.model_copy(update={"figures": figures, "waits_s": (), "slowdowns": (), "held": ()})
