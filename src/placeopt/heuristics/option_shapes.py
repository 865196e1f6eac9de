"""Numbers of options that are alike to room and scores."""

from __future__ import annotations

import numpy as np

from placeopt.problem import IntArray, Problem
from placeopt.problem.classes import group_by_key


def option_shapes(problem: Problem, features: IntArray | None = None) -> list[int]:
    """
    Number the options: two have the same number if every node has the same room for both, and scores both alike.

    ``features``, shape (O, anything): what else of each option the score depends on.
    """
    options = problem.options
    rows = np.column_stack(
        (
            options.gpus,
            options.milli,
            options.gpu_memory_mib,
            options.bundles,
            options.workers,
            options.workers_per_node,
            options.demand,
            np.zeros((len(options), 0), dtype=np.int64) if features is None else features,
        )
    )
    masks = np.packbits(np.column_stack((options.gpu_type_ok, options.node_class_ok)), axis=1)
    kinds = zip(rows, masks, options.gpu_profile, strict=True)
    return group_by_key((row.tobytes() + mask.tobytes(), profile) for row, mask, profile in kinds)[0]
