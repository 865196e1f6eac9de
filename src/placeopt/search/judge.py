"""Rules and costs of which the state has no exact differences, asked of their one definition in `placeopt.terms`."""

from __future__ import annotations

from placeopt.problem import Allocation, Move, Problem
from placeopt.problem import State as ProblemState
from placeopt.search import annealing, memory, moves, placing, rng
from placeopt.search.coverage import Judged
from placeopt.search.entries import placement_of
from placeopt.search.state import State
from placeopt.terms.objective import part_cost
from placeopt.terms.protocols import Part
from placeopt.terms.rules.gpu_slots import GpuSlots
from placeopt.terms.rules.trees import tree_keeps

TRIES = 4
"""Places that a job is given in a step, each but the last without a node or the GPUs of the one before."""


class Judge:
    """
    Steps of the local search in which every placement is tried against what the state does not know.

    A placement that is refused is tried elsewhere, some times. A step is taken back where a tree, or a relation near
    others, is broken at its end.
    """

    def __init__(self, problem: Problem, allocation: Allocation, state: State, judged: Judged) -> None:
        self._problem, self._state, self._judged = problem, state, judged
        self._placed = ProblemState(problem, allocation)
        self._undo: list[Move] = []
        self._extra = 0
        relations = problem.relations.every[: problem.relations.hard]
        self._near = [r for r, relation in enumerate(relations) if relation.record.kind == "near"]

    def anneal(self, steps: int, heat: float, cooling: float) -> int:
        """Take some steps; see `annealing.anneal`."""
        for taken in range(steps):
            if self._state.stopped:
                return taken
            self._step(heat * self._state.best_plan_cost / (self._state.placed_count + 1))
            heat *= cooling
        return steps

    def _step(self, temperature: float) -> None:
        """Make a move, and decide on it."""
        state = self._state
        value, cost, move = state.value, state.cost, moves.draw(state)
        jobs = moves.ruin(state, move)
        queue = [state.queue[i] for i in range(jobs)]
        self._undo.clear()
        self._extra = 0
        for job in queue:
            if self._placed.placements[job] is not None:
                self._apply(Move(job, None))
        late = [job for job in queue if not self._recreate(job)]
        if self._near:  # what they want may be there by now
            for job in late:
                self._recreate(job)
        self._complete_trees(queue)
        broken = any(self._placed.relations[r].breaks_near() for r in self._near)
        if broken:
            memory.undo(state)
        else:
            state.cost += self._extra
            if annealing.decide(state, move, value, cost, 0, temperature):  # running jobs stay
                return
        state.cost = cost
        for undo in reversed(self._undo):
            self._placed.apply(undo)

    def _apply(self, move: Move) -> None:
        """Make a move where all rules look, and add what costs change by it."""
        placed, weighted = self._placed, self._judged.weighted
        if self._judged.paths and not self._state.path_counts[move.job]:
            weighted = (*weighted, *self._judged.paths)
        part = Part(placed, move) if weighted else None
        before = part_cost(placed, part, weighted) if part else 0
        self._undo.append(placed.apply(move))
        self._extra += part_cost(placed, part, weighted) - before if part else 0

    def _recreate(self, job: int) -> bool:
        """Place a job where the state finds room and no rule refuses it; whether that is anywhere."""
        state, closed = self._state, list[int]()
        for _ in range(TRIES):
            moves.recreate(state, job)
            held = placement_of(state, self._problem, job)
            if held is None:
                break
            refusing = next((rule for rule in self._judged.rules if not rule.fits(self._placed, job, held)), None)
            if refusing is None:
                self._apply(Move(job, held))
                break
            placing.take_away(state, job)
            slot = state.first_slot[job] + rng.below(state, state.entries[job])
            node = state.slot_node[slot]
            closed.append(node)
            apart = isinstance(refusing, GpuSlots) or self._problem.options.part_level[held.option] is not None
            state.closed[node] |= state.slot_gpus[slot] if apart else state.whole_node
        for node in closed:
            state.closed[node] = 0
        return state.option[job] >= 0

    def _complete_trees(self, queue: list[int]) -> None:
        """Take away what a step placed of trees that do not stand as they must."""
        placed, of_tree = self._placed, self._problem.tree_of
        for tree in {of_tree[job].job: of_tree[job] for job in queue if job in of_tree}.values():
            if not tree_keeps(self._problem, tree, placed.placed(tree.members)):
                for member in tree.members:
                    if self._state.option[member] >= 0 and not self._state.fixed[member]:
                        memory.note(self._state, member)
                        placing.take_away(self._state, member)
                        self._apply(Move(member, None))
