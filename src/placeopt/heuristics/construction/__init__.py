"""
Whole plans from the running jobs on, of the jobs and by the prices of a relaxation.

``construct`` takes jobs in the order of ``job_order``, and nodes for those of several bundles from ``gang_placer``.
"""

from placeopt.heuristics.construction.construct import construct

__all__ = ["construct"]
