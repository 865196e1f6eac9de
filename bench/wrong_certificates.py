"""Certificates that are wrong on purpose: claims beyond what a plan reached, and proofs with something changed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

Json = dict[str, Any]
Change = Callable[[random.Random, Json], None]


def wrong_certificate(
    certificate: Json, *, value: int, cost: int | None, placed: list[str], running: list[tuple[str, str]], seed: int
) -> Json:
    """
    Return a copy with one claim, which is false.

    ``value`` and ``cost`` are those of a plan: the claim says that none is worth as much, or that each as valuable one
    costs more, with up to three changes in its proof. Or it says that one of the jobs ``placed`` fits nowhere.
    ``running``: jobs that run, and in which options; one change lets them pay.
    """
    draw = random.Random(seed)
    wrong: Json = json.loads(json.dumps(certificate))
    of = {one["claim"]: one for one in wrong["claims"]}
    if placed and draw.random() < 0.1:
        return {**wrong, "claims": [{"claim": "does not fit", "job": draw.choice(placed), "proof": "counting"}]}
    claim = of["cost"] if "cost" in of and cost is not None and draw.random() < 0.5 else of["value"]
    claim["proof"] = claim.get("proof") or {"scale": 1, "cost": 1, "prices": [], "nodes": []}
    if claim["claim"] == "value":
        claim["bound"] = value - 1
    else:
        claim["bound"], claim["value"] = (cost or 0) + 1, draw.choice((value, value, value - 1, 0))
    changes: list[Change] = [*CHANGES, partial(_of_running, running=running)]
    for _ in range(draw.randint(0, 3) if isinstance(claim["proof"], dict) else 0):
        draw.choice(changes)(draw, draw.choice(list(leaves(claim["proof"]))))
    return {**wrong, "claims": [claim]}


def leaves(proof: Json) -> Iterator[Json]:
    """Yield the leaves of a proof."""
    if "jobs" in proof:
        yield from leaves(proof["at_most"])
        yield from leaves(proof["more"])
    else:
        yield proof


def _of_a_number(draw: random.Random, leaf: Json) -> None:
    places: list[tuple[Json, str]] = [(leaf, "scale"), (leaf, "cost")]
    places += [(entry, "price") for entry in leaf["prices"]] + [(unit, "most") for unit in leaf["nodes"]]
    places += [(unit["amounts"], name) for unit in leaf["nodes"] for name in unit.get("amounts", {})]
    record, name = draw.choice(places)
    old = record.get(name, 1)
    others: list[object] = [0, -1, None, True]
    if isinstance(old, int):
        others += [-old, old // 2, old + 1, 2 * old, old << 70, float(old), str(old)]
    record[name] = draw.choice(others)


def _of_jobs(draw: random.Random, leaf: Json) -> None:
    if leaf["prices"]:
        entry = draw.choice(leaf["prices"])
        entry["jobs"] = draw.choice([[], (entry["jobs"] or ())[1:], [*(entry["jobs"] or ()), "nobody"], None])


def _of_nodes(draw: random.Random, leaf: Json) -> None:
    if leaf["nodes"]:
        unit = draw.choice(leaf["nodes"])
        draw.choice([leaf["nodes"].remove, lambda gone: gone["nodes"].clear(), lambda gone: gone.pop("most", 0)])(unit)


def _of_branches(draw: random.Random, leaf: Json) -> None:
    leaf["branches"] = draw.choice([[], [0] * 9, [draw.randrange(1 << 60) for _ in leaf.get("branches") or ()]])


def _of_the_option(draw: random.Random, leaf: Json) -> None:
    for entry in leaf["prices"]:
        entry["option"] = draw.choice([entry["option"], "another"])


def _of_running(draw: random.Random, leaf: Json, running: list[tuple[str, str]]) -> None:
    price, stays = 1 << draw.randrange(70), draw.random() < 0.7
    leaf["prices"] += [{"option": option, "price": price, "stays": stays, "jobs": [job]} for job, option in running]


CHANGES: tuple[Change, ...] = (_of_a_number, _of_jobs, _of_nodes, _of_branches, _of_the_option)
