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
        """Link units to starts, starts to bundles, bundles to grants."""
        v, options = variables, variables.problem.options
        ones = np.ones(len(v.start), dtype=np.int64)
        builder.add_rows(v.start_unit, v.start, ones, v.unit_least, v.unit_size)
        zero = np.zeros(len(v.start), dtype=np.int64)
        builder.add_rows(  # sum of bundles = bundles of the option x starts
            np.concatenate([v.bundle_start, np.arange(len(v.start))]),
            np.concatenate([v.bundle, v.start]),
            np.concatenate([np.ones(len(v.bundle), dtype=np.int64), -options.bundles[v.start_option]]),
            zero,
            zero,
        )
        per_bundle = (options.gpus * options.bundle_workers)[v.bundle_option]
        has_gpus = per_bundle > 0
        rows = np.full(len(v.bundle), -1, dtype=np.int64)
        rows[has_gpus] = np.arange(int(has_gpus.sum()))
        zero = np.zeros(int(has_gpus.sum()), dtype=np.int64)
        builder.add_rows(  # sum of grants = GPUs of a bundle x bundles
            np.concatenate([rows[v.grant_bundle], rows[has_gpus]]),
            np.concatenate([v.grant, v.bundle[has_gpus]]),
            np.concatenate([np.ones(len(v.grant), dtype=np.int64), -per_bundle[has_gpus]]),
            zero,
            zero,
        )
