"""The order of the stages of ``auto``: greedy first, relaxations where they help, none early with an open gap."""

import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pkgutil import resolve_name
from typing import Any

import pytest

from helpers.solved import solve_until_worth
from made_rounds import generate
from placeopt import solve, violations
from placeopt.model import Plan
from placeopt.solving import METHODS

ROUNDS = {
    "gangs": generate("gangs", jobs=25, nodes=12, gpus=8, seed=2),
    "fractions": generate("fractions", jobs=60, nodes=8, gpus=4, seed=0),
    "planted": generate("planted", jobs=80, nodes=6, gpus=8, seed=1),
    "resources": generate("resources", jobs=60, nodes=8, gpus=8, seed=1),
}
"""Communication alone; many shares of few kinds of jobs; each job of a kind of its own, without and with options."""


@pytest.fixture(autouse=True)
def _search_in_its_own_stage_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside others it finds what these are here to find."""
    monkeypatch.setattr("placeopt.solving.searching.is_compiled", lambda: False)


@cache
def solved(name: str) -> Plan:
    """Solve until what comes after greedy and its bound has found something; the clock ends nothing."""
    cancel = threading.Event()
    ends = ("fillings", "gpu-patterns", "filling-costs")
    return solve(
        ROUNDS[name],
        time_limit_s=60,
        isolation="thread",
        cancel=cancel,
        on_progress=lambda news: cancel.set() if news.stage in ends else None,
    )


@pytest.mark.parametrize("name", ROUNDS)
def test_greedy_makes_the_first_plan(name: str) -> None:
    """One that is worth what greedy finds by itself, whatever relaxations follow."""
    plan = solved(name)
    alone = solve(ROUNDS[name], method="stranding", time_limit_s=120)
    assert plan.stages[0].name == "greedy"
    assert plan.stages[0].objective >= alone.levels[0].objective
    assert violations(ROUNDS[name], plan) == []


@pytest.mark.parametrize(
    ("name", "reasons"),
    [
        ("gangs", {"swaf": "no waiting job has several shapes"}),
        ("fractions", {"drb": "communication costs nothing", "swaf": "no waiting job has several shapes"}),
    ],
)
def test_the_plan_names_every_heuristic_with_its_figures_or_why_it_did_not_run(
    name: str, reasons: dict[str, str]
) -> None:
    tried = [stage for stage in solved(name).stages if stage.name in ("greedy", "drb", "swaf")]
    assert [stage.name for stage in tried] == ["greedy", "drb", "swaf"]
    assert {stage.name: stage.detail for stage in tried if stage.outcome == "skipped"} == reasons
    for stage in tried:
        if stage.outcome != "skipped":
            assert (value := re.search(r"value (\d+)", stage.detail))
            assert 0 < int(value[1]) <= stage.objective


@pytest.mark.parametrize(("name", "suits"), [("fractions", True), ("planted", False), ("resources", False)])
def test_patterns_of_gpus_are_for_fractions_of_jobs_that_repeat(name: str, suits: bool) -> None:
    """Where each job is of a kind of its own, fillings of whole nodes are mixed."""
    names = {stage.name for stage in solved(name).stages}
    assert ("gpu-patterns" in names, "fillings" in names) == (suits, not suits)


def test_time_and_not_the_size_of_a_model_keeps_an_exact_stage_away() -> None:
    """A cost model of more than 20,000 columns is solved, from its first bound on with the news that this is so."""
    round_, cancel = generate("gangs", jobs=80, nodes=16, gpus=8, seed=11), threading.Event()
    plan = solve(
        round_,
        method="counts",
        time_limit_s=60,
        cancel=cancel,
        on_progress=lambda news: cancel.set() if news.stage == "counts-cost" else None,
    )
    (exact,) = (stage for stage in plan.stages if stage.name == "counts-cost")
    assert exact.outcome != "skipped"
    assert re.search(r"\b2\d,\d{3} columns", exact.detail)


def test_a_round_with_an_open_gap_ends_at_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where no exact model may be built."""
    monkeypatch.setattr("placeopt.solving.sizes.MOST_COLUMNS", 0)
    plan = solve(ROUNDS["gangs"], time_limit_s=2)
    assert (plan.status, plan.limit) == ("feasible", "time")


@pytest.mark.parametrize(("spec", "jobs", "nodes"), [("preempt", 300, 150), ("defrag", 280, 140), ("defrag", 120, 30)])
def test_room_is_made_for_as_many_jobs_as_by_greedy(spec: str, jobs: int, nodes: int) -> None:
    """Room is made in turns with other stages, however long that takes; the search does not move what runs."""
    round_ = generate(spec, jobs=jobs, nodes=nodes, gpus=8, seed=5)
    alone = solve(round_, method="stranding", time_limit_s=60)
    solve_until_worth(round_, alone.levels[0].objective)
    assert alone.moved or alone.preempted or alone.shrunk


class Part:
    """A relaxation that does nothing but note when it ran, and whether it had all of the time."""

    uses_solver = True

    def __init__(self, name: str, ran: list[tuple[int, str, bool]], *, resumes: bool = False, gains: bool = False):
        self.name, self.resumes = name, resumes
        self._ran, self._gains = ran, gains

    def skip_reason(self, context: Any) -> str | None:
        """None in the first slices; the last part goes on for one slice more."""
        return None if context.budget.slice < 3 + (self.name == "last") else "it is over"

    def run(self, context: Any) -> Iterator[Any]:
        """Report a gain, or none."""
        self._ran.append((context.budget.slice, self.name, context.budget.has_one_stage))
        yield resolve_name("placeopt.solving.stage:StageReport")("", "proved" if self._gains else "kept")


def test_relaxations_share_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of them had all of the time while others waited: that left the value of tight rounds 5 to 10 % open."""
    ran: list[tuple[int, str, bool]] = []
    parts = (Part("gains", ran, gains=True), Part("idle", ran), Part("goes on", ran, resumes=True), Part("last", ran))
    method = METHODS["fillings"]
    relaxations = replace(next(stage for stage in method.turns if stage.name == "value-relaxations"), parts=parts)
    monkeypatch.setitem(METHODS, "parts", replace(method, turns=(relaxations,)))
    solve(ROUNDS["resources"], method="parts", time_limit_s=100, deterministic=True, isolation="thread")
    order = [[name for at, name, _ in ran if at == number] for number in range(4)]
    assert order[0] == ["gains", "idle", "goes on", "last"]
    assert order[1] == ["goes on", "gains"]
    assert order[2] == ["goes on", "gains", "idle", "last"]
    assert [name for _, name, alone in ran if alone] == order[3] == ["last"]
