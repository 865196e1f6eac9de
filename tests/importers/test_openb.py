"""
The openb importer: what it makes of real rows, and that no broken file passes for a whole one.

``data/openb_*.csv`` hold rows cut unchanged from Alibaba's cluster-trace-gpu-v2023 (``openb_node_list_all_node.csv``,
``openb_pod_list_gpuspec33.csv``, ``openb_pod_list_multigpu20.csv``), by way of commit 8f3d6417353c, data/csv, of
hkust-adsl/kubernetes-scheduler-simulator, Apache-2.0.
"""

from collections import Counter
from pathlib import Path

import pytest

from helpers.imported_rounds import notes_of
from placeopt import BadInput
from placeopt.importers import OPENB_POLICY, read_openb
from placeopt.model import Instance

DATA = Path(__file__).parent / "data"
NODES, PODS, SHORT = (DATA / f"openb_{name}.csv" for name in ("nodes", "pods", "pods_short"))
NODE_HEADER, POD_HEADER = "sn,cpu_milli,memory_mib,gpu,model\n", "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"


def read(**options: object) -> Instance:
    return read_openb(NODES, PODS, **options)


def test_nodes_become_one_machine_type_per_shape() -> None:
    """Eleven nodes, seven shapes; ids say model, GPUs, cores and MiB; undisclosed models have unknown memory."""
    cluster = read().cluster
    assert len(cluster.nodes) == 11
    machines = {machine.id: machine for machine in cluster.machines}
    assert list(machines) == [
        *("a10-1gpu-128c-1048576m", "cpu-32c-262144m", "g2-8gpu-96c-393216m", "p100-2gpu-64c-262144m"),
        *("t4-2gpu-104c-524288m", "t4-4gpu-96c-393216m", "v100m16-4gpu-32c-131072m"),
    ]
    four = machines["t4-4gpu-96c-393216m"]
    assert (four.cpu_millicores, [gpu.model for gpu in four.gpus]) == (96_000, ["T4"] * 4)
    memory = {name: gpu.memory_mib for name, machine in machines.items() for gpu in machine.gpus}
    assert (memory["g2-8gpu-96c-393216m"], memory["t4-2gpu-104c-524288m"]) == (0, 15_109)
    assert machines["cpu-32c-262144m"].gpus == ()
    assert all(gpu.part is None for machine in cluster.machines for gpu in machine.gpus)


def test_pods_become_single_workers() -> None:
    """A share, a CPU pod, eight GPUs, and models joined by '|' with one named twice, each read by hand."""
    found = {}
    for job in read().jobs:
        (option,) = job.options
        assert option.workers == 1
        demand = option.demand
        found[job.id[-4:]] = (job.kind, option.value, demand.gpus, demand.gpu_milli, demand.gpu_models)
    assert found["0001"] == ("inference", 460, 1, 460, ())
    assert found["0005"] == ("cpu", 1, 0, 1000, ())
    assert found["0017"] == ("training", 8000, 8, 1000, ("G2",))
    assert found["0527"] == ("training", 1000, 1, 1000, ("V100M16", "V100M32"))
    assert found["0129"][0] == "training"


def test_whole_round() -> None:
    """Everything waits, now is the last arrival, only fragmentation of nodes is weighed; pods alike share options."""
    instance = read()
    assert (len(instance.jobs), instance.running) == (11, ())
    assert (instance.now_ms, instance.policy, instance.policy.share_mode) == (12_901_761_000, OPENB_POLICY, "fraction")
    assert (instance.name, read(name="mine").name) == ("openb_pods", "mine")
    jobs = {job.id: job for job in instance.jobs}
    first = jobs["openb-pod-0001"]
    assert first.options[0] is jobs["openb-pod-0003"].options[0]
    demand = first.options[0].demand
    assert (first.arrival_ms, demand.cpu_millicores, demand.memory_mib) == (427_061_000, 6000, 12_288)


def test_five_columns_only() -> None:
    """The list multigpu20 has no models, classes and times."""
    assert [(job.kind, job.arrival_ms) for job in read_openb(NODES, SHORT).jobs] == [("training", 0)] * 5


def test_limit_takes_first_pods_and_a_slice_of_each_shape() -> None:
    """
    5 of 11 pods, so ceil(11 * 5 / 11) = 5 of 11 nodes.

    Shapes have 1, 1, 1, 2, 2, 2, 2 nodes, shares 5/11 and 10/11, all rounded down to 0. The five largest remainders:
    the four shapes of two nodes (10/11) and, of the three others, the one that stands first.
    """
    instance = read(limit=5)
    assert [job.id for job in instance.jobs] == [f"openb-pod-000{i}" for i in (0, 1, 2, 3, 5)]
    nodes = [node.id.removeprefix("openb-node-") for node in instance.cluster.nodes]
    assert nodes == ["0000", "0123", "0234", "0233", "1328"]
    assert instance.name == "openb_pods-first-5"
    with pytest.raises(BadInput, match="limit: 0"):
        read(limit=0)


