"""Machines read from dumps of real tools, worked by hand from the files."""

import gzip
import importlib.util
from pathlib import Path

import pytest

from placeopt import BadInput, Unsupported
from placeopt.importers.topo import read_machine, read_topo
from placeopt.model import Gpu, Machine
from placeopt.topology import dgx1, gpu_distances, root_distances

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data" / "topo"
DGX1 = ROOT / "instances" / "topo" / "dgx1-topo-m.txt"


def read(name: str) -> Machine:
    return read_machine(DATA / name)


def read_text(folder: Path, text: str) -> Machine:
    (folder / "file.txt").write_text(text)
    return read_machine(folder / "file.txt")


V100 = "Tesla V100-SXM2-32GB"
P100, GFX908 = ("Tesla P100-SXM2-16GB", 16_671_616 // 1024, 40_000), ("AMD gfx908", 0, 31_508)
P8_MIB = (68_556_816_384 + 68_450_713_600) // 2**20
SWITCHES, FAR = "socket socket switch switch switch switch", [0, 2, 22, 22, 62, 62, 62, 62]


@pytest.mark.parametrize(
    ("name", "cpus", "memory_mib", "parts", "from_first", "gpu", "links"),
    [  # parts from above; distances of GPU 0; model, MiB and MB/s of GPUs; number, kind, lanes and MB/s of links
        # nvidia-smi: four GPUs at one host bridge, all on one socket, 1 + 1 apart; nothing else is told
        ("4gpu_phb.txt", 48, 0, "socket", [0, 2, 2, 2], ("unknown", 0, None), None),
        # rocm-smi: all 28 pairs of 8 GPUs are XGMI; no CPUs and no place is told, so the GPUs hang on the machine
        ("8gpu_xgmi_showtopotype.txt", 0, 0, "", [0, *[1] * 7], ("unknown", 0, None), (28, "xgmi", 1, None)),
        # hwloc 3, a Minsky: NVLinkBandwidth 40000 is two lanes of 20 GB/s, between GPUs of a socket and to their CPU
        ("power8gpudistances.xml", 16, P8_MIB, "socket socket", [0, 1, 42, 42], P100, (2, "nvlink", 2, 40_000)),
        # hwloc 2: the Matrox chip of the service processor is VGA, not a GPU
        ("devel09-pci.xml", 4, 24_565, "socket socket", [], None, None),
        # NCCL: two GPUs below each of four bridges, two bridges a CPU; 8 GT/s x 16 is 15,754 MB/s; 4 x 24 bits of masks
        ("aws_p4d-24xl-topo.xml", 96, 0, SWITCHES, FAR, ("NVIDIA A100-SXM4-40GB", 40_960, 15_754), None),
        ("azure_ndv2-topo.xml", 40, 0, "socket socket", [0, 2, 2, 2, *[42] * 4], ("unknown", 0, 31_508), None),
        # RCCL: two hives of four, all linked inside (6 pairs each), one MI100 link = 46 GB/s; across 1 + 20 + 20 + 1
        ("rccl_topo_4p3l_2h.xml", 128, 0, "socket " * 4, [0, 1, 1, 1, *[42] * 4], GFX908, (12, "xgmi", 1, 46_000)),
        ("rccl_topo_3p_pcie.xml", 64, 0, "socket socket", [0, 42, 42], ("AMD Instinct MI210", 65_536, 31_508), None),
    ],
)
def test_dumps(
    name: str,
    cpus: int,
    memory_mib: int,
    parts: str,
    from_first: list[int],
    gpu: tuple[object, ...] | None,
    links: tuple[object, ...] | None,
) -> None:
    machine = read(name)
    assert (machine.cpu_millicores, machine.memory_mib) == (1000 * cpus, memory_mib)
    assert [part.level for part in machine.parts] == parts.split()
    assert gpu_distances(machine)[:1].tolist() == [from_first] * bool(from_first)
    assert {(one.model, one.memory_mib, one.uplink_mbps) for one in machine.gpus} == {gpu} - {None}
    found = {(len(machine.links), one.kind, one.lanes, one.bandwidth_mbps) for one in machine.links}
    assert found == {links} - {None}


def test_links_and_places() -> None:
    """
    Of a Minsky the links of either socket; of two hives the network; of GPUs of which no place is told none.

    Azure lists GPUs 3, 4 before 1, 2; CUDA numbers them by PCI address, so GPU 0 is 0001:00:00.0, on domain 1.
    """
    assert [link.gpus for link in read("power8gpudistances.xml").links] == [(0, 1), (2, 3)]
    assert read("rccl_topo_4p3l_2h.xml").network_bandwidth_mbps == 200_000 // 8
    assert {gpu.part for gpu in read("8gpu_xgmi_showtopotype.txt").gpus} == {None}
    azure = read("azure_ndv4-topo.xml")
    parents = {part.id: part.parent for part in azure.parts}
    assert [parents[gpu.part or ""] for gpu in azure.gpus] == [f"socket{s}" for s in (1, 1, 0, 0, 3, 3, 2, 2)]


def test_dgx1_matrix_is_the_builders_machine() -> None:
    """Our own dump of a DGX-1 and its builder describe one machine: distances, links and tree must agree."""
    machine, built = read_machine(DGX1), dgx1()
    assert (gpu_distances(machine) == gpu_distances(built)).all()
    assert (root_distances(machine) == root_distances(built)).all()
    assert {(link.gpus, link.lanes) for link in machine.links} == {(link.gpus, link.lanes) for link in built.links}
    # The network cards show the switches that the NV entries hide: GPUs 0 and 1 are both PIX to NIC0.
    assert [gpu.part for gpu in machine.gpus] == [gpu.part for gpu in built.gpus]
    assert [part.parent for part in machine.parts] == [part.parent for part in built.parts]
    assert machine.cpu_millicores == 80_000  # 20 cores x 2 threads x 2 sockets; the tool lists logical CPUs


def test_nvidia_smi_levels_keep_their_order(tmp_path: Path) -> None:
    """PIX < PXB < PHB < NODE < SYS: 2, 22, 42, 62 in a socket (layers PIX, PXB, PHB of 10 each), 102 across."""
    text = """
            GPU0 GPU1 GPU2 GPU3 GPU4 GPU5 CPU Affinity NUMA Affinity
      GPU0   X   PIX  PXB  PHB  NODE SYS  0-3 0
      GPU1  PIX   X   PXB  PHB  NODE SYS  0-3 0
      GPU2  PXB  PXB   X   PHB  NODE SYS  0-3 0
      GPU3  PHB  PHB  PHB   X   NODE SYS  0-3 0
      GPU4  NODE NODE NODE NODE  X   SYS  0-3 0
      GPU5  SYS  SYS  SYS  SYS  SYS   X   4-7 1
    """
    assert gpu_distances(read_text(tmp_path, text))[0].tolist() == [0, 2, 22, 42, 62, 102]


def test_nvidia_smi_without_affinity_takes_the_matrix(tmp_path: Path) -> None:
    """In a virtual machine all GPUs may claim the same CPUs; SYS still says that they are on two sockets."""
    text = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tSYS\t0-7\tN/A\nGPU1\tSYS\t X \t0-7\tN/A\n"
    machine = read_text(tmp_path, "\x1b[4m" + text + "\x1b[0m")  # the tool underlines its header on a terminal
    assert [gpu.part for gpu in machine.gpus] == ["socket0", "socket1"]
    assert gpu_distances(machine)[0, 1] == 42


def test_hwloc_version_1(tmp_path: Path) -> None:
    """Version 1 puts packages (there: Socket) into NUMA domains, and says osdev_type 5 for a GPU's library."""
    machine = read_text(
        tmp_path,
        """<?xml version="1.0"?><!DOCTYPE topology SYSTEM "hwloc.dtd"><topology>
      <object type="Machine" cpuset="0x0000000f">
       <object type="NUMANode" os_index="0" cpuset="0x00000003" local_memory="1073741824">
        <object type="Socket" os_index="0" cpuset="0x00000003">
         <object type="PU" os_index="0" cpuset="0x1"/><object type="PU" os_index="1" cpuset="0x2"/></object>
        <object type="Bridge" bridge_type="0-1" depth="0" bridge_pci="0000:[00-04]">
         <object type="PCIDev" pci_busid="0000:02:00.0" pci_type="0302 [10de:1db5] [10de:1249] a1"
           pci_link_speed="15.75">
          <object type="OSDev" name="cuda0" osdev_type="5"/></object></object></object>
       <object type="NUMANode" os_index="1" cpuset="0x0000000c" local_memory="1073741824">
        <object type="Socket" os_index="1" cpuset="0x0000000c">
         <object type="PU" os_index="2" cpuset="0x4"/><object type="PU" os_index="3" cpuset="0x8"/></object></object>
      </object></topology>""",
    )
    assert (machine.cpu_millicores, machine.memory_mib) == (4_000, 2_048)
    assert [part.level for part in machine.parts] == ["socket", "socket"]
    assert machine.gpus == (Gpu(model=V100, memory_mib=32_768, part="socket0", uplink_mbps=15_750),)


def test_nvswitch_in_nccl_joins_all_pairs(tmp_path: Path) -> None:
    """Links to NVSwitches (class 0x068000) give every pair the lanes of a GPU: 12 x 25 GB/s on A100."""
    gpus = "".join(
        f'<pci busid="0000:{i}0:00.0" class="0x030200"><gpu dev="{i}" sm="80" rank="{i}">'
        '<nvlink target="0000:c4:00.0" count="6" tclass="0x068000"/>'
        '<nvlink target="0000:c5:00.0" count="6" tclass="0x068000"/></gpu></pci>'
        for i in range(3)
    )
    machine = read_text(tmp_path, f'<system version="1"><cpu numaid="0" affinity="ff">{gpus}</cpu></system>')
    found = [(link.gpus, link.lanes, link.bandwidth_mbps) for link in machine.links]
    assert found == [(pair, 12, 300_000) for pair in ((0, 1), (0, 2), (1, 2))]


ROCM = """====== ROCm System Management Interface ======
====== Link Type between two GPUs ======
       GPU0         GPU1
GPU0   0            PCIE
GPU1   PCIE         0
====== Numa Nodes ======
GPU[0]\t\t: (Topology) Numa Node: 0
GPU[1]\t\t: (Topology) Numa Node: 1
"""


def test_numa_nodes_of_rocm_smi(tmp_path: Path) -> None:
    """Each GPU in the domain that the second table names; a header with a gap is refused."""
    assert [gpu.part for gpu in read_text(tmp_path, ROCM).gpus] == ["socket0", "socket1"]
    with pytest.raises(BadInput, match="header"):
        read_text(tmp_path, ROCM.replace("GPU1", "GPU2"))


def test_domains_are_dealt_to_sockets(tmp_path: Path) -> None:
    """lscpu says 16 sockets, but 8 CPUs / (1 x 4) are 2; of three domains one has no CPUs, and stands nowhere."""
    lscpu = "Architecture: x86_64\nCPU(s): 8\nThread(s) per core: 1\nCore(s) per socket: 4\nSocket(s): 16\n"
    lists = "".join(f"NUMA node{i} CPU(s): {cpus}\n" for i, cpus in enumerate(("0-1", "2-3", "4-5", "6-7", "")))
    machine = read_text(tmp_path, f"{lscpu}{lists}MemTotal:  2048 kB\n")
    assert [(part.id, part.parent) for part in machine.parts] == [
        ("socket0", None),
        ("socket1", None),
        *((f"numa{i}", f"socket{i // 2}") for i in range(4)),
    ]
    assert (machine.cpu_millicores, machine.memory_mib) == (8_000, 2)


def test_a_bridge_that_nothing_leaves_limits_what_is_below(tmp_path: Path) -> None:
    """8 GT/s x 8 = 7,877 MB/s above a bridge of 16 GT/s x 16, which alone splits; ``affinity`` may be missing."""
    pcie = '<pci busid="0000:{}:00.0" class="0x0{}00" link_speed="{} GT/s" link_width="{}">{}</pci>'
    gpus = [pcie.format(f"{i}0", "302", 16, 16, f'<gpu dev="{i}" sm="80"/>') for i in (3, 4, 5)]
    chain = pcie.format("01", "604", 8, 8, pcie.format("02", "604", 16, 16, "".join(gpus[:2])))
    machine = read_text(tmp_path, f'<system version="1"><cpu numaid="0">{chain}{gpus[2]}</cpu></system>')
    uplinks = {part.id: part.uplink_mbps for part in machine.parts if part.level == "switch"}
    assert [uplinks[gpu.part or ""] for gpu in machine.gpus] == [7_877, 7_877, 31_508]
    assert machine.cpu_millicores == 0


def test_given_values_take_precedence() -> None:
    given = {"cpu_millicores": 7, "memory_mib": 8, "gpu_model": "L4", "gpu_memory_mib": 24_576}
    machine = read_machine(DATA / "4gpu_phb.txt", **given)
    assert (machine.cpu_millicores, machine.memory_mib) == (7, 8)
    assert {(gpu.model, gpu.memory_mib) for gpu in machine.gpus} == {("L4", 24_576)}


def test_gzip_is_read(tmp_path: Path) -> None:
    path = tmp_path / "topo.txt.gz"
    path.write_bytes(gzip.compress((DATA / "4gpu_phb.txt").read_bytes()))
    assert len(read_machine(path).gpus) == 4


LAUGHS = '<!DOCTYPE topology [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><topology><object type="&b;"/></topology>'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not recognised"),
        ("hello world, this is text\n", "not recognised"),
        ("<html></html>", "root <html>"),
        ("<topology><object type='Machine'/></topology>", "no object of type PU"),
        ("<system version='1'/>", "no <cpu>"),
        ("<topology><object>", "line 1: not well-formed"),
        (LAUGHS, "XML refused"),  # lstopo's DOCTYPE is fine, entities are not
        ("<topology>" + "<object>" * 600_000, "no machine needs them"),
        ("<topology>" + "<object/>" * 600_000, "no machine needs them"),
        (" " * (64 * 2**20 + 1), "larger than"),
        ("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV1\t0\n", "no row for GPU1"),
        ("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV1\t0\nGPU1\tNV2\t X \t0\n", r"line 3: .*symmetric"),
        ("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tFOO\t0\nGPU1\tFOO\t X \t0\n", "line 2: .*expected X, NV#"),
        (
            "\tGPU0\tGPU1\tGPU2\tCPU Affinity\nGPU0\tX\tPIX\tSYS\t0\nGPU1\tPIX\tX\tPIX\t0\nGPU2\tSYS\tPIX\tX\t0\n",
            "SYS, but other entries put them nearer",
        ),
        ("Architecture: x\nCPU(s): none\n", "'CPU\\(s\\)' is 'none'"),
        ("Architecture: x\nCPU(s): 1\nNUMA node0 CPU(s): 99999999\n", "'99999999'; expected for example"),
    ],
    ids=range(16),
)
def test_messages_name_fault_and_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "file.txt"
    path.write_text(text)
    with pytest.raises(BadInput, match=message) as caught:
        read_topo([path])
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("nothing.txt", BadInput, "cannot be read"),
        ("topograph_tree.conf", Unsupported, "describes no machine"),
    ],
)
def test_files_that_make_no_machine(name: str, error: type[BadInput], message: str) -> None:
    with pytest.raises(error, match=message):
        read(name)


