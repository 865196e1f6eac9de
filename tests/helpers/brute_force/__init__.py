"""
The oracle: the best allocation of a tiny round by trying all of them. No formulation, no solver; costs stated again.

What is enumerated
    For a waiting job: to wait, and every placement that the rules about one job allow, in each of its options
    (``candidates.placements``). For a running job: to stay as it is, and every move, shrink and preemption that policy
    and job allow (``candidates.running_outcomes``). An allocation is one candidate a job; ``enumeration.Enumeration``
    lists every combination that keeps the rules about several jobs.

Which rule is stated where (names as in the table of rules in docs/formulas.md)
    About one job alone (gang, where, spread): ``terms.rules.fits`` of the engine on a cluster that holds only the
    running jobs. ``tests/terms/test_rules.py`` compares ``fits`` with the referee.
    About several jobs (gpu_share, jobs_per_gpu, gpu_memory, node_capacity, queue_share, uplink, the numbers of
    changes): ``sums``, limits on sums, restated from the records of the instance.
    changes: ``candidates.running_outcomes``; last submitted first: ``Enumeration.rows``.
    minimal_utility: ``Enumeration.rows``, on whole allocations, since a neighbour changes a job's utility.

What is compared
    The value is the sum of the values of the options taken, less the prices of changes. The costs are in ``costs``,
    restated from docs/formulas.md.

A running job may exceed a limit (docs/concepts.md states the rule): a sum may exceed its limit where nothing that
starts or moves adds to it.
"""

from helpers.brute_force.candidates import (
    all_places,
    allowed_outcomes,
    combinations_up_to,
    placements,
    running_outcomes,
    without_minimal_utilities,
)
from helpers.brute_force.enumeration import Enumeration, optimum

__all__ = [
    "Enumeration",
    "all_places",
    "allowed_outcomes",
    "combinations_up_to",
    "optimum",
    "placements",
    "running_outcomes",
    "without_minimal_utilities",
]
