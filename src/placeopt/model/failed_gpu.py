"""
A failed GPU, as a job that holds it: every rule, cost and bound then counts it as used, and no index changes.

The job has one worker with the whole GPU, no CPU or memory and no value, may start nowhere (``nodes_allowed`` is
empty), and is neither movable nor preemptible. Its id is reserved: ``failed-gpu:NODE:INDEX``.
"""

from __future__ import annotations

from hashlib import sha256

from placeopt.model.group import Demand
from placeopt.model.job import Job, Option
from placeopt.model.placement import Assignment, Placement, WorkerGpus

PREFIX = "failed-gpu:"
NODE_LENGTH = 200
"""Characters of a node's id from which on a hash stands in the id of the job, which has at most 253."""


def failed_gpu_id(node: str, gpu: int) -> str:
    """Return the id of the job that holds a failed GPU; ``gpu``: index on the node."""
    if len(node) > NODE_LENGTH:
        node = f"{node[:NODE_LENGTH]}~{sha256(node.encode()).hexdigest()[:16]}"
    return f"{PREFIX}{node}:{gpu}"


def is_failed_gpu(job_id: str) -> bool:
    """Return whether a job stands for a failed GPU."""
    return job_id.startswith(PREFIX)


def failed_gpu(node: str, gpu: int) -> tuple[Job, Placement]:
    """Return the job that holds a failed GPU, and where it runs; ``gpu``: index on the node."""
    job = Job(id=failed_gpu_id(node, gpu), options=(Option(demand=Demand(gpus=1), value=0),), nodes_allowed=())
    held = Assignment(node=node, gpus={str(gpu): 1000}, workers=(WorkerGpus(rank=0, gpus=(gpu,)),))
    return job, Placement(job=job.id, option=job.options[0].id, assignments=(held,))
