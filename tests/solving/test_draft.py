"""Drafts of one round share the records of what did not change, and are what they would be without that."""

import numpy as np

from placeopt.generators import generate
from placeopt.heuristics import greedy, order_jobs
from placeopt.problem import compile_problem
from placeopt.solving.draft import Recorder, draft_plan


def test_a_second_draft_records_anew_what_changed() -> None:
    """Jobs leave, others take their places: equal to a draft from nothing, with the same records of all the others."""
    round_ = generate("varied", jobs=60, nodes=8, gpus=8, seed=4)
    problem = compile_problem(round_)
    order = order_jobs(problem, "value_density")
    first = greedy(problem, order).allocation
    started = [job for job in order.tolist() if first[job] is not None]
    rest = tuple(None if job in started[::3] else placement for job, placement in enumerate(first))
    second = greedy(problem, order[::-1], "best_fit", start=rest).allocation
    recorder = Recorder(problem)
    drafts = [draft_plan(round_, problem, allocation, recorder) for allocation in (first, second, first)]
    for draft, allocation in zip(drafts, (first, second, first), strict=True):
        assert draft == draft_plan(round_, problem, allocation)
    before, after = ({held.job: held for held in draft.placements} for draft in drafts[:2])
    alike = [problem.job_ids[j] for j in np.flatnonzero([p is not None for p in rest]).tolist()]
    assert alike
    assert all(after[name] is before[name] for name in alike)
    assert before.keys() != after.keys()
