"""A score of nodes by SC'17's utility; ``Artifact`` is the rule of the paper's artifact."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.drb.machine import Machine, utility_weights
from placeopt.heuristics.score_cache import ScoreCache
from placeopt.problem import BoolArray, IntArray, Problem
from placeopt.problem.classes import group_by_key
from placeopt.terms.costs.utility import talks

Offer = tuple[tuple[int, ...], float, float]
"""GPUs of a node by index, in the order of the tasks; path term of the utility; co-runner and fragmentation terms."""


class NodeUtility:
    """
    A score (`placeopt.heuristics.candidates.Score`): minus the utility of a bundle on each node.

    Where it is one of several bundles of its job the path is left out: it depends on where the others go. What a node
    offers is looked up where its free GPUs, and who is beside them, are those of a node that was asked before.
    """

    def __init__(self, problem: Problem) -> None:
        options, self.weights, self._known = problem.options, utility_weights(problem), ScoreCache[Offer]()
        self._asked = np.column_stack(
            (
                *(options.gpus, options.bundle_workers, options.bundles == 1, problem.best_path, options.utilisation),
                problem.class_profile[options.job_class],
                [talks(problem, option) for option in range(len(options))],
            )
        )  # (O, 7): what an offer depends on beside the node
        self._request = group_by_key(row.tobytes() for row in self._asked)[0]

    def option_features(self, problem: Problem) -> IntArray:
        """Return what a score depends on beside the node."""
        del problem
        return self._asked

    def __call__(self, candidates: Candidates, option: int, nodes: IntArray) -> np.ndarray:
        """Score ``nodes``, on all of which a bundle of ``option`` fits."""
        if not candidates.problem.options.gpus[option]:
            return np.zeros(len(nodes))
        usable, whole = candidates.usable(option, nodes), candidates.problem.options.bundles[option] == 1
        offers = [self._offer(candidates, option, node, usable[i]) for i, node in enumerate(nodes.tolist())]
        return -np.array([whole * path + worth for _, path, worth in offers])

    def gpus(self, candidates: Candidates, option: int, node: int, ranks: list[int]) -> tuple[int, ...] | None:
        """Return GPUs of the cluster for some of a job's ranks on a node; None without room."""
        problem, options = candidates.problem, candidates.problem.options
        if not options.gpus[option]:
            return ()
        usable = candidates.usable(option, np.array([node]))[0]
        edges = problem.class_communication[options.job_class[option]].edges
        if len(ranks) == options.bundle_workers[option] and not edges:
            found: tuple[int, ...] | None = self._offer(candidates, option, node, usable)[0]
        else:
            found = Machine(candidates.state, option, node, usable, self.weights).gpus(ranks)
        return None if found is None else tuple(problem.first_gpu[node] + gpu for gpu in found)

    def _offer(self, candidates: Candidates, option: int, node: int, usable: BoolArray) -> Offer:
        """Return the offer of a node with room for a bundle of an option, on ``usable`` ones of its slots."""
        problem, state = candidates.problem, candidates.state
        here, first = slice(problem.first_gpu[node], problem.first_gpu[node + 1]), problem.first_gpu[node]
        beside = state.tenants[node].items() if state.tenants else ()
        key = (
            *(self._request[option], int(problem.topology.node_machine[node]), usable.tobytes()),
            *(state.gpu_jobs[here].tobytes(), state.gpu_utilisation[here].tobytes()),
            frozenset((profile, tuple(gpu - first for gpu in gpus), count) for (profile, gpus), count in beside),
        )
        known = self._known.recall(key)
        if known is None:
            machine = Machine(state, option, node, usable, self.weights)
            gpus = machine.gpus(list(range(int(problem.options.bundle_workers[option]))))
            assert gpus is not None  # noqa: S101 - there is room for a bundle
            known = self._best(machine, gpus)
            self._known.keep(key, known)
        return known

    def _best(self, machine: Machine, gpus: tuple[int, ...]) -> Offer:
        """Return what a machine offers; ``gpus`` are those that bi-partitioning gives."""
        return gpus, *machine.utility(gpus)


FLOOR = 0.01
"""The artifact's floor of every term."""

MOST_SETS = 2_000
"""Sets of GPUs of one node that are all scored; of more, only the one that bi-partitioning finds."""


class ArtifactUtility(NodeUtility):
    """
    The rule of SC'17's artifact: of all sets of GPUs of all machines the one of greatest system utility.

    U_s = 3 f^(1/3) / (t^(1/3) + J^(1/3) + w^(1/3)), f = 0.01, all terms at least f: t as in ``terms.costs.utility``
    (form ``sc17``), J the mean of what the job suffers from and causes to co-runners, as in the artifact a speed (solo
    over collocated time) taken for a cost, w the mean over the machine's sockets of free over total GPUs (0 and 1
    become f).

    Departures from the artifact: the GPUs counted out of w are the chosen ones (it counts others); of equal sets the
    first is taken (it takes the last, by memory addresses); slowdowns are those of the instance at the closest part
    that two jobs share (it has them by numbers of GPUs, and in a common socket only); a GPU is assigned once (it may
    assign it twice a round); jobs on several nodes, which it does not support, are placed as by ``NodeUtility``.
    """

    def _best(self, machine: Machine, gpus: tuple[int, ...]) -> Offer:
        if machine.problem.options.bundles[machine.option] > 1:
            return super()._best(machine, gpus)
        sets = np.array([gpus])
        if comb(int(machine.usable.sum()), len(gpus)) <= MOST_SETS:
            sets = np.array(list(combinations(np.flatnonzero(machine.usable).tolist(), len(gpus))))
        utility = system_utility(machine, sets)
        best = int(utility.argmax())
        return tuple(sets[best].tolist()), float(utility[best]), 0.0


def system_utility(machine: Machine, sets: IntArray) -> np.ndarray:
    """Return U_s, shape (m,), of a whole job on sets of a node's GPUs, by index: (m, k)."""
    problem, option, n = machine.problem, machine.option, sets.shape[1]
    far = max(1, problem.topology.max_machine_distance) * max(n, n * (n - 1) // 2)
    more = (machine.path(sets) - int(problem.best_path[option])) * talks(problem, option)
    suffered, caused = machine.co_runners.excess(sets)
    felt = _speeds(suffered).sum(axis=0) / max(1, len(suffered))
    slowed, free = _speeds(caused).sum(axis=0) / np.maximum(1, (caused > 0).sum(axis=0)), machine.free_without(sets)
    terms = more / far, (felt + slowed) / 2, np.where(free == 1, 0, free)
    share: np.ndarray = 3 * FLOOR ** (1 / 3) / sum(np.maximum(FLOOR, term) ** (1 / 3) for term in terms)
    return share


def _speeds(excess: IntArray) -> np.ndarray:
    """Return solo over collocated time where jobs disturb each other, else 0."""
    return np.where(excess > 0, 1000 / (1000 + excess), 0)
