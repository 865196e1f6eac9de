"""Which kinds of jobs that did not fit are worth another try after a placement has ended."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from placeopt.model import Job, Option, Placement, Policy
from placeopt.model.base import Milliseconds
from placeopt.scheduling.free_resources import FreeResources
from placeopt.scheduling.occupancy import Follower, Held


class RetryFilter(Follower[Held]):
    """
    Kinds of jobs that did not fit, until a node of an ended placement can take one of their workers.

    Reads free amounts only, so a retry may fail, but no kind that fits is held back. That holds where only free amounts
    decide: where jobs wait for a better place, queues have limits, or jobs run with fewer workers or are disturbed
    (``by_amounts`` is false), every end reopens all kinds. The caller keeps ``resources`` up to date.
    """

    def __init__(self, resources: FreeResources, policy: Policy, *, by_amounts: bool = True) -> None:
        self._resources = resources
        self._by_amounts = by_amounts and policy.postpone.rule == "none" and not policy.queues
        self.closed: set[Hashable] = set()
        """Kinds that are not worth a try."""
        self._failures_last = policy.postpone.rule == "none"
        self._freed: list[str] = []
        """Nodes, once for each time that a placement freed something there."""
        self._failed_at: dict[Hashable, int] = {}
        """Kinds that did not fit, and the length of ``_freed`` then: elsewhere free amounts have only shrunk."""
        self._jobs: dict[Hashable, Job] = {}
        """A job of each kind."""

    def learn(self, kind: Hashable, job: Job) -> None:
        """Note what jobs of a kind request."""
        self._jobs.setdefault(kind, job)

    def ended(self, held: Held, now_ms: Milliseconds) -> None:
        """Note that a job has left its nodes, for good or within a round."""
        del now_ms
        self._freed.extend([assignment.node for assignment in held.placement.assignments])

    def cannot_fit(self, kind: Hashable) -> bool:
        """Return whether a kind did not fit, nor fits on the nodes where something was freed since."""
        since = self._failed_at.get(kind)
        if since is None or since == len(self._freed):
            return since is not None
        if not self._by_amounts or self._may_fit(kind, tuple(dict.fromkeys(self._freed[since:]))):
            return False
        self._failed_at[kind] = len(self._freed)  # other jobs took what was freed
        return True

    def failed(self, kind: Hashable) -> None:
        """Note that a kind did not fit into what is free, evictions aside."""
        if self._failures_last:
            self._failed_at[kind] = len(self._freed)

    def reopen(self, placement: Placement) -> None:
        """Reopen the kinds that may fit on the nodes of a placement that has ended."""
        if self.closed:
            self._open(tuple(assignment.node for assignment in placement.assignments))

    def open_where(self, wanted: Callable[[Hashable], bool]) -> None:
        """Reopen some kinds."""
        self.closed = {kind for kind in self.closed if not wanted(kind)}

    def open_all(self) -> None:
        """Reopen all kinds."""
        self.closed.clear()

    def forget(self) -> None:
        """Reopen all kinds, and forget where they did not fit: the nodes are others now."""
        self.closed.clear()
        self._failed_at.clear()
        self._freed.clear()

    def _open(self, nodes: tuple[str, ...]) -> None:
        self.closed = {kind for kind in self.closed if self._by_amounts and not self._may_fit(kind, nodes)}

    def _may_fit(self, kind: Hashable, nodes: tuple[str, ...]) -> bool:
        """Return whether a kind that did not fit may fit now that ``nodes`` have more free."""
        job = self._jobs[kind]
        return any(self._option_may_fit(job, option, nodes) for option in job.options)

    def _option_may_fit(self, job: Job, option: Option, nodes: tuple[str, ...]) -> bool:
        """Return whether a worker fits on one of the nodes, and the others fit anywhere."""
        free, fewest = self._resources, option.fewest
        return any(free.workers_on(node, option, 1) for node in nodes) and (
            fewest == 1 or free.fits(job, option, fewest)
        )
