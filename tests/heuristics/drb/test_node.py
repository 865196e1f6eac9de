"""Utility of nodes, kept by state: the definitions GPU by GPU, and every decision anew."""

from itertools import combinations

import numpy as np
from hypothesis import given

from placeopt.heuristics import CHOOSERS, order_jobs
from placeopt.heuristics.drb.node import MachineKind, NodeNow
from placeopt.model import Instance
from placeopt.problem import Placement, Problem, State, compile_problem
from placeopt.terms.costs.slowdown_curves import excess_table
from strategies import rounds

WEIGHTS = (0.4, 0.3, 0.3)


def filled(problem: Problem, chooser: str) -> State:
    """Place every other job one after the other, each where a chooser that knows nothing would place it."""
    state = State(problem)
    known = CHOOSERS[chooser](state)
    for job in order_jobs(problem, "fcfs").tolist()[::2]:
        placement = known.place(job)
        assert placement == CHOOSERS[chooser](state).place(job)
        if placement is not None:
            state.place(job, placement)
            for node in dict.fromkeys(placement.nodes):
                known.changed(node)
    return state


def excess(state: State, job: int, placement: Placement) -> int:
    """Return what a job would suffer and cause, in thousandths, from one co-runner after the other."""
    problem, by = state.problem, state.problem.policy.interference
    if by.model == "curve":
        more, most, total = int(problem.options.utilisation[placement.option]), 0, 0
        for gpu in placement.gpus:
            used, jobs = int(state.gpu_utilisation[gpu]), int(state.gpu_jobs[gpu])
            table = excess_table(by.curve, used + more)
            most = max(most, int(table[used + more]) * (jobs > 0))
            total += jobs * int(table[used + more] - table[used] * (jobs > 1))
        return most + total
    own, suffered, caused = int(problem.class_profile[problem.job_class[job]]), [0], 0
    for other in state.node_jobs[placement.nodes[0]]:
        profile = int(problem.class_profile[problem.job_class[other]])
        pairs = [(a, b) for a in placement.gpus for b in state.placements[other].gpus]
        if pairs and own >= 0 and profile >= 0:
            level = min(apart(problem, a, b) for a, b in pairs)
            suffered.append(int(problem.slowdown[level, own, profile]))
            caused += int(problem.slowdown[level, profile, own])
    return (sum(suffered) if by.model == "pairwise" else max(suffered)) + caused


def apart(problem: Problem, a: int, b: int) -> int:
    """Return where two GPUs meet: 0 the same GPU, 1 a switch, 2 a socket, 3 at most a node."""
    parts = (problem.gpu_switch, problem.gpu_socket)
    shared = [level for level, part in enumerate(parts, 1) if part[a] == part[b] >= 0]
    return 0 if a == b else min(shared, default=3)


def free(state: State, node: int, gpus: tuple[int, ...]) -> float:
    """Return eq. 5: the mean over a node's sockets of the part that is free once some GPUs are held."""
    problem, sockets = state.problem, dict[int, list[bool]]()
    for gpu in range(problem.first_gpu[node], problem.first_gpu[node + 1]):
        left = state.gpu_jobs[gpu] == 0 and gpu not in gpus
        sockets.setdefault(int(problem.gpu_socket[gpu]), []).append(bool(left))
    return float(np.mean([np.mean(left) for left in sockets.values()]))


@given(round_=rounds())
def test_terms_are_those_of_the_definitions_and_nothing_kept_is_stale(round_: Instance) -> None:
    problem = compile_problem(round_)
    state = filled(problem, "drb")
    for job in order_jobs(problem, "fcfs").tolist()[1::2]:
        option, machine = problem.options_of(job)[0], problem.topology.node_machine
        each = int(problem.options.gpus[option])
        for node, kind in enumerate(machine.tolist()):
            size = len(problem.topology.distance[kind])
            now = NodeNow(state, option, node, np.ones(size, dtype=bool), MachineKind(problem, node), WEIGHTS)
            for indices in combinations(range(size), each) if each else ():
                gpus = tuple(problem.first_gpu[node] + gpu for gpu in indices)
                left = free(state, node, gpus)
                slowed = excess(state, job, Placement(option, (node,), gpus))
                assert abs(now.free_without(indices) - left) < 1e-9
                assert abs(now.worth(indices) - (WEIGHTS[1] * 1000 / (1000 + slowed) + WEIGHTS[2] / (1 + left))) < 1e-9


@given(round_=rounds())
def test_the_artifact_decides_as_if_every_node_was_looked_at_anew(round_: Instance) -> None:
    filled(compile_problem(round_), "drb-sc17")
