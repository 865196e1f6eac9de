"""
The openb importer: what it makes of real rows, and that no broken file passes for a whole one.

``data/openb_*.csv`` hold rows cut unchanged from Alibaba's cluster-trace-gpu-v2023 (``openb_node_list_all_node.csv``,
``openb_pod_list_gpuspec33.csv``, ``openb_pod_list_multigpu20.csv``), by way of commit 8f3d6417353c, data/csv, of
hkust-adsl/kubernetes-scheduler-simulator, Apache-2.0.
"""

from collections import Counter
from pathlib import Path

import pytest

from placeopt import BadInput
from placeopt.formats import OPENB_POLICY, read_openb
from placeopt.model import Instance

DATA = Path(__file__).parent / "data"
NODES, PODS, SHORT = (DATA / f"openb_{name}.csv" for name in ("nodes", "pods", "pods_short"))


def read(**options: object) -> Instance:
    return read_openb(NODES, PODS, **options)  # type: ignore[arg-type]


def test_nodes_become_one_machine_type_per_shape() -> None:
    """Eleven nodes, seven shapes; ids say model, GPUs, cores and MiB; undisclosed models have unknown memory."""
    cluster = read().cluster
    assert len(cluster.nodes) == 11
    assert [machine.id for machine in cluster.machines] == [
        "a10-1gpu-128c-1048576m",
        "cpu-32c-262144m",
        "g2-8gpu-96c-393216m",
        "p100-2gpu-64c-262144m",
        "t4-2gpu-104c-524288m",
        "t4-4gpu-96c-393216m",
        "v100m16-4gpu-32c-131072m",
    ]
    by_id = {machine.id: machine for machine in cluster.machines}
    assert by_id["t4-4gpu-96c-393216m"].cpu_millicores == 96_000
    assert [gpu.model for gpu in by_id["t4-4gpu-96c-393216m"].gpus] == ["T4"] * 4
    assert by_id["g2-8gpu-96c-393216m"].gpus[0].memory_mib == 0
    assert by_id["t4-2gpu-104c-524288m"].gpus[0].memory_mib == 15_109
    assert by_id["cpu-32c-262144m"].gpus == ()
    assert all(gpu.part is None for machine in cluster.machines for gpu in machine.gpus)


def test_pods_become_single_workers() -> None:
    """A share, a CPU pod, eight GPUs, and models joined by '|' with one named twice, each read by hand."""
    jobs = {job.id: job for job in read().jobs}
    share = jobs["openb-pod-0001"]
    (option,) = share.options
    assert (share.kind, share.arrival_ms, option.value, option.workers) == ("inference", 427_061_000, 460, 1)
    assert (option.demand.gpus, option.demand.gpu_milli) == (1, 460)
    assert (option.demand.cpu_millicores, option.demand.memory_mib) == (6000, 12_288)
    cpu = jobs["openb-pod-0005"]
    assert (cpu.kind, cpu.options[0].value, cpu.options[0].demand.gpus) == ("cpu", 1, 0)
    eight = jobs["openb-pod-0017"]
    assert (eight.kind, eight.options[0].value, eight.options[0].demand.gpu_models) == ("training", 8000, ("G2",))
    assert jobs["openb-pod-0527"].kind == "training"
    assert jobs["openb-pod-0527"].options[0].demand.gpu_models == ("V100M16", "V100M32")
    assert jobs["openb-pod-0129"].kind == "training"


def test_whole_round() -> None:
    """Everything waits, now is the last arrival, and only fragmentation of nodes is weighed."""
    instance = read()
    assert (len(instance.jobs), instance.running) == (11, ())
    assert instance.now_ms == 12_901_761_000
    assert instance.policy == OPENB_POLICY
    assert instance.policy.share_mode == "fraction"
    assert instance.name == "openb_pods"
    assert read(name="mine").name == "mine"


def test_pods_alike_share_their_options() -> None:
    jobs = {job.id: job for job in read().jobs}
    assert jobs["openb-pod-0001"].options[0] is jobs["openb-pod-0003"].options[0]


def test_five_columns_only() -> None:
    """The list multigpu20 has no models, classes and times."""
    instance = read_openb(NODES, SHORT)
    assert len(instance.jobs) == 5
    assert {(job.kind, job.arrival_ms) for job in instance.jobs} == {("training", 0)}


def test_limit_takes_first_pods_and_a_slice_of_each_shape() -> None:
    """
    5 of 11 pods, so ceil(11 * 5 / 11) = 5 of 11 nodes.

    Shapes have 1, 1, 1, 2, 2, 2, 2 nodes, shares 5/11 and 10/11, all rounded down to 0. The five largest remainders:
    the four shapes of two nodes (10/11) and, of the three others, the one that stands first.
    """
    instance = read(limit=5)
    assert [job.id for job in instance.jobs] == [f"openb-pod-000{i}" for i in (0, 1, 2, 3, 5)]
    assert [node.id for node in instance.cluster.nodes] == [
        "openb-node-0000",
        "openb-node-0123",
        "openb-node-0234",
        "openb-node-0233",
        "openb-node-1328",
    ]
    assert instance.name == "openb_pods-first-5"


