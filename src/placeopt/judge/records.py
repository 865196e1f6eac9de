"""What `placeopt.judge` answers, as records: what Python gets, and what becomes JSON and text."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from placeopt.edits import Answer, AnyStep
from placeopt.model import Placement
from placeopt.model.base import Id, Name, Record
from placeopt.model.plan import Moved, Preempted, Shrunk
from placeopt.view import View

Rules = Literal["fixed", "changes"]
"""``fixed``: all that runs stays as it is. ``changes``: it is moved, shrunk and stopped as policy and jobs allow."""


class Band(Record):
    """
    Jobs placed of the priorities ``highest`` to ``lowest``: of ``jobs`` that may be placed or not, by each plan.

    One priority each, but for the lowest ones of a round with more priorities than values can tell apart: they count
    alike, in one band.
    """

    highest: int
    lowest: int
    jobs: int
    given: int | None
    """By the plan that is judged; null where it is none of these rules."""
    best: int
    """By the best plan found."""
    bound: int
    """
    By an ideal plan that no plan exceeds, band after band: what no plan reaches in the first band in which this is more
    than ``best``. Below that band, it says nothing.
    """


class Regret(Answer):
    """
    How far a plan is from the best one under some rules: in jobs by priority, the highest first, then in GPUs.

    Counted are the jobs that wait before the plan and the running jobs that the rules let be changed. What changes
    cost by the policy does not count here, nor do its other costs.
    """

    rules: Rules
    bands: tuple[Band, ...]
    gpu_milli: int | None
    """Thousandths of GPUs that the counted jobs request, by the plan that is judged; null as in bands."""
    best_gpu_milli: int
    bound_gpu_milli: int
    """As the bound of a band: it says something where the bands all have their bounds."""
    stopped: int
    moved: int
    shrunk: int
    """Running jobs that the best plan changes."""
    proven: bool
    """Whether no plan is better than the best one."""

    @property
    def jobs(self) -> int | None:
        """Jobs that the best plan places beyond the judged one, of all priorities together; None without such a one."""
        if self.gpu_milli is None:
            return None
        return sum(band.best - (band.given or 0) for band in self.bands)

    @property
    def is_beaten(self) -> bool:
        """Whether a better plan was found than the judged one, where that is one of these rules."""
        if self.gpu_milli is None:
            return False
        given = [band.given for band in self.bands], self.gpu_milli
        return given != ([band.best for band in self.bands], self.best_gpu_milli)


class WaitingJobs(Record):
    """
    Waiting jobs that ask for the same, beside the judged plan: what it takes to start any one of them.

    ``fits``: it fits as it is. ``changes``: it fits after some changes of running jobs that the rules allow. ``never``:
    it fits after none of these. ``unknown``: the time was over before that was known.
    """

    jobs: tuple[Id, ...]
    verdict: Literal["fits", "changes", "never", "unknown"]
    place: Placement | None = None
    """Where the first of them fits, after the changes; the referee has accepted it."""
    moved: tuple[Moved, ...] = ()
    shrunk: tuple[Shrunk, ...] = ()
    stopped: tuple[Preempted, ...] = ()
    size: int | None = None
    """Moves, stops, and workers that shrunk jobs lose, together."""
    least: int | None = None
    """What no set of changes that lets it start goes below."""
    conflict: tuple[Name, ...] = ()
    """Of ``never``: rules of the job that cannot hold together beside the running jobs that must stay."""
    detail: str = ""
    proven: bool
    """That the verdict is true and, of ``changes``, that no smaller set is enough."""


class Stranded(Record):
    """Idle GPUs on which no waiting job can start beside the judged plan, for one cause."""

    cause: Name
    """
    Rules that cannot hold together for one worker there, joined by ``+``; where a worker fits, for its whole job:
    ``GPU count + gang`` are GPUs that are scattered over nodes. Of the causes of several jobs, that of most jobs.
    """
    gpus: int
    nodes: int
    jobs: int
    """Waiting jobs that the cause keeps off these GPUs."""


class Gain(Record):
    """What one change of the cluster brings: the best plan with what runs fixed, after less before."""

    change: str
    steps: tuple[AnyStep, ...]
    """The change as a patch has it."""
    jobs: int
    gpu_milli: int
    proven: bool
    """Whether both plans are proven best."""


class Judgement(Answer):
    """
    A plan judged: its regret, the jobs that wait, the GPUs stranded, and what changes of the cluster would bring.

    What was not answered in time is named in ``open``, and ``proven`` is false.
    """

    document: Literal["judgement"] = "judgement"
    """What the file is."""
    violations: tuple[str, ...] = ()
    """Rules that the plan breaks; of a plan that breaks some nothing else is said."""
    regrets: tuple[Regret, ...] = ()
    waiting: tuple[WaitingJobs, ...] = ()
    idle_gpus: int = 0
    """GPUs without a job, by the judged plan."""
    stranded: tuple[Stranded, ...] = ()
    gains: tuple[Gain, ...] = ()
    open: dict[str, str] = Field(default_factory=dict)
    """Part of the answer -> why it is not whole."""
    proven: bool = False
    """Whether every statement is proven, and none is missing."""
    seconds: float

    def view(self) -> View:
        """Return what people see of it: regret by priority, kinds of waiting jobs, stranded GPUs, gains."""
        from placeopt.judge.view import judgement_view

        return judgement_view(self)
