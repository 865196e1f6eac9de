"""Every question of ``placeopt whatif``, asked by the command line of a cluster in use."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from command import placeopt_json
from placeopt import generate, read_instance, write_document
from placeopt.view import View
from rounds import INSTANCES, warm_engine
from spec import BenchSpec, Row


class Cluster(NamedTuple):
    """Nodes of 8 GPUs with a job a node, or openb if there are none; the type of a node to add; seconds a question."""

    nodes: int
    node_type: str
    limit_s: float


QUESTIONS = {
    "fit, 1 GPU": ("fit", "--job", "1", "--cpu", "4000"),
    "fit, 4 x 8 GPUs": ("fit", "--job", "4x8", "--cpu", "16000"),
    "slots": ("fit",),
    "fail a node, first 8": ("fail", "--level", "node", "--domains", "NODES"),
    "add nodes, demand 130 %": ("add", "--node-type", "TYPE", "--patch", "PATCH"),
    "compare demands": ("compare", "--vary", "demand=90-130:20"),
    "compare one more node": ("compare", "--vary", "more=node"),
    "defragment": ("defrag", "--all-movable"),
}
MORE_DEMAND = {"name": "more demand", "steps": [{"do": "scale_demand", "percent": 130, "seed": 0}]}
"""A patch: copies of jobs until the GPUs are asked for so often."""
OF_THE_ROUND = ("add", "compare")
"""Asked of the jobs that wait; the others of the cluster after the plan."""


def ask(asked: Cluster) -> Iterator[Row]:
    """Solve the round, and yield a row for each question."""
    made = (
        generate("uniform", jobs=asked.nodes, nodes=asked.nodes, gpus=8, seed=0)
        if asked.nodes
        else read_instance(INSTANCES / "openb" / "openb-default.json.gz")
    )
    plan = warm_engine().solve(made, time_limit_s=asked.limit_s)
    nodes = ",".join(node.id for node in made.cluster.nodes[:8])
    with tempfile.TemporaryDirectory() as folder:
        round_, planned, more = (Path(folder, name) for name in ("round.json.gz", "plan.json.gz", "patch.json"))
        write_document(round_, made)
        write_document(planned, plan)
        more.write_text(json.dumps(MORE_DEMAND), encoding="utf-8")
        for name, (verb, *words) in QUESTIONS.items():
            words = [{"TYPE": asked.node_type, "NODES": nodes, "PATCH": str(more)}.get(word, word) for word in words]
            words += [] if verb in OF_THE_ROUND else ["--plan", str(planned)]
            words += ["--time-limit", f"{asked.limit_s:g}"]
            began = time.perf_counter()
            answer = placeopt_json("whatif", verb, str(round_), *words)
            seconds = round(time.perf_counter() - began, 2)
            yield {"call": name, "limit_s": asked.limit_s, "seconds": seconds, "answer": brief(answer)}


def brief(answer: object) -> str:
    """Return the title and the figures of an answer."""
    view = View.model_validate(answer)
    return ", ".join([view.title, *(f"{figure.name} {figure.value}" for figure in view.figures)])


SPEC = BenchSpec(
    name="whatif",
    question="How long do questions of capacity take, and are their answers proven?",
    rounds={
        "uniform, 16 nodes": Cluster(16, "node-00000", 1.0),
        "uniform, 1,000 nodes": Cluster(1000, "node-00000", 10.0),
        "openb": Cluster(0, "g2-8gpu-96c-393216m", 10.0),
    },
    run=ask,
    columns=("round", "call", "limit_s", "seconds", "answer", "load"),
    minutes=8,
)
