"""Systems of papers: rooms of rules, policies and scenarios, found through entry points, so that no floor names one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources.abc import Traversable
from pkgutil import resolve_name
from typing import Any

from placeopt.errors import BadArgument
from placeopt.rooms import load_rooms


@dataclass(frozen=True)
class ScenarioMaker:
    """
    A scenario that a system brings along.

    Attributes
    ----------
    about
        What it is, in a few words.
    function
        ``module:name`` of the function that makes it.
    arguments
        Of that function.
    drawn
        Whether it is drawn by a seed, the argument ``seed``.
    """

    about: str
    function: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    drawn: bool = True

    def make(self, seed: int = 0) -> Any:
        """
        Make the scenario.

        Parameters
        ----------
        seed
            Of what is drawn; not read where nothing is.

        Returns
        -------
        Scenario
            See `placeopt.simulation.Scenario`.
        """
        return resolve_name(self.function)(**self.arguments, **({"seed": seed} if self.drawn else {}))


@dataclass(frozen=True)
class Predictor:
    """
    What a system predicts of jobs; see `placeopt.systems.predictors` for the forms of its functions.

    Attributes
    ----------
    about
        What it predicts, and from what.
    columns
        Of the table that it is fitted to; empty: it needs no fit.
    fit, model
        ``module:name`` of the function that fits it to rows of that table, and of the record that this returns.
    estimates
        ``module:name`` of the function that predicts the options of a job from a row about its profile. What it returns
        depends on what was fitted, that row, the options and the cluster alone, which are all that it is given: it is
        called once for all jobs of a profile with equal options, and again where the cluster has changed.
    slowdowns
        ``module:name`` of the function that predicts how jobs of profiles slow each other, in place of ``estimates``.
    """

    about: str
    columns: tuple[str, ...] = ()
    fit: str = ""
    model: str = ""
    estimates: str = ""
    slowdowns: str = ""


@dataclass(frozen=True)
class System:
    """
    A system: importing its room registers its rules.

    Attributes
    ----------
    paper
        Citation of the paper that describes it.
    policies
        Folder of its policies, ``NAME.json``.
    scenarios
        Name -> scenario, small enough for a first look.
    predictors
        Name -> predictor.
    """

    paper: str
    policies: Traversable
    scenarios: Mapping[str, ScenarioMaker]
    predictors: Mapping[str, Predictor] = field(default_factory=dict)


def load_systems() -> Mapping[str, System]:
    """Return the systems that are installed, by name."""
    return load_rooms()


def system_scenarios() -> dict[str, ScenarioMaker]:
    """Return the scenarios that installed systems bring along, by name."""
    return {name: made for system in load_systems().values() for name, made in system.scenarios.items()}


def system_scenario(name: str, seed: int = 0) -> Any:
    """Return a scenario that a system brings along; `BadArgument` for an unknown name lists the others."""
    known = system_scenarios()
    if not isinstance(name, str) or name not in known:
        raise BadArgument(f"scenario: no scenario {name!r}; known: {', '.join(sorted(known))}")
    return known[name].make(seed)
