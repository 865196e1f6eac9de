"""Rows that earlier code ran: which these are, and whether a sample of them, run again, has the same values today."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from placeopt_papers import campaign
from placeopt_papers.records import PaperCase, PaperRow, SameValues

CLOCKS = frozenset({"decision_cpu_s", "decision_percent"})
"""Measures that are times of this machine, which no second run repeats."""
SLOW_S = 10
"""CPU time beyond which a row is in no sample."""


def of_other_code(rows: Iterable[PaperRow], compared: Iterable[SameValues]) -> list[PaperRow]:
    """Return the rows that were neither run by today's code nor by code that a sample found to be the same."""
    same = {(entry.earlier, entry.later) for entry in compared}
    return [row for row in rows if row.code != (today := campaign.code_of(row.case)) and (row.code, today) not in same]


def sample(rows: Iterable[PaperRow]) -> list[PaperRow]:
    """
    Return the cheapest row of every policy and of every setting; one with a constant varied counts as the same.

    Rows that take long, and times of the machine, are in no sample.
    """
    cheap = (row for row in rows if row.cpu_s <= SLOW_S and row.figures.keys() - CLOCKS)
    timed = sorted(cheap, key=lambda row: -row.cpu_s)
    by_policy = {row.case.policy: row for row in timed}
    by_setting = {row.case.setting.partition("@")[0]: row for row in timed}
    return list({row.case: row for row in (*by_policy.values(), *by_setting.values())}.values())


def run_again(rows: Iterable[PaperRow], instances: Path) -> tuple[list[SameValues], list[PaperCase]]:
    """
    Run the cases of stored rows with today's code.

    Returns
    -------
    tuple
        For every pair of earlier and present code all of whose cases have the stored values, a record of it; and the
        cases with other values.
    """
    tried: dict[tuple[str, str], list[PaperCase]] = {}
    changed: dict[PaperCase, tuple[str, str]] = {}
    for stored in rows:
        again = campaign.run_case(stored.case, instances=instances)
        if again is not None:
            pair = stored.code, again.code
            tried.setdefault(pair, []).append(stored.case)
            if not has_values_of(again, stored):
                changed[stored.case] = pair
    same = [
        SameValues(earlier=earlier, later=later, cases=tuple(cases))
        for (earlier, later), cases in tried.items()
        if (earlier, later) not in changed.values()
    ]
    return same, list(changed)


def has_values_of(again: PaperRow, stored: PaperRow) -> bool:
    """Return whether all that is stored of a row, times of the machine aside, is the same in another run of it."""
    figures = {name: value for name, value in stored.figures.items() if name not in CLOCKS}
    return (
        {name: again.figures.get(name) for name in figures} == figures
        and (again.scenario, again.scheduling) == (stored.scenario, stored.scheduling)
        and (again.jobs, again.never_end) == (stored.jobs, stored.never_end)
    )
