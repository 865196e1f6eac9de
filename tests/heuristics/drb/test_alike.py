"""Nodes side by side: each is offered, and worth, what it is alone."""

import numpy as np
from hypothesis import given

from placeopt.heuristics import CHOOSERS, order_jobs
from placeopt.heuristics.drb.node import MachineKind, NodeNow
from placeopt.model import Instance
from placeopt.problem import State, compile_problem
from strategies import rounds

WEIGHTS = (0.4, 0.3, 0.3)


@given(round_=rounds())
def test_nodes_side_by_side_are_as_each_alone(round_: Instance) -> None:
    problem = compile_problem(round_)
    state, machine = State(problem), problem.topology.node_machine
    chooser = CHOOSERS["drb"](state)
    for job in order_jobs(problem, "fcfs").tolist()[::2]:
        placement = chooser.place(job)
        if placement is not None:
            state.place(job, placement)
            for node in dict.fromkeys(placement.nodes):
                chooser.changed(node)
    for option in np.unique([problem.options_of(job)[0] for job in order_jobs(problem, "fcfs").tolist()]).tolist():
        for one in np.unique(machine).tolist():
            nodes = np.flatnonzero(machine == one)
            kind, size = MachineKind(problem, int(nodes[0])), len(problem.topology.distance[one])
            usable = state.gpu_jobs[problem.node_gpu_start[nodes][:, None] + np.arange(size)] == 0
            for count in range(1, size + 1):
                here = usable.sum(axis=1) >= count
                together = NodeNow(state, option, nodes[here], usable[here], kind, WEIGHTS)
                found, worth = together.bipartitioned_alike(count), together.worth()
                for row, node in enumerate(nodes[here].tolist()):
                    alone = NodeNow(state, option, node, usable[here][row], kind, WEIGHTS)
                    assert tuple(found[row].tolist()) == alone.bipartitioned(count, None)
                    assert (worth[row] == alone.worth()[0]).all()
