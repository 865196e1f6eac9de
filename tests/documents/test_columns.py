"""Columns and JSON are two ways to one instance: equal where both accept, and both refuse the same."""

from typing import Any

import numpy as np
import pytest

from placeopt import BadInput, build, cluster_from_columns, instance_from_columns
from placeopt.model import Cluster, Communication, Domain, Gpu, Instance, Policy, Slowdown, Split, Taint

MACHINE = build.machine("box", [Gpu(model="T4")] * 2, cpu_millicores=64_000, memory_mib=1024)
CLUSTER = cluster_from_columns(
    [MACHINE], {"id": ["a", "b"], "machine": "box", "domain": ["r0", "r0"]}, domains=[Domain(id="r0")]
)
RACK = (Split(level="rack", domains=1),)


def test_equals_what_json_gives() -> None:
    """Every kind of column at once, beside the same jobs one by one, and as they come back from JSON."""
    alike: dict[str, Any] = {"priority": 3, "profile": "bert", "cpu_millicores": 2000}
    small = {**alike, "gpu_milli": 500, "gpu_models": ("T4",), "value": 500, "single_node": True}
    wide = {**alike, "workers": 4, "value": 4000, "splits": RACK, "communication": Communication(weight=4)}
    at_a = {"deadline_ms": 9000, "node_selector": {"rack": "r0"}, "nodes_allowed": ("a", "b")}
    jobs = [
        build.job("j0", user="ann", arrival_ms=0, **small),
        build.job("j1", arrival_ms=5, **wide, **at_a),
        build.job("j2", user="bob", arrival_ms=7, **small),
    ]
    more: dict[str, Any] = {"name": "both", "note": "by hand", "now_ms": 10, "policy": Policy(name="p")}
    more["running"] = [build.running(jobs[0], [("a", [0])])]
    more["slowdowns"] = [Slowdown(profile="bert", beside="bert", gpu_thousandths=300)]
    expected = Instance.model_validate_json(build.instance(CLUSTER, jobs, **more).model_dump_json())
    instance = instance_from_columns(
        CLUSTER,
        {
            "id": ["j0", "j1", "j2"],
            "user": ["ann", None, "bob"],
            "arrival_ms": np.array([0, 5, 7]),
            "deadline_ms": [None, 9000, None],
            "priority": 3,
            "workers": np.array([1, 4, 1]),
            "gpus": [1, 1, 1],
            "gpu_milli": np.array([500, 1000, 500], dtype=np.int16),
            "gpu_models": [("T4",), [], ("T4",)],
            "cpu_millicores": 2000,
            "value": [500, 4000, 500],
            "splits": [(), RACK, ()],
            "single_node": np.array([True, False, True]),
            "communication_weight": [0, 4, 0],
            "profile": "bert",
            "node_selector": [{}, {"rack": "r0"}, {}],
            "nodes_allowed": [None, ("a", "b"), None],
        },
        **more,
    )
    assert (instance, instance.digest) == (expected, expected.digest)
    assert Instance.model_validate_json(instance.model_dump_json()) == instance


def test_rows_alike_share_their_options_and_communication() -> None:
    """Which makes columns fast."""
    instance = instance_from_columns(
        CLUSTER, {"id": ["a", "b", "c"], "gpus": [1, 2, 1], "arrival_ms": [1, 2, 3], "communication_weight": 1}
    )
    a, b, c = instance.jobs
    assert a.options is c.options
    assert a.communication is c.communication
    assert a.options is not b.options
    assert [job.arrival_ms for job in instance.jobs] == [1, 2, 3]
    assert instance_from_columns(CLUSTER, {"id": [], "gpus": []}).jobs == ()


