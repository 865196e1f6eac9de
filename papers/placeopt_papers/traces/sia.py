"""The sample workloads of Sia's simulator as scenarios: gangs of single GPUs on nodes of four."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from placeopt import BadInput
from placeopt.generators import equal_nodes
from placeopt.model import Communication, Demand, Job, Option, Slowdown
from placeopt.simulation import Arrival, Physics, Scenario
from placeopt.topology import pcie_box

VALUE_PER_GPU = 1000
RESTART_MS = 30_000
"""Time that a job loses when it is stopped or moved, as Pollux's simulator (OSDI'21) charges for a reallocation."""
DIVIDED = 1000
"""
Excess run time in thousandths beside a job on the same GPU: nothing was measured for these applications, so it is
divided between them in time.
"""
NODE_GPUS = 4


@dataclass(frozen=True)
class Application:
    """
    An application of the workloads: our table, since the files do not state it.

    ``samples`` of its data set, and how often (``epochs``) it goes through them. ``step``: seconds of a step on T4
    (aws), by placement: coefficients of ``placeopt.systems.genie.StepModel``, fitted to
    ``sia-simulator/traces/<application>/placements-aws.csv`` of siasosp23/artifacts, 10 to 16 % off on average.
    """

    samples: int
    epochs: int
    step: tuple[float, float, float, float, float, float]

    def seconds(self, gpus: int, batch: int, *, packed: bool) -> float:
        """Return what a job takes, its GPUs on as few nodes as can be or each on its own."""
        c0, c1, i0, i1, a0, a1 = self.step
        step = c0 + c1 * batch / gpus
        if gpus > 1:
            inside = packed and gpus <= NODE_GPUS
            step += (i0 + i1 * (gpus - 2)) if inside else (a0 + a1 * (gpus - 2))
        return step * self.samples * self.epochs / batch


APPLICATIONS = {
    "cifar10": Application(50_000, 100, (0.02252, 0.00062, 0.0077, 0.00198, 0.05323, 0.00297)),
    "bert": Application(88_000, 2, (0.3182, 0.04401, 0.01571, 0.02222, 0.72868, 0.03287)),
    "deepspeech2": Application(15_500, 80, (0.23169, 0.02331, 0.05818, 0.0535, 0.22112, 0.02564)),
    "yolov3": Application(16_551, 50, (0.19674, 0.02361, 0.03625, 0.07461, 0.48338, 0.0383)),
    "imagenet": Application(1_281_167, 90, (0.09646, 0.00367, 0.00217, 0.00595, 0.09921, 0.00853)),
}
"""
CIFAR-10 for 100 epochs, SQuAD for 2, CMU-Arctic for 80, PASCAL VOC for 50, ImageNet for 90: some 1, 3, 12, 11 and 150
GPU hours, about what Pollux (OSDI'21, table 1) calls small, medium, medium, large and extra large.
"""


@dataclass(frozen=True)
class SiaJob:
    """A job: its arrival, the application that it trains, its number of GPUs and its global batch size."""

    name: str
    arrival_ms: int
    application: str
    gpus: int
    batch: int


def read_sia(path: Path) -> list[SiaJob]:
    """Return a workload of siasosp23/artifacts in the order of arrival; times in the file are seconds."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    try:
        jobs = [
            SiaJob(
                name=row["name"],
                arrival_ms=round(1000 * float(row["time"])),
                application=row["application"],
                gpus=int(row["num_replicas"]),
                batch=int(row["batch_size"]),
            )
            for row in rows
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(f"{path}: {error}; expected name, time, application, num_replicas, batch_size") from None
    return sorted(jobs, key=lambda job: (job.arrival_ms, job.name))


def sia_scenario(jobs: Sequence[SiaJob], *, name: str, nodes: int = 16) -> Scenario:
    """
    Return a scenario of a workload on nodes of 4 GPUs, every job with the GPUs and the batch that it states.

    Sia's simulator has 16 nodes.
    """
    unknown = sorted({job.application for job in jobs} - APPLICATIONS.keys())
    if unknown or not jobs:
        known = ", ".join(APPLICATIONS)
        raise BadInput(f"jobs: {f'no application {unknown[0]!r}; known: {known}' if unknown else 'none'}")
    if max(job.gpus for job in jobs) > nodes * NODE_GPUS:
        raise BadInput(f"nodes: {nodes} x {NODE_GPUS} GPUs; a job asks for {max(job.gpus for job in jobs)}")
    machine = pcie_box(NODE_GPUS, gpu_model="T4")
    arrivals = []
    for job in jobs:
        application = APPLICATIONS[job.application]
        packed = application.seconds(job.gpus, job.batch, packed=True)
        apart = application.seconds(job.gpus, job.batch, packed=False)
        arrivals.append(
            Arrival(
                job=Job(
                    id=job.name,
                    user=job.application,
                    arrival_ms=job.arrival_ms,
                    options=(
                        Option(
                            workers=job.gpus,
                            demand=Demand(gpus=1),
                            value=VALUE_PER_GPU * job.gpus,
                            run_time_ms=max(1, round(1000 * packed)),
                        ),
                    ),
                    communication=Communication(
                        weight=1 if job.gpus > 1 else 0,
                        spread_slowdown_thousandths=max(0, round(1000 * apart / packed) - 1000)
                        if job.gpus > 1
                        else None,
                    ),
                    profile=job.application,
                )
            )
        )
    return Scenario(
        name=name,
        note=(
            "A sample workload of Sia's simulator (siasosp23/artifacts) with the GPUs and batches that it states, "
            "rigid. Work by application, a table of ours: epochs x samples, at steps fitted to that repository's "
            "profiles of T4 (placeopt_papers.traces.sia). Jobs do not disturb each other but on a shared GPU, "
            "which is divided between them in time; a restart takes 30 s."
        ),
        cluster=equal_nodes(machine, nodes),
        physics=Physics(rule="rate", interference="pairwise", restart_ms=RESTART_MS),
        slowdowns=tuple(
            Slowdown(profile=profile, beside=other, gpu_thousandths=DIVIDED)
            for profile in APPLICATIONS
            for other in APPLICATIONS
        ),
        arrivals=tuple(arrivals),
    )
