"""Disjoint slots of free GPUs in every domain: exact, and about GPUs alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from placeopt.arguments import checked
from placeopt.edits import Answer, true_of, unread_in
from placeopt.edits.levels import levels_of, nodes_under
from placeopt.errors import BadArgument
from placeopt.model import Instance
from placeopt.model.base import Id, Name, Record
from placeopt.problem import State, compile_problem
from placeopt.problem.hardware import gpu_parts
from placeopt.readable import plural
from placeopt.view import Chart, Column, Figure, Table, View

SIZES = (1, 2, 4, 8, 16, 32, 64)


class SlotCount(Record):
    """Disjoint slots of ``size`` free GPUs in domains of a level; ``largest`` is the most free GPUs of any domain."""

    level: Id
    size: int
    slots: int
    largest: int


class Slots(Answer):
    """Slots by level and size, of idle GPUs on nodes that take new jobs."""

    free_gpus: int
    gpus: int
    model: Name | None
    counts: tuple[SlotCount, ...]

    def view(self) -> View:
        """Return a row for each level, and a column for each size."""
        sizes = [str(size) for size in dict.fromkeys(count.size for count in self.counts)]
        rows: dict[str, list[int]] = {}
        for count in self.counts:
            rows.setdefault(count.level, [count.largest]).append(count.slots)
        table = Table(
            name="Slots",
            columns=(Column(name="level"), *(Column(name=name, better="more") for name in ("most free", *sizes))),
            rows=tuple((level, *cells) for level, cells in rows.items()),
            note="disjoint slots of that many free GPUs, each in one domain of the level",
        )
        model = f" of model {self.model}" if self.model else ""
        return View(
            title=f"{self.free_gpus:,} of {plural(self.gpus, 'GPU')}{model} free",
            proof=self.proof("exact; about GPUs alone"),
            figures=(
                Figure(name="free GPUs", value=self.free_gpus, better="more"),
                Figure(name="GPUs", value=self.gpus),
            ),
            tables=(table,),
            chart=Chart(kind="bars", table=table.name, x="level", y=tuple(sizes)),
        )


@checked
def slots(instance: Instance, sizes: Sequence[int] = SIZES, model: str | None = None) -> Slots:
    """
    Return the number of slots of free GPUs: a domain of f free GPUs has ``f // N`` slots of N.

    Parameters
    ----------
    instance
        The cluster and its running jobs.
    sizes
        Numbers of GPUs of a slot.
    model
        Count GPUs of this model only.

    Returns
    -------
    Slots
        By level: those inside machines, nodes, those of the network, and the cluster.

    Raises
    ------
    BadInput
        If a size is below 1 or no GPU is of that model.

    Notes
    -----
    Exact, and about GPUs alone; `placeopt.whatif.fit` also takes CPU and memory into account.
    """
    if not sizes or min(sizes) < 1:
        raise BadArgument(f"sizes: {list(sizes)}, expected numbers of GPUs from 1 on")
    problem = compile_problem(instance)
    models = np.array(problem.type_model, dtype=object)[problem.gpu_type]
    listed = ~problem.type_lost[problem.gpu_type]  # running jobs may hold GPUs that are not listed
    if model is not None and model not in models[listed]:
        raise BadArgument(
            f"model: no GPU of model {model!r}; there are: {', '.join(sorted(set(models[listed].tolist()))) or 'none'}"
        )
    kept = np.array([bool(holds) for holds in problem.type_holds], dtype=bool)[problem.gpu_type]
    free = (State(problem).gpu_jobs == 0) & ~kept & problem.node_schedulable[problem.gpu_node]
    counted = listed if model is None else listed & (models == model)
    free &= counted
    names = np.array(problem.node_ids, dtype=object)[problem.gpu_node]
    domain_of: dict[str, list[object]] = {}
    for level in ("switch", "socket"):
        parts = gpu_parts(problem.instance, problem.topology, level).tolist()
        if any(part >= 0 for part in parts):
            domain_of[level] = [part if part >= 0 else None for part in parts]
    for level in levels_of(instance):
        above = {node: name for name, nodes in nodes_under(instance, level).items() for node in nodes}
        domain_of[level] = [above.get(name) for name in names]
    domain_of["cluster"] = [0] * len(names)
    counts = []
    for level, domains in domain_of.items():
        held = Counter(domain for domain, is_free in zip(domains, free, strict=True) if is_free and domain is not None)
        most = max(held.values(), default=0)
        counts += [
            SlotCount(level=level, size=size, slots=sum(f // size for f in held.values()), largest=most)
            for size in sorted(set(sizes))
        ]
    answer = Slots(free_gpus=int(free.sum()), gpus=int(counted.sum()), model=model, counts=tuple(counts))
    unread = unread_in(instance, waiting=False, moved=())
    return true_of(answer, unread, lambda: slots(unread.freest(instance), sizes, model), lambda one: one.counts)
