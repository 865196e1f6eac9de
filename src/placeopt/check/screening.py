"""
One pass over all placements that clears most of them: what it does not clear, the rules judge in full.

Most placements are one worker on one node, just as an option states it, of a job that may stand anywhere. Such a one
breaks no rule by itself, and what it holds is added up by node, in plain integers. So the rules about single placements
look at the others only, and those about nodes and GPUs at nodes that hold more than they have, or one of the others.

Nothing is refused here. What this pass does not see at once to be right, it leaves to the rules, which say what is
wrong; tests judge with and without it.
"""

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import NamedTuple, Self

from placeopt.check.directory import Directory, PlacedJob
from placeopt.model import Assignment, Job, Machine, Option, Placement, Policy

WHOLE = 1000
"""Thousandths of a GPU."""

# Read from the dictionaries of records: an attribute of a pydantic record takes twice the time, and there are 100,000.
_read_placement = itemgetter("job", "option", "assignments")
_read_job = itemgetter("options", "nodes_allowed", "utility_min_thousandths", "node_selector")
_read_assignment = itemgetter("node", "gpus", "cpu_millicores", "memory_mib", "workers")
_read_worker = itemgetter("rank", "gpus")


class GpuSet(NamedTuple):
    """Some GPUs of a node held by one worker, each with the same share."""

    shares: dict[str, int] | None  # as the assignment writes them; None: no worker can hold these
    end: int  # above the largest index

    @classmethod
    def of(cls, gpus: tuple[int, ...], milli: int) -> Self:
        """Return what an assignment has to say of the GPUs."""
        possible = len(set(gpus)) == len(gpus) and min(gpus, default=0) >= 0
        return cls({str(gpu): milli for gpu in gpus} if possible else None, max(gpus, default=-1) + 1)


class OptionForm(NamedTuple):
    """What a placement in an option has to look like."""

    gpus: int  # of one worker
    low: int  # thousandths of each GPU
    high: int
    cpu_millicores: int  # of one worker
    memory_mib: int
    gpu_memory_mib: int  # of each GPU
    workers_least: int
    workers_most: int
    is_plain: bool
    """Whether one worker is enough, gets what it requests, may stand anywhere, and takes nothing but this."""
    gpu_sets: dict[tuple[int, ...], GpuSet]
    """What was met of GPUs that one worker holds, each with the share ``low``."""

    @classmethod
    def of(cls, option: Option, gpu_sets: dict[int, dict[tuple[int, ...], GpuSet]]) -> Self:
        """Read an option; ``gpu_sets``: by share, those of all options."""
        demand, least = option.demand, option.workers if option.workers_min is None else option.workers_min
        fixed = demand.gpu_milli_limit is None
        bandwidth = demand.memory_bandwidth_mbps or demand.pcie_bandwidth_mbps
        named = any(demand.resources.values())
        return cls(
            demand.gpus,
            demand.gpu_milli,
            demand.gpu_milli if demand.gpu_milli_limit is None else demand.gpu_milli_limit,
            demand.cpu_millicores,
            demand.memory_mib,
            demand.gpu_memory_mib,
            least,
            option.workers,
            least == 1 and fixed and not (bandwidth or named or demand.gpu_models or option.splits),
            gpu_sets.setdefault(demand.gpu_milli, {}),
        )


class NodeUse:
    """
    What placements hold of a node: CPU, memory, and of each GPU the share requested.

    ``jobs``, ``gpu_memory``: Per GPU, the jobs on it and the memory that they request; empty until some are counted.
    """

    __slots__ = ("cpu_millicores", "gpu_memory", "jobs", "machine", "memory_mib", "milli", "num_gpus")

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.num_gpus = len(machine.gpus)
        self.cpu_millicores = self.memory_mib = 0
        self.milli = [0] * self.num_gpus
        self.jobs: list[int] = []
        self.gpu_memory: list[int] = []

    def count(self, gpus: Iterable[int], gpu_memory_mib: int) -> None:
        """Add one job with memory on some GPUs."""
        self.jobs = self.jobs or [0] * self.num_gpus
        self.gpu_memory = self.gpu_memory or [0] * self.num_gpus
        for gpu in gpus:
            self.jobs[gpu] += 1
            self.gpu_memory[gpu] += gpu_memory_mib

    def fits(self, milli_most: int | None, jobs_most: int | None) -> bool:
        """Tell whether the node has all that is held; None is no limit for a GPU."""
        machine = self.machine
        return (
            self.cpu_millicores <= machine.cpu_millicores
            and self.memory_mib <= machine.memory_mib
            and (milli_most is None or not self.milli or max(self.milli) <= milli_most)
            and (jobs_most is None or not self.jobs or max(self.jobs) <= jobs_most)
            and (
                not self.gpu_memory
                or all(held <= gpu.memory_mib for held, gpu in zip(self.gpu_memory, machine.gpus, strict=True))
            )
        )