def test_jobs_of_several_options_take_option_objects() -> None:
    options = (build.option("fast", gpus=2, value=9), build.option("slow", value=3))
    talk = Communication(weight=2)
    instance = instance_from_columns(CLUSTER, {"id": ["a", "b"], "options": [options] * 2, "communication": talk})
    assert instance.jobs[0].options is instance.jobs[1].options
    assert (instance.jobs[1].options, instance.jobs[1].communication) == (options, talk)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"gpus": [1, 1.0, 1]}, "column 'gpus', row 1: 1.0"),
        ({"gpus": [1, True, 1]}, "column 'gpus', row 1: True"),
        ({"gpus": np.ones(3)}, "column 'gpus', row 0: 1.0"),
        ({"gpus": ["1"] * 3}, "column 'gpus', row 0: '1'"),
        ({"gpus": [1, 1, -1]}, "column 'gpus', row 2: -1"),
        ({"gpus": [1, 1]}, "column 'gpus': 2 rows, expected 3"),
        ({"gpus": np.ones((3, 1), dtype=int)}, "column 'gpus': 2 dimensions"),
        ({"gpu": 1}, "column 'gpu': unknown"),
        ({"gpu_milli": 500, "gpus": 2}, "row 0: gpu_milli: 500 with gpus = 2"),
        ({"kind": ["training", "cpu", "training"]}, "row 1: options[0].demand.gpus: 1 in a job of kind 'cpu'"),
        ({"kind": "batch"}, "column 'kind', row 0: 'batch'"),
        ({"communication_weight": [0, -4, 0]}, "column 'communication_weight', row 1: -4"),
        ({"communication_weight": 1, "communication": Communication()}, "expected either it or 'communication'"),
        ({"options": [(build.option(),)] * 3, "value": 3}, "column 'value': goes into the Option objects"),
        ({"arrival_ms": [0, 0, float("nan")]}, "column 'arrival_ms', row 2: nan"),
        ({"arrival_ms": [0, 0, -1]}, "column 'arrival_ms', row 2: -1"),
        ({"user": ["a", "b\n", "c"]}, "column 'user', row 1"),
        ({"queue": "a b"}, "column 'queue', row 0: 'a b'"),
        ({"id": ["a", "b", "a"]}, "jobs[2].id: 'a' appears twice"),
        ({"id": ["a", "b c", "d"]}, "column 'id', row 1: 'b c'"),
        ({"id": [1, 2, 3]}, "column 'id', row 0: 1"),
        ({"id": "abc"}, "column 'id': 'abc', expected a sequence"),
        ({"splits": [(Split(level="zone", domains=1),)] * 3}, "no level 'zone' in the cluster"),
        ({"node_affinity": [[[{"key": "x", "operator": "In"}]]] * 3}, "expected at least one with In"),
        ({"node_selector": [{"rack": 1}] * 3}, "row 0"),
        ({"gpu_models": [{"T4"}] * 3}, "column 'gpu_models', row 0"),
    ],
)
def test_refusals_name_column_and_row(columns: dict[str, Any], expected: str) -> None:
    """What JSON would refuse is refused here, and by place."""
    with pytest.raises(BadInput) as caught:
        instance_from_columns(CLUSTER, {"id": ["x", "y", "z"], **columns})
    assert expected in str(caught.value)


def test_id_is_needed() -> None:
    with pytest.raises(BadInput, match="column 'id': missing"):
        instance_from_columns(CLUSTER, {"gpus": [1]})


def test_cluster_equals_what_json_gives() -> None:
    columns = {
        "id": ["a", "b"],
        "machine": ["box", "box"],
        "domain": ["r0", None],
        "labels": [{"pool": "x"}, {}],
        "taints": [(), [Taint(key="gpu")]],
        "drained": [False, True],
        "price_milli_per_hour": np.array([5, 6]),
    }
    first = build.node("a", "box", domain="r0", labels={"pool": "x"}, price_milli_per_hour=5)
    second = build.node("b", "box", taints=(Taint(key="gpu"),), drained=True, price_milli_per_hour=6)
    expected = build.cluster([first, second], machines=[MACHINE], domains=[Domain(id="r0")])
    found = cluster_from_columns([MACHINE], columns, domains=[Domain(id="r0")])
    assert found == Cluster.model_validate_json(expected.model_dump_json())


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"id": ["a"], "machine": "bax"}, "no machine type 'bax'"),
        ({"id": ["a"], "machine": "box", "domain": "r9"}, "no domain 'r9'"),
        ({"id": ["a"]}, "column 'machine': missing"),
        ({"id": [], "machine": "box"}, "nodes: an empty array, expected at least 1 entry"),
    ],
)
def test_cluster_refusals(columns: dict[str, Any], expected: str) -> None:
    with pytest.raises(BadInput, match=expected):
        cluster_from_columns([MACHINE], columns)
