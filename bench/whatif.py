"""
Every question of ``placeopt whatif`` on openb and on a cluster of 1,000 nodes in racks: answer, proof, time.

    python bench/whatif.py --nodes 1000 --time-limit 10 --search 60 --jobs 2 --out bench/whatif.md

openb has no racks; its pods run as a plan of the whole list places them. The cluster is ``placeopt generate --spec
uniform`` with as many jobs as nodes, placed likewise. ``add`` gets demand resampled to 130 % (FGD's rule, seed 0), and
a trace of SODA's month (8 nodes, 2,000 jobs) for a goal of waiting, by replay. Prices are compared with rounds that are
solved alone as ``bench/prices.py`` does. With ``--jobs`` above 1 every round has one thread.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

from placeopt import generate, read_instance, read_scenario, solve
from placeopt.environment import versions
from placeopt.formats.table import Table
from placeopt.model import Instance, Scenario
from placeopt.simulation import named_policy
from placeopt.simulation.replay import add as add_to_trace
from placeopt.simulation.replay import parse_goal
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
from placeopt.whatif.steps import AddMachines, ScaleDemand
from prices import compare

INSTANCES = Path(__file__).parents[1] / "instances"
OPENB, TRACES = INSTANCES / "openb", INSTANCES / "papers"
GOAL = "p95_wait<=30m"
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
    parser.add_argument("--priced", type=int, default=50, help="rounds in which prices are solved again alone")
    parser.add_argument("--draws", type=int, default=5, help="of arrivals, in the second replay")
    parser.add_argument("--jobs", type=int, default=1, help="rounds and replays side by side")
    parser.add_argument("--openb", default="openb-default")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    threads = 1 if args.jobs > 1 else None
    limits, long = Limits(args.time_limit, threads=threads), Limits(args.search)
    rows: list[tuple[str | float | None, ...]] = []

    def ask(where: str, verb: str, question: Callable[[], Answer]) -> None:
        cpu, wall = sum(os.times()[:4]), time.monotonic()
        told, proven = question()
        spent = (time.monotonic() - wall, sum(os.times()[:4]) - cpu)
        rows.append((where, verb, told, {True: "yes", False: "no", None: "exact"}[proven], *spent))
        print(*rows[-1], sep=" | ", flush=True)

    openb = read_instance(OPENB / f"{args.openb}.json.gz")
    busy = after_plan(openb, solve(openb, time_limit_s=args.time_limit))
    common(ask, args.openb, openb, busy, G2, limits, long, args.jobs)
    ask(args.openb, "price of each node type", lambda: priced(openb, ("node",), limits, args.jobs))
    kind = next(m.id for m in openb.cluster.machines if m.gpus and m.gpus[0].model == "T4")
    ask(args.openb, "swap T4 nodes by G2", lambda: swapped(openb, G2, kind, limits))

    made = generate("uniform", jobs=args.nodes, nodes=args.nodes, gpus=8, seed=0)
    cluster = after_plan(made, solve(made, time_limit_s=args.time_limit))
    common(ask, made.name, made, cluster, made.cluster.nodes[0].id, limits, long, args.jobs)
    ask(made.name, "fail rack, all", lambda: failed(cluster, "rack", limits, args.jobs))
    ask(made.name, "price of node and rack", lambda: priced(made, ("node", "rack"), limits, args.jobs))
    halved, half = with_half(made)
    ask(
        made.name,
        "swap all nodes by ones of 4 GPUs",
        lambda: swapped(halved, half, halved.cluster.machines[0].id, limits),
    )
    ask(made.name, "defrag rack", lambda: emptied(cluster, "rack", long))

    ask(f"{args.priced} small rounds", "price of a node, solved again alone", lambda: again(args.priced))
    trace = read_scenario(TRACES / "soda-6d-x8-s0.json.gz")
    for draws in ((), tuple(range(args.draws))):
        words = f", {len(draws)} draws" if draws else ""
        ask(f"{trace.name}, fcfs", f"add until {GOAL}{words}", lambda draws=draws: replayed(trace, draws, args.jobs))

    columns = ("instance", "question", "answer", "proven", "wall s", "CPU s")
    table = Table("whatif", "What if", columns, tuple(rows))
    packages = ", ".join(f"{name} {version}" for name, version in versions().items())
    text = (
        "# What if: every question, with its proof and its time\n\n"
        f"`python bench/whatif.py --nodes {args.nodes} --time-limit {args.time_limit:g} --search {args.search:g} "
        f"--priced {args.priced} --draws {args.draws} --jobs {args.jobs}`; "
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; {packages}. CPU seconds "
        "are of this process and of those that have ended, so not of what runs side by side.\n\n" + table.markdown()
    )
    if args.out:
        args.out.write_text(text, encoding="utf-8")


def common(
    ask: Callable[..., None],
    where: str,
    base: Instance,
    busy: Instance,
    kind: str,
    limits: Limits,
    long: Limits,
    jobs: int,
) -> None:
    """Ask what can be asked anywhere, of the round or of the time after its plan."""
    for job in ("0.1", "1", "8", "4x8"):
        ask(where, f"fit {job}, 4 cores a worker", lambda job=job: fitted(busy, job, limits))
    ask(where, "slots", lambda: slotted(busy))
    ask(where, "fail node, the first 8 of all", lambda: failed(busy, "node", limits, jobs, 8))
    ask(where, "defrag node", lambda: emptied(busy, "node", long))
    more = apply_patch(base, Patch(steps=(ScaleDemand(do="scale_demand", percent=130),))).instance
    ask(f"{where} at 130 %", f"add {kind}", lambda: added(more, kind, long))
    ask(where, "sweep demand=90-130:20", lambda: swept(base, "demand=90-130:20", limits, jobs))


def with_half(base: Instance) -> tuple[Instance, str]:
    """Return the round with one more type of machine, half of the first one's GPUs, and its name."""
    whole = base.cluster.machines[0]
    half = whole.model_copy(update={"id": "half", "gpus": whole.gpus[: len(whole.gpus) // 2], "links": ()})
    return apply_patch(base, Patch(steps=(AddMachines(do="add_machines", machines=(half,)),))).instance, half.id


def fitted(base: Instance, job: str, limits: Limits) -> Answer:
    answer = fit(base, parse_job(job, base, cpu_millicores=4000), limits)
    gang = max(gang.workers * gang.gpus_each for gang in answer.gangs)
    return f"{answer.found} to {answer.most}; largest gang {gang} GPUs", answer.proven


def slotted(base: Instance) -> Answer:
    answer = slots(base)
    return "; ".join(f"{c.slots} of {c.size} by {c.level}" for c in answer.counts if c.size in (8, 64)), None


def failed(base: Instance, level: str, limits: Limits, jobs: int, first: int | None = None) -> Answer:
    domains = None if first is None else [node.id for node in base.cluster.nodes[:first]]
    answer = fail(base, level, domains=domains, limits=limits, jobs=jobs)
    worst = answer.worst
    lost = "" if worst is None else f"; worst: {worst.lost_at_least} to {worst.lost} of {worst.displaced} jobs lost"
    return f"N+1 {answer.answer}, {len(answer.scenarios)} scenarios{lost}", answer.answer != "unknown"


def added(base: Instance, kind: str, limits: Limits) -> Answer:
    answer = add(base, kind, limits=limits)
    return f"{answer.at_least} to {answer.found} nodes for {len(base.jobs)} jobs", answer.proven


def swept(base: Instance, vary: str, limits: Limits, jobs: int) -> Answer:
    answer = sweep(base, parse_variation(vary), limits=limits, jobs=jobs)
    told = "; ".join(f"{p.setting}: {p.outcome.value} of {p.outcome.value_bound}" for p in answer.points)
    return told, all(p.outcome.value == p.outcome.value_bound for p in answer.points)


def priced(base: Instance, of: tuple[str, ...], limits: Limits, jobs: int) -> Answer:
    answer = price(base, of, limits=limits, jobs=jobs)
    agree = [entry.agreement != "outside" for entry in answer.prices if entry.agreement is not None]
    dearest = answer.prices[0]
    told = f"{len(answer.prices)} prices, duals inside the interval in {sum(agree)} of {len(agree)}; "
    return f"{told}dearest {dearest.name}: {dearest.low} to {dearest.high}", all(p.low == p.high for p in answer.prices)


def swapped(base: Instance, by: str, of: str, limits: Limits) -> Answer:
    answer = swap(base, by, of=of, limits=limits)
    return f"{answer.exchanged} nodes: {answer.gain_low} to {answer.gain_high}", answer.answer != "unknown"


def again(rounds: int) -> Answer:
    counts = compare(rounds, 1.5, 4.0)
    told = f"{counts['confirmed']} of {rounds} confirmed; duals inside in {counts['duals in the interval']} of "
    return f"{told}{counts['with duals']}", counts["confirmed"] == rounds


def replayed(trace: Scenario, draws: tuple[int, ...], jobs: int) -> Answer:
    kind = trace.cluster.machines[0].id
    answer = add_to_trace(trace, named_policy("fcfs"), kind, parse_goal(GOAL), draws=draws, jobs=jobs)
    curve = "; ".join(
        f"{s.setting}: {s.mean:,.0f} s [{s.low:,.0f}, {s.high:,.0f}]" for s in answer.spots if s.mean is not None
    )
    return f"{answer.found} more of {kind}, not with {answer.missed}; p95 by nodes added: {curve}", False


def emptied(base: Instance, level: str, limits: Limits) -> Answer:
    answer = defrag(base, level, everyone=True, limits=limits)
    last = answer.front[-1] if answer.front else None
    moves = "no moves" if last is None else f"{last.freed} with {len(last.moves)} moves, at least {last.at_least}"
    return f"{answer.free_before} empty; {moves}; at most {answer.most}", last is not None and last.freed == answer.most


if __name__ == "__main__":
    main()