@pytest.mark.parametrize(("paths", "words"), [([], "1 to 16"), ([DGX1, DGX1], "a second machine")])
def test_a_machine_is_one_file(paths: list[Path], words: str) -> None:
    with pytest.raises((BadInput, Unsupported), match=words):
        read_topo(paths)


@pytest.mark.parametrize("line", ["| NVIDIA-SMI 535.104 |", "1a:00.0 3D controller: NVIDIA Corporation Device 1db5"])
def test_gpus_that_are_listed_but_not_placed_are_not_left_out(tmp_path: Path, line: str) -> None:
    with pytest.raises(Unsupported, match=r"lists GPUs .* topo -m"):
        read_text(tmp_path, f"Architecture: x86_64\nCPU(s): 8\n{line}\n")


def test_the_page_prints_what_reading_gives() -> None:
    """The dumps that this repository holds have the outcome that docs/topology.md prints for them."""
    spec = importlib.util.spec_from_file_location("topology_table", ROOT / "bench" / "tables" / "topology_table.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    page = (ROOT / "docs" / "topology.md").read_text(encoding="utf-8").splitlines()
    paths = sorted(path for path in DATA.iterdir() if path.suffix != ".md")
    assert len(paths) >= 13
    for path in paths:
        printed = next(line for line in page if line.startswith("|") and f"{path.name}`" in line)
        assert script.row(DATA, path).split("|")[2:] == f"{printed}\n".split("|")[2:], path.name
