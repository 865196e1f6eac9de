"""The value of one more node, rack or GPU of quota, by duals of the relaxation and by solving the round again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placeopt.arguments import checked
from placeopt.deadline import Deadline
from placeopt.edits import AddDomains, Step, apply, free_name, more_nodes, unread_in
from placeopt.edits.levels import levels_of, nodes_under
from placeopt.errors import BadArgument, BadInput
from placeopt.formulations.gpu_patterns import build_gpu_patterns
from placeopt.linear import LinearModel
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance
from placeopt.problem import compile_problem, open_state
from placeopt.solvers.certify import dual_bound
from placeopt.solvers.pool import Worker
from placeopt.solvers.result import SolveOptions
from placeopt.whatif.answer_cache import AnswerCache
from placeopt.whatif.answers import Price, Prices, RoundOutcome
from placeopt.whatif.round_solving import Limits, gain, outcome_of, true_of, without_costs
from placeopt.whatif.round_sweep import gpu_quotas, set_gpu_quota

Kind = Literal["node", "domain", "quota"]
UNIT_MILLI = 1000
"""A unit of quota: one GPU."""


class Addition(NamedTuple):
    """An addition to the cluster or the quotas."""

    of: Kind
    name: str
    steps: Sequence[Step]


class Duals(NamedTuple):
    """The relaxation of the present round, and the multipliers of its rows."""

    model: LinearModel
    duals: NDArray[np.float64]
    bound: int


@checked
def price(
    instance: Instance,
    of: Sequence[str] = ("node",),
    *,
    limits: Limits | None = None,
    jobs: int | None = 1,
    rows: Path | None = None,
    cancel: threading.Event | None = None,
    on_news: Callable[[int, int], None] | None = None,
) -> Prices:
    """
    Return the value of one more of each kind.

    Parameters
    ----------
    instance
        The round.
    of
        ``node``: one of each machine type; ``quota``: a GPU for each queue with a quota of GPUs; or a level of the
        network, such as ``rack``: a copy of one rack of each composition.
    limits
        Of each round.
    jobs, rows, cancel, on_news
        As of `placeopt.whatif.fail`, for prices in place of scenarios.

    Returns
    -------
    Prices
        In units of the round's net value, the highest first by solving again.

    Raises
    ------
    BadInput
        If ``of`` names a kind that the round does not have, or ``rows`` cannot be written or is no such file.

    Notes
    -----
    The duals y of the relaxation of the round bound its value by y b + ... (weak duality). With one node more only the
    right-hand sides and the limits of columns differ, so the same y bound that round too, and the difference of the two
    bounds is the price. Where the node makes new rows (the first idle one of its type, say) the duals do not apply.
    """
    deadline, limits = Deadline(cancel=cancel), limits or Limits()
    base = without_costs(instance)
    additions = {
        f"{addition.of} {addition.name}": addition for what in dict.fromkeys(of) for addition in _more(base, what)
    }
    with AnswerCache(rows, Price, base, limits, ("price",), jobs, deadline) as cache:
        before = cache.outcome("as it is", base, limits)
        duals = _duals(base, limits) if cache.unanswered(additions) else None
        prices = cache.answers(
            partial(_price, base=base, before=before, duals=duals, limits=limits), additions, on_news
        )
    by_value = sorted(prices, key=lambda price: (-(price.low or 0), -(price.high or 0), price.of, price.name))
    answer = Prices(
        value=before.value,
        value_bound=before.value_bound,
        prices=tuple(by_value),
        left=len(additions) - len(prices),
        seconds=deadline.spent_s,
    )
    unread = unread_in(instance)
    return true_of(
        answer,
        unread,
        lambda: price(unread.freest(instance), of, limits=limits, jobs=jobs, cancel=cancel),
        lambda one: [one.value, one.value_bound, *((each.name, each.low, each.high) for each in one.prices)],
    )


def price_by_duals(duals: Duals | None, more: Instance) -> int | None:
    """Return the increase of the bound by the same multipliers; None where they do not apply."""
    if duals is None:
        return None
    model = _relaxation(more)
    same = model.num_rows == duals.model.num_rows and model.num_variables == duals.model.num_variables
    if not same or not np.array_equal(model.columns, duals.model.columns):
        return None
    return dual_bound(model, duals.duals * model.row_divisor) - duals.bound


def _price(
    engine: Engine,
    addition: Addition,
    deadline: Deadline,
    *,
    base: Instance,
    before: RoundOutcome,
    duals: Duals | None,
    limits: Limits,
) -> Price:
    more = apply(base, addition.steps)
    low, high = gain(before, outcome_of(engine, more, limits, deadline))
    cluster, added = more.cluster, more.cluster.nodes[len(base.cluster.nodes) :]
    return Price(
        of=addition.of,
        name=addition.name,
        low=None if low is None else max(low, 0),  # an addition never lowers the value: the placed jobs still fit
        high=high,
        by_duals=price_by_duals(duals, more),
        price_milli_per_hour=sum(map(cluster.price_of, added)) if added else None,
        gpus=sum(len(cluster.machine_of(node).gpus) for node in added) if added else None,
    )


def _duals(base: Instance, limits: Limits) -> Duals | None:
    model = _relaxation(base)
    with Worker() as worker:
        options = SolveOptions(limits.time_limit_s, seed=limits.seed, relax=True)
        solution = worker.solve("highs", model, options, deadline=time.monotonic() + limits.time_limit_s + 1)
    if solution.duals is None:
        return None
    return Duals(model, solution.duals / model.row_divisor, dual_bound(model, solution.duals))


def _relaxation(instance: Instance) -> LinearModel:
    return build_gpu_patterns(open_state(compile_problem(instance)), scarce_rows=False).model


def _more(base: Instance, what: str) -> Iterator[Addition]:
    """Yield one more of a kind: of nodes of each machine type, of GPUs of each quota, or of domains of a level."""
    if what == "node":
        for machine in dict.fromkeys(node.machine for node in base.cluster.nodes):
            yield Addition("node", machine, [more_nodes(base, machine)])
    elif what == "quota":
        limited = {name: milli for name, milli in gpu_quotas(base.policy).items() if milli is not None}
        if not limited:
            raise BadInput("quota: no queue of the policy has a quota of GPUs")
        for name, milli in limited.items():
            yield Addition("quota", name, [set_gpu_quota(base.policy, name, milli + UNIT_MILLI)])
    elif what in levels_of(base):
        yield from _domains(base, what)
    else:
        levels = ", ".join(levels_of(base)[1:]) or "none here"
        raise BadArgument(f"of: {what!r}, expected node, quota, or a level of the network: {levels}")


def _domains(base: Instance, level: str) -> Iterator[Addition]:
    """Yield a copy, without running jobs, of the first domain of each composition."""
    machine = {node.id: node.machine for node in base.cluster.nodes}
    domains = {domain.id: domain for domain in base.cluster.domains}
    under = nodes_under(base, level)
    for name in {tuple(sorted(map(machine.__getitem__, under[name]))): name for name in reversed(under)}.values():
        copy = domains[name].model_copy(update={"id": free_name(f"{name}+", domains)})
        copies = [
            more_nodes(base, node, mark=f"-{number}").model_copy(update={"domain": copy.id})
            for number, node in enumerate(under[name])
        ]
        yield Addition("domain", name, [AddDomains(do="add_domains", domains=(copy,)), *copies])
