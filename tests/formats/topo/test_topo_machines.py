"""Machines read from dumps of real tools, worked by hand from the files."""

import gzip
from pathlib import Path

import pytest

from placeopt import BadInput, Unsupported
from placeopt.formats.topo import read_machine, read_topo
from placeopt.model import Machine
from placeopt.topology import dgx1, gpu_distances, root_distances

DATA = Path(__file__).parents[2] / "data" / "topo"
DGX1 = Path(__file__).parents[3] / "instances" / "topo" / "dgx1-topo-m.txt"


def read(*names: str) -> Machine:
    return read_machine([DATA / name for name in names])


def levels(machine: Machine) -> list[str]:
    return [part.level for part in machine.parts]


def test_dgx1_matrix_is_the_builders_machine() -> None:
    """Our own dump of a DGX-1 and its builder describe one machine: distances, links and tree must agree."""
    machine, built = read_machine([DGX1]), dgx1()
    assert (gpu_distances(machine) == gpu_distances(built)).all()
    assert (root_distances(machine) == root_distances(built)).all()
    assert {(link.gpus, link.lanes) for link in machine.links} == {(link.gpus, link.lanes) for link in built.links}
    # The network cards show the switches that the NV entries hide: GPUs 0 and 1 are both PIX to NIC0.
    assert [gpu.part for gpu in machine.gpus] == [gpu.part for gpu in built.gpus]
    assert [part.parent for part in machine.parts] == [part.parent for part in built.parts]
    assert machine.cpu_millicores == 80_000  # 20 cores x 2 threads x 2 sockets; the tool lists logical CPUs


def test_nvidia_smi_phb_is_one_socket() -> None:
    """Four GPUs at one host bridge: all on one socket, 1 + 1 apart; 48 CPUs; nothing else is told."""
    machine = read("4gpu_phb.txt")
    assert levels(machine) == ["socket"]
    assert gpu_distances(machine)[0].tolist() == [0, 2, 2, 2]
    assert (machine.cpu_millicores, machine.memory_mib) == (48_000, 0)
    assert {gpu.model for gpu in machine.gpus} == {"unknown"}


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
    path = tmp_path / "levels.txt"
    path.write_text(text)
    assert gpu_distances(read_machine([path]))[0].tolist() == [0, 2, 22, 42, 62, 102]


def test_nvidia_smi_without_affinity_takes_the_matrix(tmp_path: Path) -> None:
    """In a virtual machine all GPUs may claim the same CPUs; SYS still says that they are on two sockets."""
    text = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tSYS\t0-7\tN/A\nGPU1\tSYS\t X \t0-7\tN/A\n"
    path = tmp_path / "vm.txt"
    path.write_text("\x1b[4m" + text + "\x1b[0m")  # the tool underlines its header on a terminal
    machine = read_machine([path])
    assert [gpu.part for gpu in machine.gpus] == ["socket0", "socket1"]
    assert gpu_distances(machine)[0, 1] == 42


def test_rocm_smi_links() -> None:
    """All 28 pairs of 8 GPUs are XGMI; the tool tells no CPUs and no place, so the GPUs hang on the machine."""
    machine = read("8gpu_xgmi_showtopotype.txt")
    assert len(machine.links) == 28
    assert {link.kind for link in machine.links} == {"xgmi"}
    assert {gpu.part for gpu in machine.gpus} == {None}


def test_numactl_groups_domains_into_sockets() -> None:
    """Distances 12 inside and 32 across: domains 0-3 and 4-7 are two sockets. 8 x 32 CPUs; sizes summed by hand."""
    machine = read("cscs_epyc_8nodes.txt")
    assert levels(machine) == ["socket", *["numa"] * 4] * 2
    assert machine.cpu_millicores == 256_000
    assert machine.memory_mib == 63733 + 64502 + 64456 + 64490 + 64502 + 64502 + 64502 + 64428
    assert machine.gpus == ()


