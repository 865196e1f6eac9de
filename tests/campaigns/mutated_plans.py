"""
Campaign: plans mutated at random, under every kind of policy; nothing that reads a plan raises for any of them.

Rounds and policies are those of `any_rounds`; plans are what greedy makes of them, or what `random_rounds` made under
another policy. One to four mutations change a plan, the policy that it carries, or the round under it. They go past
what the records' validators let through: empty lists, ranks below 0, a node in two assignments. Every plan goes to
``violations``, ``audit`` and, where it is for some jobs, to the ledger: none may raise. Some go on to ``explain``,
``after_plan``, ``review``, to ``solve`` as the previous plan, and to the drawing and the summary of ``show``: these may
raise ``BadInput`` and nothing else. A plan that one mutation breaks for certain must be refused by a rule that the
mutation names. Run as a script it prints a table.
"""

import argparse
import random
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from pydantic import ValidationError

from campaigns.any_rounds import any_policy, any_round, elsewhere, referring
from placeopt import BadInput, Engine, audit
from placeopt.check import Ledger, Violation, violations
from placeopt.explain import explain
from placeopt.formats.documents import dumps, loads
from placeopt.model import (
    Assignment,
    Cost,
    Instance,
    Level,
    Moved,
    Placement,
    Plan,
    Preempted,
    Shrunk,
    Standing,
    Unplaced,
    WorkerGpus,
)
from placeopt.report.text.documents import plan_data, plan_page
from placeopt.report.text.palette import ASCII
from placeopt.report.text.plan_summary import plan_summary
from placeopt.whatif import Limits, after_plan, review

Pair = tuple[Instance, Plan]
Mutation = Callable[[random.Random, Instance, Plan], "Pair | None"]
MUTATIONS: dict[str, tuple[Mutation, str | None]] = {}
"""By name: the mutation, and the rule by which every plan is refused that it alone has changed; None if it may pass."""

PLANS_A_ROUND = 40
READERS_EVERY, SOLVES_EVERY = 10, 200
"""One plan of so many goes to those that read valid plans only, and to those that solve rounds."""


def mutation(name: str, rule: str | None = None) -> Callable[[Mutation], Mutation]:
    """Register a mutation."""

    def register(function: Mutation) -> Mutation:
        MUTATIONS[name] = function, rule
        return function

    return register


# ---- edits


def listing(plan: Plan, **lists: Any) -> Plan:
    """Replace lists of a plan, without a look at them."""
    return plan.model_copy(update={name: tuple(entries) for name, entries in lists.items()})


def swap_in(entries: Any, at: int, by: Any) -> tuple[Any, ...]:
    """Replace entry ``at`` of a list."""
    return (*entries[:at], by, *entries[at + 1 :])


def placing(plan: Plan, at: int, **fields: Any) -> Plan:
    """Change fields of a placement."""
    return listing(plan, placements=swap_in(plan.placements, at, plan.placements[at].model_copy(update=fields)))


def each_placement(name: str, rule: str | None = None) -> Callable[[Any], Any]:
    """Register a mutation of one placement: ``change(rng, round, placement)`` returns its new fields, or None."""

    def register(change: Callable[[random.Random, Instance, Placement], dict[str, Any] | None]) -> Any:
        @mutation(name, rule)
        def _(rng: random.Random, round_: Instance, plan: Plan) -> Pair | None:
            if not plan.placements:
                return None
            at = rng.randrange(len(plan.placements))
            fields = change(rng, round_, plan.placements[at])
            return None if fields is None else (round_, placing(plan, at, **fields))

        return change

    return register


def each_assignment(name: str, rule: str | None = None) -> Callable[[Any], Any]:
    """Register a mutation of one assignment: ``change(rng, round, assignment)`` returns its new fields, or None."""

    def register(change: Callable[[random.Random, Instance, Assignment], dict[str, Any] | None]) -> Any:
        @each_placement(name, rule)
        def _(rng: random.Random, round_: Instance, held: Placement) -> dict[str, Any] | None:
            if not held.assignments:
                return None
            at = rng.randrange(len(held.assignments))
            fields = change(rng, round_, held.assignments[at])
            if fields is None:
                return None
            return {"assignments": swap_in(held.assignments, at, held.assignments[at].model_copy(update=fields))}

        return change

    return register


