"""
The workloads of the SC'17 topology-aware scheduling paper's own artifact (HiEST/gpu-topo-aware, Apache-2.0).

Three JSON files: a workload (jobs), an infrastructure (one machine), a profile (measured times). ``read_sc17``
documents each field.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from placeopt import BadInput
from placeopt.documents import read_bytes
from placeopt.model import Cluster, Communication, Demand, Gpu, Job, Machine, Node, Option, Part, Slowdown
from placeopt.simulation import Arrival, Physics, Scenario

MALFORMED = (LookupError, StopIteration, TypeError, ValueError, AttributeError, ArithmeticError)
"""Errors from reading a file of another format, infinities and zeros in place of seconds included."""
MAX_GPUS = 1024
STEP_MS = 1_100
"""The clock of the artifact's simulator."""
VALUE_PER_GPU = 1_000
NOTE = (
    "Amaral et al., Topology-Aware GPU Scheduling for Learning Workloads in Cloud Environments (SC'17): {workload} of "
    "the authors' artifact, HiEST/gpu-topo-aware, commit 8125c2875ad9, Apache-2.0, on {machines} machine(s) of its "
    "infra-1m.json, with the times of its profiles/prof_from_experiments.json. Predictions are exact."
)


def read_sc17(
    workload: str | Path, infrastructure: str | Path, profile: str | Path, *, machines: int, name: str | None = None
) -> Scenario:
    """
    Return a workload on a number of machines, as a scenario.

    Parameters
    ----------
    workload
        id -> ``arrival`` (s), ``gpus``, ``type``, ``size`` (batch), ``minimal_utility``. A job is worth 1000 a GPU, so
        no job is preferred, and all pairs of its GPUs have the same weight (the artifact uses no other weights).
        ``time`` is ignored, as there; ``tasks`` and ``mem`` never bind there and are left out.
    infrastructure
        Its first machine: ``gpu_per_socket``, ``core_per_socket``, ``mem_per_socket`` and ``mem_per_gpu`` (GB),
        ``gpu_distance``.
    profile
        ``solo`` times in a socket and across, ``collocation`` times beside other jobs; s. A time across becomes a
        spread slowdown, one beside others an excess for jobs that share a socket, both rounded to thousandths, and
        left out where they are no loss. A time of 0 was not measured: it counts as no loss, and the scenario's note
        says how many of the workload's own there are.
    machines
        Machines of the cluster.
    name
        Of the scenario; by default ``sc17-`` and the workload's file.

    Returns
    -------
    Scenario
        With the rule ``sc17`` and steps of 1.1 s. Jobs of the same type, batch and number of GPUs share a profile.

    Raises
    ------
    BadInput
        If a file cannot be read or is not of that form.
    """
    solo, spread, slowdowns = read_sc17_times(profile)
    hardware = _json(str(infrastructure))
    with _form(infrastructure, "infrastructure"):
        machine = _machine(next(iter(hardware["machines"].values())))
    jobs = _json(str(workload))
    with _form(workload, "workload"):
        arrivals = tuple(_arrival(job_id, job, solo, spread) for job_id, job in jobs.items())
    present = {arrival.job.profile for arrival in arrivals}
    stem = Path(workload).name.removesuffix(".json")
    with _form(workload, "workload"):
        return Scenario(
            name=name or f"sc17-{stem}",
            note=NOTE.format(workload=f"{stem}.json", machines=machines) + _unmeasured(profile, arrivals, hardware),
            cluster=Cluster(
                machines=(machine,), nodes=tuple(Node(id=f"minsky-{i}", machine=machine.id) for i in range(machines))
            ),
            physics=Physics(rule="sc17", interference="worst", step_ms=STEP_MS),
            slowdowns=tuple(s for s in slowdowns if s.profile in present and s.beside in present),
            arrivals=arrivals,
        )


def read_sc17_times(path: str | Path) -> tuple[dict[str, int], dict[str, int], list[Slowdown]]:
    """
    Return run times in a socket (ms), excess across sockets (thousandths) where measured, and excess beside others.

    Kinds of jobs are called ``<network>-<batch>-<GPUs>``.
    """
    times = _json(str(path))
    with _form(path, "profile"):
        solo, spread = _solo(times)
        return solo, spread, _slowdowns(times, solo)


def _unmeasured(profile: str | Path, arrivals: tuple[Arrival, ...], hardware: dict[str, Any]) -> str:
    """Return the parts of the files that the scenario lacks, a line each."""
    with _form(profile, "profile"):
        times = _json(str(profile))
        present = {arrival.job.profile for arrival in arrivals}
        beside = [s for kind, other, s in _beside(times) if kind in present and other in present]
        several = {a.job.profile for a in arrivals if a.job.options[0].demand.gpus > 1}
        apart = several - _solo(times)[1].keys()
    fields = []
    if missing := sum(not seconds for seconds in beside):
        fields.append(f"Not measured, and taken for no slowdown: {missing} of {len(beside)} kinds beside each other.")
    if apart:
        fields.append(f"Not measured across sockets, and taken for no slowdown: {len(apart)} of {len(several)} kinds.")
    if len(hardware["machines"]) > 1:
        fields.append(f"The infrastructure's first machine of {len(hardware['machines'])} was taken for all.")
    return "".join(f"\n{sentence}" for sentence in fields)


