"""Runs some steps of the local search, compiled or from its source, and prints what came of them."""

import sys
from importlib.machinery import FileFinder, SourceFileLoader
from pathlib import Path

import placeopt

FORM, SPEC, JOBS, NODES, GPUS = sys.argv[1:]
ROOM = str(Path(placeopt.__file__).parent / "search")
if FORM == "source":  # without a loader of compiled modules
    sys.path_importer_cache[ROOM] = FileFinder(ROOM, (SourceFileLoader, [".py"]))

from placeopt.generators import generate  # noqa: E402 - after the choice of the form
from placeopt.model import Fragmentation, Queue, Quota  # noqa: E402
from placeopt.problem import compile_problem  # noqa: E402
from placeopt.search import LocalSearch, is_compiled  # noqa: E402
from placeopt.terms import weighted_costs  # noqa: E402

round_ = generate(SPEC.partition("-")[0], jobs=int(JOBS), nodes=int(NODES), gpus=int(GPUS), seed=5)
if SPEC.endswith("-fgd"):  # a cost that is judged
    policy = round_.policy.model_copy(update={"fragmentation": Fragmentation(form="fgd")})
    round_ = round_.model_copy(update={"policy": policy})
if SPEC.endswith("-queue"):
    queues = (Queue(id="q", quota=Quota(gpu_milli=int(NODES) * 5000)),)
    jobs = tuple(job.model_copy(update={"queue": "q"}) for job in round_.jobs)
    round_ = round_.model_copy(update={"policy": round_.policy.model_copy(update={"queues": queues}), "jobs": jobs})
problem = compile_problem(round_)
start = tuple(problem.running.get(job) for job in range(problem.num_jobs))
search = LocalSearch(problem, start, weighted_costs(problem), seed=6)
for _ in range(20):
    search.advance(100)
print("compiled" if is_compiled() else "uncompiled")
print(search.value, search.cost)
for job, placement in enumerate(search.allocation()):
    print(job, placement)
