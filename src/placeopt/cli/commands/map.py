"""``placeopt map``: a quadratic assignment problem, searched until the time limit."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from placeopt.cli.options import AsJson, Seed, check_time_limit
from placeopt.cli.output import ExitCode, write_out


def map(  # noqa: A001 - the command's name
    file: Annotated[str, typer.Argument(metavar="FILE", help="Problem in QAPLIB's form: n and two matrices; or -.")],
    time_limit: Annotated[float, typer.Option(metavar="S", help="Seconds to search.")] = 5.0,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> int:
    """
    Assign items to places at little cost: flow times distance, over all ordered pairs.

    The time limit is used unless the proven bound is met.
    """
    check_time_limit(time_limit)
    from placeopt.formats.files import label, read_bytes
    from placeopt.formats.qaplib import parse_qaplib
    from placeopt.rank_mapping.quadratic import solve_quadratic

    flows, distances = parse_qaplib(read_bytes(file), label(file))
    found = solve_quadratic(flows, distances, time_limit_s=time_limit, seed=seed)
    if as_json:
        answer = {"cost": found.cost, "bound": found.bound, "optimal": found.optimal, "order": found.order.tolist()}
        write_out(json.dumps(answer) + "\n")
    else:
        gap = 100 * (found.cost - found.bound) / max(1, found.cost)
        write_out(f"cost {found.cost:,}, bound {found.bound:,}, gap {gap:.2f} %\n")
        write_out(f"places from 0, item by item: {' '.join(str(place) for place in found.order.tolist())}\n")
    return ExitCode.DONE