def any_job(rng: random.Random, round_: Instance) -> str:
    """Choose the id of a job, now and then of one that is not there."""
    return "stranger" if rng.random() < 0.2 else rng.choice(round_.jobs).id


# ---- one placement


@each_placement("unknown job", "account")
def _(rng: random.Random, round_: Instance, held: Placement) -> Any:
    return {"job": "stranger"}


@each_placement("job of another placement", "account")
def _(rng: random.Random, round_: Instance, held: Placement) -> Any:
    other = rng.choice(round_.jobs).id
    return None if other == held.job else {"job": other}


@each_placement("unknown option", "option")
def _(rng: random.Random, round_: Instance, held: Placement) -> Any:
    return {"option": rng.choice(("", "none", "default2"))}


@each_placement("option of any job")
def _(rng: random.Random, round_: Instance, held: Placement) -> Any:
    return {"option": rng.choice(rng.choice(round_.jobs).options).id}


@each_placement("no assignments", "workers")
def _(rng: random.Random, round_: Instance, held: Placement) -> Any:
    return {"assignments": ()}


@each_placement("assignment twice", "workers")
def _(rng: random.Random, round_: Instance, held: Placement) -> Any:
    return {"assignments": (*held.assignments, rng.choice(held.assignments))} if held.assignments else None


@each_placement("assignment dropped")
def _(rng: random.Random, round_: Instance, held: Placement) -> Any:
    return {"assignments": held.assignments[1:]}


# ---- one assignment


@each_assignment("unknown node", "unknown_node")
def _(rng: random.Random, round_: Instance, one: Assignment) -> Any:
    return {"node": rng.choice(("nowhere", "n99", ""))}


@each_assignment("another node")
def _(rng: random.Random, round_: Instance, one: Assignment) -> Any:
    return {"node": rng.choice(round_.cluster.nodes).id}


@each_assignment("GPU out of range", "gpu_indexes")
def _(rng: random.Random, round_: Instance, one: Assignment) -> Any:
    if not one.gpus or not one.workers or not one.workers[0].gpus:
        return None
    old, new = one.workers[0].gpus[0], rng.choice((4, 8, 1023, 10**9, -1, -5))
    if new == old or one.node not in {node.id for node in round_.cluster.nodes}:
        return None  # what runs may hold a GPU out of range already
    workers = tuple(w.model_copy(update={"gpus": tuple(new if g == old else g for g in w.gpus)}) for w in one.workers)
    return {"workers": workers, "gpus": {str(new) if g == str(old) else g: m for g, m in one.gpus.items()}}


@each_assignment("GPU listed that no worker holds", "gpu_indexes")
def _(rng: random.Random, round_: Instance, one: Assignment) -> Any:
    return {"gpus": {**one.gpus, str(rng.choice((77, 1022))): rng.choice((1, 1000))}}


@each_assignment("GPU key that is no number", "gpu_indexes")
def _(rng: random.Random, round_: Instance, one: Assignment) -> Any:
    return {"gpus": {**one.gpus, rng.choice(("x", "", "1.0", "9" * 5000)): 1000}}


@each_assignment("no GPUs listed")
def _(rng: random.Random, round_: Instance, one: Assignment) -> Any:
    return {"gpus": {}}


@each_assignment("no workers", "workers")
def _(rng: random.Random, round_: Instance, one: Assignment) -> Any:
    return {"workers": ()} if one.workers else None


@each_assignment("rank wrong", "workers")
def _(rng: random.Random, round_: Instance, one: Assignment) -> Any:
    if not one.workers:
        return None
    first = one.workers[0].model_copy(update={"rank": rng.choice((-1, 999, 10**12))})
    return {"workers": swap_in(one.workers, 0, first)}