def test_slice_keeps_the_mix(tmp_path: Path) -> None:
    """60 nodes of one shape and 20 of another: a tenth of the pods gets 6 and 2, spread over the file."""
    nodes, pods = tmp_path / "nodes.csv", tmp_path / "pods.csv"
    rows = [f"n{i},1000,1024,{1 if i % 4 else 0},{'T4' if i % 4 else ''}\n" for i in range(80)]
    nodes.write_text(NODE_HEADER + "".join(rows))
    pods.write_text(POD_HEADER + "".join(f"p{i},1000,1024,1,1000\n" for i in range(50)))
    instance = read_openb(nodes, pods, limit=5)
    assert Counter(node.machine for node in instance.cluster.nodes) == {"t4-1gpu-1c-1024m": 6, "cpu-1c-1024m": 2}
    assert [node.id for node in instance.cluster.nodes if node.machine.startswith("cpu")] == ["n0", "n40"]
    assert len(read_openb(nodes, pods, limit=1000).cluster.nodes) == 80


SHARE = "its share is not that of one GPU, above 0 and up to 1, or of none, 0, or of several, 1"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("openb-pod-0001,6000", 'openb-pod-0001,"6000', "the row has more or fewer fields"),  # swallows no other row
        ("openb-pod-0001,6000", 'openb-pod-0001,"60"00', "the row has more or fewer fields"),
        ("openb-pod-0001,6000", "openb-pod-0001,6000,1", "the row has more or fewer fields"),
        ("openb-pod-0001,6000,", "openb-pod-0001,", "the row has more or fewer fields"),
        ("427061,", "4\r27061,", "the row has more or fewer fields"),
        ("427061,", "4\x0027061,", "the row has more or fewer fields"),
        ("openb-pod-0001,6000", "openb-pod-0001,-1", "cpu is below 0"),
        ("openb-pod-0001,6000", "openb-pod-0001,6_000", "cpu is not an amount"),
        ("openb-pod-0001,6000", "openb-pod-0001,٦", "cpu is not an amount"),
        ("openb-pod-0001,6000", "openb-pod-0001,9999999999", "cpu is below 0 or beyond"),
        ("12288,1,460", "12288,1,1001", SHARE),
        ("12288,1,460", "12288,2,460", SHARE),
        ("12288,1,460", "12288,0,460", SHARE),
        ("12288,1,460", "12288,1,0", SHARE),
        ("openb-pod-0001", "openb pod", "its id has blanks"),
        ("openb-pod-0001", "", "no id"),
        ("427061,", "soon,", "submit is not a time"),
    ],
)
def test_pods_that_cannot_be_read_are_left_out(tmp_path: Path, old: str, new: str, reason: str) -> None:
    """The row is named in the note; all others are read."""
    text = PODS.read_text()
    assert old in text
    broken = tmp_path / "pods.csv"
    broken.write_bytes(text.replace(old, new, 1).encode())
    made = read_openb(NODES, broken)
    assert len(made.jobs) == 10
    assert f"Left out, {reason}" in notes_of(made)
    assert "1 (row 3)" in notes_of(made)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("393216,4,T4", "393216,4,"),
        ("262144,0,", "262144,0,T4"),
        ("393216,4,T4", "393216,1025,T4"),
        ("393216,4,T4", "393216,4"),
        ("393216,4,T4", "3e5,4,T4"),
        ("64000,262144", "640000000,262144"),
        ("393216,4,T4", "393216,4,T 4"),
        ("node-0244", "node-0243"),
        ("node-0244", "node 0244"),
    ],
)
def test_broken_nodes_are_refused(tmp_path: Path, old: str, new: str) -> None:
    """A cluster is read as a whole, or not: file, line and row are named."""
    text = NODES.read_text()
    assert old in text
    broken = tmp_path / "nodes.csv"
    broken.write_text(text.replace(old, new, 1))
    with pytest.raises(BadInput, match=r"nodes\.csv:\d+: '.*expected sn, cpu_milli"):
        read_openb(broken, PODS)


def test_columns_that_are_needed(tmp_path: Path) -> None:
    broken = tmp_path / "b.csv"
    broken.write_text(PODS.read_text().replace("name,", "id,", 1))
    with pytest.raises(BadInput, match="no column name; the header is 'id,cpu_milli"):
        read_openb(NODES, broken)
    broken.write_text(NODES.read_text().replace("sn,", "name,", 1))
    with pytest.raises(BadInput, match="no column sn"):
        read_openb(broken, PODS)


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("none.csv", None, "cannot be read"),
        (".", None, "cannot be read"),
        ("f.csv", b"", "no column sn, cpu_milli"),
        ("f.csv", NODE_HEADER.encode(), "no row"),
        ("f.csv", NODE_HEADER.encode() + b"\xff,1,1,0,\n", "not UTF-8"),
    ],
)
def test_files_that_are_none(tmp_path: Path, name: str, data: bytes | None, expected: str) -> None:
    """Said so, without a traceback of another class."""
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(BadInput, match=expected):
        read_openb(tmp_path / name, PODS)


def test_line_ends_and_quotes_that_are_right(tmp_path: Path) -> None:
    """A byte order mark, CRLF and closed quotes change nothing."""
    written = tmp_path / "openb_pods.csv"
    lines = PODS.read_text().replace("openb-pod-0001,6000", '"openb-pod-0001","6000"').split("\n")
    written.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    assert read_openb(NODES, written) == read()
