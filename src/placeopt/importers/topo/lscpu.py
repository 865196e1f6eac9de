"""The CPUs of a host as ``lscpu`` prints them, with ``/proc/meminfo`` in the same file or without."""

import re

from placeopt.errors import Unsupported
from placeopt.importers.source_file import SourceFile
from placeopt.importers.topo.host import MAX_PLACES, Host, cpu_list

_GPUS = re.compile(r"NVIDIA-SMI|3D controller|Display controller|Processing accelerators")


def is_lscpu(source: SourceFile) -> bool:
    """Return whether the text is in this format."""
    return all(any(line.startswith(name) for line in source.lines) for name in ("Architecture:", "CPU(s):"))


def read_lscpu(source: SourceFile) -> Host:
    """
    Return the host, which has no GPUs.

    Where the product of threads, cores and sockets is not the number of CPUs (virtual machines and odd firmware),
    sockets are CPUs / (threads x cores). NUMA domains are dealt to sockets in order; one without CPUs is memory alone
    (of a GPU, say), and is left out. Raises `BadInput` if a number is malformed, `Unsupported` if the text lists GPUs.
    """
    if found := _GPUS.search(source.text):
        raise Unsupported(
            f"{source.name}: lists GPUs ({found[0]}), but not how they are connected; give the output of "
            "nvidia-smi topo -m, amd-smi topology or lstopo --of xml"
        )
    fields: dict[str, str] = {}
    for line in source.lines:
        if match := re.match(r"([A-Za-z()][^:]{0,40}):(.*)\Z", line):
            fields.setdefault(match[1], match[2].strip())
    if not re.fullmatch(r"[1-9]\d{0,5}", fields["CPU(s)"]):
        raise source.bad(1, f"lscpu's 'CPU(s)' is {fields['CPU(s)'][:20]!r}; expected a positive number")
    num_cpus = int(fields["CPU(s)"])
    memory = re.fullmatch(r"(\d{1,12}) kB", fields.get("MemTotal", ""))
    return Host(
        places=_places(_numas(source, fields), _sockets(fields, num_cpus)),
        num_cpus=num_cpus,
        memory_mib=int(memory[1]) // 1024 if memory else None,
    )


def _numas(source: SourceFile, fields: dict[str, str]) -> list[int]:
    numas = []
    for name, value in fields.items():
        if match := re.fullmatch(r"NUMA node(\d{1,4}) CPU\(s\)", name):
            if value and cpu_list(value) is None:
                raise source.bad(1, f"lscpu's {name!r} is {value[:40]!r}; expected for example '0-11,24-35'")
            numas += [int(match[1])] * bool(value)
    return sorted(numas)


def _sockets(fields: dict[str, str], num_cpus: int) -> int:
    """Return the number of sockets; 0: unknown."""
    names = ("Thread(s) per core", "Core(s) per socket", "Socket(s)")
    threads, cores, sockets = (int(fields[n]) if re.fullmatch(r"[1-9]\d{0,4}", fields.get(n, "")) else 0 for n in names)
    if threads * cores * sockets != num_cpus:
        sockets = num_cpus // (threads * cores) if threads * cores and num_cpus % (threads * cores) == 0 else 0
    return sockets if sockets <= MAX_PLACES else 0


def _places(numas: list[int], sockets: int) -> dict[str, str | None]:
    if not sockets or (len(numas) % sockets and sockets % len(numas)):
        return dict.fromkeys(f"numa{numa}" for numa in numas)
    each = len(numas) // sockets
    places: dict[str, str | None] = {f"socket{s}": None for s in range(sockets)}
    return places | {f"numa{numa}": f"socket{i // each}" for i, numa in enumerate(numas) if each}