@each_assignment("worker twice", "workers")
def _(rng: random.Random, round_: Instance, one: Assignment) -> Any:
    return {"workers": (*one.workers, one.workers[0])} if one.workers else None


@each_assignment("many workers more", "workers")
def _(rng: random.Random, round_: Instance, one: Assignment) -> Any:
    return {"workers": (*one.workers, *(WorkerGpus(rank=i + 1) for i in range(rng.choice((1, 30, 1000)))))}


@each_assignment("GPUs of a worker changed", "gpu_indexes")
def _(rng: random.Random, round_: Instance, one: Assignment) -> Any:
    if not one.workers:
        return None
    held = one.workers[0].gpus
    gpus = rng.choice(((*held, 0), (*held, *held, 1), held[1:] if held else (0,), (*held, -2)))
    return {"workers": swap_in(one.workers, 0, one.workers[0].model_copy(update={"gpus": gpus}))}


@each_assignment("GPUs for whoever asks for none")
def _(rng: random.Random, round_: Instance, one: Assignment) -> Any:
    gpus = tuple(rng.sample(range(4), rng.randint(1, 3)))
    workers = tuple(w.model_copy(update={"gpus": gpus if i == 0 else ()}) for i, w in enumerate(one.workers))
    return {"gpus": {str(gpu): 1000 for gpu in gpus}, "workers": workers}


@each_assignment("share out of range")
def _(rng: random.Random, round_: Instance, one: Assignment) -> Any:
    return {"gpus": dict.fromkeys(one.gpus, rng.choice((0, -7, 1, 1000, 10**9, 10**30)))}


@each_assignment("amounts wrong", "amounts")
def _(rng: random.Random, round_: Instance, one: Assignment) -> Any:
    return {rng.choice(("cpu_millicores", "memory_mib")): rng.choice((-1, 10**9, 10**30))}


# ---- lists of placements and of jobs that wait


@mutation("placement dropped", "account")
def _(rng: random.Random, round_: Instance, plan: Plan) -> Pair | None:
    if not plan.placements:
        return None
    at = rng.randrange(len(plan.placements))
    return round_, listing(plan, placements=plan.placements[:at] + plan.placements[at + 1 :])


@mutation("placement twice", "account")
def _(rng: random.Random, round_: Instance, plan: Plan) -> Pair | None:
    return plan.placements and (round_, listing(plan, placements=(*plan.placements, rng.choice(plan.placements))))


@mutation("all placements dropped")
def _(rng: random.Random, round_: Instance, plan: Plan) -> Pair | None:
    return round_, listing(plan, placements=())


@mutation("options of two placements swapped")
def _(rng: random.Random, round_: Instance, plan: Plan) -> Pair | None:
    return _swapped(rng, round_, plan, "option")


@mutation("places of two placements swapped")
def _(rng: random.Random, round_: Instance, plan: Plan) -> Pair | None:
    return _swapped(rng, round_, plan, "assignments")


def _swapped(rng: random.Random, round_: Instance, plan: Plan, field: str) -> Pair | None:
    if len(plan.placements) < 2:
        return None
    a, b = rng.sample(range(len(plan.placements)), 2)
    one, two = getattr(plan.placements[a], field), getattr(plan.placements[b], field)
    return round_, placing(placing(plan, a, **{field: two}), b, **{field: one})


@mutation("placed and unplaced", "account")
def _(rng: random.Random, round_: Instance, plan: Plan) -> Pair | None:
    if not plan.placements:
        return None
    entry = Unplaced(job=rng.choice(plan.placements).job, reason="conflict", detail="no room")
    return round_, listing(plan, unplaced=(*plan.unplaced, entry))


@mutation("unknown job unplaced", "account")
def _(rng: random.Random, round_: Instance, plan: Plan) -> Pair | None:
    entry = Unplaced(job="stranger", reason="conflict", detail=rng.choice(("", "no room")))
    return round_, listing(plan, unplaced=(entry, *plan.unplaced))


