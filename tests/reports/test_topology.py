"""What other readers of topologies got wrong, and inputs of the same kinds."""

import re
from pathlib import Path

import pytest

from placeopt import BadInput, Unsupported
from placeopt.importers.topo import read_machine, read_topo
from placeopt.topology import gpu_distances

DATA = Path(__file__).parents[1] / "data" / "reports" / "topo"


def write(folder: Path, text: str) -> Path:
    (folder / "file.txt").write_text(text)
    return folder / "file.txt"


def test_xgmi_over_another_gpu_is_no_link() -> None:
    """Weight 15 is one hop: the ring 0-1-3-2; its opposite GPUs are two links apart."""
    machine = read_machine(DATA / "rocm_mi250.txt")
    assert [link.gpus for link in machine.links] == [(0, 1), (0, 2), (1, 3), (2, 3)]
    assert gpu_distances(machine).tolist() == [[0, 1, 1, 2], [1, 0, 2, 1], [1, 2, 0, 1], [2, 1, 1, 0]]


def test_xgmi_over_another_gpu_is_no_link_in_hwloc_either(tmp_path: Path) -> None:
    """hwloc states a bandwidth for every pair, and the hops in a matrix of its own: here a chain 0-1-2."""
    gpus = "".join(
        f'<object type="PCIDev" gp_index="{10 + i}" pci_busid="0000:0{i}:00.0" '
        'pci_type="0380 [1002:740c] [0000:0000] 00">'
        f'<object type="OSDev" gp_index="{20 + i}" name="rsmi{i}" osdev_type="5"/></object>'
        for i in range(3)
    )
    kind = '<distances2 type="OSDev" nbobjs="3" kind="9" name="XGMI{}" indexing="gp"><indexes>20 21 22</indexes>'
    values = "<u64values>{}</u64values></distances2>"
    text = (
        '<topology version="3.0"><object type="Machine" cpuset="0x1"><object type="PU" os_index="0" cpuset="0x1"/>'
        f"{gpus}</object>"
        + kind.format("Bandwidth")
        + values.format("1000000 200000 50000 200000 1000000 50000 50000 50000 1000000")
        + kind.format("Hops")
        + values.format("0 1 2 1 0 1 2 1 0")
        + "</topology>"
    )
    machine = read_machine(write(tmp_path, text))
    assert [(link.gpus, link.bandwidth_mbps) for link in machine.links] == [((0, 1), 200_000), ((1, 2), 50_000)]
    assert gpu_distances(machine)[0].tolist() == [0, 1, 2]


def test_amd_smi_topology() -> None:
    """Two GPUs by PCI address; 50,000 MB/s a lane and 100,000 MB/s in all are two lanes."""
    machine = read_machine(DATA / "amdsmi.txt")
    assert len(machine.gpus) == 2
    assert [(link.kind, link.lanes, link.bandwidth_mbps) for link in machine.links] == [("xgmi", 2, 100_000)]


AMD = """LINK TYPE TABLE:
             0000:05:00.0 0000:26:00.0 0000:46:00.0
0000:05:00.0 SELF         XGMI         PCIE
0000:26:00.0 XGMI         SELF         PCIE
0000:46:00.0 PCIE         PCIE         SELF

"""
BANDWIDTH = """NUMA BW TABLE:
             0000:05:00.0 0000:26:00.0 0000:46:00.0
0000:05:00.0 N/A          0-0          N/A
0000:26:00.0 0-0          N/A          N/A
0000:46:00.0 N/A          N/A          N/A
"""


@pytest.mark.parametrize("text", [AMD, AMD + BANDWIDTH, BANDWIDTH + "\n" + AMD])
def test_amd_smi_with_fewer_tables(tmp_path: Path, text: str) -> None:
    """Without weights each XGMI pair is direct; a bandwidth of 0 is none that is known."""
    (link,) = read_machine(write(tmp_path, text)).links
    assert (link.gpus, link.lanes, link.bandwidth_mbps) == ((0, 1), 1, None)


@pytest.mark.parametrize(
    ("name", "cpus", "sockets", "near", "far"),
    [("sys_same_numa.txt", 224, 2, 22, 62), ("sys4_same_numa.txt", 48, 1, 2, None)],
)
def test_affinities_make_the_sockets(name: str, cpus: int, sockets: int, near: int, far: int | None) -> None:
    """The driver calls all pairs SYS; the affinities say which of them share a socket, and which CPUs there are."""
    machine = read_machine(DATA / name)
    assert machine.cpu_millicores == 1000 * cpus
    assert sum(part.level == "socket" for part in machine.parts) == sockets
    assert set(gpu_distances(machine).flat) == {0, near, far} - {None}


def test_a_pair_that_is_nearer_stays_nearer_inside_a_domain(tmp_path: Path) -> None:
    """In one NUMA domain, GPUs 0 and 1 are NODE, 2 is SYS to both; GPU 3 is on the other socket."""
    rows = ("X NODE SYS SYS 0-3 0", "NODE X SYS SYS 0-3 0", "SYS SYS X SYS 0-3 0", "SYS SYS SYS X 4-7 1")
    text = "GPU0 GPU1 GPU2 GPU3 CPU Affinity NUMA Affinity\n" + "".join(f"GPU{i} {row}\n" for i, row in enumerate(rows))
    distances = gpu_distances(read_machine(write(tmp_path, text)))
    assert distances[0, 1] < distances[0, 2] == distances[1, 2] < distances[0, 3] == distances[2, 3]


