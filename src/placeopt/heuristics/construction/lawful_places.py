"""Places of a waiting job that every rule allows."""

from __future__ import annotations

from collections.abc import Iterator

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.construction.gang_placer import GangPlacer
from placeopt.heuristics.greedy_pass import place_on_nodes, places
from placeopt.problem import Placement, Problem
from placeopt.terms.rules import fits_beyond_room


def by_value(problem: Problem, job: int) -> list[int]:
    """Return the options of a job, the most valuable one first."""
    return sorted(problem.options_of(job), key=lambda o: (-int(problem.options.value[o]), o))


def lawful_places(ranked: Candidates, gang_placer: GangPlacer, job: int, option: int) -> Iterator[Placement]:
    """Yield places that every rule allows: for single bundles as ``ranked``, for gangs what their placer chooses."""
    found: Iterator[Placement]
    if ranked.problem.options.bundles[option] == 1:
        found = places(ranked, option)
    else:
        nodes = gang_placer.nodes(option)
        spot = None if nodes is None else place_on_nodes(gang_placer.candidates, option, nodes)
        found = iter(() if spot is None else (spot,))
    yield from (placement for placement in found if fits_beyond_room(ranked.state, job, placement))