def test_slice_keeps_the_mix(tmp_path: Path) -> None:
    """60 nodes of one shape and 20 of another: a tenth of the pods gets 6 and 2, spread over the file."""
    nodes = tmp_path / "nodes.csv"
    rows = [f"n{i},1000,1024,{1 if i % 4 else 0},{'T4' if i % 4 else ''}" for i in range(80)]
    nodes.write_text("\n".join(["sn,cpu_milli,memory_mib,gpu,model", *rows]) + "\n")
    pods = tmp_path / "pods.csv"
    rows = [f"p{i},1000,1024,1,1000" for i in range(50)]
    pods.write_text("\n".join(["name,cpu_milli,memory_mib,num_gpu,gpu_milli", *rows]) + "\n")
    instance = read_openb(nodes, pods, limit=5)
    assert Counter(node.machine for node in instance.cluster.nodes) == {"t4-1gpu-1c-1024m": 6, "cpu-1c-1024m": 2}
    assert [node.id for node in instance.cluster.nodes if node.machine.startswith("cpu")] == ["n0", "n40"]
    assert len(read_openb(nodes, pods, limit=1000).cluster.nodes) == 80


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("openb-pod-0001,6000", 'openb-pod-0001,"6000', "pods.csv:3:"),  # would swallow all rows that follow
        ("openb-pod-0001,6000", 'openb-pod-0001,"60"00', "pods.csv:3:"),
        ("openb-pod-0001,6000", "openb-pod-0001,6000,1", "pods.csv:3: 12 fields"),
        ("openb-pod-0001,6000,", "openb-pod-0001,", "pods.csv:3: 10 fields"),
        ("openb-pod-0001,6000", "openb-pod-0001,6e3", "pods.csv:3: column 'cpu_milli': '6e3', expected an integer"),
        ("openb-pod-0001,6000", "openb-pod-0001,-1", "column 'cpu_milli': '-1'"),
        ("openb-pod-0001,6000", "openb-pod-0001,6_000", "column 'cpu_milli': '6_000'"),
        ("openb-pod-0001,6000", "openb-pod-0001, 6000", "column 'cpu_milli': ' 6000'"),
        ("openb-pod-0001,6000", "openb-pod-0001,٦", "column 'cpu_milli'"),
        ("openb-pod-0001,6000", "openb-pod-0001,9999999999", "column 'cpu_milli'"),
        ("12288,1,460", "12288,1,1001", "column 'gpu_milli': '1001'"),
        ("12288,1,460", "12288,2,460", "column 'gpu_milli': '460', expected 0 without a GPU"),
        ("12288,1,460", "12288,0,460", "column 'gpu_milli': '460', expected 0 without a GPU"),
        ("12288,1,460", "12288,1,0", "column 'gpu_milli': '0', expected 0 without a GPU"),
        ("openb-pod-0001", "openb-pod-0000", "column 'name': 'openb-pod-0000', expected names to be unique"),
        ("openb-pod-0001", "openb pod", "column 'name': 'openb pod'"),
        ("openb-pod-0001", "", "column 'name': ''"),
        ("G2,Burstable", "G2|,Burstable", "column 'gpu_spec': 'G2|'"),
        ("name,cpu_milli", "id,cpu_milli", "pods.csv:1: no column name; the header is 'id,cpu_milli"),
        ("427061,", "4\r27061,", "pods.csv:3:"),
        ("427061,", "4\x0027061,", "pods.csv:3:"),
    ],
)
def test_broken_pods_are_refused(tmp_path: Path, old: str, new: str, expected: str) -> None:
    """File, line, column and value are named."""
    text = PODS.read_text()
    assert old in text
    broken = tmp_path / "pods.csv"
    broken.write_bytes(text.replace(old, new, 1).encode())
    with pytest.raises(BadInput) as caught:
        read_openb(NODES, broken)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("393216,4,T4", "393216,4,", "nodes.csv:3: column 'model': '', expected a GPU model"),
        ("262144,0,", "262144,0,T4", "column 'model': 'T4'"),
        ("393216,4,T4", "393216,1025,T4", "column 'gpu': '1025'"),
        ("openb-node-0244", "openb-node-0243", "expected names to be unique; this one stands on line 3 already"),
        ("sn,", "name,", "no column sn"),
    ],
)
def test_broken_nodes_are_refused(tmp_path: Path, old: str, new: str, expected: str) -> None:
    text = NODES.read_text()
    assert old in text
    broken = tmp_path / "nodes.csv"
    broken.write_text(text.replace(old, new, 1))
    with pytest.raises(BadInput) as caught:
        read_openb(broken, PODS)
    assert expected in str(caught.value)


def test_files_that_are_none(tmp_path: Path) -> None:
    """Missing, a folder, empty, only a header, not UTF-8: said so, without a traceback of another class."""
    empty, header, latin = tmp_path / "empty.csv", tmp_path / "header.csv", tmp_path / "latin.csv"
    empty.write_text("")
    header.write_text("sn,cpu_milli,memory_mib,gpu,model\n")
    latin.write_bytes(b"sn,cpu_milli,memory_mib,gpu,model\n\xff,1,1,0,\n")
    for path, expected in (
        (tmp_path / "none.csv", "cannot be read"),
        (tmp_path, "cannot be read"),
        (empty, "empty"),
        (header, "no row"),
        (latin, "not UTF-8"),
    ):
        with pytest.raises(BadInput, match=expected):
            read_openb(path, PODS)
    with pytest.raises(BadInput, match="limit: 0"):
        read(limit=0)


def test_line_ends_and_quotes_that_are_right(tmp_path: Path) -> None:
    """A byte order mark, CRLF and closed quotes change nothing."""
    written = tmp_path / "openb_pods.csv"
    lines = PODS.read_text().replace("openb-pod-0001,6000", '"openb-pod-0001","6000"').split("\n")
    written.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    assert read_openb(NODES, written) == read()
