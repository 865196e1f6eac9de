"""
Certificates: proofs of what plans claim, in integers, which another program checks with the round alone.

``certify(instance, plan)`` is the entry. A bound on value is proven by prices: bundles of workers pay nodes, whatever
they are, and what jobs are worth beyond that, plus what nodes can be paid, bounds every plan. Where one set of prices
does not do, branches on how many jobs start divide the plans. A bound on cost is proven alike, with a price of value:
nodes then pay for what they hold, as far as paths and jobs that meet are their own matter. ``tools/verify.py`` checks
both and shares no code with this room.
"""

from placeopt.certificates.claims import certify
from placeopt.certificates.records import Certificate, ConflictClaim, CostClaim, ValueClaim

__all__ = ["Certificate", "ConflictClaim", "CostClaim", "ValueClaim", "certify"]
