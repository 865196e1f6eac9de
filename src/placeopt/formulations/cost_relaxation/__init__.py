"""
A bound on the cost level of rounds of any size: bundles flow to classes of nodes, each at the least it can cost.

``paths`` says how close together GPUs of a machine can be, ``bundle_groups`` which bundles are alike, ``node_classes``
which nodes, ``lower_bounds`` what a bundle of a bundle group costs on a class of nodes at least; ``model`` puts them
together, ``whole_jobs`` prices whole jobs instead of their bundles, and ``job_set_cut`` adds what sets of whole jobs
cost at least.
"""

from placeopt.formulations.cost_relaxation.job_set_cut import JobSetModel, make_job_set_model
from placeopt.formulations.cost_relaxation.model import CostRelaxation, build_cost_relaxation
from placeopt.formulations.cost_relaxation.whole_jobs import WholeJobs, with_whole_jobs

__all__ = [
    "CostRelaxation",
    "JobSetModel",
    "WholeJobs",
    "build_cost_relaxation",
    "make_job_set_model",
    "with_whole_jobs",
]
