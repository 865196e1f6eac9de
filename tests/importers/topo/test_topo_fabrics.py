"""Networks and lists of nodes, worked by hand from the files."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from placeopt import BadInput, PlaceoptError, Unsupported
from placeopt.importers.slurm import expand_hosts
from placeopt.importers.topo import Fabric, read_topo
from placeopt.topology import ClusterTopology, minsky

DATA = Path(__file__).parents[2] / "data" / "topo"
NETWORK, HOSTS, GUIDS = (DATA / f"superbench_{name}.txt" for name in ("ibnetdiscover", "hostfile", "ibstat"))
TREE, MACHINE = DATA / "topograph_tree.conf", DATA / "4gpu_phb.txt"


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def parents(fabric: Fabric) -> dict[str, str | None]:
    return {domain.id: domain.parent for domain in fabric.domains}


def slurm_nodes(path: Path, *changes: dict[str, Any]) -> Path:
    """A reply like slurmrestd's with only the fields that are read."""
    plain = {"cpus": 32, "real_memory": 524_288, "sockets": 2, "gres": "gpu:h100:2,gpu:h200:4", "state": ["IDLE"]}
    nodes = [plain | {"name": f"n{i}", "partitions": ["ia"]} | change for i, change in enumerate(changes)]
    return write(path, json.dumps({"nodes": nodes, "errors": []}))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,b", ["a", "b"]),
        ("n[08-10]", ["n08", "n09", "n10"]),
        ("n[1,3-4]-ib,x", ["n1-ib", "n3-ib", "n4-ib", "x"]),
        ("r[0-1]n[0-1]", ["r0n0", "r0n1", "r1n0", "r1n1"]),
        ("", []),
        # also what would make a million names: nothing is allocated before it is counted
        *(
            (odd, None)
            for odd in ("n[1", "n]1[", "n[[1]]", "n[a]", "n[3-1]", "n[1-999999999]", "n[0-999]m[0-999]", "n[]")
        ),
    ],
)
def test_hostlist(text: str, names: list[str] | None) -> None:
    if names is not None:
        assert expand_hosts(text) == names
    else:
        with pytest.raises(ValueError, match=r"bracket|expected|range|more than"):
            expand_hosts(text)


def test_topograph_tree() -> None:
    """One core, 6 spines of 2 leaves each, 8 hosts a leaf: srv1101 - leaf 1.1 - spine 2.1 - core 3.1."""
    fabric = read_topo([TREE])
    assert isinstance(fabric, Fabric)
    assert (len(fabric.domains), len(fabric.node_domains)) == (1 + 6 + 12, 96)
    above = {domain.id: (domain.parent, domain.level) for domain in fabric.domains}
    assert fabric.node_domains["srv1101"] == "switch.1.1"
    assert above["switch.1.1"] == ("switch.2.1", "rack")
    assert above["switch.2.1"] == ("switch.3.1", "tier2")
    assert above["switch.3.1"] == (None, "tier3")


BLOCKS = "BlockName=b1 Nodes=n[01-04]\nBlockName=b2 Nodes=n[05-08]\nBlockName=b3 Nodes=n[09-12]\nBlockSizes=4,8,16,32\n"
LAID: dict[str, str | None] = {"block16.1": None, "block8.1": "block16.1", "block8.2": "block16.1"}
PRINTED = (
    "BlockName=b0 BlockIndex=0 Nodes=n[0-1] BlockSize=2\nBlockName=b1 BlockIndex=1 Nodes=n[2-3] BlockSize=2\n"
    "BlockName=b2 BlockIndex=2 Nodes=n4 BlockSize=2\nAggregatedBlock=b[0-1] BlockIndex=3 Nodes=n[0-3] BlockSize=4\n"
    "AggregatedBlock=b[0-2] BlockIndex=4 Nodes=n[0-4] BlockSize=8\n"
)
YAML_BLOCKS = """---
- topology: other
  flat: true
- topology: 'mine'  # of two
  block:
    block_sizes: {}
    blocks:
    - block: b1
      nodes: n0
    - nodes: "n1"
      block: b2
  cluster_default: true
"""
SWITCHES = "SwitchName=leaf Level=0 Nodes=n[0-1]\nSwitchName=spine Level=1 LinkSpeed=1 Nodes=n[0-1] Switches=leaf\n"


