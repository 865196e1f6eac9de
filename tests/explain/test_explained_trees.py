"""Why jobs of groups wait: verdicts and conflicts are those of brute force over the records."""

from hypothesis import event, given

from helpers.tree_oracle import TreeOracle
from placeopt import Instance, build, solve
from placeopt.explain import explain
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
    found = explain(round_, plan, "tree", isolation="thread")
    assert (found.reason, found.proven) == ("conflict", True)
    assert [(one.group, one.asks) for one in found.conflict] == [("default:splits", "1 x rack")]


@given(round_=tree_rounds())
def test_reasons_are_those_of_brute_force(engine: Engine, round_: Instance) -> None:
    """A conflict just where the job fits nowhere even alone; every rule of it is needed for that."""
    plan = engine.solve(round_, method="counts", time_limit_s=20)
    for waiting in plan.unplaced:
        job = next(job for job in round_.jobs if job.id == waiting.job)
        if not any(option.groups for option in job.options):
            continue
        found = explain(round_, plan, job.id, isolation="thread")
        assert found.proven
        assert (found.reason == "conflict") == (not TreeOracle(round_).fits_alone(job))
        event(found.reason or "none")
