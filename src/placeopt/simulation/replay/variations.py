"""What a sweep varies: nodes of a type, the rate of arrivals, the policy, or patches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from placeopt.errors import BadArgument
from placeopt.model.scenario import Scenario
from placeopt.model.scheduling import Scheduling
from placeopt.simulation.replay.scenario_patch import patched, stepped
from placeopt.whatif.domain_levels import free_prefix
from placeopt.whatif.round_sweep import MOST_POINTS, parse_range
from placeopt.whatif.steps import AddNodes, Patch, ScaleArrivals

KINDS = ("nodes:TYPE=0-10", "arrivals=80-130:10", "policy=fcfs,srtf", "patch=a.json,b.json")


@dataclass(frozen=True)
class Setting:
    """One setting: how it is called, and what is played under it."""

    name: str
    scenario: Scenario
    scheduling: Scheduling


def parse_settings(
    text: str,
    scenario: Scenario,
    scheduling: Scheduling,
    *,
    policies: Callable[[str], Scheduling],
    patches: Callable[[str], Patch],
) -> tuple[str, list[Setting]]:
    """
    Read what is varied, and return its name and the settings.

    Parameters
    ----------
    text
        ``nodes:TYPE=0-10``: so many nodes more. ``arrivals=80-130:10``: so many percent of the trace's rate.
        ``policy=A,B`` and ``patch=F,G``: under each of them.
    policies, patches
        Give the policy or patch of a name.

    Raises
    ------
    BadInput
        If it is none of these, names what is not there, or has more than 1,000 settings.
    """
    varied, equals, words = text.partition("=")
    what, _, name = varied.partition(":")
    makers: Mapping[str, Callable[[], list[Setting]]] = {
        "nodes": lambda: [
            Setting(str(number), with_more(scenario, name, number), scheduling) for number in parse_range(text, words)
        ],
        "arrivals": lambda: [
            Setting(str(percent), with_rate(scenario, percent), scheduling) for percent in parse_range(text, words)
        ],
        "policy": lambda: [Setting(one, scenario, policies(one)) for one in _words(text, words)],
        "patch": lambda: [Setting(one, *patched(scenario, scheduling, patches(one))) for one in _words(text, words)],
    }
    if not equals or what not in makers or bool(name) != (what == "nodes"):
        raise BadArgument(f"vary: {text!r}, expected one of {', '.join(KINDS)}")
    return varied, makers[what]()


def with_more(scenario: Scenario, node_type: str, count: int) -> Scenario:
    """Return the scenario with so many more nodes of a machine type, or like a node; raises `BadInput`."""
    names = [node.id for node in scenario.cluster.nodes]
    known = {machine.id for machine in scenario.cluster.machines}
    if node_type not in names and node_type not in known:
        types = ", ".join(sorted(known))
        raise BadArgument(f"node type {node_type!r}: no machine type and no node of that name; machine types: {types}")
    if not count:
        return scenario
    step = AddNodes(
        do="add_nodes",
        count=count,
        like=node_type if node_type in names else None,
        machine=None if node_type in names else node_type,
        prefix=free_prefix(names),
    )
    return stepped(scenario, Scheduling(name="none"), step)[0]


def with_rate(scenario: Scenario, percent: int) -> Scenario:
    """Return the scenario with jobs that arrive at so many percent of its rate."""
    if not 1 <= percent <= MOST_POINTS:
        raise BadArgument(f"arrivals: {percent} percent, expected 1 to {MOST_POINTS}")
    if percent == 100:
        return scenario
    return stepped(scenario, Scheduling(name="none"), ScaleArrivals(do="scale_arrivals", percent=percent))[0]


def _words(text: str, words: str) -> list[str]:
    names = [word for word in words.split(",") if word]
    if not names or len(set(names)) < len(names):
        raise BadArgument(f"{text!r}: expected names or files, each once, separated by commas")
    return names
