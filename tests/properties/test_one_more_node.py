"""One more node of a type is the same node, whoever asks; `explain_all` has an oracle of its own (test_queue)."""

from hypothesis import event, given, settings

from helpers.node_conditions import admits
from placeopt import Engine, Instance, build
from placeopt.edits import AddNodes, apply
from placeopt.explain import explain_all
from placeopt.model import Policy, Queue, Quota
from placeopt.whatif import Limits, add, after_plan, compare, fit, parse_variants
from strategies import Choice, choices, rounds
from strategies.conditions import make_choosy_round, make_tolerations

LIMITS = Limits(time_limit_s=20, threads=1, method="counts")


def with_one(round_: Instance, machine: str) -> Instance:
    """Return the round with one more node of a machine type, by a patch."""
    return apply(round_, [AddNodes(do="add_nodes", machine=machine)])


def counted(round_: Instance) -> Instance:
    """Return the round in which each job counts 1 however it runs."""
    same = {"value": 1, "value_per_worker": 0}
    jobs = [
        job.model_copy(update={"options": tuple(o.model_copy(update=same) for o in job.options)}) for job in round_.jobs
    ]
    return round_.model_copy(update={"jobs": tuple(jobs)})


def assert_agreement(engine: Engine, round_: Instance) -> None:
    """What a patch makes is what `compare` and `add` count, type by type."""
    more = compare(round_, parse_variants("more=node", round_), limits=LIMITS)
    gains = {one.name: (one.gain_low, one.gain_high) for one in more.variants}
    for machine in {node.machine for node in round_.cluster.nodes}:
        variants = parse_variants(f"nodes:{machine}=0,1", round_)
        none, one = (each.outcome for each in compare(round_, variants, limits=LIMITS).variants)
        patched = engine.solve(with_one(round_, machine), time_limit_s=20, method="counts").levels[0]
        if not (none.value == none.value_bound and one.value == one.value_bound and patched.objective == patched.bound):
            event("not proven")
            continue
        assert one.value == patched.objective
        assert gains[f"node {machine}"] == (one.value - none.value,) * 2
        (found,) = add(round_, machine, limits=LIMITS).types
        made = [
            engine.solve(counted(made), time_limit_s=20, method="counts")
            for made in (round_, with_one(round_, machine))
        ]
        if all(not plan.unplaced or plan.levels[0].objective == plan.levels[0].bound for plan in made):
            enough = [found.found is not None and found.found <= number for number in (0, 1)]
            assert enough == [not plan.unplaced for plan in made]


@settings(max_examples=max(1, settings().max_examples // 5))
@given(round_=rounds(changes=False, standing=False))
def test_all_who_ask_get_the_same_node(engine: Engine, round_: Instance) -> None:
    """With labels, taints, types, domains and quotas."""
    assert_agreement(engine, round_)


@settings(max_examples=max(1, settings().max_examples // 2))
@given(choice=choices)
def test_all_judge_the_conditions_of_jobs(engine: Engine, choice: Choice) -> None:
    """Jobs that choose by expressions, names and taints, two types and a quota: `explain_all` agrees, too."""
    round_ = make_choosy_round(choice, nodes=4, jobs=3, drained=0)
    machines = [build.machine(name, gpus=1) for name in ("m", "other")]
    nodes = tuple(
        node.model_copy(update={"machine": choice.pick(machines).id, "labels": {**node.labels, "host": node.id}})
        for node in round_.cluster.nodes
    )
    queue = Queue(id="q", quota=Quota(gpu_milli=choice.pick((1000, 4000))))
    jobs = [job.model_copy(update={"queue": choice.pick(("q", None))}) for job in round_.jobs]
    jobs += [build.job("named", node_selector={"host": choice.pick(nodes).id}, tolerations=make_tolerations(choice))]
    domains = round_.cluster.domains
    round_ = build.instance(nodes, jobs, machines=machines, domains=domains, policy=Policy(queues=(queue,)))
    assert_agreement(engine, round_)
    plan = engine.solve(round_, time_limit_s=20, method="counts")
    waiting = [one.job for one in plan.unplaced]
    freed = {one.change: one.jobs_alone for one in explain_all(round_, plan, time_limit_s=20).changes}
    record = {job.id: job for job in jobs}
    held = sum(record[placed.job].queue == "q" for placed in plan.placements)
    for machine in {node.machine for node in nodes}:
        made = with_one(round_, machine)
        more = made.cluster.nodes[-1]
        takes = [
            job
            for name in waiting
            if (job := record[name]).queue is None or 1000 * (held + 1) <= (queue.quota.gpu_milli or 0)
        ]
        starts = sum(admits(made, job, more) for job in takes)
        assert freed.get(f"one more node of type {machine!r}", 0) == starts
        larger = with_one(after_plan(round_, plan), machine)
        assert sum(fit(larger, record[name], LIMITS).found > 0 for name in waiting) == starts
