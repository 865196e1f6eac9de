"""What records find and sum for their users, and what becomes of it in a changed record."""

import pytest

from placeopt.build import instance, job, machine, node, option
from placeopt.model import Cluster, Group, NodeConditions


def test_a_job_finds_its_option_and_a_cluster_its_machines() -> None:
    kinds = [machine("big", 8, cpu_millicores=64000, memory_mib=512), machine("none", 0, cpu_millicores=8000)]
    nodes = [node("n0", "big"), node("n1", "none"), node("n2", "big")]
    cluster = instance(nodes, machines=kinds).cluster
    assert [cluster.machine_of(at).id for at in cluster.nodes] == ["big", "none", "big"]
    assert cluster.gpus_by_node == {"n0": 8, "n1": 0, "n2": 8}
    assert cluster.amounts == (16000, 136000, 1024 + kinds[1].memory_mib)
    two = job("j", options=[option("a", gpus=1), option("b", gpus=2)])
    assert two.option("b").demand.gpus == 2
    with pytest.raises(KeyError, match="c"):
        two.option("c")


def test_a_changed_record_computes_anew() -> None:
    """By a copy, or from the fields: what the former record computed is none of them."""
    round_ = instance(2)
    cluster, one = round_.cluster, round_.cluster.nodes[:1]
    assert (sum(cluster.gpus_by_node.values()), len(round_.digest)) == (8, 64)
    assert dict(cluster).keys() == Cluster.model_fields.keys()
    for fewer in (cluster.model_copy(update={"nodes": one}), Cluster(**{**dict(cluster), "nodes": one})):
        assert fewer.gpus_by_node == {"n0": 4}


def test_records_with_labels_are_hashed_by_content() -> None:
    """What options and jobs ask of nodes tells them apart, whatever the order it is written in."""

    def asks(*pools: str) -> NodeConditions:
        return NodeConditions(node_selector=dict.fromkeys(pools, "yes"))

    alone = [option(conditions=asks(*pools)) for pools in (("a", "b"), ("b", "a"), ("a",), ())]
    in_groups = [option(groups=(Group(id="x", conditions=one.conditions),), workers=1) for one in alone]
    of_jobs = [job("j", node_selector=one.conditions.node_selector) for one in alone]
    for records in (alone, in_groups, of_jobs, [node("n0", labels=one.labels) for one in of_jobs]):
        assert len(set(records)) == len({repr(record) for record in records})
    assert len(set(alone)) == len(set(in_groups)) == len(set(of_jobs)) == 3
    assert len({job("j"), job("j")}) == 1
