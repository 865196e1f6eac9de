"""
Search: jobs of a plan are taken away and put back better, as long as there is time.

``solution`` keeps value and cost exact from move to move; ``ruin`` chooses who is taken away, ``recreate`` who is put
back and in which order, with ``choose`` for the competition, ``spots`` where, for jobs of several bundles by ``near``;
``guide`` is what a relaxation says about all of that; ``search`` is the loop.
"""

from placeopt.heuristics.search.incremental_solution import Guide
from placeopt.heuristics.search.search import Search

__all__ = ["Guide", "Search"]
