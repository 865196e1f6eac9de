"""Rank nodes by what jobs lose there: by the path between their GPUs, and by each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.run_times import path_excess
from placeopt.heuristics.scores.fit import BestFit
from placeopt.heuristics.scores.score import Score, closest
from placeopt.problem import IntArray, Placement, Problem, State
from placeopt.terms.costs.interference import meeting_level
from placeopt.terms.costs.slowdown_curves import excess_table

UNKNOWN = 1000
"""Excess run time beside a job on the same GPU where nothing is known of the two: the GPU is divided in time."""
LEAST_GAIN = 0.5
"""How much more a GPU must get done with a newcomer that shares it, in jobs at full speed."""
PACKING = 50
"""Thousandths of run time that a fuller node may cost instead of an idle one."""


class LeastSlowdown(Score):
    """
    The least excess run time, in thousandths, of the job and its neighbours. Ours.

    The job's own excess by the path between its GPUs, if they are all on the node, plus the slowdown of the job and its
    neighbours by each other; among nodes about alike the fullest.

    Neighbours count as under interference ``pairwise``: each at the closest domain shared. A GPU set is the closest
    one, or the closest one inside a socket, whichever costs less.

    Where a policy lets jobs share GPUs (``overcommit``), a job without enough idle ones shares those where least is
    lost, if they get more done by that: the speed at which it would run, less what those there lose of theirs, must be
    at least ``LEAST_GAIN``. Excess run times on a shared GPU are those stated for the two profiles; else they follow
    the policy's curve over expected utilisation (Horus, figure 4); where neither is known the GPU is divided in time.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._fit = BestFit(problem)
        self._socket = problem.neighbours.socket
        default = problem.policy.postpone.spread_slowdown_thousandths
        stated_spread = (communication.spread_slowdown_thousandths for communication in problem.class_communication)
        self.excludes_gpus = self._shares = problem.policy.share_mode == "overcommit"
        self._curve = problem.policy.interference.curve
        self._spread = [default if spread is None else spread for spread in stated_spread]

    def option_features(self, problem: Problem) -> IntArray:
        """Return profile and spread slowdown of each option's jobs, and its utilisation."""
        each = np.column_stack((problem.class_profile, np.array(self._spread, dtype=np.int64)))
        asked: IntArray = np.column_stack((each[problem.options.job_class], problem.options.utilisation))
        return asked

    def __call__(self, candidates: Candidates, option: int, nodes: IntArray) -> np.ndarray:
        """Score ``nodes``, on all of which a bundle of ``option`` fits."""
        score = PACKING * self._fit(candidates, option, nodes)
        if self._problem.options.gpus[option]:
            for i, node in enumerate(nodes.tolist()):
                gpus = candidates.choose_gpus(option, node)
                score[i] += self._price(candidates, option, node, gpus)
                if self._shares:
                    score[i] += sum(
                        self._shared(candidates.state, option, gpu)[0] for gpu in self._busy(candidates, gpus)
                    )
        return score

    def pick(self, candidates: Candidates, option: int, gpus: list[int], need: int) -> tuple[int, ...]:
        """Return the ``need`` of ``gpus`` (all of one node) that cost least."""
        node = int(self._problem.gpu_node[gpus[0]])
        if self._shares:
            idle = [gpu for gpu in gpus if not candidates.state.gpu_jobs[gpu]]
            if len(idle) < need:
                cost = {gpu: self._shared(candidates.state, option, gpu)[0] for gpu in self._busy(candidates, gpus)}
                return tuple(sorted(sorted(gpus, key=lambda gpu: (cost.get(gpu, -1), gpu))[:need]))
            gpus = idle
        sockets = dict.fromkeys(self._socket[gpu] for gpu in gpus)
        groups = [gpus, *([gpu for gpu in gpus if self._socket[gpu] == socket] for socket in sockets)]
        tried = [
            closest(candidates.state, group, need) if len(group) > need else tuple(group)
            for group in groups[: None if len(sockets) > 1 else 1]
            if len(group) >= need
        ]
        return min(tried, key=lambda chosen: self._price(candidates, option, node, chosen))

    def excluded_gpus(self, candidates: Candidates, option: int, gpus: list[int]) -> list[int]:
        """Return those of ``gpus`` that others hold and that would not get enough more done by sharing."""
        busy = self._busy(candidates, gpus)
        return [gpu for gpu in busy if self._shared(candidates.state, option, gpu)[1] < LEAST_GAIN]

    def _busy(self, candidates: Candidates, gpus: Sequence[int]) -> list[int]:
        return [gpu for gpu in gpus if candidates.state.gpu_jobs[gpu]]

    def _shared(self, state: State, option: int, gpu: int) -> tuple[int, float]:
        """Return what sharing a busy GPU costs, in thousandths of run time, and what it gains, in full speeds."""
        cost, sharers = self._sharing(state, option, gpu)
        gain = 1000 / (1000 + cost)
        for before, after, number in sharers:
            cost += number * (after - before)
            gain -= number * (1000 / (1000 + before) - 1000 / (1000 + after))
        return cost, gain

    def _sharing(self, state: State, option: int, gpu: int) -> tuple[int, list[tuple[int, int, int]]]:
        """Return the excess of a newcomer on a GPU; before and after it of those there, and how many are alike."""
        jobs, used = int(state.gpu_jobs[gpu]), int(state.gpu_utilisation[gpu])
        stated = self._stated(state, option, gpu)
        if stated is not None:
            return sum(mine * number for mine, _, number in stated), [
                (0, theirs, number) for _, theirs, number in stated
            ]
        more = int(self._problem.options.utilisation[option])
        if used and more:
            table = excess_table(self._curve, used + more)
            after = int(table[used + more])
            return after, [(int(table[used]) if jobs > 1 else 0, after, jobs)]
        return UNKNOWN * jobs, [(UNKNOWN * (jobs - 1), UNKNOWN * jobs, jobs)]

    def _stated(self, state: State, option: int, gpu: int) -> list[tuple[int, int, int]] | None:
        """Return what is stated of a newcomer and those on a GPU, and how many are alike; None if any is not."""
        profile = int(self._problem.class_profile[self._problem.options.job_class[option]])
        if profile < 0 or not state.tenants:
            return None
        excess = self._problem.slowdown[0]
        pairs = [
            (int(excess[profile, beside]), int(excess[beside, profile]), count)
            for (beside, held), count in state.tenants[int(self._problem.gpu_node[gpu])].items()
            if beside >= 0 and gpu in held
        ]
        complete = sum(count for _, _, count in pairs) == state.gpu_jobs[gpu] and all(a and b for a, b, _ in pairs)
        return pairs if complete else None

    def _price(self, candidates: Candidates, option: int, node: int, gpus: tuple[int, ...]) -> int:
        """Excess run time of all, in thousandths, that a bundle on ``gpus`` adds."""
        problem, k = self._problem, int(self._problem.options.job_class[option])
        workers = int(problem.options.bundle_workers[option])
        total = 0
        if len(gpus) > 1 and problem.options.bundles[option] == 1:
            total += path_excess(problem, Placement(option, (node,) * workers, gpus), self._spread[k])
        profile = int(problem.class_profile[k])
        if profile < 0 or not candidates.state.tenants:
            return total
        level_of, slowdown = meeting_level(problem, gpus), problem.neighbours.slowdown
        for (beside, held), count in candidates.state.tenants[node].items():
            if beside >= 0:
                level = level_of(held)
                total += count * (slowdown[profile][beside][level] + slowdown[beside][profile][level])
        return total