@contextmanager
def _form(path: str | Path, what: str) -> Iterator[None]:
    """Turn errors of another form into `BadInput` that names the file."""
    try:
        yield
    except MALFORMED as error:
        why = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        if not isinstance(error, KeyError | ValueError):
            why = f"a value is not of the kind that it should be ({error})"
        raise BadInput(f"{path}: expected the {what} of SC'17's artifact: {why}") from None


def _json(path: str) -> dict[str, Any]:
    try:
        document = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}: not JSON ({str(error)[:80]})") from None
    if not isinstance(document, dict):
        raise BadInput(f"{path}: expected an object {{...}}")
    return document


def _kind(model: str, size: str, gpus: str | int) -> str:
    return f"{model.removeprefix('bvlc_')}-{size}-{gpus}"


def _entries(value: object, where: str) -> Iterator[tuple[str, Any, str]]:
    """Yield keys, values and places of an object."""
    if not isinstance(value, dict):
        raise ValueError(f"{where}: expected an object {{...}}")
    for key, inner in value.items():
        yield key, inner, f"{where}.{key}"


def _kinds(table: object, where: str) -> Iterator[tuple[str, Any, str]]:
    """Yield (kind of job, entry, path): by network, batch and number of GPUs."""
    for model, sizes, of_model in _entries(table, where):
        for size, measured, of_size in _entries(sizes, of_model):
            for key, counts, of_counts in _entries(measured, of_size):
                if key == "num_gpus":
                    for gpus, value, place in _entries(counts, of_counts):
                        yield _kind(model, size, gpus), value, place


def _seconds(value: object, where: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 10**10:
        raise ValueError(f"{where}: {str(value)[:80]!r}, expected seconds")
    return value


def _solo(times: dict[str, Any]) -> tuple[dict[str, int], dict[str, int]]:
    """Return run times in ms, and excess across sockets in thousandths where it was measured."""
    solo: dict[str, int] = {}
    spread: dict[str, int] = {}
    for kind, measured, where in _kinds(times["solo"], "solo"):
        seconds = {key: _seconds(value, place) for key, value, place in _entries(measured, where)}
        solo[kind] = round(1000 * seconds["intra-socket"])
        if seconds["inter-socket"]:
            spread[kind] = max(0, round(1000 * seconds["inter-socket"] / seconds["intra-socket"]) - 1000)
    return solo, spread


def _beside(times: dict[str, Any]) -> Iterator[tuple[str, str, float]]:
    """Yield kind, kind beside it, and its time there in s; 0 where it was not measured."""
    for kind, others, where in _kinds(times["collocation"], "collocation"):
        for beside, value, place in _kinds(others, where):
            yield kind, beside, _seconds(value, place)


def _slowdowns(times: dict[str, Any], solo: dict[str, int]) -> list[Slowdown]:
    slowdowns = []
    for kind, beside, seconds in _beside(times):
        excess = round(1_000_000 * seconds / solo[kind]) - 1000 if seconds else 0
        if excess > 0:
            slowdowns.append(Slowdown(profile=kind, beside=beside, socket_thousandths=excess))
    return slowdowns


def _arrival(job_id: str, job: dict[str, Any], solo: dict[str, int], spread: dict[str, int]) -> Arrival:
    gpus, kind = job["gpus"], _kind(job["type"], job["size"], job["gpus"])
    if kind not in solo:
        raise ValueError(f"job {job_id!r}: the profile has no times of {kind!r}")
    return Arrival(
        job=Job(
            id=job_id,
            arrival_ms=round(1000 * job["arrival"]),
            options=(Option(demand=Demand(gpus=gpus), value=VALUE_PER_GPU * gpus, run_time_ms=solo[kind]),),
            communication=Communication(
                weight=1 if gpus > 1 else 0, spread_slowdown_thousandths=spread.get(kind, 0) if gpus > 1 else None
            ),
            profile=kind,
            utility_min_thousandths=round(1000 * job["minimal_utility"]),
        )
    )


def _machine(fields: dict[str, Any]) -> Machine:
    per_socket = fields["gpu_per_socket"]
    if not all(isinstance(gpus, int) and 0 <= gpus <= MAX_GPUS for gpus in per_socket) or sum(per_socket) > MAX_GPUS:
        raise ValueError(f"gpu_per_socket: {str(per_socket)[:80]}, expected whole numbers of together {MAX_GPUS}")
    sockets = [f"socket-{s}" for s in range(len(per_socket))]
    of_gpu = [sockets[s] for s, number in enumerate(per_socket) for _ in range(number)]
    rows = fields["gpu_distance"]
    number = len(of_gpu)
    return Machine(
        id="minsky",
        cpu_millicores=1000 * sum(fields["core_per_socket"]),
        memory_mib=1024 * sum(fields["mem_per_socket"]),
        parts=tuple(Part(id=socket, level="socket") for socket in sockets),
        gpus=tuple(Gpu(model="P100", memory_mib=1024 * fields["mem_per_gpu"][0], part=socket) for socket in of_gpu),
        gpu_distance_matrix=tuple(tuple(rows[str(a)][str(b)] for b in range(number)) for a in range(number)),
        source="infra-1m.json of SC'17's artifact",
    )
