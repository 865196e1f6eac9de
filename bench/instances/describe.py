"""
Write ``instances/STATISTICS.md``: what the instances of all sets are like, and what is known of them.

    python bench/instances/describe.py

Rounds of generators are made if they are not there yet. ``SHA256SUMS`` comes after it: see ``make_models.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from placeopt import read_instance
from placeopt.benchmark import COST, Known, SetEntry, known_sets, read_model, read_sets, read_solu
from placeopt.documents import read_bytes
from placeopt.model import Instance, Job
from placeopt.rank_mapping import parse_qaplib

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
SELECTIONS = ("all", "tiny")
"""Sets of instances that other sets list too; they come last."""
DIGITS = 12
"""Digits of a checksum on the page."""
HEAD = """\
# Statistics of the instances

Written by `python bench/instances/describe.py`. Load: GPUs that waiting jobs ask for, in percent
of those that are free. Shares: jobs of a part of a GPU. Gangs: jobs of several workers. Value: the best known, of a
round its net value; `=` where a bound meets it; by whom it was found. Cost: the least known at that value where it is
proven, in brackets what no plan is below. SHA-256: the first digits, of the content decompressed. How rounds are made:
[docs/generators.md](../docs/generators.md); where data come from: [DATASHEET.md](DATASHEET.md).
"""


ROUND = ("round", "waiting", "running", "nodes", "GPUs", "load %", "shares", "gangs", "has")
MODEL = ("model", "columns", "rows")
QUADRATIC = ("problem", "n", "symmetric", "flows")
KNOWN = ("value", "bound", "found by", "SHA-256")
KNOWN_OF_ROUND = ("value", "bound", "cost", "found by", "SHA-256")


class RoundStatistics(NamedTuple):
    """Counts that characterise a round."""

    waiting: int
    running: int
    nodes: int
    gpus: int
    load_percent: float | None
    """None where no GPU is free."""
    shares: int
    gangs: int
    features: tuple[str, ...]


def round_statistics(instance: Instance) -> RoundStatistics:
    """Return the counts that characterise a round."""
    runs = {held.job for held in instance.running}
    waiting = [job for job in instance.jobs if job.id not in runs]
    gpus = sum(instance.cluster.gpus_by_node.values())
    free = 1000 * gpus - instance.running_gpu_milli
    asked = sum(job.gpu_milli for job in waiting)
    return RoundStatistics(
        waiting=len(waiting),
        running=len(runs),
        nodes=len(instance.cluster.nodes),
        gpus=gpus,
        load_percent=100 * asked / free if free else None,
        shares=sum(job.options[0].demand.gpu_milli < 1000 for job in waiting),
        gangs=sum(job.options[0].workers > 1 for job in waiting),
        features=tuple(word for word, has in FEATURES.items() if has(instance)),
    )


def _any(tell: Callable[[Job], object]) -> Callable[[Instance], bool]:
    return lambda instance: any(map(tell, instance.jobs))


FEATURES: Mapping[str, Callable[[Instance], bool]] = {
    "shapes of nodes": lambda instance: len({node.machine for node in instance.cluster.nodes}) > 1,
    "GPU models": _any(lambda job: job.options[0].demand.gpu_models),
    "CPU jobs": _any(lambda job: job.kind == "cpu"),
    "splits": _any(lambda job: job.options[0].splits),
    "one worker a node": _any(lambda job: job.options[0].workers_per_node_max == 1),
    "several options": _any(lambda job: len(job.options) > 1),
    "communication": lambda instance: (
        instance.policy.weights["communication"] > 0 and any(job.communication.weight for job in instance.jobs)
    ),
    "interference": lambda instance: instance.policy.weights["interference"] > 0 and bool(instance.slowdowns),
    "fragmentation": lambda instance: instance.policy.weights["fragmentation"] > 0,
    "moves": lambda instance: instance.policy.changes.moves_max > 0,
    "preemption": lambda instance: instance.policy.changes.preemptions_max > 0,
    "queues": lambda instance: bool(instance.policy.queues),
    "minimal utility": lambda instance: instance.policy.postpone.rule == "utility",
}
"""Features of a round beyond jobs that need GPUs, CPU and memory, by their name on the page."""


def statistics_page(sets: Mapping[str, Sequence[SetEntry]], known: Mapping[str, Known]) -> str:
    """Return the page: one table per set; an instance of several sets is listed in the first of them only."""
    parts = [HEAD]
    seen: set[str] = set()
    for name, items in sets.items():
        new = [item for item in items if item.name not in seen]
        seen.update(item.name for item in new)
        rounds = [item for item in new if item.kind == "placement"]
        parts.append(f"\n## {name}\n")
        if len(new) < len(items):
            parts.append(f"\n{len(items)} instances, of which {len(items) - len(new)} stand above.\n")
        rows = []
        for item in rounds:
            value, bound, *rest = _known(item, known)
            cells = _round_cells(read_instance(item.there()))
            rows.append([item.name, *cells, value, bound, _cost(known.get(f"{item.name}{COST}", Known())), *rest])
        if rows:
            parts += ["\n", table([*ROUND, *KNOWN_OF_ROUND], rows)]
        for kind, head, cells_of in (("linear", MODEL, _model), ("quadratic", QUADRATIC, _quadratic)):
            rows = [[item.name, *cells_of(item), *_known(item, known)] for item in new if item.kind == kind]
            if rows:
                parts += ["\n", table([*head, *KNOWN], rows)]
    return "".join(parts)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    return "".join(f"| {' | '.join(row)} |\n" for row in (columns, ["---"] * len(columns), *rows))


def _round_cells(instance: Instance) -> list[str]:
    of = round_statistics(instance)
    load = "-" if of.load_percent is None else f"{of.load_percent:,.0f}"
    counts = [f"{count:,}" for count in (of.waiting, of.running, of.nodes, of.gpus)]
    return [*counts, load, f"{of.shares:,}", f"{of.gangs:,}", ", ".join(of.features)]


def _model(item: SetEntry) -> list[str]:
    model = read_model(item.path)
    return [f"{model.objective.size:,}", f"{model.row_lower.size:,}"]


def _quadratic(item: SetEntry) -> list[str]:
    """Return size, whether both matrices are symmetric, and how many flows are not 0."""
    one, other = parse_qaplib(read_bytes(item.path), str(item.path))
    symmetric = (one == one.T).all() and (other == other.T).all()
    return [f"{len(one):,}", "yes" if symmetric else "no", f"{np.count_nonzero(one):,}"]


def _cost(entry: Known) -> str:
    """Return the cost of a round, with its bound where they differ."""
    if entry.optimal:
        return f"= {entry.value:,}"
    return "-" if entry.value is None else f"{entry.value:,} ({'-' if entry.bound is None else f'{entry.bound:,}'})"


def _known(item: SetEntry, known: Mapping[str, Known]) -> list[str]:
    entry = known.get(item.name, Known())
    value = "-" if entry.value is None else f"{'= ' if entry.optimal else ''}{entry.value:,}"
    bound = "-" if entry.bound is None else f"{entry.bound:,}"
    by = dict.fromkeys(filter(None, (entry.value_by, "" if entry.bound_by == entry.value_by else entry.bound_by)))
    return [value, bound, "; ".join(by), item.sha256()[:DIGITS]]


if __name__ == "__main__":
    named = sorted(known_sets(INSTANCES), key=lambda name: (name in SELECTIONS, name))
    page = statistics_page({name: read_sets([name], INSTANCES) for name in named}, read_solu(INSTANCES / "best.solu"))
    (INSTANCES / "STATISTICS.md").write_text(page, encoding="utf-8")
