"""Rule: a job runs all its option's workers, each with its own GPUs on its own node, or not at all."""

from __future__ import annotations

import numpy as np

from placeopt.linear import ModelBuilder
from placeopt.problem import Placement, State
from placeopt.terms.variables import Variables


class Gang:
    """Horus eq. 4, DynamoML: exactly the option's workers and GPUs; no GPU twice; at most one option a job."""

    name = "gang"

    def fits(self, state: State, job: int, placement: Placement) -> bool:
        """Return whether the placement is one of the job's options in full, each GPU on its worker's node."""
        problem, o = state.problem, placement.option
        options = problem.options
        gpus = int(options.gpus[o])
        return (
            o in problem.options_of(job)
            and len(placement.nodes) == options.workers[o]
            and len(placement.gpus) == gpus * len(placement.nodes)
            and len(set(placement.gpus)) == len(placement.gpus)
            and problem.gpu_node[list(placement.gpus)].tolist()
            == [node for node in placement.nodes for _ in range(gpus)]
        )

    def add_to(self, builder: ModelBuilder, variables: Variables) -> None:
        """Link units to starts, starts to bundles (all of the option), and bundles to grants (all their GPUs)."""
        v, options = variables, variables.problem.options
        builder.add_rows(v.start_unit, v.start, 1, v.unit_least, v.unit_size)
        starts = (np.arange(len(v.start)), v.start, -options.bundles[v.start_option])
        builder.add_parts(0, 0, (v.bundle_start, v.bundle, 1), starts, count=len(v.start))
        per_bundle = (options.gpus * options.bundle_workers)[v.bundle_option]
        has_gpus = per_bundle > 0
        rows = np.cumsum(has_gpus) - 1
        bundles = (rows[has_gpus], v.bundle[has_gpus], -per_bundle[has_gpus])
        builder.add_parts(0, 0, (rows[v.grant_bundle], v.grant, 1), bundles, count=int(has_gpus.sum()))
