"""
Every question of ``placeopt whatif`` on openb and on a cluster of 1,000 nodes in racks: answer, proof, time.

    python bench/whatif.py --nodes 1000 --time-limit 10 --out bench/whatif.md

openb has no racks; its pods run as a plan of the whole list places them. The cluster is ``placeopt generate --spec
uniform`` with as many jobs as nodes, placed likewise. ``add`` gets openb's demand resampled to 130 % (FGD's rule, seed
0).
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

from placeopt import generate, read_instance, solve
from placeopt.benchmark.tables import Table
from placeopt.model import Instance
from placeopt.whatif import (
    Limits,
    Patch,
    add,
    after_plan,
    apply_patch,
    defrag,
    fail,
    fit,
    parse_job,
    parse_variation,
    price,
    slots,
    swap,
    sweep,
)
from placeopt.whatif.steps import ScaleDemand
from placeopt.workplace import versions

OPENB = Path(__file__).parents[1] / "instances" / "openb"
G2 = "g2-8gpu-96c-393216m"
"""Most of openb's GPUs stand in nodes of this type."""
Answer = tuple[str, bool | None]
"""In words, and whether it is proven; None where there is nothing to prove."""


def main() -> None:
    """Ask everything and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000, help="of the generated cluster")
    parser.add_argument("--time-limit", type=float, default=10.0, help="seconds a round")
    parser.add_argument("--search", type=float, default=60.0, help="seconds of add and defrag")
    parser.add_argument("--openb", default="openb-default")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    limits, long = Limits(args.time_limit), Limits(args.search)
    rows: list[tuple[str | float | None, ...]] = []

    def ask(where: str, verb: str, question: Callable[[], Answer]) -> None:
        cpu, wall = sum(os.times()[:4]), time.monotonic()
        told, proven = question()
        spent = (time.monotonic() - wall, sum(os.times()[:4]) - cpu)
        rows.append((where, verb, told, {True: "yes", False: "no", None: "exact"}[proven], *spent))
        print(*rows[-1], sep=" | ", flush=True)

    openb = read_instance(OPENB / f"{args.openb}.json.gz")
    busy = after_plan(openb, solve(openb, time_limit_s=args.time_limit))
    common(ask, args.openb, busy, limits, long)
    more = apply_patch(openb, Patch(steps=(ScaleDemand(do="scale_demand", percent=130),))).instance
    ask(f"{args.openb} at 130 %", f"add {G2}", lambda: added(more, G2, long))
    ask(args.openb, "sweep demand=90-110:10", lambda: swept(openb, "demand=90-110:10", limits))
    ask(args.openb, "price of each node type", lambda: priced(openb, ("node",), limits))
    ask(args.openb, "swap T4 nodes by G2", lambda: swapped(openb, limits))

    made = generate("uniform", jobs=args.nodes, nodes=args.nodes, gpus=8, seed=0)
    cluster = after_plan(made, solve(made, time_limit_s=args.time_limit))
    common(ask, made.name, cluster, limits, long)
    ask(made.name, "fail rack, all", lambda: failed(cluster, "rack", limits))
    ask(made.name, "price of node and rack", lambda: priced(made, ("node", "rack"), limits))
    ask(made.name, "defrag rack", lambda: emptied(cluster, "rack", long))

    columns = ("instance", "question", "answer", "proven", "wall s", "CPU s")
    table = Table("whatif", "What if", columns, tuple(rows))
    packages = ", ".join(f"{name} {version}" for name, version in versions().items())
    text = (
        "# What if: every question, with its proof and its time\n\n"
        f"`python bench/whatif.py --nodes {args.nodes} --time-limit {args.time_limit:g} --search {args.search:g}`; "
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; {packages}. CPU seconds "
        "include processes that have ended.\n\n" + table.markdown()
    )
    if args.out:
        args.out.write_text(text, encoding="utf-8")


def common(ask: Callable[..., None], where: str, busy: Instance, limits: Limits, long: Limits) -> None:
    """Ask what can be asked anywhere."""
    for job in ("1", "8", "4x8"):
        ask(where, f"fit {job}, 4 cores a worker", lambda job=job: fitted(busy, job, limits))
    ask(where, "slots", lambda: slotted(busy))
    ask(where, "fail node, the first 8 of all", lambda: failed(busy, "node", limits, 8))
    ask(where, "defrag node", lambda: emptied(busy, "node", long))


def fitted(base: Instance, job: str, limits: Limits) -> Answer:
    found = fit(base, parse_job(job, base, cpu_millicores=4000), limits)
    gang = max(gang.workers * gang.gpus_each for gang in found.gangs)
    return f"{found.found} to {found.most}; largest gang {gang} GPUs", found.proven


def slotted(base: Instance) -> Answer:
    found = slots(base)
    return "; ".join(f"{c.slots} of {c.size} by {c.level}" for c in found.counts if c.size in (8, 64)), None


def failed(base: Instance, level: str, limits: Limits, first: int | None = None) -> Answer:
    domains = None if first is None else [node.id for node in base.cluster.nodes[:first]]
    found = fail(base, level, domains=domains, limits=limits)
    worst = found.worst
    lost = "" if worst is None else f"; worst: {worst.lost_at_least} to {worst.lost} of {worst.displaced} jobs lost"
    return f"N+1 {found.answer}, {len(found.scenarios)} scenarios{lost}", found.answer != "unknown"


def added(base: Instance, kind: str, limits: Limits) -> Answer:
    found = add(base, kind, limits=limits)
    return f"{found.at_least} to {found.found} nodes for {len(base.jobs)} jobs", found.proven


def swept(base: Instance, vary: str, limits: Limits) -> Answer:
    found = sweep(base, parse_variation(vary), limits=limits)
    told = "; ".join(f"{p.setting}: {p.outcome.value} of {p.outcome.value_bound}" for p in found.points)
    return told, all(p.outcome.value == p.outcome.value_bound for p in found.points)


def priced(base: Instance, of: tuple[str, ...], limits: Limits) -> Answer:
    found = price(base, of, limits=limits)
    agree = [one.confirmed for one in found.prices if one.confirmed is not None]
    dearest = found.prices[0]
    told = f"{len(found.prices)} prices, duals inside the interval in {sum(agree)} of {len(agree)}; "
    return f"{told}dearest {dearest.name}: {dearest.low} to {dearest.high}", all(p.low == p.high for p in found.prices)


def swapped(base: Instance, limits: Limits) -> Answer:
    kind = next(m.id for m in base.cluster.machines if m.gpus and m.gpus[0].model == "T4")
    found = swap(base, G2, of=kind, limits=limits)
    return f"{found.exchanged} nodes: {found.gain_low} to {found.gain_high}", found.answer != "unknown"


def emptied(base: Instance, level: str, limits: Limits) -> Answer:
    found = defrag(base, level, everyone=True, limits=limits)
    last = found.front[-1] if found.front else None
    moves = "no moves" if last is None else f"{last.freed} with {len(last.moves)} moves, at least {last.at_least}"
    return f"{found.free_before} empty; {moves}; at most {found.most}", last is not None and last.freed == found.most


if __name__ == "__main__":
    main()
