"""``placeopt map``: optima against brute force, traffic in its forms, refusals in words, the best so far at Ctrl-C."""

import itertools
import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from helpers.command_line import saved
from placeopt import build
from placeopt.model import Communication, Edge, Instance
from placeopt.topology import ClusterTopology, minsky, pcie_box

MINSKY = minsky()
CLUSTER = build.cluster(2, racks=1, machines=[MINSKY])


def distances_of(cluster):
    topology = ClusterTopology(cluster)
    return topology.pair_distances(np.arange(topology.num_gpus))


def least(flows, distances, ranks):
    """The least cost over all ways to choose and order GPUs, by trying them all."""
    places = itertools.permutations(range(len(distances)), ranks)
    return min(int((flows * distances[np.ix_(order, order)]).sum()) for order in places)


@pytest.fixture
def box(tmp_path):
    return saved(tmp_path / "box.json", MINSKY)


@pytest.fixture
def two(tmp_path):
    return saved(tmp_path / "two.json", Instance(name="two", cluster=CLUSTER))


@pytest.mark.parametrize("form", ["csv", "json"])
def test_the_optimum_of_a_matrix_on_an_instance_with_spare_gpus_is_proven(cli, tmp_path, two, form):
    sent = np.random.default_rng(4).integers(0, 9, (5, 5))  # asymmetric, five ranks on eight GPUs
    file = tmp_path / f"traffic.{form}"
    csv = "\n".join(",".join(map(str, row)) for row in sent)
    file.write_text(csv if form == "csv" else json.dumps(sent.tolist()))
    answer = cli("map", file, two, "--json").data
    np.fill_diagonal(sent, 0)
    distances = distances_of(CLUSTER)
    assert answer["cost"] == answer["bound"] == least(sent, distances, 5)
    assert answer["optimal"] is True
    held = [4 * int(row["node"][1:]) + row["gpus"][0] for row in answer["ranks"]]
    assert len(set(held)) == 5
    assert int((sent * distances[np.ix_(held, held)]).sum()) == answer["cost"]


@pytest.mark.parametrize("edges", [((0, 3, 5), (1, 2, 7), (0, 1, 1)), ()])
def test_a_job_is_mapped_onto_a_machine_at_its_communication_cost(cli, tmp_path, box, edges):
    communication = Communication(weight=2, edges=tuple(Edge(ranks=(a, b), weight=w) for a, b, w in edges))
    job = build.job("j", workers=4, communication=communication)
    file = saved(tmp_path / "job.json", job)
    weights = np.zeros((4, 4), dtype=np.int64)
    for a, b, w in edges or [(a, b, 2) for a, b in itertools.combinations(range(4), 2)]:
        weights[a, b] = w
    answer = cli("map", file, box, "--json").data
    assert answer["cost"] == answer["bound"] == least(weights, distances_of(build.cluster(1, machines=[MINSKY])), 4)
    text = cli("map", file, box).out
    assert "optimal: no order costs less" in text
    assert text.count("rank ") == 4


def test_workers_of_two_gpus_stay_on_one_node(cli, tmp_path, two):
    edges = (Edge(ranks=(0, 2), weight=3), Edge(ranks=(1, 3), weight=3))
    job = build.job("j", workers=4, gpus=2, communication=Communication(weight=1, edges=edges))
    file = saved(tmp_path / "job.json", job)
    rows = cli("map", file, two, "--json").data["ranks"]
    assert rows[0]["node"] == rows[2]["node"] != rows[1]["node"] == rows[3]["node"]
    assert sorted((row["node"], gpu) for row in rows for gpu in row["gpus"]) == [
        (f"n{node}", gpu) for node in range(2) for gpu in range(4)
    ]


def test_a_problem_with_both_diagonals_ends_at_its_optimum(cli, tmp_path):
    flows, distances = np.random.default_rng(2).integers(0, 9, (2, 6, 6))
    file = tmp_path / "linear.dat"
    file.write_text("6\n" + " ".join(map(str, [*flows.flat, *distances.flat])))
    answer = cli("map", file, "--time-limit", 1, "--json").data
    order = answer["order"]
    assert answer["cost"] == int((flows * distances[np.ix_(order, order)]).sum()) == least(flows, distances, 6)
    assert answer["bound"] <= answer["cost"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_returns_the_best_so_far(tmp_path, number, code):
    rng = np.random.default_rng(0)
    half = np.triu(rng.integers(0, 9, (2, 30, 30)), 1)
    file = tmp_path / "hard.dat"
    file.write_text("30\n" + " ".join(map(str, (half + half.transpose(0, 2, 1)).flat)))
    process = subprocess.Popen(
        [sys.executable, "-u", "-X", "importtime", "-m", "placeopt.cli", "map", file, "--time-limit", "500", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in process.stderr:  # the last module that the command loads: the search begins
        if "placeopt.rank_mapping.quadratic" in line:
            break
    time.sleep(2)
    process.send_signal(number)
    printed, told = process.communicate(timeout=60)
    assert process.returncode == code, told
    assert "stopping with the best order so far" in told
    answer = json.loads(printed)
    assert sorted(answer["order"]) == list(range(30))
    assert 0 < answer["bound"] < answer["cost"] < int((half[0] * half[1]).sum()) * 2


def test_the_time_limit_ends_a_mapping_with_a_bound(cli, tmp_path):
    odd = pcie_box(16)
    file, machine = tmp_path / "traffic.csv", saved(tmp_path / "machine.json", odd)
    sent = np.random.default_rng(1).integers(0, 5, (len(odd.gpus), len(odd.gpus)))
    file.write_text("\n".join(" ".join(map(str, row)) for row in sent))
    answer = cli("map", file, machine, "--time-limit", 0.001, "--json").data
    assert 0 <= answer["bound"] <= answer["cost"]
    assert len(answer["ranks"]) == len(odd.gpus)
