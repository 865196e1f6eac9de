"""Relations between jobs: near others, or apart from them, by a selector over the labels of jobs."""

from typing import Annotated, Literal

from pydantic import Field

from placeopt.model.base import Id, Record
from placeopt.model.conditions import LabelExpression

MAX_RELATION_WEIGHT = 1000


class Relation(Record):
    """
    Where the workers of a job may be, beside the workers of other jobs and beside each other.

    It says something of workers that start: of the job that has it and, of ``apart``, also of the jobs that it selects.
    A running job that stays where it is, whole or shrunk, breaks no relation by itself. What runs and stays, starts or
    moves is judged on the resulting plan.

    ``apart``: No worker of the job is in one domain with another worker of a selected job, unless both stay. It holds
    both ways: a running job's relation keeps off selected jobs that start. A job that it selects itself has at most one
    worker in a domain. A worker in no domain of the level is apart from all.

    ``near``: Each worker of the job that starts is in a domain of the level, and this domain is *open*: it has a worker
    of a selected job that stays, or that does not have this very relation. So jobs that want each other may start
    together. Beside these, one domain is opened by jobs that have the relation and that it selects, if no selected job
    that runs when the round begins, and stays or moves, has a worker in another domain. (Kubernetes: the first pod of
    those with affinity to each other.)

    One with ``weight`` is soft. It costs its weight by ``weights.relations`` for each worker of the job, running ones
    too, with another worker of a selected job in its domain (``apart``), or without one (``near``).
    """

    kind: Literal["near", "apart"]
    """Which of the two."""
    level: Id
    """``node``, or an effective label of nodes, such as a domain level, whose values are then the domains."""
    selector: Annotated[tuple[LabelExpression, ...], Field(max_length=100)] = ()
    """It selects the jobs whose labels meet all of these; empty: every job."""
    weight: Annotated[int, Field(ge=1, le=MAX_RELATION_WEIGHT)] | None = None
    """What a broken one costs a worker; null: it must hold."""

    @property
    def text(self) -> str:
        """The relation in words."""
        jobs = " and ".join(expression.text for expression in self.selector) or "any labels"
        return f"{'near to' if self.kind == 'near' else 'apart from'} jobs with {jobs} by {self.level}"