def test_hwloc_version_3_with_nvlink_matrix() -> None:
    """A Minsky: NVLinkBandwidth 40000 is two lanes of 20 GB/s, between the GPUs of a socket and to their CPU."""
    machine = read("power8gpudistances.xml")
    assert gpu_distances(machine).tolist() == [[0, 1, 42, 42], [1, 0, 42, 42], [42, 42, 0, 1], [42, 42, 1, 0]]
    assert [(link.gpus, link.lanes, link.bandwidth_mbps) for link in machine.links] == [
        ((0, 1), 2, 40_000),
        ((2, 3), 2, 40_000),
    ]
    gpu = machine.gpus[0]
    assert (gpu.model, gpu.memory_mib, gpu.uplink_mbps) == ("Tesla P100-SXM2-16GB", 16_671_616 // 1024, 40_000)
    assert machine.cpu_millicores == 16_000
    assert machine.memory_mib == (68_556_816_384 + 68_450_713_600) // 2**20


def test_hwloc_version_2_without_gpus() -> None:
    """The Matrox chip of the service processor is VGA, not a GPU: a good machine of two sockets, without GPUs."""
    machine = read("devel09-pci.xml")
    assert machine.gpus == ()
    assert levels(machine) == ["socket", "socket"]
    assert machine.cpu_millicores == 4_000


def test_hwloc_version_1(tmp_path: Path) -> None:
    """Version 1 puts packages (there: Socket) into NUMA domains, and says osdev_type 5 for a GPU's library."""
    path = tmp_path / "v1.xml"
    path.write_text("""<?xml version="1.0"?><!DOCTYPE topology SYSTEM "hwloc.dtd"><topology>
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
      </object></topology>""")
    machine = read_machine([path])
    assert (machine.cpu_millicores, machine.memory_mib, levels(machine)) == (4_000, 2_048, ["socket", "socket"])
    assert machine.gpus[0].model_dump() == {
        "model": "Tesla V100-SXM2-32GB",
        "memory_mib": 32_768,
        "part": "socket0",
        "uplink_weight": None,
        "uplink_mbps": 15_750,
    }


def test_nccl_switches_and_speeds() -> None:
    """Two GPUs below each of four bridges, two bridges a CPU; 8 GT/s x 16 is 15,754 MB/s; vendor:device is an A100."""
    machine = read("aws_p4d-24xl-topo.xml")
    assert gpu_distances(machine)[0].tolist() == [0, 2, 22, 22, 62, 62, 62, 62]
    assert {(gpu.model, gpu.uplink_mbps) for gpu in machine.gpus} == {("NVIDIA A100-SXM4-40GB", 15_754)}
    assert machine.cpu_millicores == 96_000  # 24 + 24 + 24 + 24 bits in the two masks


def test_nccl_numbers_gpus_by_address() -> None:
    """Azure lists GPUs 3, 4 before 1, 2; CUDA numbers them by PCI address, so GPU 0 is 0001:00:00.0, on domain 1."""
    machine = read("azure_ndv4-topo.xml")
    parents = {part.id: part.parent for part in machine.parts}
    assert [parents[gpu.part or ""] for gpu in machine.gpus] == [f"socket{s}" for s in (1, 1, 0, 0, 3, 3, 2, 2)]


def test_nccl_without_switches() -> None:
    machine = read("azure_ndv2-topo.xml")
    assert levels(machine) == ["socket", "socket"]
    assert gpu_distances(machine)[0].tolist() == [0, 2, 2, 2, 42, 42, 42, 42]


def test_rccl_hives() -> None:
    """Two hives of four, all linked inside (6 pairs each), one MI100 link = 46 GB/s; across hives 1 + 20 + 20 + 1."""
    machine = read("rccl_topo_4p3l_2h.xml")
    assert len(machine.links) == 12
    assert {link.bandwidth_mbps for link in machine.links} == {46_000}
    assert gpu_distances(machine)[0].tolist() == [0, 1, 1, 1, 42, 42, 42, 42]
    assert machine.network_bandwidth_mbps == 200_000 // 8


def test_rccl_without_links() -> None:
    assert read("rccl_topo_3p_pcie.xml").links == ()


def test_nvswitch_in_nccl_joins_all_pairs(tmp_path: Path) -> None:
    """Links to NVSwitches (class 0x068000) give every pair the lanes of a GPU: 12 x 25 GB/s on A100."""
    gpus = "".join(
        f'<pci busid="0000:{i}0:00.0" class="0x030200"><gpu dev="{i}" sm="80" rank="{i}">'
        '<nvlink target="0000:c4:00.0" count="6" tclass="0x068000"/>'
        '<nvlink target="0000:c5:00.0" count="6" tclass="0x068000"/></gpu></pci>'
        for i in range(3)
    )
    path = tmp_path / "nvswitch.xml"
    path.write_text(f'<system version="1"><cpu numaid="0" affinity="ff">{gpus}</cpu></system>')
    machine = read_machine([path])
    assert [(link.gpus, link.lanes, link.bandwidth_mbps) for link in machine.links] == [
        (pair, 12, 300_000) for pair in ((0, 1), (0, 2), (1, 2))
    ]


def test_helios_host() -> None:
    """lscpu says 16 sockets, but 48 CPUs / (2 x 12) are 2. Four PLX switches of two GPUs, two before bus 80."""
    machine = read("helios_dgx1like_8xV100_lscpu_nvidia-smi_lspci.txt")
    assert levels(machine) == ["socket", "socket", *["switch"] * 4]
    assert gpu_distances(machine)[0].tolist() == [0, 2, 22, 22, 62, 62, 62, 62]
    assert (machine.cpu_millicores, machine.memory_mib) == (48_000, 394_677_048 // 1024)
    assert {(gpu.model, gpu.memory_mib) for gpu in machine.gpus} == {("Tesla V100-SXM2-32GB", 32_510)}


def test_two_files_make_one_machine() -> None:
    """Links from the matrix; models, memory and CPUs from the host's text; the tree of both is the same."""
    machine = read_machine([DGX1, DATA / "helios_dgx1like_8xV100_lscpu_nvidia-smi_lspci.txt"], cpu_millicores=80_000)
    assert len(machine.links) == 16
    assert machine.memory_mib == 385_426
    assert machine.gpus[0].model == "Tesla V100-SXM2-32GB"
    assert machine.source is not None
    assert "nvidia-smi topo -m" in machine.source
    assert "lscpu" in machine.source


def test_matrix_with_numactl(tmp_path: Path) -> None:
    """The matrix names NUMA domains 0 and 1; numactl tells their sockets and memory."""
    path = tmp_path / "numactl.txt"
    path.write_text(
        "available: 2 nodes (0-1)\n"
        f"node 0 cpus: {' '.join(map(str, [*range(20), *range(40, 60)]))}\nnode 0 size: 1000 MB\n"
        f"node 1 cpus: {' '.join(map(str, [*range(20, 40), *range(60, 80)]))}\nnode 1 size: 2000 MB\n"
        "node distances:\nnode   0   1\n  0:  10  21\n  1:  21  10\n"
    )
    machine = read_machine([DGX1, path], id="ours")
    assert (machine.id, machine.memory_mib, machine.cpu_millicores) == ("ours", 3000, 80_000)
    assert (gpu_distances(machine) == gpu_distances(dgx1())).all()


def test_files_of_different_machines_are_refused() -> None:
    with pytest.raises(BadInput, match=r"4 GPUs, but 8 in .*one machine"):
        read("8gpu_xgmi_showtopotype.txt", "4gpu_phb.txt")
    with pytest.raises(BadInput, match="one machine"):  # CPUs 0-19 are no part of domain 0 there
        read_machine([DGX1, DATA / "devel09-pci.xml"])


def test_given_values_take_precedence() -> None:
    machine = read_machine(
        [DATA / "4gpu_phb.txt"], cpu_millicores=7, memory_mib=8, gpu_model="L4", gpu_memory_mib=24_576
    )
    assert (machine.cpu_millicores, machine.memory_mib) == (7, 8)
    assert {(gpu.model, gpu.memory_mib) for gpu in machine.gpus} == {("L4", 24_576)}


def test_gzip_is_read(tmp_path: Path) -> None:
    path = tmp_path / "topo.txt.gz"
    path.write_bytes(gzip.compress((DATA / "4gpu_phb.txt").read_bytes()))
    assert len(read_machine([path]).gpus) == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not recognised"),
        ("hello world, this is text\n", "not recognised"),
        ("<html></html>", "root <html>"),
        ("<topology><object type='Machine'/></topology>", "no object of type PU"),
        ("<system version='1'/>", "no <cpu>"),
        ("<topology><object>", "line 1: not well-formed"),
        ("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV1\t0\n", "no row for GPU1"),
        ("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV1\t0\nGPU1\tNV2\t X \t0\n", r"line 3: .*symmetric"),
        ("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tFOO\t0\nGPU1\tFOO\t X \t0\n", "line 2: .*expected X, NV#"),
        (
            "\tGPU0\tGPU1\tGPU2\tCPU Affinity\nGPU0\tX\tPIX\tSYS\t0\nGPU1\tPIX\tX\tPIX\t0\nGPU2\tSYS\tPIX\tX\t0\n",
            "SYS, but other entries put them nearer",
        ),
        ("available: 2 nodes (0-1)\nnode 0 cpus: 0 1\nnode 0 size: 5 MB\n", "2 nodes announced, 1 found"),
        ("available: 1 nodes (0)\nnode 0 cpus: 0 99999999\n", "line 2: CPU '99999999'"),
    ],
)
def test_messages_name_fault_and_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "file.txt"
    path.write_text(text)
    with pytest.raises(BadInput, match=message) as caught:
        read_topo([path])
    assert str(path) in str(caught.value)