@pytest.mark.parametrize(
    ("text", "above", "places"),
    [
        (  # blocks of 4 nodes; sizes 4, 8, 16: b1 + b2, and b3 alone (incomplete), make blocks of 8; both one of 16
            BLOCKS,
            LAID | {"b1": "block8.1", "b2": "block8.1", "b3": "block8.2"},
            {f"n{i:02d}": f"b{(i + 3) // 4}" for i in range(1, 13)},
        ),
        (  # scontrol show topology prints larger blocks as lines of their own, with the nodes inside again: their sizes
            PRINTED,
            {"b0": "block4.1", "b1": "block4.1", "b2": "block4.2", "block4.1": "block8.1", "block4.2": "block8.1"}
            | {"block8.1": None},
            {"n0": "b0", "n1": "b0", "n2": "b1", "n3": "b1", "n4": "b2"},
        ),
        (  # the spines of a fat tree are one domain, and so are two leaves that have the same nodes
            "SwitchName=a Nodes=n[0-1]\nSwitchName=b Nodes=n[0-1]\nSwitchName=c Nodes=n2\n"
            "SwitchName=s Switches=a,c\nSwitchName=t Switches=b,c\n",
            {"a": "s", "c": "s", "s": None},
            {"n0": "a", "n1": "a", "n2": "c"},
        ),
        (  # several roots get one level: a job lies under one of them
            "SwitchName=a Nodes=n0\nSwitchName=b Nodes=n1\nSwitchName=s Switches=a\n",
            {"a": "s", "s": None, "b": "b.tier2", "b.tier2": None},
            {"n0": "a", "n1": "b"},
        ),
        (
            "# by partition\n---\n- topology: flat\n  flat: true\n- topology: 't2'\n  cluster_default: true\n  block:\n"
            "    block_sizes: [2, 4]\n    blocks:\n    - block: b1\n      nodes: n[0-1] # two\n    -\n      block: b2\n"
            "      nodes: n2\n",
            {"b1": "block4.1", "b2": "block4.1", "block4.1": None},
            {"n0": "b1", "n1": "b1", "n2": "b2"},
        ),
        # a switch above level 0 names all nodes below it again; they hang on the lowest
        (SWITCHES, {"leaf": "spine", "spine": None}, {"n0": "leaf", "n1": "leaf"}),
        # what follows a backslash is joined as it stands, within a list too
        ("# comment\nSwitchName=s\\\n  Nodes=a,\\\nb LinkSpeed=100 # more\n", {"s": None}, {"a": "s", "b": "s"}),
        ("SwitchName=s Nodes=a\\", {"s": None}, {"a": "s"}),
        (
            YAML_BLOCKS.format("[2, 4]"),
            {"b1": "block4.1", "b2": "block4.1", "block4.1": None},
            {"n0": "b1", "n1": "b2"},
        ),
        (
            YAML_BLOCKS.format("\n    - 2\n    - 4"),
            {"b1": "block4.1", "b2": "block4.1", "block4.1": None},
            {"n0": "b1", "n1": "b2"},
        ),
    ],
)
def test_slurm_topology(tmp_path: Path, text: str, above: dict[str, str | None], places: dict[str, str]) -> None:
    found = read_topo([write(tmp_path / "t.conf", text)])
    assert isinstance(found, Fabric)
    assert (parents(found), found.node_domains) == (above, places)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SwitchName=a Switches=b\nSwitchName=b Switches=a\nSwitchName=c Nodes=n", "above itself"),
        ("SwitchName=a Switches=b\n", "no line of its own"),
        ("SwitchName=a Nodes=n,m\nSwitchName=b Nodes=n,o\n", "'a' and 'b' share nodes, and each has others"),
        ("BlockName=a Nodes=n\nBlockName=b Nodes=n\n", "node 'n' is in blocks 'a' and 'b'"),
        ("SwitchName=a Nodes=n\nSwitchName=a Nodes=m\n", "line 2: .*appears twice"),
        ("SwitchName=a Nodes=n[1-\n", "line 1: brackets"),
        ("SwitchName=a Fruit=n\n", "line 1: 'Fruit=n'"),
        ("SwitchName=a\n", "places no node"),
        ("BlockName=a Nodes=n\nBlockSizes=4,6\n", "line 2: BlockSizes"),
        ("BlockName=a Nodes=n\nBlockSizes=4,12\n", "line 2: BlockSizes"),
        ("- topology: a\n  ring:\n    rings:\n      - ring: r\n        nodes: n[1-2]\n", "topology 'a' is ring"),
        ("- topology: a\n  tree: &x\n", "expected another 'key: value', or a list"),
        ("- topology: a\n  tree:\n    switches:\n      - children: s\n", "expected a list of topologies"),
        ("- topology: a\n  tree:\n  ring:\n", "is ring, tree; expected"),
        ("- topology: a\n  topology: b\n", "expected another 'key: value'"),
        ("- topology: a\n  block:\n    block_sizes:\n      - 4\n    blocks:\n", "places no node"),
        ("switch: a\n- topology: b\n", "expected a list of topologies"),
        ("- topology: a\n  block:\n    block_sizes:\n      - 4\n      - 6\n    blocks:\n", "BlockSizes='4,6'"),
    ],
)
def test_slurm_refusals(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises((BadInput, Unsupported), match=message):
        read_topo([write(tmp_path / "t.conf", text)])


def test_infiniband_with_names_of_the_cluster() -> None:
    """Two hosts on each of five leaves; leaves 01-03 under L01, 11-12 under L02, both under S01."""
    fabric = read_topo([NETWORK, HOSTS, GUIDS])
    assert (len(fabric.domains), fabric.unresolved) == (8, ())
    groups: dict[str, str] = {}
    for node, domain in fabric.node_domains.items():
        groups[domain] = groups.get(domain, "") + node[-1]
    assert sorted(groups.values()) == ["IJ", "KL", "MN", "OP", "QR"]
    spine = {hosts: parents(fabric)[leaf] for leaf, hosts in groups.items()}
    assert spine["IJ"] == spine["KL"] == spine["MN"] != spine["OP"] == spine["QR"]


def test_infiniband_alone_uses_its_own_names() -> None:
    """The switch's aggregation node is no host."""
    fabric = read_topo([NETWORK])
    assert len(fabric.node_domains) == 10
    assert "RMD701091901003" in fabric.node_domains


def test_infiniband_hosts_that_are_not_there(tmp_path: Path) -> None:
    fabric = read_topo([NETWORK, write(tmp_path / "hosts", "RMD701091901003\nnowhere\n")])
    assert list(fabric.node_domains) == ["RMD701091901003"]
    (unresolved,) = fabric.unresolved
    assert "nowhere" in unresolved


def test_infiniband_fat_tree_and_rails(tmp_path: Path) -> None:
    """Hosts a, b hang on leaves 1 and 2 (two rails), c on leaf 3; spines 8, 9 join all: two racks, one tier above."""
    hosts = [(1, "a"), (2, "a"), (1, "b"), (2, "b"), (3, "c")]
    cables = [*hosts, *((leaf, spine) for leaf in (1, 2, 3) for spine in (8, 9))]
    lines = []
    for switch in (1, 2, 3, 8, 9):
        lines.append(f'\nSwitch 40 "S-{switch:016x}"  # "switch {switch}" enhanced port 0')
        for port, (leaf, other) in enumerate(cables):
            host = f'"H-{port + 100:016x}"[1](0) # "{other} mlx5_0"'
            far = f'"S-{other:016x}"[{leaf}]' if isinstance(other, int) else host
            lines += [f"[{port}] {far}"] * (leaf == switch)
    fabric = read_topo([write(tmp_path / "ib.txt", "\n".join(lines))])
    levels = sorted((domain.level, domain.parent is None) for domain in fabric.domains)
    assert levels == [("rack", False), ("rack", False), ("tier2", True)]
    assert fabric.node_domains["a"] == fabric.node_domains["b"] != fabric.node_domains["c"]


def test_slurm_nodes(tmp_path: Path) -> None:
    """Equal shapes share a machine type; ``(S:1)`` hangs GPUs on a socket; DOWN and DRAIN mean drained."""
    path = slurm_nodes(
        tmp_path / "nodes.json",
        {},
        {"state": ["IDLE", "DRAIN"]},
        {"gres": "gpu:a100:2(S:1),shard:8", "state": ["DOWN"]},
        {"gres": "", "cpus": 36, "effective_cpus": 32},
    )
    inventory = read_topo([path])
    kinds = [machine.id for machine in inventory.machines]
    assert kinds == ["type0-32cpu-2xh100-4xh200", "type1-32cpu-2xa100", "type2-32cpu"]
    assert [node.drained for node in inventory.nodes] == [False, True, True, False]
    assert inventory.nodes[0].labels == {"partition:ia": "yes", "sockets": "2"}
    assert [gpu.part for gpu in inventory.machines[1].gpus] == ["socket1", "socket1"]
    assert (inventory.machines[0].cpu_millicores, inventory.machines[0].memory_mib) == (32_000, 524_288)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ('{"jobs": []}', Unsupported, "list of jobs"),
        ('{"partitions": []}', Unsupported, "list of partitions"),
        ("{}", BadInput, "no list 'nodes'"),
        ("[" * 100_000, BadInput, "not JSON"),
        ('{"nodes": []}', BadInput, "0 nodes"),
        ('{"nodes": [7]}', BadInput, "expected an object"),
        ('{"nodes": [{"name": "a", "cpus": "3", "real_memory": 1}]}', BadInput, "cpus: '3'"),
        ('{"nodes": [{"name": "a b", "cpus": 3, "real_memory": 1}]}', BadInput, '"a b"'),
        ('{"nodes": [{"name": "a", "cpus": 3, "real_memory": 1, "gres": "gpu:x:999999"}]}', BadInput, "1024 GPUs"),
    ],
)
def test_slurm_replies_refused(tmp_path: Path, text: str, error: type[PlaceoptError], message: str) -> None:
    with pytest.raises(error, match=message):
        read_topo([write(tmp_path / "reply.json", text)])


