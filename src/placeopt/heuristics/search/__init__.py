"""
Large neighbourhood search: jobs of a plan are removed and inserted better, as long as there is time.

``incremental_solution`` keeps value and cost exact from move to move, and has the prices of a relaxation (`Guide`);
``search`` is the loop and chooses the jobs to remove, ``repair`` inserts others in the order of ``insertion_order``,
``insertion`` finds the places, for jobs of several bundles by ``gang_placer``. ``construction`` makes a whole plan the
same way, and ``part_placer`` puts gangs where a relaxation has them.
"""

from placeopt.heuristics.search.construction import construct
from placeopt.heuristics.search.incremental_solution import RANKINGS, Guide
from placeopt.heuristics.search.part_placer import PartPlacer
from placeopt.heuristics.search.search import LargeNeighbourhoodSearch

__all__ = ["RANKINGS", "Guide", "LargeNeighbourhoodSearch", "PartPlacer", "construct"]
