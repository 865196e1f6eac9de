"""How much longer jobs take than well placed because their GPUs are apart, whatever runs beside them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from operator import attrgetter

from placeopt.heuristics.run_times import path_excess
from placeopt.model import Cluster, Instance, Job, Option, Placement
from placeopt.model.base import Thousandths
from placeopt.problem import Placement as Indexed
from placeopt.problem import Problem, compile_problem
from placeopt.problem.running import running_placement

UNREAD = ("run_time_ms", "rate_milli", "latency_ms", "utility_thousandths", "value", "value_per_worker")
"""Fields of options that do not decide how fast a job runs."""
_read_fields = attrgetter(*(name for name in Option.model_fields if name not in UNREAD))


def divisible(option: Option) -> bool:
    """Return whether a part of a gang may hold its place; how its workers are divided is said of all of them."""
    return not (option.splits or option.spread)


class Spread:
    """
    A cluster and jobs, one of each demand and communication compiled.

    ``usual_thousandths``: Excess of jobs that state none, with GPUs as far apart as a machine allows. ``in_parts``:
    Whether placements may hold a part of a gang.
    """

    def __init__(
        self, cluster: Cluster, jobs: Iterable[Job], usual_thousandths: Thousandths, *, in_parts: bool = False
    ) -> None:
        self._cluster, self._usual, self._in_parts = cluster, usual_thousandths, in_parts
        self._jobs: dict[str, Job] = {}
        self._shape_of: dict[str, int] = {}
        self._shapes: dict[tuple[object, ...], int] = {}
        self._members: list[Job] = []
        for job in jobs:
            self.learn(job)

    def learn(self, job: Job) -> None:
        """Take in one more job."""
        if self._jobs.get(job.id) is job:
            return
        shape = self._shapes.setdefault((*map(_read_fields, job.options), job.communication), len(self._members))
        if shape == len(self._members):
            bare = {**dict.fromkeys(UNREAD), "value": 1, "value_per_worker": 0}
            part = {**bare, "workers_min": 1}
            options = tuple(
                option.model_copy(update=part if self._in_parts and divisible(option) else bare)
                for option in job.options
            )
            self._members.append(Job(id=f"shape-{shape}", options=options, communication=job.communication))
            self.__dict__.pop("problem", None)
        self._jobs[job.id], self._shape_of[job.id] = job, shape

    @cached_property
    def problem(self) -> Problem:
        """The cluster with a job of each kind."""
        return compile_problem(Instance(cluster=self._cluster, jobs=tuple(self._members)))

    @cached_property
    def node_numbers(self) -> dict[str, int]:
        """Id of a node -> its number."""
        return {node: number for number, node in enumerate(self.problem.node_ids)}

    def indexed(self, placement: Placement) -> Indexed:
        """Translate a placement of one of the jobs; raises ``BadInput`` where it does not fit the job."""
        return running_placement(placement, self.problem, self._shape_of[placement.job], self.node_numbers)

    def thousandths(self, job: str, where: Indexed) -> Thousandths:
        """Return the excess run time of a job in a placement."""
        stated = self._jobs[job].communication.spread_slowdown_thousandths
        return path_excess(self.problem, where, self._usual if stated is None else stated)
