"""Jobs in short notation: ``8xH100``, ``4x8xH100``, ``0.5xT4``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pydantic import ValidationError

from placeopt.arguments import checked
from placeopt.documents.faults import expectation
from placeopt.edits import node_of_type
from placeopt.edits.levels import levels_of
from placeopt.errors import BadArgument
from placeopt.model import Cluster, Demand, Instance, Job, NodeConditions, Option, Split, Toleration
from placeopt.model.job import JobKind

SHAPE = re.compile(
    r"(?:(?P<workers>[1-9]\d*)x)?(?P<gpus>\d+(?:\.\d+)?)(?:x(?P<model>[^\s]*[^\s\d.x][^\s]*))?", re.ASCII
)


@checked
def parse_job(
    text: str,
    instance: Instance,
    *,
    cpu_millicores: int = 0,
    memory_mib: int = 0,
    resources: Mapping[str, int] | None = None,
    together: str | None = None,
    queue: str | None = None,
    tolerates: Sequence[str] | None = None,
) -> Job:
    """
    Read a job: number of workers if several, GPUs of each worker, and the GPU model if it matters.

    Parameters
    ----------
    text
        ``8xH100``: eight H100 on one node. ``8``: of any model. ``4x8xH100``: four such workers, all or none.
        ``0.5xT4``: half of one GPU. Or the id of a job of the instance, which is returned.
    instance
        Its GPU models, levels and queues can be named.
    cpu_millicores, memory_mib, resources
        Of one worker; the last by name.
    together
        Level of which one domain must hold all workers.
    queue
        Queue of the policy that the job is in.
    tolerates
        Keys of taints that the job tolerates. None: what a job must tolerate to run on such GPUs, the taints that all
        nodes of a machine type share, of every type that has them.

    Returns
    -------
    Job
        A job of one option, or that of the instance, which tolerates what it says itself.

    Raises
    ------
    BadInput
        If it is no such text, requests nothing or a number out of range, or names an unknown model, level or queue.
    """
    existing = next((job for job in instance.jobs if job.id == text), None)
    if existing is not None:
        return existing
    match = SHAPE.fullmatch(text)
    if match is None:
        raise BadArgument(f"job {text!r}: expected GPUs such as 8, 8xH100, 4x8xH100 or 0.5xT4, or the id of a job")
    gpus, milli = _gpus(match["gpus"], text)
    models = {gpu.model for machine in instance.cluster.machines for gpu in machine.gpus}
    model = match["model"]
    if model and model not in models:
        raise BadArgument(f"job {text!r}: no GPU of model {model!r}; there are: {', '.join(sorted(models)) or 'none'}")
    if queue is not None and all(known.id != queue for known in instance.policy.queues):
        raise BadArgument(f"queue: no queue {queue!r} in the policy")
    if not gpus and not cpu_millicores and not memory_mib and not resources:
        raise BadArgument(f"job {text!r}: requests nothing; state GPUs, CPU, memory or a named resource")
    if together is not None and together not in levels_of(instance):
        raise BadArgument(
            f"together: no level {together!r} in the cluster; there are: {', '.join(levels_of(instance))}"
        )
    try:
        demand = Demand(
            gpus=gpus,
            gpu_milli=milli,
            gpu_models=(model,) if model else (),
            cpu_millicores=cpu_millicores,
            memory_mib=memory_mib,
            resources=dict(resources or {}),
        )
    except ValidationError as error:
        fault = error.errors()[0]  # GPUs and model are checked above: only CPU, memory and named resources are left
        where = ".".join(str(part) for part in fault["loc"])
        raise BadArgument(f"{where}: {fault['input']}, expected {expectation(fault)}") from None
    splits = () if together is None else (Split(level=together, domains=1),)
    workers = int(match["workers"] or 1)
    if workers > 100_000:
        raise BadArgument(f"job {text!r}: {workers} workers, at most 100,000")
    option = Option(workers=workers, demand=demand, splits=splits)
    if tolerates is None:
        tolerations = _taints_of_types(instance.cluster, demand)
    else:
        tolerations = tuple(Toleration(key=key, operator="Exists") for key in tolerates)
    kind: JobKind = "training" if gpus else "cpu"
    return Job(
        id="asked", kind=kind, queue=queue, options=(option,), conditions=NodeConditions(tolerations=tolerations)
    )


def _taints_of_types(cluster: Cluster, demand: Demand) -> tuple[Toleration, ...]:
    """Return tolerations of the taints that all nodes of a type share, of types with such GPUs."""
    taints = dict.fromkeys(
        taint
        for machine in cluster.machines
        if not demand.gpus or any(gpu.model in (demand.gpu_models or (gpu.model,)) for gpu in machine.gpus)
        for taint in node_of_type(cluster, machine.id).taints
    )
    return tuple(Toleration(key=taint.key, value=taint.value, effect=taint.effect) for taint in taints)


def _gpus(text: str, whole: str) -> tuple[int, int]:
    """Return GPUs and the share of each."""
    number, _, part = text.partition(".")
    if not part.strip("0"):
        if int(number) > 1024:
            raise BadArgument(f"job {whole!r}: {number} GPUs a worker, at most 1,024; ask for several workers")
        return int(number), 1000
    milli = int(f"{part:0<3}"[:3])
    if int(number) or len(part.rstrip("0")) > 3 or not milli:
        raise BadArgument(f"job {whole!r}: expected whole GPUs, or a share of one GPU in thousandths, such as 0.25")
    return 1, milli
