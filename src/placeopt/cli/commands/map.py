"""``placeopt map``: ranks of a job onto GPUs, or any quadratic assignment problem, searched until the time limit."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated

import typer

from placeopt.cli.files import check_sources, read_cluster
from placeopt.cli.options import AsJson, Seed, check_seed, check_time_limit
from placeopt.cli.output import ExitCode, write_out
from placeopt.cli.progress import Interruption
from placeopt.errors import BadInput
from placeopt.readable import plural

if TYPE_CHECKING:
    from collections.abc import Callable

    from placeopt.model import Cluster
    from placeopt.problem import IntArray
    from placeopt.rank_mapping import Mapping


def map(  # noqa: A001 - the command's name
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="With MACHINE the traffic of a job: a job (JSON), or a square matrix (JSON, CSV). Without, a problem "
            "in QAPLIB's form: n and two matrices. Or -.",
        ),
    ],
    machine: Annotated[
        str | None,
        typer.Argument(metavar="[MACHINE]", help="Machine, cluster or instance, whose GPUs the ranks are mapped onto."),
    ] = None,
    time_limit: Annotated[float, typer.Option(metavar="S", help="Seconds to search.")] = 5.0,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> int:
    """
    Assign ranks to GPUs, or items to places, at little cost: traffic times distance.

    The search ends at a proven optimum or at the time limit; ranks may end before. Ctrl-C returns the best so far.
    """
    check_time_limit(time_limit)
    check_seed(seed)
    check_sources({"FILE": file, "MACHINE": machine})
    if machine is None:
        return _map_problem(file, time_limit, seed, as_json)
    return _map_traffic(file, machine, time_limit, seed, as_json)


def _map_problem(file: str, time_limit_s: float, seed: int, as_json: bool) -> int:
    from placeopt.documents.files import label, read_bytes
    from placeopt.rank_mapping.qaplib import parse_qaplib
    from placeopt.rank_mapping.quadratic import solve_quadratic

    data = read_bytes(file)
    if data.lstrip()[:1] in (b"[", b"{"):
        raise BadInput(f"{label(file)}: is JSON, so traffic of ranks; name the machine or instance to map it onto, too")
    flows, distances = parse_qaplib(data, label(file))
    found, code = _interruptible(
        lambda keep: solve_quadratic(flows, distances, time_limit_s=time_limit_s, seed=seed, on_better=keep)
    )
    lines = [f"places from 0, item by item: {' '.join(str(place) for place in found.order.tolist())}"]
    _answer(found, {"order": found.order.tolist()}, lines, as_json)
    return code


def _map_traffic(file: str, machine: str, time_limit_s: float, seed: int, as_json: bool) -> int:
    from placeopt.documents.files import label
    from placeopt.rank_mapping import map_ranks
    from placeopt.rank_mapping.ranks import MAX_GPUS
    from placeopt.topology import ClusterTopology

    weights, size, inside = _read_traffic(file)
    cluster = read_cluster(machine, or_machine=True)
    gpus = _places(cluster)
    spare = len(gpus) - len(weights) * size
    asked, there = f"{plural(len(weights), 'rank')} of {plural(size, 'GPU')}", plural(len(gpus), "GPU")
    has = f"{label(file)}: {asked}; {label(machine)} has {there}"
    if spare < 0:
        raise BadInput(f"{has}, expected at least {len(weights) * size:,}")
    if spare and size > 1:
        raise BadInput(f"{has}, expected exactly {len(weights) * size:,} where a rank has several GPUs")
    if len(gpus) > MAX_GPUS:
        raise BadInput(f"{has}, expected at most {MAX_GPUS:,}; leave out nodes")
    import numpy as np

    topology = ClusterTopology(cluster)
    ranks = len(weights)
    weights = np.pad(weights, (0, spare))  # ranks without traffic take the GPUs that stay free
    distances = topology.pair_distances(np.arange(len(gpus)))
    found, code = _interruptible(
        lambda keep: map_ranks(
            weights,
            distances,
            topology.gpu_node,
            gpus_per_rank=size,
            inside=inside,
            deadline=time.monotonic() + time_limit_s,
            seed=seed,
            on_better=keep,
        )
    )
    rows = []
    for rank, held in enumerate(found.order.reshape(-1, size)[:ranks].tolist()):
        rows.append({"rank": rank, "node": gpus[held[0]][0], "gpus": [gpus[gpu][1] for gpu in held]})
    lines = [f"rank {row['rank']}: {row['node']} GPU {' '.join(str(gpu) for gpu in row['gpus'])}" for row in rows]
    _answer(found, {"ranks": rows}, lines, as_json)
    return code


def _read_traffic(file: str) -> tuple[IntArray, int, int]:
    """Return what `map_ranks` takes: weights between ranks, GPUs of a rank, traffic inside it."""
    from placeopt.documents.documents import loads
    from placeopt.documents.files import label, read_bytes
    from placeopt.model import Job
    from placeopt.rank_mapping.qaplib import parse_traffic
    from placeopt.terms.costs.communication import rank_traffic

    data, source = read_bytes(file), label(file)
    if data.lstrip()[:1] != b"{":
        sent = parse_traffic(data, source)
        return sent + sent.T, 1, 0
    job = loads(Job, data, source=source)
    option = job.options[0]
    if option.demand.gpus < 1:
        raise BadInput(f"{source}: options[0].demand.gpus: 0, expected workers with GPUs")
    return rank_traffic(job.communication, option.workers), option.demand.gpus, int(job.communication.weight)


def _places(cluster: Cluster) -> list[tuple[str, int]]:
    """Return node and index of each GPU, in the order of ``ClusterTopology``."""
    return [(node, index) for node, gpus in cluster.gpus_by_node.items() for index in range(gpus)]


def _interruptible(search: Callable[[Callable[[Mapping], object]], Mapping]) -> tuple[Mapping, int]:
    """Return what a search found, or the best that it reported when a signal ended it; and the exit code."""
    best: list[Mapping] = []
    with Interruption("the best order so far", raises=True) as interruption:
        try:
            best.append(search(best.append))
        except KeyboardInterrupt:
            if not best:
                raise
    return best[-1], interruption.code or ExitCode.DONE


def _answer(found: Mapping, placed: dict[str, object], lines: list[str], as_json: bool) -> None:
    if as_json:
        answer = {"cost": found.cost, "bound": found.bound, "optimal": found.optimal}
        write_out(json.dumps(answer | placed) + "\n")
        return
    gap = 100 * (found.cost - found.bound) / max(1, found.cost)
    proven = "; optimal: no order costs less" if found.optimal else ""
    write_out(f"cost {found.cost:,}, bound {found.bound:,}, gap {gap:.2f} %{proven}\n" + "\n".join(lines) + "\n")