class Screening:
    """
    What is not cleared.

    Attributes
    ----------
    num_unknown
        How many placements are of an unknown job or option; the others are resolved.
    irregular
        Those resolved whose workers, GPUs and amounts were not seen to be right.
    restricted
        Those, and all resolved that have several workers, or of which job, option or node say where they may be, or
        what they get.
    in_doubt
        Nodes on which something was not added up, or where the sums exceed what there is.
    """

    def __init__(self, directory: Directory, policy: Policy, placements: Iterable[Placement]) -> None:
        self.num_unknown = 0
        self.irregular: list[PlacedJob] = []
        self.restricted: list[PlacedJob] = []
        self.in_doubt: set[str] = set()
        self._directory = directory
        self._uses: dict[str, NodeUse | None] = {}
        milli_most = WHOLE if policy.share_mode == "fraction" else None
        jobs_most = 1 if policy.share_mode == "exclusive" else policy.jobs_per_gpu_max
        self._counts_jobs = jobs_most is not None
        self._add_up(placements)
        uses = self._uses.items()
        self.in_doubt.update([n for n, use in uses if use is not None and not use.fits(milli_most, jobs_most)])

    def _add_up(self, placements: Iterable[Placement]) -> None:
        jobs, marked, uses, counts_jobs = self._directory.jobs, self._directory.marked, self._uses, self._counts_jobs
        forms: dict[int, dict[str, tuple[Option, OptionForm]]] = {}
        gpu_sets_by_share: dict[int, dict[tuple[int, ...], GpuSet]] = {}
        for placement in placements:
            name, option_id, assignments = _read_placement(placement.__dict__)
            job = jobs.get(name)
            if job is None:
                self.num_unknown += 1
                continue  # told by rule `account`
            options, nodes_allowed, utility_min, selector = _read_job(job.__dict__)
            by_name = forms.get(id(options))  # the jobs hold the options, so no number is given to two
            if by_name is None:
                by_name = {option.id: (option, OptionForm.of(option, gpu_sets_by_share)) for option in options}
                forms[id(options)] = by_name
            found = by_name.get(option_id)
            if found is None:
                self.num_unknown += 1
                continue  # told by rule `option`
            option, form = found
            gpus, milli, _, cpu_millicores, memory_mib, gpu_memory_mib, _, _, is_plain, gpu_sets = form
            free = nodes_allowed is None and utility_min is None and not selector
            if is_plain and free and len(assignments) == 1:
                node, shares, cpu, memory, workers = _read_assignment(assignments[0].__dict__)
                rank, taken = _read_worker(workers[0].__dict__) if len(workers) == 1 else (-1, ())
                use, gpu_set = uses.get(node), gpu_sets.get(taken)
                if use is None or gpu_set is None:
                    use = self._use_of(node)
                    gpu_set = gpu_sets[taken] = GpuSet.of(taken, milli)
                expected, end = gpu_set
                if (
                    use is not None
                    and rank == 0
                    and len(taken) == gpus
                    and end <= use.num_gpus
                    and shares == expected
                    and cpu == cpu_millicores
                    and memory == memory_mib
                    and node not in marked
                ):
                    use.cpu_millicores += cpu
                    use.memory_mib += memory
                    held = use.milli
                    for gpu in taken:
                        held[gpu] += milli
                    if gpu_memory_mib or counts_jobs:
                        use.count(taken, gpu_memory_mib)
                    continue
            self._look_closer(job, option, placement, form)

    def _look_closer(self, job: Job, option: Option, placement: Placement, form: OptionForm) -> None:
        """Note a placement that is not plain, and add it up if it is well formed all the same."""
        entry = PlacedJob(job, option, placement)
        self.restricted.append(entry)
        if not (_is_gang(form, placement.assignments) and all(self._adds(form, at) for at in placement.assignments)):
            self.irregular.append(entry)
            self.in_doubt.update([assignment.node for assignment in placement.assignments])
        elif (
            option.demand.memory_bandwidth_mbps
            or option.demand.pcie_bandwidth_mbps
            or any(option.demand.resources.values())
        ):
            self.in_doubt.update([assignment.node for assignment in placement.assignments])

    def _adds(self, form: OptionForm, assignment: Assignment) -> bool:
        """Add an assignment to what its node holds; return whether it is well formed, without which it may be wrong."""
        use, workers, shares = self._use_of(assignment.node), assignment.workers, assignment.gpus
        taken = [gpu for worker in workers for gpu in worker.gpus]
        if (
            use is None
            or any(len(worker.gpus) != form.gpus for worker in workers)
            or assignment.cpu_millicores != len(workers) * form.cpu_millicores
            or assignment.memory_mib != len(workers) * form.memory_mib
            or len(set(taken)) < len(taken)
            or {str(gpu) for gpu in taken} != shares.keys()
            or not 0 <= min(taken, default=0) <= max(taken, default=-1) < use.num_gpus + (not taken)
            or not form.low <= min(shares.values(), default=form.low)
            or not max(shares.values(), default=form.high) <= form.high
        ):
            return False
        use.cpu_millicores += assignment.cpu_millicores
        use.memory_mib += assignment.memory_mib
        for gpu in taken:
            use.milli[gpu] += form.low
        if form.gpu_memory_mib or self._counts_jobs:
            use.count(taken, form.gpu_memory_mib)
        return True

    def _use_of(self, node: str) -> NodeUse | None:
        """Return what is held on a node so far, None if there is no such node."""
        if node not in self._uses:
            machine = self._directory.machine_of.get(node)
            self._uses[node] = None if machine is None else NodeUse(machine)
        return self._uses[node]


def _is_gang(form: OptionForm, assignments: Sequence[Assignment]) -> bool:
    """Return whether number and ranks of the workers are right, and every node has one assignment, not empty."""
    ranks = [worker.rank for assignment in assignments for worker in assignment.workers]
    return (
        form.workers_least <= len(ranks) <= form.workers_most
        and sorted(ranks) == list(range(len(ranks)))
        and len({assignment.node for assignment in assignments}) == len(assignments)
        and all(assignment.workers for assignment in assignments)
    )
