"""A machine type: what stands in a node. Stored once per type, not per node."""

from typing import Annotated, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from placeopt.model.base import (
    MAX_GPUS,
    Amounts,
    GpuIndex,
    Id,
    Mbps,
    Mib,
    Millicores,
    Name,
    PriceMilli,
    Record,
    Resources,
    Weight,
    refuse_repeats,
)

PartLevel = Literal["socket", "numa", "switch"]
PART_LEVELS: tuple[str, ...] = ("socket", "numa", "switch")
LinkKind = Literal["nvlink", "xgmi", "pcie"]


class Part(Record):
    """
    A socket, NUMA domain or switch inside a machine: an inner vertex of the machine's tree.

    ``uplink_weight`` is the path weight of the edge to the parent; left out, it is the level's default
    (``placeopt.topology.LEVEL_WEIGHTS``; Amaral et al., SC'17, fig. 7).
    """

    id: Id
    """Name of the part, unique in the machine."""
    level: PartLevel
    """Kind of part."""
    parent: Id | None = None
    """Another part, or none for the machine itself."""
    uplink_weight: Weight | None = None
    """Path weight of the edge to the parent; null: the level's default."""
    uplink_mbps: Mbps | None = None
    """Bandwidth of the uplink in MB/s, one direction; null: unknown, never a limit."""


MAX_SLOTS, MAX_PROFILES = 15, 12
"""Of one GPU."""
Slot = Annotated[int, Field(ge=0, lt=MAX_SLOTS)]


class Profile(Record):
    """A kind of share of a GPU: ``width`` slots from one of ``starts`` on. (NVIDIA MIG: a GPU instance profile.)."""

    id: Id | None
    """
    Name of the profile, such as ``1g.10gb``; null: what jobs that name none take, as the whole of a GPU that is divided
    on demand.
    """
    width: Annotated[int, Field(ge=1, le=MAX_SLOTS)]
    """Number of slots that it takes."""
    starts: Annotated[tuple[Slot, ...], Field(min_length=1, max_length=MAX_SLOTS)]
    """First slots that it may take."""

    @model_validator(mode="after")
    def _inside(self) -> Self:
        refuse_repeats("starts[]", self.starts, "a start is stated once")
        if max(self.starts) + self.width > MAX_SLOTS:
            raise ValueError(f"starts: {max(self.starts)} with width {self.width}; a GPU has {MAX_SLOTS} slots at most")
        return self


class Gpu(Record):
    """One GPU; its index is its position in ``Machine.gpus``."""

    model: Name
    """Model name; jobs select models by it."""
    memory_mib: Mib = 0
    """0 where the source does not tell; such a GPU takes only jobs that state no memory need."""
    part: Id | None = None
    """The part it hangs on, or none for the machine itself."""
    uplink_weight: Weight | None = None
    """Path weight of the edge to the part above; null: the default."""
    uplink_mbps: Mbps | None = None
    """Bandwidth of the uplink in MB/s, one direction; null: unknown, never a limit."""
    profiles: Annotated[tuple[Profile, ...], Field(max_length=MAX_PROFILES)] = ()
    """Its geometry: the shares that it is divided into, none of which meet in a slot; empty: shares of any size."""

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        refuse_repeats("profiles[].id", (profile.id for profile in self.profiles), "ids of profiles are unique")
        return self


class Link(Record):
    """A direct link between two GPUs. It shortens distances; it is not a capacity."""

    gpus: tuple[GpuIndex, GpuIndex]
    """Indices of the two GPUs."""
    kind: LinkKind = "nvlink"
    """Technology of the link."""
    lanes: Annotated[int, Field(ge=1, le=64)] = 1
    """Number of parallel lanes."""
    bandwidth_mbps: Mbps | None = None
    """Of all lanes together, one direction."""
    weight: Weight = 1
    """Path weight of the link."""


class NodeAmount(NamedTuple):
    """
    An amount of a node that has a field of its own in `Machine`, and one of the same name in `Demand`.

    ``group``: The constraint on it, as plans and explanations call it. ``unit``, ``name``: In words. ``most``: The most
    that a machine may state; None: it may state that there is no limit. ``usable``: Field of ``policy.usable`` with the
    percentage that may be taken; None: all of it.
    """

    group: str
    field: str
    unit: str
    name: str
    most: int | None
    usable: str | None = None

    @property
    def words(self) -> str:
        """Unit and name, as in "MiB of memory"."""
        return f"{self.unit} of {self.name}"


