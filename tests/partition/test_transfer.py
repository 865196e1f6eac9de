"""A round and its places on their way to another process and back."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from helpers.small_rounds import random_round
from placeopt import generate
from placeopt.heuristics import greedy
from placeopt.heuristics.job_orders import order_jobs
from placeopt.partition.split import deal_parts, part_instance
from placeopt.partition.transfer import NO_PLACES, PackedRound, joined, places_of
from placeopt.problem import compile_problem


@pytest.mark.parametrize("seed", range(30))
def test_a_round_arrives_as_it_was_sent(seed: int) -> None:
    """Jobs of several options, running gangs, labels and lists; empty columns too."""
    round_ = random_round(np.random.default_rng(seed), named=seed % 3 == 2)
    arrived = pickle.loads(pickle.dumps(PackedRound.of(round_))).unpacked()  # noqa: S301 - our own bytes
    assert arrived == round_
    assert arrived.digest == round_.digest


def test_columns_are_smaller_than_records() -> None:
    """What many jobs share is sent once."""
    round_ = generate("uniform", jobs=2000, nodes=250, gpus=8, seed=1)
    assert 2 * len(pickle.dumps(PackedRound.of(round_))) < len(pickle.dumps(round_))


@pytest.mark.parametrize("seed", range(30))
def test_places_come_back_to_the_same_nodes_and_gpus(seed: int) -> None:
    """By names: what a part's process placed is placed in the whole, job by job; running jobs stay."""
    whole = compile_problem(random_round(np.random.default_rng(seed)))
    parts, places, expected = deal_parts(whole, 2, "random", seed), [], {}
    for number, part in enumerate(parts):
        problem = compile_problem(part_instance(whole, part, number))
        placed = greedy(problem, order_jobs(problem, problem.policy.order)).allocation
        for job, placement in enumerate(placed):
            if placement is not None:
                named = [problem.node_ids[node] for node in placement.nodes]
                gpus = [
                    (problem.node_ids[problem.gpu_node[gpu]], gpu - problem.first_gpu[problem.gpu_node[gpu]])
                    for gpu in placement.gpus
                ]
                expected[problem.job_ids[job]] = (problem.options.name[placement.option], named, gpus)
        places.append((number, places_of(problem, placed)))
    got = {}
    for job, placement in enumerate(joined(whole, parts, places)):
        if placement is not None:
            gpus = [
                (whole.node_ids[whole.gpu_node[gpu]], gpu - whole.first_gpu[whole.gpu_node[gpu]])
                for gpu in placement.gpus
            ]
            named = [whole.node_ids[node] for node in placement.nodes]
            got[whole.job_ids[job]] = (whole.options.name[placement.option], named, gpus)
    assert got == expected


def test_a_part_without_a_plan_places_nothing() -> None:
    """Running jobs alone."""
    whole = compile_problem(generate("uniform", jobs=4, nodes=4, gpus=4, seed=1))
    parts = deal_parts(whole, 2, "random", 0)
    allocation = joined(whole, parts, [(0, NO_PLACES)])
    assert {job for job, placement in enumerate(allocation) if placement is not None} == set(whole.running)
