"""Jobs that arrive over time under scheduling policies, by ``placeopt simulate``: what waits, and what a job costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from command import placeopt_json
from placeopt.view import View
from rounds import INSTANCES
from spec import BenchSpec, Row

PEERS = ("fcfs", "best-fit", "srtf-preemptive")


class Trace(NamedTuple):
    """A stored scenario, and the policies that play it."""

    scenario: str
    policies: tuple[str, ...]


def play(asked: Trace) -> Iterator[Row]:
    """Yield a row for each policy."""
    path = INSTANCES / "papers" / asked.scenario
    for policy in asked.policies:
        view = View.model_validate(placeopt_json("simulate", str(path), "--policy", policy))
        means, more = row_of(view, "Policies"), row_of(view, "More of each policy")
        yield {
            "method": policy,
            "jobs": more["jobs"],
            "ended": means["ended"],
            "wait_s": rounded(means["wait"]),
            "completion_s": rounded(means["completion"]),
            "makespan_s": rounded(more["makespan"]),
            "stops": more["stops"],
            "slowed": means["slowed"],
            "gpus_held_percent": rounded(100 * means["GPUs held"]),
            "decision_cpu_ms_a_job": round(1000 * more["CPU of decisions"] / more["jobs"], 3),
        }


def row_of(view: View, table: str) -> dict[str, Any]:
    """Return the only row of a table, by its columns."""
    found = view.table(table)
    return {column.name: cell for column, cell in zip(found.columns, found.rows[0], strict=True)}


def rounded(figure: float | None) -> float | None:
    """Return a figure with one decimal; None if no job has it."""
    return None if figure is None else round(figure, 1)


SPEC = BenchSpec(
    name="simulation",
    question="How long do jobs take from arrival to end under placeopt's policies, beside others'?",
    rounds={
        "sc17-workloads-5": Trace("sc17-workloads-5.json", ("placeopt", *PEERS[:2])),
        "philly-40+1-x44": Trace("philly-40+1-x44-s0.json.gz", ("placeopt", "placeopt-queue", *PEERS)),
        "openb-x77-load-90": Trace("openb-x77-load-90.json.gz", ("placeopt-queue", *PEERS[:2])),
        "sc17-10000x1000": Trace("sc17-10000x1000-s0.json.gz", ("placeopt-queue", *PEERS[:2])),
    },
    run=play,
    columns=(
        *("round", "method", "jobs", "ended", "wait_s", "completion_s", "makespan_s", "stops", "slowed"),
        *("gpus_held_percent", "decision_cpu_ms_a_job", "load"),
    ),
    minutes=5,
)
