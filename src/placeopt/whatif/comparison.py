"""A round beside variants of it: what each is worth, and what is gained, as an interval of plans and bounds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Literal, NamedTuple

from placeopt.arguments import checked
from placeopt.deadline import Deadline
from placeopt.edits import Answer, Step, apply, displaced, edit_instance, true_of, unread_in
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance
from placeopt.model.base import LongName, Name, Record
from placeopt.parallel import width_of
from placeopt.readable import plural
from placeopt.view import Cell, Chart, Column, Figure, Table, View
from placeopt.whatif.round_solving import LEAST_S, NO_COSTS, Limits, solve_round
from placeopt.whatif.rows import Rows
from placeopt.whatif.variants import Variants

AS_IT_IS = ""
"""The round without steps, among the parts of the question."""
COLUMNS = (
    Column(name="value", better="more"),
    Column(name="bound"),
    Column(name="gap", unit="fraction", better="less"),
    Column(name="placed", better="more"),
    Column(name="waiting", better="less"),
    Column(name="displaced", better="less"),
    Column(name="GPUs", unit="gpu_milli", better="more"),
    Column(name="of", unit="gpu_milli"),
    Column(name="price an hour", better="less"),
    Column(name="of a GPU hour", better="less"),
)
GAIN = (Column(name="gain", unit="change", better="more"), Column(name="at most", unit="change"), Column(name="is"))


class RoundOutcome(Record):
    """Figures of a round; no plan of it exceeds ``value_bound``, which is None where nothing is proven."""

    value: int
    value_bound: int | None
    jobs_placed: int
    jobs_waiting: int
    gpu_milli_placed: int
    gpu_milli_capacity: int
    nodes: int
    price_milli_per_hour: int
    displaced: int = 0
    """Running jobs that the steps displaced; they may be placed again."""

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells of ``COLUMNS``."""
        gap = None if self.value_bound is None else abs(self.value_bound - self.value) / max(1, abs(self.value))
        per_gpu = self.price_milli_per_hour / self.gpu_milli_placed if self.gpu_milli_placed else None
        jobs = (self.jobs_placed, self.jobs_waiting, self.displaced)
        held = (self.gpu_milli_placed, self.gpu_milli_capacity)
        return (self.value, self.value_bound, gap, *jobs, *held, self.price_milli_per_hour / 1000, per_gpu)


class Compared(Record):
    """A variant; the gain of its best plan over the best plan as it is lies in ``gain_low`` to ``gain_high``."""

    name: LongName
    outcome: RoundOutcome
    gain_low: int | None = None
    gain_high: int | None = None
    """Either is None where a bound is missing."""

    @property
    def answer(self) -> Literal["better", "worse", "equal", "unknown"]:
        """Whether its best plan is better than that as it is; unknown where the bounds do not decide."""
        if self.gain_low is not None and self.gain_low > 0:
            return "better"
        if self.gain_high is not None and self.gain_high < 0:
            return "worse"
        return "equal" if self.gain_low == self.gain_high == 0 else "unknown"


class Comparison(Answer):
    """A round beside variants of it."""

    varied: Name
    before: RoundOutcome | None
    """As it is; None where the time ended before it was solved."""
    variants: tuple[Compared, ...]
    left: int
    """Variants that were not solved."""
    seconds: float

    @property
    def best(self) -> Compared | None:
        """The variant of the highest value."""
        return max(self.variants, key=lambda one: one.outcome.value, default=None)

    def view(self) -> View:
        """Return a row for each variant, with the interval of its gain."""
        rows = [
            (
                int(one.name) if one.name.isdecimal() else one.name,
                *one.outcome.cells,
                one.gain_low,
                one.gain_high,
                one.answer,
            )
            for one in self.variants
        ]
        table = Table(name="Variants", columns=(Column(name=self.varied), *COLUMNS, *GAIN), rows=tuple(rows))
        before, best = self.before, self.best
        now = () if before is None else (("as it is", *before.cells),)
        answers = {one.answer for one in self.variants}
        notes = ("values of the jobs that are placed, without costs; gains over the round as it is",)
        return View(
            title="no variant was solved" if best is None else f"{self.varied}: {_words(best)}",
            verdict="" if len(self.variants) != 1 else VERDICTS[answers.pop()],
            proof=self.proof("no plan has a value above the bound; the gain of the best plans lies between the two"),
            figures=(
                Figure(name="value as it is", value=None if before is None else before.value),
                Figure(name="waiting as it is", value=None if before is None else before.jobs_waiting),
                Figure(name="not examined", value=self.left, better="less"),
                Figure(name="seconds", value=self.seconds, unit="s"),
            ),
            notes=notes,
            tables=(table, Table(name="Now", columns=(Column(name="round"), *COLUMNS), rows=now)),
            chart=Chart(kind="lines", table=table.name, x=self.varied, y=("value", "bound")) if len(rows) > 1 else None,
        )