@mutation("all unplaced dropped")
def _(rng: random.Random, round_: Instance, plan: Plan) -> Pair | None:
    return round_, listing(plan, unplaced=())


@mutation("unplaced twice, without reason", "account")
def _(rng: random.Random, round_: Instance, plan: Plan) -> Pair | None:
    if not plan.unplaced:
        return None
    return round_, listing(plan, unplaced=(*plan.unplaced, plan.unplaced[0].model_copy(update={"detail": " "})))


# ---- changes of running jobs, and plans for some jobs


@mutation("moved lies", "moved")
def _(rng: random.Random, round_: Instance, plan: Plan) -> Pair | None:
    entry = {"job": any_job(rng, round_), "from": rng.choice(((), ("n0",), ("nowhere", "n1"))), "to": ("nowhere",)}
    return round_, listing(plan, moved=(*plan.moved, Moved.model_validate(entry)))


@mutation("shrunk lies", "shrunk")
def _(rng: random.Random, round_: Instance, plan: Plan) -> Pair | None:
    entry = Shrunk(job=any_job(rng, round_), workers=rng.choice((0, 1, 999)))
    return round_, listing(plan, shrunk=(*plan.shrunk, entry, entry))


@mutation("preempted lies", "preempted")
def _(rng: random.Random, round_: Instance, plan: Plan) -> Pair | None:
    entry = Preempted(job=any_job(rng, round_), freed_gpu_milli=rng.choice((0, 7, 10**12)))
    return round_, listing(plan, preempted=(*plan.preempted, entry, entry))


@mutation("all changes dropped")
def _(rng: random.Random, round_: Instance, plan: Plan) -> Pair | None:
    return round_, listing(plan, moved=(), shrunk=(), preempted=())


@mutation("all that run preempted")
def _(rng: random.Random, round_: Instance, plan: Plan) -> Pair | None:
    entries = tuple(Preempted(job=held.job, freed_gpu_milli=0) for held in round_.running)
    return round_, listing(plan, preempted=entries)


@mutation("for some jobs")
def _(rng: random.Random, round_: Instance, plan: Plan) -> Pair | None:
    asked = [any_job(rng, round_) for _ in range(rng.randint(0, 4))]
    ref = plan.instance.model_copy(update={"digest": None})
    some = plan.model_copy(update={"asked": tuple(asked), "instance": ref})
    if rng.random() < 0.7:
        some = listing(
            some,
            placements=(p for p in plan.placements if p.job in asked),
            unplaced=(u for u in plan.unplaced if u.job in asked),
        )
    return round_, some


# ---- what the plan refers to, and what it says of itself


@mutation("another policy")
def _(rng: random.Random, round_: Instance, plan: Plan) -> Pair | None:
    return round_, referring(plan, round_, any_policy(rng))


@mutation("policy changed under its digest", "reference")
def _(rng: random.Random, round_: Instance, plan: Plan) -> Pair | None:
    policy = any_policy(rng)
    if policy.digest == plan.policy.digest:
        return None
    return round_, plan.model_copy(update={"policy": plan.policy.model_copy(update={"values": policy})})


@mutation("of another round", "reference")
def _(rng: random.Random, round_: Instance, plan: Plan) -> Pair | None:
    field = rng.choice(({"name": "other"}, {"revision": round_.revision + 1}, {"digest": "0"}))
    return round_, plan.model_copy(update={"instance": plan.instance.model_copy(update=field)})


@mutation("levels, costs and gap wrong")
def _(rng: random.Random, round_: Instance, plan: Plan) -> Pair | None:
    value = Level(name="value", sense=rng.choice(("max", "min")), objective=-(10**30), bound=rng.choice((None, 0)))
    levels = rng.choice(((), (value,), (value, value), (value.model_copy(update={"name": "cost"}), value)))
    costs = rng.choice(({}, {"nothing": Cost(raw=-1, weight=0, worst=0, unit="GPU")}))
    gap = rng.choice((None, 0.0, -1.0, float("nan"), float("inf")))
    return round_, plan.model_copy(update={"levels": levels, "costs": costs, "gap": gap, "status": "optimal"})


