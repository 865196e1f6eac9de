"""A mix of spreads and fillings in whole numbers as a plan, with the GPUs of every job."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placeopt.formulations.fillings.cost_mix import CostMix
from placeopt.formulations.fillings.pool import Column
from placeopt.formulations.fillings.spreads import Spread
from placeopt.problem import GPU_MILLI, Allocation, IntArray, Placement, State
from placeopt.problem.free_capacity import gpu_milli_left
from placeopt.terms.rules import fits

Bundles = dict[int, list[tuple[int, tuple[int, ...]]]]
"""By bundle group: node and GPUs of each bundle."""


def plan_of(
    state: State, mix: CostMix, spreads: Sequence[Spread], fillings: Sequence[Column], values: IntArray
) -> Allocation:
    """
    Return the jobs that the values have run, beside those of ``state``.

    Those left out that find no room, where the mix does not count what they lack.
    """
    problem, starts, options = state.problem, mix.starts, state.problem.options
    number, times, used = np.split(values, np.cumsum([len(starts.most), len(spreads)]))
    bundles = _bundles(state, mix, spreads, times, fillings, used)
    left = [iter(jobs.tolist()) for jobs in starts.jobs]
    plan = State(problem, state.allocation())
    for start in np.argsort(-starts.bundles, kind="stable").tolist():
        there, each = bundles.get(int(starts.bundle_group[start]), []), int(starts.bundles[start])
        for _ in range(int(number[start])):
            job = next(left[int(starts.job_group[start])])
            option = problem.options_of(job)[int(starts.place[start])]
            chosen, there[:each] = there[:each], []
            nodes = tuple(node for node, _ in chosen for _ in range(int(options.bundle_workers[option])))
            placement = Placement(option, nodes, tuple(gpu for _, gpus in chosen for gpu in gpus))
            if len(chosen) == each and fits(plan, job, placement):
                plan.place(job, placement)
    return plan.allocation()


def _bundles(
    state: State,
    mix: CostMix,
    spreads: Sequence[Spread],
    times: IntArray,
    fillings: Sequence[Column],
    used: IntArray,
) -> Bundles:
    """Hand out nodes to spreads, what these leave of parts to fillings, and the GPUs there to bundles."""
    out: Bundles = {}
    nodes = [iter(nodes.tolist()) for nodes in mix.nodes.nodes]
    left: dict[int, list[tuple[int, list[int]]]] = {}  # by unit: nodes, and GPUs of a part that no spread holds
    for spread, number in zip(spreads, times.tolist(), strict=True):
        for _ in range(number):
            node = next(nodes[spread.node])
            start = int(state.problem.node_gpu_start[node])
            taken = set[int]()
            if spread.crossings:
                placed = mix.spreading.placed(spread.node, spread.crossings)[1]
                taken.update(*placed)
                for (group, _), gpus in zip(spread.crossings, placed, strict=True):
                    out.setdefault(group, []).append((node, tuple(start + gpu for gpu in sorted(gpus))))
            for unit, place in zip(spread.units, mix.nodes.places[spread.node], strict=True):
                left.setdefault(unit, []).append((node, [start + gpu for gpu in place if gpu not in taken]))
    free = gpu_milli_left(state)
    for column, number in zip(fillings, used.tolist(), strict=True):
        for _ in range(number):
            node, inside = left[column.unit].pop(0)
            room = {gpu: int(free[gpu]) for gpu in inside}
            for group, bundles in sorted(column.filling, key=lambda entry: -mix.groups.milli[entry[0]]):
                for _ in range(bundles):
                    held = _taken(state, room, int(mix.groups.gpus[group]), int(mix.groups.milli[group]))
                    out.setdefault(group, []).append((node, held))
    for there in out.values():
        there.sort()
    return out


def _taken(state: State, room: dict[int, int], gpus: int, milli: int) -> tuple[int, ...]:
    """
    Take GPUs of a part: idle ones first, so that as many become busy as can.

    Shares divide each other, so any GPU that takes one leaves as many slots to the smaller ones as any other.
    """
    order = sorted(room, key=lambda gpu: (room[gpu] < GPU_MILLI or bool(state.gpu_jobs[gpu]), gpu))
    held = tuple(gpu for gpu in order if room[gpu] >= milli)[:gpus]
    for gpu in held:
        room[gpu] -= milli
    return held
