"""Simulates what the figures, the orders and the comparison with ours need; a cell with a row is not run again."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from itertools import product
from pathlib import Path

from placeopt import BadInput, Unsupported
from placeopt.parallel import run_parallel
from placeopt.simulation import simulate, summarise
from placeopt_papers.estimates import beliefs
from placeopt_papers.figures import figures, orders
from placeopt_papers.measures import allocated, measure_all
from placeopt_papers.one_at_a_time.protocol import OneAtATime
from placeopt_papers.policies import paper_policy
from placeopt_papers.results import Cell, Row, append_row, read_rows
from placeopt_papers.settings import INSTANCES, Setting, settings

OWN = "placeopt"
"""Our policy, which stands beside the papers' systems."""
FACTORS = (0.5, 2.0)
"""On each constant of the table of sensitivity."""
VARIED_SEEDS = 2
"""Most seeds of a setting with a constant varied."""


@cache
def needed_measures() -> dict[tuple[str, str, str], set[str]]:
    """
    Return (setting, policy, constant) -> the measures that figures, orders, estimates and our comparison need.

    An empty constant: as all constants stand; else with that one multiplied by each of ``FACTORS``.
    """
    needed: dict[tuple[str, str, str], set[str]] = {}
    for figure in figures():
        for constant in ("", *(figure.constants if figure.varied else ())):
            for setting, policy in figure.needs:
                needed.setdefault((setting, policy, constant), set()).add(figure.measure)
    for order in orders():
        for policy in (policy for rank in order.ranks for policy in rank):
            needed.setdefault((order.setting, policy, ""), set()).add(order.measure)
    for row in beliefs():
        for setting, policy in product(filter(None, row.settings), row.policies):
            needed.setdefault((setting, policy, ""), set()).add(row.measure)
    for one in settings().values():
        for policy in (one.system, OWN) if one.system else ():
            needed.setdefault((one.name, policy, ""), set()).update(one.beside)
    return needed


def policies_of(setting: Setting) -> list[str]:
    """Return the policies that are simulated in a setting."""
    return [policy for name, policy, constant in needed_measures() if (name, constant) == (setting.name, "")]


def cells_of(chosen: Iterable[Setting], seeds: Sequence[int], *, full: bool = False) -> list[Cell]:
    """Return the cells of settings; with constants varied last, and not in full size."""
    plain: list[Cell] = []
    varied: list[Cell] = []
    for setting in chosen:
        played = setting.played(seeds)
        for name, policy, constant in needed_measures():
            if name == setting.name and not constant:
                plain += [Cell(name, policy, seed, full=full and bool(setting.full)) for seed in played]
            elif name == setting.name and not full:
                varied += [
                    Cell(name, policy, seed, constant=constant, factor=factor)
                    for seed in played[:VARIED_SEEDS]
                    for factor in FACTORS
                ]
    return plain + varied


def run_cells(
    cells: Sequence[Cell],
    path: Path,
    *,
    again: bool = False,
    jobs: int = 1,
    instances: Path = INSTANCES,
    say: Callable[[str], None] = print,
) -> None:
    """
    Simulate the cells and append their rows to a file.

    Parameters
    ----------
    path
        The file of rows. Cells with a row there that has all measures are left out.
    again
        Whether only a row of the present commit counts.
    jobs
        Simulations side by side, in processes.
    instances
        Folder of stored instances and of traces; settings whose files are missing there are left out.
    say
        Told after every cell.
    """
    there, commit = read_rows(path), present_commit()

    def is_done(cell: Cell) -> bool:
        row = there.get(cell)
        if row is None or (again and row.commit != commit):
            return False
        return needed_measures()[cell.setting, cell.policy, cell.constant] <= row.figures.keys()

    to_do = [cell for cell in cells if not is_done(cell)]
    say(f"{len(to_do)} of {len(cells)} simulations to run")
    task = partial(run_cell, commit=commit, instances=instances)
    for number, row in enumerate(run_parallel(task, to_do, jobs), 1):
        if isinstance(row, str):
            say(f"{number}: left out: {row}")
        else:
            append_row(path, row)
            say(f"{number}: {row.cell.setting} {row.cell.policy}, seed {row.cell.seed}: {row.cpu_s:.1f} s")


def run_cell(cell: Cell, *, commit: str = "", instances: Path = INSTANCES) -> Row | str:
    """Simulate a cell and return its row with the measures that are needed, or why it cannot be simulated."""
    factors = {cell.constant: cell.factor} if cell.constant else None
    try:
        made = settings()[cell.setting].make(cell.seed, full=cell.full, factors=factors, instances=instances)
    except (BadInput, Unsupported) as error:  # a file or a package that is not there
        return str(error)
    started = time.process_time()
    if isinstance(made, OneAtATime):
        found = allocated(made.allocated(cell.policy))
        return Row(cell, commit, round(time.process_time() - started, 2), found)
    history = simulate(made, paper_policy(cell.policy))
    cpu_s = round(time.process_time() - started, 2)
    summary = summarise(history)
    why = "; ".join(f"{entry.job}: {entry.why}" for entry in summary.never_ends[:1])
    needed = needed_measures()[cell.setting, cell.policy, cell.constant]
    found = {name: _short(value) for name, value in measure_all(summary, history).items() if name in needed}
    return Row(cell, commit, cpu_s, found, summary.jobs, summary.stranded, why)


def _short(value: float | None) -> float | None:
    """Return a value with ten significant digits."""
    return None if value is None else float(f"{value:.10g}")


def present_commit() -> str:
    """Return the commit of the checkout, with a ``+`` where files differ from it; empty outside a checkout."""
    try:
        commit, changes = (
            subprocess.run(("git", *words), cwd=INSTANCES.parent, capture_output=True, text=True, check=True).stdout
            for words in (
                ("rev-parse", "--short=8", "HEAD"),
                ("status", "--porcelain", "src", "papers/placeopt_papers"),
            )
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return commit.strip() + "+" * bool(changes)