VERDICTS: dict[str, Literal["", "good", "bad", "open"]] = {
    "better": "good",
    "worse": "bad",
    "unknown": "open",
    "equal": "",
}


def _words(best: Compared) -> str:
    value = f"a value of {best.outcome.value:,}, {plural(best.outcome.jobs_waiting, 'job')} waiting"
    return (
        f"most with {best.name}: {value}, {best.answer} than now"
        if best.answer != "equal"
        else f"{best.name}: {value}, as now"
    )


class _Part(NamedTuple):
    """A round to solve: its steps, and how many rounds come after it."""

    steps: Sequence[Step]
    after: int


@checked
def compare(
    instance: Instance,
    variants: Variants,
    *,
    limits: Limits | None = None,
    jobs: int | None = 1,
    rows: Path | None = None,
    cancel: threading.Event | None = None,
    on_news: Callable[[int, int], None] | None = None,
) -> Comparison:
    """
    Solve a round and its variants, and compare them.

    Parameters
    ----------
    instance
        The round.
    variants
        As `placeopt.whatif.parse_variants` reads them.
    limits
        ``time_limit_s`` applies to all rounds together, each of which may take an equal part of what is left.
    jobs, rows, cancel, on_news
        As of `placeopt.whatif.fail`, for variants in place of scenarios.

    Returns
    -------
    Comparison
        In the order of the variants.

    Raises
    ------
    BadInput
        If the steps of a variant cannot be carried out, or ``rows`` cannot be written or is no such file.
    """
    limits = limits or Limits()
    deadline = Deadline(limits.time_limit_s, cancel)
    base = edit_instance(instance, policy=instance.policy.model_copy(update={"weights": NO_COSTS}), reading=())
    for variant in variants.settings:
        apply(base, variant.steps)  # what cannot be carried out is refused before any round is solved
    count = len(variants.settings)
    parts = {AS_IT_IS: _Part((), count)}
    parts |= {one.name: _Part(one.steps, count - 1 - i) for i, one in enumerate(variants.settings)}
    steps = [f"{one.name} {one.steps}" for one in variants.settings]
    task = partial(_outcome, base=base, limits=limits, width=width_of(jobs))
    with Rows(rows, RoundOutcome, ("compare", base.digest, limits, *steps), jobs, deadline) as kept:
        outcomes = kept.answers(task, parts, on_news)
    before = outcomes.pop(AS_IT_IS, None)
    grows = {one.name: one.grows for one in variants.settings}
    answer = Comparison(
        varied=variants.varied,
        before=before,
        variants=tuple(_compared(name, before, outcome, grows[name]) for name, outcome in outcomes.items()),
        left=count - len(outcomes),
        seconds=deadline.spent_s,
    )

    def again() -> Comparison:
        left = replace(limits, time_limit_s=max(LEAST_S, deadline.left_s))
        return compare(unread.freest(instance), variants, limits=left, jobs=jobs, cancel=cancel)

    unread = unread_in(instance)
    key = attrgetter("name", "outcome.value", "outcome.value_bound")
    return true_of(answer, unread, again, lambda one: [*map(key, one.variants)])


def _compared(name: str, before: RoundOutcome | None, after: RoundOutcome, grows: bool) -> Compared:
    """Return a variant with the least and the greatest possible gain of its best plan over the best one before."""
    low = None if before is None or before.value_bound is None else after.value - before.value_bound
    high = None if before is None or after.value_bound is None else after.value_bound - before.value
    if grows and low is not None:
        low = max(low, 0)  # the placed jobs still fit
    return Compared(name=name, outcome=after, gain_low=low, gain_high=high)


def _outcome(
    engine: Engine, part: _Part, deadline: Deadline, *, base: Instance, limits: Limits, width: int
) -> RoundOutcome:
    """Solve a round within its part of the time, one part of which stays in reserve."""
    changed = apply(base, part.steps)
    share = deadline.left_s * width / (part.after + 1 + width)
    plan = solve_round(engine, changed, replace(limits, time_limit_s=share), deadline)
    value = plan.levels[0]
    return RoundOutcome(
        value=value.objective,
        value_bound=value.bound,
        jobs_placed=len(plan.placements),
        jobs_waiting=len(plan.unplaced),
        gpu_milli_placed=plan.facts["gpu_milli_placed"],
        gpu_milli_capacity=plan.facts["gpu_milli_capacity"],
        nodes=len(changed.cluster.nodes),
        price_milli_per_hour=sum(map(changed.cluster.price_of, changed.cluster.nodes)),
        displaced=len(displaced(base, changed)),
    )
