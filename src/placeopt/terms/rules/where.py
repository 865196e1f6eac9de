"""Rule: nodes and GPUs that the job may use at all (GPU model, selector, list of nodes, taints, drain)."""

from __future__ import annotations

from placeopt.linear import ModelBuilder
from placeopt.problem import Placement, State, change_of
from placeopt.terms.variables import Variables


class Where:
    """
    A static mask, compiled per option and class of node or type of GPU.

    It says where work may start, so a running job that stays, whole or shrunk, is exempt.
    """

    name = "where"

    def fits(self, state: State, job: int, placement: Placement) -> bool:
        """Return whether every node and GPU is allowed."""
        problem, options, o = state.problem, state.problem.options, placement.option
        if job in problem.running and change_of(problem, job, placement) != "moved":
            return True
        nodes, gpus = problem.node_class[list(placement.nodes)], problem.gpu_type[list(placement.gpus)]
        return bool(options.node_class_ok[o][nodes].all() and options.gpu_type_ok[o][gpus].all())

    def add_to(self, builder: ModelBuilder, variables: Variables) -> None:
        """Nothing to add: formulations make no columns where the mask forbids a start."""
