"""Path weight of the edge above each level, for everything that states none of its own."""

from collections.abc import Sequence

from placeopt.model import Domain

LEVEL_WEIGHTS = {"gpu": 1, "switch": 10, "numa": 10, "socket": 20, "machine": 100}
"""
Default weight of the edge from a vertex of the level up to its parent.

Amaral et al. (SC'17, section 4.1.2 and fig. 7) print 1 at the GPU and 20 at the socket, call the weights qualitative
and ask only that higher levels weigh more; switch, numa, machine and the domains are ours, chosen to keep that order.
"""

RACK_WEIGHT = 200
"""Default uplink weight of a domain that has no domain below it."""

MAX_WEIGHT = 1_000_000
"""The largest weight that the model accepts; the default of a very deep network stops there."""


def domain_weights(domains: Sequence[Domain]) -> list[int]:
    """
    Uplink weight of every domain: its own, or ``RACK_WEIGHT`` x (1 + height), at most ``MAX_WEIGHT``.

    The height of a domain counts the domains on the longest way down from it: 0 for a rack, 1 for a row of racks. So an
    edge weighs more the higher it stands, at any depth, whatever the levels are called (the rule is ours).

    Parameters
    ----------
    domains
        Domains, parents first, as ``Cluster`` guarantees.

    Returns
    -------
    list of int
        One weight per domain, in link-cost units.
    """
    position = {domain.id: d for d, domain in enumerate(domains)}
    height = [0] * len(domains)
    for d in range(len(domains) - 1, -1, -1):
        parent = domains[d].parent
        if parent is not None:
            above = position[parent]
            height[above] = max(height[above], height[d] + 1)
    return [
        domain.uplink_weight if domain.uplink_weight is not None else min(RACK_WEIGHT * (1 + height[d]), MAX_WEIGHT)
        for d, domain in enumerate(domains)
    ]
