"""Failures of nodes, racks, switches or GPUs: which jobs lose their placement, and whether all find another."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from placeopt.arguments import checked
from placeopt.deadline import Deadline
from placeopt.edits import Answer
from placeopt.edits.levels import INSIDE, lost_hardware
from placeopt.errors import BadArgument
from placeopt.model import Instance
from placeopt.model.base import Id
from placeopt.readable import plural
from placeopt.view import Chart, Column, Figure, Table, View
from placeopt.view.records import Verdict
from placeopt.whatif.failure import Failure, failure_of
from placeopt.whatif.placements import only_running
from placeopt.whatif.round_solving import Limits
from placeopt.whatif.rows import Rows

TOGETHER = 8
"""Number of scenarios that share a solver process."""
MOST_SCENARIOS = 100_000
NAMED_IN_WORDS = 5
"""Number of failing domains named in a sentence; the others are counted."""
VERDICTS: dict[str, Verdict] = {"yes": "good", "no": "bad", "unknown": "open"}
SAID = {
    "yes": "all jobs that run there find another place",
    "no": "in some cases jobs find no other place",
    "unknown": "not proven in every case, disproved in none",
}
ORDERS = {
    "value": "jobs are given up as solve gives them up: the least value together, priorities do not count",
    "priority": "jobs are given up as solve gives them up: by priority, the lowest first",
}


class Failures(Answer):
    """
    Scenarios of ``k`` failing domains, and the answer that follows from them.

    The answer is about the domains in ``asked``; None: about all domains of the level.
    """

    level: Id
    k: int
    answer: Literal["yes", "no", "unknown"]
    """yes: all jobs are placed again in every scenario."""
    asked: tuple[Id, ...] | None = None
    """The domains of the question, fewer than the level has; None: all of them."""
    domains: int = 0
    """Number of domains of the level that could fail."""
    changes: bool = False
    """Whether jobs that still run may be moved, shrunk and preempted; otherwise they stay."""
    order: Literal["value", "priority"] = "value"
    """By what jobs are given up: what they are worth together, or strict priorities."""
    scenarios: tuple[Failure, ...]
    left: int
    """Scenarios that were not solved because of an interruption."""
    worst: Failure | None
    seconds: float

    @property
    def condition(self) -> str:
        """The failure in words: ``whichever rack fails``, ``if rack-3 fails``, ``if any 2 of 5 racks fail``."""
        if self.asked is None:
            return f"whichever {self.level} fails" if self.k == 1 else f"whichever {self.k} of level {self.level} fail"
        names = ", ".join(self.asked[:NAMED_IN_WORDS])
        names += f" and {len(self.asked) - NAMED_IN_WORDS:,} more" if len(self.asked) > NAMED_IN_WORDS else ""
        if len(self.asked) == self.k:
            return f"if {names} {'fails' if self.k == 1 else 'fail together'}"
        return f"if any {'one' if self.k == 1 else self.k} of {names} {'fails' if self.k == 1 else 'fail'}"

    def view(self) -> View:
        """Return the scenarios, worst first, and the jobs that the worst one loses."""
        asked = f"N+{self.k} by {self.level}" if self.asked is None else self.condition
        ranked = sorted(self.scenarios, key=lambda one: (-one.lost, -one.lost_gpu_milli, -one.displaced, one.domains))
        of = f"; {self.condition}" if self.asked is None else f"; {len(self.asked):,} of {self.domains:,} {self.level}s"
        stay = "jobs that still run may be changed as the policy allows" if self.changes else "jobs that still run stay"
        lossy = sum(one.lost > 0 for one in ranked)
        left = f", {self.left:,} not examined" if self.left else ""
        notes = [f"{plural(len(ranked), 'scenario')}, {lossy:,} with losses{left}{of}"]
        notes += [f"{stay}; waiting jobs are ignored", ORDERS[self.order]]
        if any(one.unread and one.survives is None for one in ranked):
            notes.append("undecided, since some jobs or nodes were not read as they are")
        rows = [
            (
                ", ".join(one.domains),
                one.nodes,
                one.gpus,
                one.displaced,
                one.displaced_gpu_milli,
                one.lost,
                one.lost_at_least,
                one.lost_gpu_milli,
            )
            for one in ranked
        ]
        gone = () if self.worst is None else tuple(enumerate(self.worst.lost_jobs, 1))
        where = "" if self.worst is None else f"in the worst scenario, {', '.join(self.worst.domains)}"
        return View(
            title=f"{asked}: {self.answer}, {SAID[self.answer]}",
            verdict=VERDICTS[self.answer],
            proof=self.proof("yes: a checked plan for every scenario; no: a bound in one of them"),
            figures=(
                Figure(name="answer", value=self.answer),
                Figure(name="scenarios with losses", value=lossy, better="less"),
                Figure(name="most jobs lost", value=max((one.lost for one in ranked), default=0), better="less"),
                Figure(name="not examined", value=self.left, better="less"),
                Figure(name="given up by", value=self.order),
                Figure(name="seconds", value=self.seconds, unit="s"),
            ),
            notes=tuple(notes),
            tables=(
                Table(name="Worst first", columns=COLUMNS, rows=tuple(rows), shown=10),
                Table(name="Given up", columns=(Column(name="order"), Column(name="job")), rows=gone, note=where),
            ),
            chart=Chart(kind="bars", table="Worst first", x="fails", y=("displaced", "lost")),
        )


COLUMNS = (
    Column(name="fails"),
    Column(name="nodes"),
    Column(name="of GPUs"),
    Column(name="displaced"),
    Column(name="GPUs", unit="gpu_milli"),
    Column(name="lost", better="less"),
    Column(name="at least"),
    Column(name="lost GPUs", unit="gpu_milli", better="less"),
)


@checked
def fail(
    instance: Instance,
    level: str,
    *,
    k: int = 1,
    domains: Sequence[str] | None = None,
    changes: bool = False,
    limits: Limits | None = None,
    jobs: int | None = 1,
    rows: Path | None = None,
    cancel: threading.Event | None = None,
    on_news: Callable[[int, int], None] | None = None,
) -> Failures:
    """
    Fail domains of a level, and place the jobs that ran there again; waiting jobs are ignored.

    Where not all can be placed, they are given up as `placeopt.solve` gives jobs up: those of the least value together,
    or where priorities are strict, those of the lowest.

    Parameters
    ----------
    instance
        The cluster and its running jobs.
    level
        ``node``, or a level of the cluster's network: all nodes under a domain fail together. ``gpu``, ``switch``,
        ``numa`` or ``socket``: the GPUs under such a part of a machine fail together, by ``node/part``; the rest of the
        node goes on.
    k
        Number of domains that fail at once: 1 for N+1, 2 for N+2.
    domains
        Those that may fail; None: all of the level that have nodes.
    changes
        Whether jobs that still run may be moved, shrunk and preempted as the policy allows; otherwise they stay.
    limits
        ``time_limit_s`` applies to all scenarios together; those that are not reached are counted (``left``).
    jobs
        Scenarios side by side, in processes; None: as ``joblib.parallel_config`` says.
    rows
        File to which the answer of every scenario is appended, and from which those of an earlier call are read.
    cancel
        Set it from another thread to stop with the scenarios that are done.
    on_news
        Called with the number of finished scenarios and of all.

    Returns
    -------
    Failures
        ``answer`` yes: in every scenario a checked plan places all jobs. no: in one of them it is proven that a job
        loses its placement, whatever was not read (``placeopt.edits.Unread``). With ``domains`` the answer is
        about those alone.

    Raises
    ------
    BadInput
        If there is no such level or domain, there are more than 100,000 scenarios, or ``rows`` cannot be written or is
        no such file.
    """
    limits = limits or Limits(60.0)
    deadline = Deadline(limits.time_limit_s, cancel)
    under = lost_hardware(instance, level)
    if not under and level in INSIDE:
        raise BadArgument(f"level: no {level} with GPUs in any machine type of the cluster")
    chosen = list(dict.fromkeys(under if domains is None else domains))
    for name in chosen:
        if name not in under:
            there = ", ".join(list(under)[:20])
            raise BadArgument(f"domains: no {level} {name!r} with nodes or GPUs in the cluster; there are: {there}")
    if not 1 <= k <= len(chosen):
        raise BadArgument(f"k: {k}, expected 1 to {len(chosen)}, the number of domains that may fail")
    if math.comb(len(chosen), k) > MOST_SCENARIOS:
        raise BadArgument(
            f"k: {k} of {len(chosen)} are {math.comb(len(chosen), k):,} scenarios, at most {MOST_SCENARIOS:,}"
        )
    scenarios = list(itertools.combinations(chosen, k))
    base = only_running(instance)
    task = partial(failure_of, base=base, level=level, changes=changes, limits=limits)
    with Rows(rows, Failure, ("fail", base.digest, limits, level, changes), jobs, deadline) as kept:
        together = TOGETHER if rows is None else 1  # an answer is appended as soon as it is found
        found = kept.answers(task, {" ".join(scenario): scenario for scenario in scenarios}, on_news, together=together)
    failures = list(found.values())
    return _summary(
        failures,
        len(scenarios) - len(failures),
        level=level,
        k=k,
        asked=tuple(chosen) if len(chosen) < len(under) else None,
        domains=len(under),
        changes=changes,
        order="priority" if base.policy.priorities == "strict" else "value",
        seconds=deadline.spent_s,
    )


def _summary(failures: list[Failure], left: int, **fields: object) -> Failures:
    """Return the answer that follows from the scenarios; ``left`` were not solved."""
    worst = max(failures, key=lambda failure: (failure.lost, failure.lost_gpu_milli, failure.displaced), default=None)
    survives = [failure.survives for failure in failures]
    answer = "no" if False in survives else "yes" if not left and all(survives) else "unknown"
    scenarios = {"scenarios": tuple(failures), "left": left, "worst": worst}
    open_ = (failure.unread for failure in failures if failure.survives is None) if answer == "unknown" else ()
    unread = tuple(dict.fromkeys(name for names in open_ for name in names))
    of = {"of": "reading" if unread else "cluster", "unread": unread}
    return Failures.model_validate({"answer": answer, **scenarios, **of, **fields})
