"""Room for waiting jobs where running ones are: the cheapest victims on some node, or in some domain."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.greedy_pass import place, stop_at
from placeopt.heuristics.option_shapes import option_shapes
from placeopt.heuristics.scores.registry import score_named
from placeopt.problem import Allocation, IntArray, Move, Placement, Problem, State, keeps_limits
from placeopt.problem.changes import part_of, restarted, submission_order
from placeopt.terms.objective import start_value
from placeopt.terms.rules import fits

TRIES = 8
"""Nodes or domains tried for an option, those with the cheapest victims first."""


def make_room(
    problem: Problem,
    allocation: Allocation,
    order: IntArray,
    score: str = "stranding",
    *,
    deadline: float = float("inf"),
    cancelled: Callable[[], bool] | None = None,
    stop_at_first_failure: bool = False,
    spared: Collection[int] = (),
    at_any_price: bool = False,
) -> Allocation:
    """
    Place waiting jobs of ``allocation`` where running ones are moved, shrunk or preempted for less than that gains.

    ``allocation`` is the result of greedy, ``order`` the waiting jobs, of which placed ones are skipped; the rest is as
    in ``greedy``. For each job: the cost of one, two, ... of its bundles on every node, victims taken by their loss per
    GPU; the nodes or domains by the sum. On the cheapest few the victims are taken, those that the job does not need
    are put back, the dearest first, and it is placed. Where victims are moved, they then get other places, those with
    most GPUs first. A class that failed once is not tried again.

    Running jobs in ``spared`` stay; ``at_any_price`` others go whatever that costs.

    One pass only moves, of which nothing but the price is lost; one after it preempts and shrinks what was not moved.
    """
    over = stop_at(deadline, cancelled)
    for moving, victims in ((True, problem.may_move), (False, problem.may_shrink | problem.may_preempt)):
        victims = victims.difference(spared)
        if not victims:
            continue
        search = _PreemptionSearch(problem, allocation, score, victims, moving=moving, at_any_price=at_any_price)
        failed_classes: set[int] = set()
        for job in order.tolist():
            if search.state.placements[job] is not None:
                continue
            if over():
                break
            k = int(problem.job_class[job])
            if k in failed_classes or not search.admit(job):
                failed_classes.add(k)
                if stop_at_first_failure:
                    break
        allocation = search.state.allocation()
    return allocation


@dataclass(frozen=True)
class _Victim:
    """A running job, what remains of it (None: nothing), and the net value that is lost by that."""

    job: int
    left: Placement | None
    loss: int


class _Step(NamedTuple):
    """Victims of one more bundle on a node, and what is lost by them."""

    loss: int
    victims: list[_Victim]


NO_VICTIM = _Step(0, [])
_Target = tuple[int, list[int], list[_Victim]]
"""Loss, nodes and victims of all bundles of an option."""


class _PreemptionSearch:
    """The state of the pass: placements, victims by node, and the cost of bundles there."""

    def __init__(
        self,
        problem: Problem,
        allocation: Allocation,
        score: str,
        victims: frozenset[int],
        *,
        moving: bool,
        at_any_price: bool = False,
    ) -> None:
        """``victims``: running jobs that may go; ``moving``: whether they get other places."""
        self.problem, self.moving, self._at_any_price = problem, moving, at_any_price
        self.state = State(problem)
        self.state.load(allocation)
        self.candidates = Candidates(self.state, score_named(score, problem))
        self.order = [] if moving else submission_order(problem)
        self.victims: dict[int, _Victim] = {}
        self.on_node: dict[int, list[_Victim]] = {}
        for job in sorted(victims):
            if reductions := self._reductions(job):
                self.victims[job] = min(reductions, key=self._density)
        for victim in sorted(self.victims.values(), key=self._density):
            for node in dict.fromkeys(problem.running[victim.job].nodes):
                self.on_node.setdefault(node, []).append(victim)
        self._shape = option_shapes(problem)
        self._steps_of: dict[int, dict[int, list[_Step]]] = {}  # node -> shape of option -> `_steps` there

    def admit(self, job: int) -> bool:
        """Place the job, at the cost of victims if that still gains value."""
        free = place(self.candidates, job)
        if free is not None:
            self._apply([Move(job, free)])
            return True
        value, tried = self.problem.options.value, {frozenset[int]()}  # there is no room without victims
        for option in sorted(self.problem.options_of(job), key=lambda o: -int(value[o])):
            for loss, victims in self._targets(option):
                jobs = frozenset(victim.job for victim in victims)
                if jobs in tried or not self._pays(loss, int(value[option])):
                    continue
                if self._try(job, victims):
                    return True
                tried.add(jobs)
        return False

    def _pays(self, lost: int, gained: int) -> bool:
        return self._at_any_price or lost < gained

    def _reductions(self, job: int) -> list[_Victim]:
        """Return the ways to make room: the job as a whole, or down to the first workers of its minimum."""
        problem, options, held = self.problem, self.problem.options, self.problem.running[job]
        if self.moving:
            return [_Victim(job, None, problem.policy.changes.move_price)]
        kept = start_value(problem, job, held)
        out = [_Victim(job, None, kept)] if job in problem.may_preempt else []
        if job in problem.may_shrink:
            kind = options.kinds[held.option]
            least = min(
                (o for o in problem.options_of(job) if options.kinds[o] == kind), key=lambda o: int(options.workers[o])
            )
            left = part_of(problem, job, least, tuple(range(int(options.workers[least]))))
            undo = self.state.apply(Move(job, None))
            if fits(self.state, job, left):
                out.append(_Victim(job, left, kept - start_value(problem, job, left)))
            self.state.apply(undo)
        return out

    def _density(self, victim: _Victim) -> tuple[float, int]:
        """Loss per GPU that is freed; ties by job."""
        milli = self.problem.options.total_milli
        left = 0 if victim.left is None else int(milli[victim.left.option])
        return victim.loss / max(1, int(milli[self.problem.running[victim.job].option]) - left), victim.job

    def _is_evicted(self, victim: _Victim) -> bool:
        return self.state.placements[victim.job] is not self.problem.running[victim.job]

    def _targets(self, option: int) -> list[tuple[int, list[_Victim]]]:
        """
        Return victims on the cheapest nodes, or in the cheapest domains, that could take the option without them.

        With each their loss, in which those on several nodes count on each; the cheapest first.
        """
        problem = self.problem
        bundles = int(problem.options.bundles[option])
        nodes = np.flatnonzero(problem.node_ok(option))
        rooms = self.candidates.rooms(option, nodes)
        useful = (rooms > 0) | np.isin(nodes, list(self.on_node))
        nodes, rooms = nodes[useful], rooms[useful]
        steps = {
            node: self._steps(option, node, room) for node, room in zip(nodes.tolist(), rooms.tolist(), strict=True)
        }
        priced: Iterable[_Target]
        if bundles == 1:
            priced = ((of_node[0].loss, [node], of_node[0].victims) for node, of_node in steps.items() if of_node)
        else:
            together = next((split.level for split in problem.options.splits[option] if split.domains == 1), None)
            domain = problem.split_domain[together][nodes] if together is not None else np.zeros_like(nodes)
            inside: dict[int, dict[int, list[_Step]]] = {}
            for node, d in zip(steps, domain.tolist(), strict=True):
                if d >= 0:
                    inside.setdefault(d, {})[node] = steps[node]
            priced = filter(None, (_cheapest(here, bundles) for here in inside.values()))
        found = heapq.nsmallest(TRIES, priced, key=itemgetter(0, 1))
        targets = ((loss, self._with_later(victims)) for loss, _, victims in found)
        return [(max(loss, sum(victim.loss for victim in victims)), victims) for loss, victims in targets]

    def _steps(self, option: int, node: int, free: int) -> list[_Step]:
        """Return whom each further bundle on the node takes, which has room for ``free``, as far as victims go."""
        cached, shape = self._steps_of.setdefault(node, {}), self._shape[option]
        if shape not in cached:
            here, undo, step = np.array([node]), list[Move](), list[_Victim]()
            steps = [NO_VICTIM] * free
            for victim in self.on_node.get(node, ()):
                if len(steps) >= self.problem.options.bundles[option]:
                    break
                if not self._is_evicted(victim):
                    undo.append(self.state.apply(Move(victim.job, victim.left)))
                    step.append(victim)
                    if (more := int(self.candidates.rooms(option, here)[0]) - len(steps)) > 0:
                        steps += [_Step(sum(victim.loss for victim in step), step), *[NO_VICTIM] * (more - 1)]
                        step = []
            for move in reversed(undo):
                self.state.apply(move)
            cached[shape] = steps
        return cached[shape]

    def _with_later(self, victims: list[_Victim]) -> list[_Victim]:
        """Return victims, each once, with those that must go before them."""
        chosen = {victim.job: victim for victim in victims}
        for queue in self.order:
            first = next((i for i, jobs in enumerate(queue) if not chosen.keys().isdisjoint(jobs)), len(queue))
            later = [self.victims[job] for jobs in queue[first + 1 :] for job in jobs if job in self.victims]
            chosen.update((victim.job, victim) for victim in later if not self._is_evicted(victim))
        return list(chosen.values())

    def _try(self, job: int, victims: list[_Victim]) -> bool:
        """
        Take the victims, put back those not needed, place the job; undo all unless value is gained within the limits.
        """
        undo = self._apply([Move(victim.job, victim.left) for victim in victims])
        if place(self.candidates, job) is not None:
            dearest_first = sorted(victims, key=lambda v: (-v.loss, v.job))
            gone = [victim for victim in dearest_first if not self._restore_victim(job, victim, undo)]
            placement = place(self.candidates, job)
            undo += self._apply([Move(job, placement)])
            lost = self._lost(gone, undo)
            gained = 0 if placement is None else int(self.problem.options.value[placement.option])
            pays = placement is not None and lost is not None and self._pays(lost, gained)
            if pays and keeps_limits(self.problem, self.state.allocation()):
                return True
        self._apply(undo[::-1])
        return False

    def _lost(self, victims: list[_Victim], undo: list[Move]) -> int | None:
        """Return the loss by victims that are gone; those that move get other places first, None if one has none."""
        if not self.moving:
            return sum(victim.loss for victim in victims)
        problem, lost, running = self.problem, 0, self.problem.running
        milli = problem.options.total_milli
        for victim in sorted(victims, key=lambda v: (-int(milli[running[v.job].option]), v.job)):
            found = place(self.candidates, victim.job)
            if found is None:
                return None
            moved = restarted(problem, victim.job, found)
            undo += self._apply([Move(victim.job, moved)])
            lost += start_value(problem, victim.job, running[victim.job]) - start_value(problem, victim.job, moved)
        return lost

    def _restore_victim(self, job: int, victim: _Victim, undo: list[Move]) -> bool:
        """Put the victim back, if the job finds its room all the same."""
        if self.order:
            return False  # jobs that came later would have to be put back first: left to the exact stage
        back = self._apply([Move(victim.job, self.problem.running[victim.job])])
        if place(self.candidates, job) is None:
            self._apply(back)
            return False
        undo += back
        return True

    def _apply(self, moves: list[Move]) -> list[Move]:
        """Carry out moves and forget what was known of the nodes that they touch; return what takes them back."""
        undo = []
        for move in moves:
            undo.append(self.candidates.apply(move))
            for placement in (undo[-1].placement, move.placement):
                for node in placement.nodes if placement is not None else ():
                    self._steps_of.pop(node, None)
        return undo


def _cheapest(steps: dict[int, list[_Step]], bundles: int) -> _Target | None:
    """Return loss, nodes and victims of ``bundles``, one after the other where the next one costs least."""
    heap = [(of_node[0].loss, node) for node, of_node in steps.items() if of_node]
    heapq.heapify(heap)
    nodes, victims, total = list[int](), list[_Victim](), 0
    for _ in range(bundles):
        if not heap:
            return None
        loss, node = heapq.heappop(heap)
        count, total = nodes.count(node) + 1, total + loss
        victims += steps[node][count - 1].victims
        nodes.append(node)
        if count < len(steps[node]):
            heapq.heappush(heap, (steps[node][count].loss, node))
    return total, sorted(nodes), victims