@mutation("standing lies")
def _(rng: random.Random, round_: Instance, plan: Plan) -> Pair | None:
    entry = Standing(
        job=rng.choice((None, any_job(rng, round_))),
        rule=rng.choice(("cpu", "no rule", "unknown_node")),
        node=rng.choice((None, "nowhere", "n0")),
        detail="",
    )
    return round_, listing(plan, standing=(entry, entry))


# ---- the round under the plan


def changed(round_: Instance, plan: Plan, **fields: Any) -> Pair | None:
    """Change fields of the round, and let the plan refer to that; None if such a round cannot be."""
    try:
        other = Instance(**{name: getattr(round_, name) for name in Instance.model_fields} | fields)
    except ValidationError:
        return None
    return other, referring(plan, other)


@mutation("what runs is elsewhere")
def _(rng: random.Random, round_: Instance, plan: Plan) -> Pair | None:
    if not round_.running:
        return None
    at = rng.randrange(len(round_.running))
    return changed(round_, plan, running=swap_in(round_.running, at, elsewhere(rng, round_.running[at])))


@mutation("node gone")
def _(rng: random.Random, round_: Instance, plan: Plan) -> Pair | None:
    nodes = list(round_.cluster.nodes)
    if len(nodes) < 2:
        return None
    nodes.pop(rng.randrange(len(nodes)))
    return changed(round_, plan, cluster=round_.cluster.model_copy(update={"nodes": tuple(nodes)}))


@mutation("nodes of another machine type")
def _(rng: random.Random, round_: Instance, plan: Plan) -> Pair | None:
    kinds = [machine.id for machine in round_.cluster.machines]
    nodes = tuple(node.model_copy(update={"machine": rng.choice(kinds)}) for node in round_.cluster.nodes)
    return changed(round_, plan, cluster=round_.cluster.model_copy(update={"nodes": nodes}))


@mutation("nothing runs")
def _(rng: random.Random, round_: Instance, plan: Plan) -> Pair | None:
    return changed(round_, plan, running=())


@mutation("jobs in another order, some gone")
def _(rng: random.Random, round_: Instance, plan: Plan) -> Pair | None:
    runs = {held.job for held in round_.running}
    kept = [job for job in round_.jobs if job.id in runs or rng.random() < 0.8]
    rng.shuffle(kept)
    return changed(round_, plan, jobs=tuple(kept)) if kept else None


# ---- the campaign


def rounds(rng: random.Random, engine: Engine) -> Pair:
    """Make a round and a plan: greedy's where what runs is lawful, else that of the round before it was changed."""
    round_, plan = any_round(rng)
    if rng.random() < 0.5:
        without = changed(round_, plan, running=())
        assert without is not None
        round_, plan = without
    try:
        engine.load(round_)
        return round_, engine.place(method="stranding", prove=False, explain=False, deterministic=True)
    except BadInput:
        return round_, plan


def mutated(rng: random.Random, pair: Pair) -> tuple[Pair, list[str]]:
    """Apply one to four mutations; return what they are called too."""
    done: list[str] = []
    wanted = rng.choice((1, 1, 2, 3, 4))
    while len(done) < wanted:
        name = rng.choice(list(MUTATIONS))
        changed_pair = MUTATIONS[name][0](rng, *pair)
        if changed_pair:
            pair = changed_pair
            done.append(name)
    return pair, done


