"""What is simulated: the settings of the papers' evaluations, from ``data/settings.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from placeopt import BadInput
from placeopt.simulation import Scenario
from placeopt_papers.one_at_a_time.protocol import OneAtATime

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
"""Stored instances and scenarios of the repository."""
STORED = "placeopt_papers.stored"
"""Module of scenarios that are read from files."""
PAPERS = {
    "sc17": "SC'17, topology-aware scheduling",
    "genie": "GENIE",
    "horus": "Horus",
    "dynamoml": "DynamoML",
    "soda": "SODA",
    "fgd": "FGD (ATC'23)",
    "traces": "Real traces",
}
"""Key -> title."""


@dataclass(frozen=True)
class Setting:
    """
    A scenario, or a list of jobs placed one at a time, by seed.

    Attributes
    ----------
    name, paper, title
        Name, also of results; key of ``PAPERS``; what it is.
    scenario
        Module and function that makes the scenario.
    arguments, full
        Of that function; those in the paper's full size, where it is smaller by default.
    seeds
        Fixed seeds; None: the requested ones.
    drawn
        Whether there are random draws; without, the seed is 0.
    system, beside
        The paper's own system, and the keys of ``measures.MEASURES`` in which ours stands beside it; else empty.
    """

    name: str
    paper: str
    title: str
    scenario: str
    arguments: Mapping[str, Any]
    full: Mapping[str, Any]
    seeds: tuple[int, ...] | None
    drawn: bool
    system: str
    beside: tuple[str, ...]

    def make(
        self,
        seed: int = 0,
        *,
        full: bool = False,
        factors: Mapping[str, float] | None = None,
        instances: Path = INSTANCES,
    ) -> Scenario | OneAtATime:
        """
        Return the scenario of a seed.

        ``full``: in the paper's size; ``factors``: on constants of ours, by name; ``instances``: of stored files.

        Raises
        ------
        BadInput
            If a stored file, or a trace of others, is missing.
        """
        arguments = {**self.arguments, **(self.full if full else {})}
        if self.drawn:
            arguments["seed"] = seed
        if factors:
            arguments["factors"] = factors
        if self.scenario.startswith(STORED):
            arguments["instances"] = instances
        made: Scenario | OneAtATime = resolve_name(self.scenario)(**arguments)
        return made

    def played(self, asked: Iterable[int]) -> tuple[int, ...]:
        """Return the seeds that are played, of the requested ones."""
        return tuple(asked) if self.drawn and self.seeds is None else self.seeds or (0,)


@cache
def settings() -> dict[str, Setting]:
    """Return all settings by name, in the order of the papers."""
    return {
        name: Setting(
            name=name,
            paper=fields["paper"],
            title=fields["title"],
            scenario=fields["scenario"],
            arguments=fields.get("arguments", {}),
            full=fields.get("full", {}),
            seeds=tuple(fields["seeds"]) if "seeds" in fields else None,
            drawn=fields.get("drawn", True),
            system=fields.get("system", ""),
            beside=tuple(fields.get("beside", ())),
        )
        for name, fields in read_data("settings.toml").items()
    }


def select(names: Iterable[str]) -> list[Setting]:
    """
    Return the settings of names, each of a paper or of a setting; all of them without names.

    Raises
    ------
    BadInput
        If a name is neither.
    """
    chosen: dict[str, Setting] = {}
    for name in list(names) or PAPERS:
        found = [one for one in settings().values() if one.paper == name] if name in PAPERS else [named(name)]
        chosen |= {one.name: one for one in found}
    return list(chosen.values())


def named(name: str) -> Setting:
    """Return a setting by name; raises `BadInput` where there is none."""
    if name not in settings():
        raise BadInput(f"{name!r} is neither a paper ({', '.join(PAPERS)}) nor a setting ({', '.join(settings())})")
    return settings()[name]


def read_data(name: str) -> dict[str, Any]:
    """Return a TOML file of ``data/``."""
    return tomllib.loads(files("placeopt_papers").joinpath("data", name).read_text(encoding="utf-8"))