def test_whole_cluster_of_nodes_and_network(tmp_path: Path) -> None:
    nodes = slurm_nodes(tmp_path / "nodes.json", {"name": "a"}, {"name": "b"}, {"name": "login"})
    cluster = read_topo([nodes, write(tmp_path / "topology.conf", "SwitchName=s1 Nodes=a,b\n")])
    assert [node.domain for node in cluster.nodes] == ["s1", "s1", None]
    with pytest.raises(BadInput, match="has none of the nodes"):
        read_topo([nodes, write(tmp_path / "other.conf", "SwitchName=s1 Nodes=x,y\n")])
    assert len(read_topo([nodes]).nodes) == 3


def test_whole_cluster_of_a_network_and_one_machine() -> None:
    """96 hosts that are all Minskys: leaf 200, spine 400, core 600; from a GPU up to its leaf 1 + 20 + 100 = 121."""
    topology = ClusterTopology(read_topo([TREE], machine=minsky()))
    assert (topology.num_gpus, topology.max_distance) == (384, 2 * (121 + 200 + 400))  # over the core
    assert topology.distances(np.array([0]), np.array([4]))[0] == 2 * 121  # srv1101, srv1102
    assert topology.distances(np.array([0]), np.array([8 * 4]))[0] == 2 * (121 + 200)  # srv1201
    assert read_topo([TREE, MACHINE]).machines[0].id == "4gpu_phb"


@pytest.mark.parametrize(
    ("read", "files", "error", "words"),
    [
        (read_topo, [HOSTS], Unsupported, "not a network; give it together"),
        (read_topo, [GUIDS], Unsupported, "not a network; give it together"),
        (read_topo, [NETWORK, HOSTS], BadInput, "ibstat"),
        (read_topo, [TREE, TREE], Unsupported, "second file"),
        (read_topo, [TREE, NETWORK], Unsupported, "give it alone"),
        (read_topo, [TREE, MACHINE, MACHINE], Unsupported, "a second machine"),
        (lambda files: read_topo(files, machine=minsky()), [MACHINE], Unsupported, "a second machine"),
        (lambda files: read_topo(files, machine=minsky()), [TREE, MACHINE], Unsupported, "a second machine"),
    ],
)
def test_files_that_do_not_go_together(read: Any, files: list[Path], error: type[PlaceoptError], words: str) -> None:
    with pytest.raises(error, match=words):
        read(files)