NODE_AMOUNTS = (
    NodeAmount("cpu", "cpu_millicores", "millicores", "CPU", 100_000_000),
    NodeAmount("memory", "memory_mib", "MiB", "memory", 1_000_000_000),
    NodeAmount(
        "memory_bandwidth", "memory_bandwidth_mbps", "MB/s", "memory bandwidth", None, "memory_bandwidth_percent"
    ),
    NodeAmount("pcie_bandwidth", "pcie_bandwidth_mbps", "MB/s", "PCIe bandwidth", None, "pcie_bandwidth_percent"),
)
"""The one list of them, in the order of all arrays; an amount without a field is a named resource."""


class Machine(Record):
    """
    A machine type.

    Distances between its GPUs are shortest paths over parts and links, unless ``gpu_distance_matrix`` states them
    (as the SC'17 scenarios do: 1 inside a socket, 20 across).
    """

    document: Annotated[Literal["machine"], Field(exclude=True)] = "machine"
    """What a file of it is; inside of another document it is left out."""
    id: Id
    """Unique name of the machine type."""
    cpu_millicores: Millicores
    """CPU, in thousandths of a core."""
    memory_mib: Mib
    """Host memory."""
    memory_bandwidth_mbps: Mbps | None = None
    """Host memory bandwidth in MB/s; null: unknown, never a limit."""
    pcie_bandwidth_mbps: Mbps | None = None
    """PCIe bandwidth in MB/s; null: unknown, never a limit."""
    network_bandwidth_mbps: Mbps | None = None
    """None means: not known, and never a limit."""
    resources: Resources = Field(default_factory=Amounts)
    """
    Named resources of a node, such as ports or devices: hard limits like CPU. Where some machine type names a resource,
    the others have none of it.
    """
    parts: Annotated[tuple[Part, ...], Field(max_length=1024)] = ()
    """Sockets, NUMA domains and switches, parents before children."""
    gpus: Annotated[tuple[Gpu, ...], Field(max_length=MAX_GPUS)] = ()
    """GPUs; the position is the GPU's index."""
    links: Annotated[tuple[Link, ...], Field(max_length=65_536)] = ()
    """Direct links between GPUs."""
    gpu_distance_matrix: tuple[tuple[Weight, ...], ...] | None = None
    """Distances between all GPUs, which replace shortest paths; null: shortest paths count."""
    uplink_weight: Weight | None = None
    """Path weight of the edge from the machine to its domain, or to the network."""
    price_milli_per_hour: PriceMilli | None = None
    """Price of a node of this type that states none, in thousandths of a currency unit an hour; null: 1000."""
    source: Name | None = None
    """Where the description comes from: a builder's name or the files it was read from."""

    @model_validator(mode="after")
    def _references(self) -> Self:
        parents: dict[str, str | None] = {}
        for i, part in enumerate(self.parts):
            if part.id in parents:
                raise ValueError(f"parts[{i}].id: part {part.id!r} appears twice; ids of parts are unique")
            if part.parent is not None and part.parent not in parents:
                raise ValueError(
                    f"parts[{i}].parent: no part {part.parent!r} before part {part.id!r}; list parents first"
                )
            parents[part.id] = part.parent
        for i, gpu in enumerate(self.gpus):
            if gpu.part is not None and gpu.part not in parents:
                raise ValueError(f"gpus[{i}].part: no part {gpu.part!r} in this machine; add it to 'parts'")
        seen: set[tuple[int, int]] = set()
        for i, link in enumerate(self.links):
            a, b = sorted(link.gpus)
            if a == b or b >= len(self.gpus):
                raise ValueError(
                    f"links[{i}].gpus: {list(link.gpus)} must be two different GPU indices below {len(self.gpus)}"
                )
            if (a, b) in seen:
                raise ValueError(f"links[{i}].gpus: GPUs {a} and {b} are linked twice; use 'lanes'")
            seen.add((a, b))
        self._check_matrix()
        return self

    def _check_matrix(self) -> None:
        matrix = self.gpu_distance_matrix
        if matrix is None:
            return
        size = len(self.gpus)
        if len(matrix) != size or any(len(row) != size for row in matrix):
            raise ValueError(f"gpu_distance_matrix: must have {size} rows of {size} weights, one per GPU")
        for a in range(size):
            if matrix[a][a] != 0:
                raise ValueError(f"gpu_distance_matrix[{a}][{a}]: {matrix[a][a]}, expected 0 on the diagonal")
            for b in range(a):
                if matrix[a][b] != matrix[b][a]:
                    raise ValueError(f"gpu_distance_matrix[{a}][{b}]: must equal [{b}][{a}]; distances are symmetric")
