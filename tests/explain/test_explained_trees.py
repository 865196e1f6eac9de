"""Why jobs of groups wait: verdicts and conflicts are those of brute force over the records."""

from hypothesis import event, given, settings

from helpers.tree_oracle import TreeOracle, layout_of
from placeopt import Instance, build, solve
from placeopt.explain import explain, explain_all
from placeopt.live_cluster import Engine
from placeopt.model import Demand, Domain, Group, Job, Option, Split
from strategies import tree_rounds


def test_the_rule_that_no_rack_can_keep() -> None:
    """A leader and five workers ask for one rack, of which none has room for all; two a node would do elsewhere."""
    nodes = [build.node(f"n{rack}{i}", domain=f"r{rack}") for rack in range(3) for i in range(2)]
    groups = (Group(id="lead"), Group(id="work", workers=5, demand=Demand(gpus=2), workers_per_node_max=2))
    job = Job(id="tree", options=(Option(groups=groups, splits=(Split(level="rack", domains=1),)),))
    round_ = build.instance(nodes, [job], domains=[Domain(id=f"r{i}") for i in range(3)])
    plan = solve(round_, isolation="thread", time_limit_s=5)
    assert (plan.status, plan.unplaced[0].reason) == ("optimal", "conflict")
    found = explain(round_, plan, "tree", isolation="thread", time_limit_s=60)
    assert (found.reason, found.proven) == ("conflict", True)
    assert [(one.group, one.asks) for one in found.conflict] == [("default:splits", "1 x rack")]


@settings(max_examples=settings().max_examples // 2)
@given(round_=tree_rounds(running=True))
def test_reasons_are_those_of_brute_force(engine: Engine, round_: Instance) -> None:
    """A conflict just where what does not run of a job fits nowhere; of trees that wait: `test_joint_jobs`."""
    plan, oracle = engine.solve(round_, method="counts", time_limit_s=20), TreeOracle(round_)
    for job in round_.jobs:
        held = next((one for one in plan.placements if one.job == job.id), None)
        option = job.options[0] if held is None else job.option(held.option)
        if held is not None and oracle.is_whole(option, layout_of(option, held)):
            continue
        found = explain(round_, plan, job.id, isolation="thread", time_limit_s=60)
        assert found.proven
        assert (found.reason == "conflict") == (not oracle.fits_alone(job))
        event(f"{'waits' if held is None else 'runs in part'}: {found.reason}")


def test_the_rest_of_a_job_that_runs_in_part() -> None:
    """One of two workers in a rack runs, and the other has no room there; whoever else waits is explained, too."""
    nodes = [build.node("n0", domain="r0"), build.node("n1", domain="r1")]
    job = build.job("part", groups=(Group(id="work", workers=2),), splits=(Split(level="rack", domains=1),))
    jobs = [job, build.job("big", gpus=2)]
    domains = [Domain(id="r0"), Domain(id="r1")]
    running = [build.running(job, [("n0", (0,), "work")])]
    round_ = build.instance(nodes, jobs, machines=[build.machine(gpus=1)], domains=domains, running=running)
    plan = solve(round_, isolation="thread", time_limit_s=5)
    found = explain(round_, plan, "part", isolation="thread", time_limit_s=60)
    assert (found.status, found.reason, found.proven) == ("waiting", "conflict", True)
    assert found.detail.startswith("runs in part; the rest does not fit")
    assert [(one.group, one.asks) for one in found.conflict] == [("default:splits", "1 x rack")]
    assert explain(round_, plan, "big", isolation="thread", time_limit_s=60).reason == "conflict"
    assert explain_all(round_, plan).waiting == 1