def judge(pair: Pair, done: list[str]) -> str | None:
    """Give a plan to all that must never raise; return what is wrong, None if nothing is."""
    round_, plan = pair
    found = violations(round_, plan)
    if not all(isinstance(one, Violation) and str(one) for one in found):
        return "not a list of violations"
    if plan.asked is not None:
        ledger = Ledger(round_, plan.policy.values)
        ledger.violations(round_, plan)
        ledger.standing([one.node for held in round_.running for one in held.assignments], plan)
    wrong = audit(round_, plan)
    if not all(isinstance(text, str) and text for text in wrong):
        return "not a list of sentences"
    rule = MUTATIONS[done[0]][1]
    if len(done) == 1 and rule is not None and rule not in {one.rule for one in found}:
        return f"expected {rule}, found {sorted({one.rule for one in found})}"
    return None


def read(rng: random.Random, pair: Pair) -> None:
    """Give a plan to those that read valid ones; they raise ``BadInput``, or nothing."""
    round_, plan = pair
    readers: tuple[Callable[[], object], ...] = (
        lambda: after_plan(round_, plan),
        lambda: explain(round_, plan, any_job(rng, round_), time_limit_s=0.5, isolation="thread"),
    )
    drawn = from_file(plan)
    if drawn is not None:
        readers += (
            lambda: plan_page(round_, drawn, ASCII, width=100),
            lambda: plan_data(round_, drawn),
            lambda: plan_summary(drawn),
        )
    for reader in readers:
        try:
            reader()
        except BadInput:
            continue


def from_file(plan: Plan) -> Plan | None:
    """Return the plan as a file gives it back; None where no file can hold it."""
    try:
        return loads(Plan, dumps(plan))
    except BadInput:
        return None


def solve_with(engine: Engine, pair: Pair) -> None:
    """Solve the round with the plan as the previous one, and review it."""
    round_, plan = pair
    for solver in (
        lambda: engine.solve(round_, previous=plan, method="stranding", time_limit_s=0.5),
        lambda: review(round_, plan, limits=Limits(time_limit_s=0.5, method="stranding")),
    ):
        try:
            solver()
        except BadInput:
            continue


def run(count: int, seed: int = 0, *, solves: bool = True) -> tuple[Counter[str], Counter[str], list[str]]:
    """Mutate ``count`` plans; return how often each mutation was made, figures, and what went wrong."""
    made: Counter[str] = Counter()
    figures: Counter[str] = Counter()
    wrong: list[str] = []
    with Engine(isolation="thread") as engine:
        while figures["plans"] < count:
            rng = random.Random(seed)
            base = rounds(rng, engine)
            figures["rounds"] += 1
            figures["rounds with a valid plan"] += not violations(*base)
            for number in range(min(PLANS_A_ROUND, count - figures["plans"])):
                pair, done = mutated(rng, base)
                made.update(done)
                figures["plans"] += 1
                try:
                    fault = judge(pair, done)
                    refused = bool(violations(*pair))
                    figures["refused"] += refused
                    figures["for some jobs"] += pair[1].asked is not None
                    if figures["plans"] % READERS_EVERY == 0 or not refused:
                        figures["read"] += 1
                        read(rng, pair)
                    if solves and figures["plans"] % SOLVES_EVERY == 0:
                        figures["solved after"] += 1
                        solve_with(engine, pair)
                except Exception as error:  # noqa: BLE001 - that is what is looked for
                    last = traceback.extract_tb(error.__traceback__)[-1]
                    fault = f"{type(error).__name__}: {str(error)[:200]} ({Path(last.filename).name}:{last.lineno})"
                if fault is not None:
                    wrong.append(f"seed {seed}, plan {number} ({', '.join(done)}): {fault}")
            seed += 1
    return made, figures, wrong


def main() -> int:
    """Run the campaign; print a table of mutations."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[1])
    parser.add_argument("plans", nargs="?", type=int, default=2_000)
    parser.add_argument("seed", nargs="?", type=int, default=0)
    options = parser.parse_args()
    made, figures, wrong = run(options.plans, options.seed)
    for name in MUTATIONS:
        print(f"{made[name]:7} {name}")
    print(", ".join(f"{number} {name}" for name, number in figures.items()))
    print(f"{figures['plans']} mutated plans by {len(made)} mutations, {len(wrong)} faults")
    for fault in wrong[:20]:
        print(fault)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
