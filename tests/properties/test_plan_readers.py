"""No plan, however broken, makes a reader raise anything but ``BadInput``; referee and audit do not raise at all."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from placeopt import BadInput, Engine, Instance, Plan, audit, violations, whatif
from placeopt.check import Ledger, Violation
from placeopt.documents import dumps, loads
from placeopt.explain import explain
from placeopt.report.terminal import view_page
from placeopt.report.views import plan_view
from strategies import any_plans, odd_rounds, rounds

LIMITS = whatif.Limits(time_limit_s=0.5, method="stranding")


def from_file(plan: Plan) -> Plan | None:
    """Return the plan as a file gives it back; None where no file can hold it."""
    try:
        return loads(Plan, dumps(plan))
    except BadInput:
        return None


def refuses_or_reads(read: Callable[[], Any]) -> None:
    """Read, or be told why not."""
    with suppress(BadInput):
        read()


@settings(max_examples=settings().max_examples * 4)
@given(round_=st.one_of(rounds(), rounds(changes=True), odd_rounds()), data=st.data())
def test_no_reader_raises(engine: Engine, round_: Instance, data: st.DataObject) -> None:
    """One to four places of a plan are changed, past what the records let through; some are asked about jobs alone."""
    plan = data.draw(any_plans(round_))
    found = violations(round_, plan)
    assert all(isinstance(one, Violation) and str(one) for one in found)
    assert all(isinstance(text, str) and text for text in audit(round_, plan))
    if plan.asked is not None:
        ledger = Ledger(round_, plan.policy.values)
        ledger.violations(round_, plan)
        ledger.standing([one.node for held in round_.running for one in held.assignments], plan)
    job = data.draw(st.sampled_from(["stranger", *(job.id for job in round_.jobs)]))
    refuses_or_reads(lambda: whatif.after_plan(round_, plan))
    refuses_or_reads(lambda: explain(round_, plan, job, time_limit_s=0.5, isolation="thread"))
    drawn = from_file(plan)
    if drawn is not None:
        refuses_or_reads(lambda: view_page(plan_view(drawn, round_)))
        refuses_or_reads(lambda: view_page(plan_view(drawn, stages=True)))
    if data.draw(st.integers(0, 9)) == 0:
        refuses_or_reads(lambda: engine.solve(round_, previous=plan, method="stranding", time_limit_s=0.5))
        refuses_or_reads(lambda: whatif.review(round_, plan, limits=LIMITS))
