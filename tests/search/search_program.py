"""Runs some steps of the local search, compiled or from its source, in each of the rounds named; prints the plans."""

import sys
from importlib.machinery import FileFinder, SourceFileLoader
from pathlib import Path

import placeopt

FORM, *NAMES = sys.argv[1:]
ROOM = str(Path(placeopt.__file__).parent / "search")
if FORM == "source":  # without a loader of compiled modules
    sys.path_importer_cache[ROOM] = FileFinder(ROOM, (SourceFileLoader, [".py"]))

from placeopt.generators import generate  # noqa: E402 - after the choice of the form
from placeopt.model import Fragmentation, Instance, Queue, Quota  # noqa: E402
from placeopt.problem import compile_problem  # noqa: E402
from placeopt.search import LocalSearch, is_compiled  # noqa: E402
from placeopt.terms import weighted_costs  # noqa: E402


def round_named(name: str) -> Instance:
    """Return a generated round, with a queue or a cost that is judged."""
    spec, *sizes = name.split()
    jobs, nodes, gpus = map(int, sizes)
    round_ = generate(spec.partition("-")[0], jobs=jobs, nodes=nodes, gpus=gpus, seed=5)
    policy = round_.policy
    if spec.endswith("-fgd"):
        return round_.model_copy(
            update={"policy": policy.model_copy(update={"fragmentation": Fragmentation(form="fgd")})}
        )
    if spec.endswith("-queue"):
        queue = Queue(id="q", quota=Quota(gpu_milli=5000 * nodes))
        mine = tuple(job.model_copy(update={"queue": "q"}) for job in round_.jobs)
        return round_.model_copy(update={"policy": policy.model_copy(update={"queues": (queue,)}), "jobs": mine})
    return round_


print("compiled" if is_compiled() else "uncompiled")
for name in NAMES:
    problem = compile_problem(round_named(name))
    start = tuple(problem.running.get(job) for job in range(problem.num_jobs))
    search = LocalSearch(problem, start, weighted_costs(problem), seed=6)
    for _ in range(20):
        search.advance(40)
    print((name, search.value, search.cost, search.allocation()))
