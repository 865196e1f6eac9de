"""The pipeline: stages in their order, reasons kept, outcomes compared, blocks looked at once."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from placeopt.build import instance, job
from placeopt.model import Policy, Weights
from placeopt.problem import Placement, compile_problem
from placeopt.solving import SolveParams
from placeopt.solving.budget import Budget
from placeopt.solving.context import SolveContext
from placeopt.solving.stage import Block, StageReport, StatedReason, run_stages

NO_COST = Policy(weights=Weights(communication=0, interference=0, fragmentation=0))


@dataclass
class Scripted:
    """A stage that does what a test says."""

    name: str
    act: Callable[[SolveContext], StageReport] | None = None
    reason: str | None = None
    uses_solver: bool = False

    def skip_reason(self, context: SolveContext) -> str | None:
        """Return the reason of the test."""
        return self.reason

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Yield the report of the test."""
        if self.act is not None:
            yield self.act(context)


def begun() -> SolveContext:
    """Two jobs of two GPUs, worth 1 and 2, on one node of four."""
    of = instance(1, [job(name, gpus=2, value=i + 1) for i, name in enumerate("ab")], policy=NO_COST)
    now = time.monotonic()
    return SolveContext(compile_problem(of), Budget(SolveParams(time_limit_s=60), started=now, deadline=now + 60))


def offers(*placements: Placement | None) -> Callable[[SolveContext], StageReport]:
    """Return what a stage does that offers one allocation."""
    return lambda context: StageReport(offer=context.incumbent.offer(placements))


A, B = Placement(0, (0,), (0, 1)), Placement(1, (0,), (2, 3))


def test_the_pipeline_compares() -> None:
    """a (1) improves, a again is kept, a and b on the same GPUs are refused, a and b (3) improve."""
    context = begun()
    crowded = Placement(1, (0,), (1, 2))
    stages = [offers(A, None), offers(A, None), offers(A, crowded), offers(A, B)]
    run_stages(context, tuple(Scripted(f"s{i}", act) for i, act in enumerate(stages)))
    assert [stage.outcome for stage in context.stages] == ["improved", "kept", "failed", "improved"]
    assert context.stages[2].detail.startswith("refused by the referee: gpu_share")
    assert [stage.objective for stage in context.stages] == [1, 1, 1, 3]


def test_reasons_are_kept_and_stated_only_where_a_stage_states_them() -> None:
    """The plan of a deterministic round stays as it is; a log can have all of them."""
    context = begun()
    run_stages(context, (Scripted("quiet", reason="not here"), Scripted("loud", reason=StatedReason("too early"))))
    assert context.skipped == [("quiet", "not here"), ("loud", "too early")]
    assert [(stage.name, stage.outcome, stage.detail) for stage in context.stages] == [("loud", "skipped", "too early")]


def test_a_stage_can_run_only_after_an_improvement() -> None:
    """Of the stage before it, whether that was skipped, failed to improve, or improved."""
    seen: list[bool] = []

    def look(context: SolveContext) -> StageReport:
        seen.append(context.handover.improved)
        return StageReport()

    skipped = Scripted("skipped", reason="no")
    better, same = Scripted("better", offers(A, None)), Scripted("same", offers(A, None))
    run_stages(begun(), (better, Scripted("1", look), same, Scripted("2", look), skipped, Scripted("3", look)))
    assert seen == [True, False, False]


def test_the_condition_of_a_block_is_looked_at_once() -> None:
    """What its own stages change does not end it."""
    context = begun()
    stages = (Scripted("first", offers(A, None)), Scripted("second", offers(A, B)))
    run_stages(context, (Block("while empty", stages, lambda context: "held" if context.incumbent.value else None),))
    run_stages(context, (Block("again", stages, lambda context: "held" if context.incumbent.value else None),))
    assert [stage.name for stage in context.stages] == ["first", "second"]
    assert context.skipped == [("again", "held")]


def test_nothing_runs_once_all_is_decided() -> None:
    """By look-ahead, which leaves no stage anything to find."""
    context = begun()

    def decide(context: SolveContext) -> StageReport:
        context.handover.is_decided = True
        return StageReport()

    run_stages(context, (Scripted("ahead", decide), Scripted("later", offers(A, B))))
    assert [stage.name for stage in context.stages] == ["ahead"]