def test_entities_are_refused(tmp_path: Path) -> None:
    """A billion laughs: lstopo's DOCTYPE is fine, entities are not."""
    path = tmp_path / "bomb.xml"
    path.write_text(
        '<!DOCTYPE topology [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><topology><object type="&b;"/></topology>'
    )
    with pytest.raises(BadInput, match="XML refused"):
        read_topo([path])


@pytest.mark.parametrize("element", ["<object>", "<object/>"])
def test_many_or_deep_elements_are_refused(tmp_path: Path, element: str) -> None:
    path = tmp_path / "deep.xml"
    path.write_text("<topology>" + element * 600_000)
    with pytest.raises(BadInput, match="no machine needs them"):
        read_topo([path])


def test_large_files_are_refused(tmp_path: Path) -> None:
    """One blank too many."""
    path = tmp_path / "large.txt"
    path.write_bytes(b" " * (64 * 2**20 + 1))
    with pytest.raises(BadInput, match="larger than"):
        read_topo([path])


def test_missing_files_and_too_many() -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        read_topo([DATA / "nothing.txt"])
    with pytest.raises(BadInput, match="1 to 16"):
        read_topo([])


def test_a_network_is_no_machine() -> None:
    with pytest.raises(Unsupported, match="describes no machine"):
        read("topograph_tree.conf")
