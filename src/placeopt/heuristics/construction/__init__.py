"""
Whole plans from the running jobs on, by the jobs and prices of a relaxation (`Guide`).

``construct`` takes jobs in the order of ``job_order`` and puts them to ``lawful_places``, those of several bundles by
``gang_placer``.
"""

from placeopt.heuristics.construction.construct import construct
from placeopt.heuristics.construction.guide import Guide

__all__ = ["Guide", "construct"]
