"""Rules: all of a job or nothing; where it may start at all; how its workers lie over nodes and domains."""

from __future__ import annotations

from collections import Counter

import numpy as np

from placeopt.linear import NO_LOWER, ModelBuilder
from placeopt.problem import IntArray, Placement, Problem, State, change_of
from placeopt.terms.rules.split import add_split, keeps
from placeopt.terms.variables import STAY, Variables


class Gang:
    """Horus eq. 4, DynamoML: exactly the option's workers and GPUs; no GPU twice; at most one option a job."""

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


class Where:
    """
    A static mask, compiled per option and class of node or type of GPU.

    It says where work may start, so a running job that stays, whole or shrunk, is exempt.
    """

    def fits(self, state: State, job: int, placement: Placement) -> bool:
        """Return whether every node and GPU is allowed."""
        problem, options, o = state.problem, state.problem.options, placement.option
        if job in problem.running and change_of(problem, job, placement) != "moved":
            return True
        nodes, gpus = problem.node_class[list(placement.nodes)], problem.gpu_type[list(placement.gpus)]
        return bool(options.node_class_ok[o][nodes].all() and options.gpu_type_ok[o][gpus].all())

    def add_to(self, builder: ModelBuilder, variables: Variables) -> None:
        """Nothing to add: formulations make no columns where the mask forbids a start."""


class Spread:
    """Single node, most workers per node, an exact number of domains of a level, with an exact number of workers."""

    def fits(self, state: State, job: int, placement: Placement) -> bool:
        """Return whether the workers lie as the option asks; a running job may stay as it lies."""
        problem, o = state.problem, placement.option
        if job in problem.running and change_of(problem, job, placement) == "kept":
            return True
        if len(placement.nodes) == 1 and not problem.options.lies[o] and problem.options.part_level[o] is None:
            return bool(problem.options.workers_per_node[o] >= 1)
        per_node = Counter(placement.nodes)
        if problem.options.bundles[o] == 1 and len(per_node) > 1:
            return False
        if max(per_node.values()) > problem.options.workers_per_node[o]:
            return False
        level = problem.options.part_level[o]
        if level is not None and placement.gpus:
            parts = set(problem.gpu_part[level][list(placement.gpus)].tolist())
            if len(parts) > 1 or -1 in parts:
                return False
        return all(keeps(problem, split, [placement]) for split in problem.options.lies[o])

    def add_to(self, builder: ModelBuilder, variables: Variables) -> None:
        """Limits per node as rows; splits with a binary per domain. Single-node options have one bundle: no row."""
        v, options = variables, variables.problem.options
        limit = options.workers_per_node[v.bundle_option]
        binds = (options.bundles[v.bundle_option] > 1) & (limit < options.workers[v.bundle_option])
        binds &= v.start_kind[v.bundle_start] != STAY
        size = v.unit_size[v.start_unit[v.bundle_start]]
        builder.add_rows(np.arange(int(binds.sum())), v.bundle[binds], 1, NO_LOWER, (limit * size)[binds])
        for s, option in enumerate(v.start_option.tolist()):
            for split in options.lies[option] if v.start_kind[s] != STAY else ():
                # formulations do not fold options with splits: the unit has one job
                mine, most = np.flatnonzero(v.bundle_start == s), int(options.workers[option])
                add_split(builder, v, split, mine, most=most, runs=v.start[s : s + 1])
            level = options.part_level[option]
            if level is not None and v.start_kind[s] != STAY:
                self._add_part(builder, v, s, level)

    def gpu_classes(self, problem: Problem) -> IntArray | None:
        """GPUs of different parts are told apart where an option must be inside one."""
        levels = list(problem.gpu_part.values())
        return np.unique(np.stack(levels), axis=1, return_inverse=True)[1] if levels else None

    def forbids_folding(self, problem: Problem, option: int) -> bool:
        """Return whether a job in the option must be inside one part of a machine."""
        return problem.options.part_level[option] is not None

    def _add_part(self, builder: ModelBuilder, v: Variables, s: int, level: str) -> None:
        """A binary for each part that may hold the job, one of which does."""
        grants = np.flatnonzero(v.grant_start == s)
        part = v.problem.gpu_part[level][v.cell_gpu[v.grant_cell[grants]]]
        if len(nowhere := grants[part < 0]):
            builder.add_row(v.grant[nowhere], 1, 0, 0)
        grants, part = grants[part >= 0], part[part >= 0]
        numbers, row = np.unique(part, return_inverse=True)
        held = builder.add_variables(0, 1, count=len(numbers))
        builder.define(held, lambda values: np.bincount(row, values[v.grant[grants]], len(numbers)) > 0)
        need = int(v.problem.options.bundle_gpus[v.start_option[s]])
        if need:
            each = np.arange(len(numbers))
            builder.add_parts(0, 0, (row, v.grant[grants], 1), (each, held, -need), count=len(numbers))
