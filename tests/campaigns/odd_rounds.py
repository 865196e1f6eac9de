"""
Campaign: rounds in which something changed under what runs, through every method and every question.

    python tests/campaigns/odd_rounds.py --rounds 1000 --seed 0 --out odd_rounds.md

Each seed is a small random round after one to three edits (``helpers.odd_rounds``): limits lowered, nodes and GPUs
gone, options edited. Expected: the round is solved; what stands is listed; no plan is refused; values, costs and bounds
agree with brute force; what-if questions, explanations, a resident cluster and rounds in parts answer or refuse with a
typed error. Ends with code 1 if anything else was seen.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from platform import python_version

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from helpers.brute_force import optimum
from helpers.differential import ROUTES, examine
from helpers.odd_rounds import odd_round
from helpers.plan_records import plan_of
from placeopt import Engine, Instance, PlaceoptError, Plan, Unsupported, audit, solve_in_parts, whatif
from placeopt.build import job
from placeopt.check import judge
from placeopt.explain import explain
from placeopt.problem import compile_problem
from placeopt.solving.methods import METHODS

QUICK = tuple(route for route in ROUTES if route.solver == "highs")
LIMITS = whatif.Limits(time_limit_s=1.0)
METHODS_TRIED = tuple(name for name in METHODS if "cbc" not in name)


def main() -> int:
    """Run, write the table, and tell whether all was as expected."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--questions-every", type=int, default=5, help="ask what-if questions about every n-th round")
    parser.add_argument("--out", type=Path, default=Path("odd_rounds.md"))
    options = parser.parse_args()
    count: Counter[str] = Counter()
    wrong: list[str] = []
    began = time.monotonic()
    with Engine() as engine:
        for number in range(options.seed, options.seed + options.rounds):
            asked = (number - options.seed) % options.questions_every == 0
            wrong += [f"seed {number}: {text}" for text in one_round(engine, number, count, asked=asked)]
            if (number - options.seed) % 50 == 49:
                seconds = time.monotonic() - began
                print(f"{number - options.seed + 1} rounds, {len(wrong)} wrong, {seconds:.0f} s", flush=True)
    options.out.write_text(table(count, wrong, options.seed), encoding="utf-8")
    print("\n".join(wrong[:20]))
    return int(bool(wrong))


def one_round(engine: Engine, number: int, count: Counter[str], *, asked: bool) -> list[str]:
    """Return what was wrong with one round."""
    rng = np.random.default_rng(number)
    round_ = odd_round(rng)
    problem = compile_problem(round_)
    left = judge(round_, plan_of(problem, tuple(problem.running.get(j) for j in range(problem.num_jobs))))
    count["rounds"] += 1
    if left.violations:
        count["rounds that contradict themselves"] += 1
        return []
    wrong = examine(round_, rng, routes=QUICK, moves=1).mismatches
    if not left.standing:
        return wrong
    count["rounds in which something stands"] += 1
    count.update(f"rule {rule}" for rule in {one.rule for one in left.standing})
    best, least, _ = optimum(problem)
    for method in METHODS_TRIED:
        try:
            plan = engine.solve(round_, method=method, time_limit_s=5, deterministic=True)
        except Unsupported:
            count["rounds that a method does not support"] += 1
            continue
        except Exception as error:  # noqa: BLE001 - what a campaign looks for
            wrong.append(f"{method}: {type(error).__name__}: {error}")
            continue
        count["plans"] += 1
        count["plans proven optimal"] += plan.status == "optimal"
        wrong += [f"{method}: {text}" for text in judged(round_, plan, best, least)]
        if method == "auto" and asked:
            wrong += questions(engine, round_, plan, count)
    return wrong


def judged(round_: Instance, plan: Plan, best: int, least: int) -> list[str]:
    """Return what is wrong with a plan, by referee, audit and brute force."""
    found = judge(round_, plan)
    wrong = [str(one) for one in found.violations] + audit(round_, plan)
    if [one.message for one in found.standing] != [one.detail for one in plan.standing]:
        wrong.append("the plan lists other limits than the referee finds")
    value = plan.levels[0]
    if value.objective > best or (value.bound is not None and value.bound < best):
        wrong.append(f"value {value.objective}, bound {value.bound}, the best is {best}")
    cost = next((level for level in plan.levels if level.name == "cost"), None)
    if cost is not None and cost.bound is not None and value.objective == best and cost.bound > least:
        wrong.append(f"bound of the cost {cost.bound}, the least is {least}")
    if plan.status == "optimal" and value.objective != best:
        wrong.append(f"called optimal at {value.objective} of {best}")
    return wrong


def questions(engine: Engine, round_: Instance, plan: Plan, count: Counter[str]) -> list[str]:
    """Ask everything once; an error that is not typed is wrong."""
    machine, new = round_.cluster.machines[0].id, job("asked-about")
    asks: dict[str, Callable[[], object]] = {
        "explain": lambda: [explain(round_, plan, one.job) for one in (*plan.unplaced, *plan.placements[:2])],
        "after": lambda: engine.solve(whatif.after_plan(round_, plan), time_limit_s=1),
        "fit": lambda: whatif.fit(round_, new),
        "slots": lambda: whatif.slots(round_),
        "fail": lambda: whatif.fail(round_, "node", limits=LIMITS),
        "add": lambda: whatif.add(round_, machine, limits=LIMITS),
        "price": lambda: whatif.price(round_, limits=LIMITS),
        "defrag": lambda: whatif.defrag(round_, limits=LIMITS),
        "review": lambda: whatif.review(round_, plan, limits=LIMITS),
        "parts": lambda: solve_in_parts(round_, parts=2, time_limit_s=2),
        "resident": lambda: resident(round_),
    }
    wrong = []
    for name, ask in asks.items():
        try:
            ask()
            count[f"asked {name}"] += 1
        except PlaceoptError as error:
            if "internal" in str(error).lower():
                wrong.append(f"{name}: {error}")
            count[f"refused {name}"] += 1
        except Exception as error:  # noqa: BLE001 - what a campaign looks for
            wrong.append(f"{name}: {type(error).__name__}: {error}")
    return wrong


def resident(round_: Instance) -> None:
    """Load, decide, commit, release everything, decide again; each state is one that the referee accepts."""
    with Engine() as engine:
        engine.load(round_)
        engine.commit(engine.place(time_limit_s=1))
        for running in list(engine.snapshot.running):
            engine.release(running.job)
        after = engine.place(time_limit_s=1)
        found = judge(engine.snapshot, after)
        if found.violations or found.standing:
            raise AssertionError(f"when nothing runs any more: {[*found.violations, *found.standing][0]}")


def table(count: Counter[str], wrong: list[str], seed: int) -> str:
    """Return the results as Markdown."""
    lines = [
        "# Rounds in which something changed under what runs",
        "",
        f"Seeds {seed} to {seed + count['rounds'] - 1}; 2 cores, Python {python_version()}, "
        f"ortools {version('ortools')}, highspy {version('highspy')}.",
        "",
        f"    python tests/campaigns/odd_rounds.py --rounds {count['rounds']} --seed {seed}",
        "",
        "| what | number |",
        "|---|---|",
        *(f"| {name} | {count[name]:,} |" for name in sorted(count)),
        f"| **anything else than expected** | **{len(wrong)}** |",
    ]
    lines += ["", *(f"- {text[:300]}" for text in wrong[:50])] if wrong else []
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
