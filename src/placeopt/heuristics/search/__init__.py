"""
Large neighbourhood search: jobs of a plan are removed and inserted better, as long as there is time.

``incremental_solution`` keeps value and cost exact from move to move, and has the prices of a relaxation (`Guide`);
``search`` is the loop and chooses the jobs to remove, ``repair`` those to insert and their order, ``insertion`` the
places, for jobs of several bundles by ``gang_placer``.
"""

from placeopt.heuristics.search.incremental_solution import Guide
from placeopt.heuristics.search.search import LargeNeighbourhoodSearch

__all__ = ["Guide", "LargeNeighbourhoodSearch"]
