"""The settings of a sweep: added nodes, rates of arrivals, policies, or patches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from placeopt.errors import BadArgument
from placeopt.model.scenario import Scenario
from placeopt.model.scheduling import Scheduling
from placeopt.simulation.replay.scenario_patch import apply_scenario_step, patch_scenario
from placeopt.whatif.domain_levels import free_prefix
from placeopt.whatif.round_sweep import MOST_POINTS, parse_range
from placeopt.whatif.steps import AddNodes, Patch, ScaleArrivals

VARIED = ("nodes", "arrivals", "policy", "patch")
KINDS = ("nodes:TYPE=0-10", "arrivals=80-130:10", "policy=fcfs,srtf", "patch=a.json,b.json")


@dataclass(frozen=True)
class ReplayVariant:
    """One setting: its name, and the scenario and policy to simulate."""

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
) -> tuple[str, list[ReplayVariant]]:
    """
    Read the varied quantity; return its name and the settings.

    Parameters
    ----------
    text
        ``nodes:TYPE=0-10``: so many nodes more. ``arrivals=80-130:10``: so many percent of the trace's rate.
        ``policy=A,B`` and ``patch=F,G``: under each of them.
    policies, patches
        Return the policy or patch of a name.

    Raises
    ------
    BadInput
        If it is none of these, names something unknown, or has more than 1,000 settings.
    """
    varied, equals, words = text.partition("=")
    what, _, name = varied.partition(":")
    if not equals or what not in VARIED or bool(name) != (what == "nodes"):
        raise BadArgument(f"vary: {text!r}, expected one of {', '.join(KINDS)}")
    variants: list[ReplayVariant] = []
    if what in ("nodes", "arrivals"):
        for number in parse_range(text, words):
            changed = with_added_nodes(scenario, name, number) if name else with_arrival_rate(scenario, number)
            variants.append(ReplayVariant(str(number), changed, scheduling))
    else:
        for one in _words(text, words):
            played = (
                patch_scenario(scenario, scheduling, patches(one)) if what == "patch" else (scenario, policies(one))
            )
            variants.append(ReplayVariant(one, *played))
    return varied, variants


def with_added_nodes(scenario: Scenario, node_type: str, count: int) -> Scenario:
    """Return the scenario with more nodes of a machine type, or copies of a node; raises `BadInput`."""
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
    return apply_scenario_step(scenario, Scheduling(name="none"), step)[0]


def with_arrival_rate(scenario: Scenario, percent: int) -> Scenario:
    """Return the scenario with jobs that arrive at a percentage of its rate."""
    if not 1 <= percent <= MOST_POINTS:
        raise BadArgument(f"arrivals: {percent} percent, expected 1 to {MOST_POINTS}")
    if percent == 100:
        return scenario
    return apply_scenario_step(scenario, Scheduling(name="none"), ScaleArrivals(do="scale_arrivals", percent=percent))[
        0
    ]


def _words(text: str, words: str) -> list[str]:
    names = [word for word in words.split(",") if word]
    if not names or len(set(names)) < len(names):
        raise BadArgument(f"{text!r}: expected names or files, each once, separated by commas")
    return names