def test_a_domain_without_cpus_is_memory_alone() -> None:
    """72 CPUs in one socket; eight domains are the GPU's memory."""
    machine = read_machine(DATA / "lscpu_gh200.txt")
    assert machine.cpu_millicores == 72_000
    assert [part.level for part in machine.parts] == ["socket"]


@pytest.mark.parametrize("name", ["ib_storage.txt", "ib_storage2.txt"])
def test_a_storage_switch_joins_no_racks(name: str) -> None:
    """Three hosts on either leaf, and all on the storage's switch, with or without a cable to the spine."""
    fabric = read_topo([DATA / name])
    assert fabric.node_domains == dict.fromkeys(("hosta", "hostb", "hostc"), "leaf1") | dict.fromkeys(
        ("hostd", "hoste", "hostf"), "leaf2"
    )
    assert {domain.id: domain.parent for domain in fabric.domains} == {
        "spine1": None,
        "leaf1": "spine1",
        "leaf2": "spine1",
    }


@pytest.mark.parametrize(
    ("switches", "racks"),
    [
        # two switches for the storage; one of them lacks a host whose port is down
        ([set("abc"), set("def"), set("abcdef"), set("abcdef")], ["abc", "def"]),
        ([set("abc"), set("def"), set("abcdef"), set("abcde")], ["abc", "def"]),
        # storage servers hang on the storage's switch alone
        ([set("abc"), set("def"), set("abcdefxy")], ["abc", "def", "xy"]),
        # a storage switch for two of three racks
        ([set("ab"), set("cd"), set("ef"), set("abcd")], ["ab", "cd", "ef"]),
        # rails: all hosts on all switches, but for ports that are down, and for one more host on a rail
        ([set("abc"), set("abc"), set("abc")], ["abc"]),
        ([set("abc"), set("bc"), set("ac"), set("abc")], ["abc"]),
        ([set("abc"), set("abc"), set("abcm")], ["abcm"]),
        # two units of rails with one storage network
        ([set("abc"), set("abc"), set("def"), set("de"), set("abcdef")], ["abc", "def"]),
    ],
)
def test_wider_networks_and_rails(tmp_path: Path, switches: list[set[str]], racks: list[str]) -> None:
    """Hosts by the switches that reach them; a spine above all."""
    lines = []
    for s, hosts in enumerate(switches):
        lines.append(f'\nSwitch 40 "S-{s:016x}"  # "switch{s}" enhanced port 0\n[40] "S-00000000000000ff"[{s}]')
        lines += [f'[{p}] "H-{100 * s + ord(h):016x}"[1](0) # "{h} mlx5_{s}"' for p, h in enumerate(sorted(hosts))]
    fabric = read_topo([write(tmp_path, "\n".join(lines))])
    found: dict[str, str] = {}
    for host, domain in sorted(fabric.node_domains.items()):
        found[domain] = found.get(domain, "") + host
    assert sorted(found.values()) == racks


def test_a_file_of_several_hosts_is_none_of_one() -> None:
    with pytest.raises(Unsupported, match=r"describes 2 hosts .*NCCL_MNNVL_ENABLE=0"):
        read_topo([DATA / "gb200_mnnvl.xml"])


def test_one_of_these_hosts(tmp_path: Path) -> None:
    """Four GPUs of 18 lanes at 50 GB/s to the switches, 10 links of 44,712 MB/s to the CPU, on two domains."""
    text = (DATA / "gb200_mnnvl.xml").read_text()
    one = re.sub(r'<cpu host_hash="0xb2".*?</cpu>', "", text)
    machine = read_machine(write(tmp_path, one))
    assert [gpu.part for gpu in machine.gpus] == ["socket0", "socket0", "socket1", "socket1"]
    assert {gpu.uplink_mbps for gpu in machine.gpus} == {447_120}
    assert {(link.lanes, link.bandwidth_mbps) for link in machine.links} == {(18, 900_000)}
    assert (len(machine.links), machine.cpu_millicores) == (6, 48_000)


def test_a_machine_without_numa_domains(tmp_path: Path) -> None:
    """In a virtual machine NCCL writes the domain -1, without CPUs; links are read all the same."""
    gpus = "".join(
        f'<pci busid="0000:0{i}:00.0" class="0x030200" vendor="0x10de" device="0x2335"><gpu dev="{i}" sm="90">'
        '<nvlink target="0000:0f:00.0" count="18" tclass="0x068000"/></gpu></pci>'
        for i in range(2)
    )
    machine = read_machine(
        write(tmp_path, f'<system version="1"><cpu host_hash="0x5" numaid="-1">{gpus}</cpu></system>')
    )
    assert [gpu.part for gpu in machine.gpus] == ["socket0", "socket0"]
    assert [(link.lanes, link.bandwidth_mbps) for link in machine.links] == [(18, 450_000)]


def test_devices_without_a_class_are_not_taken_for_no_gpus() -> None:
    with pytest.raises(BadInput, match=r"0000:00:1b\.0 states no class, so it may be a GPU"):
        read_topo([DATA / "aws_g5.xml"])
