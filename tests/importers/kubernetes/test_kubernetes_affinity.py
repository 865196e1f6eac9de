"""Pod affinity and anti-affinity as relations: on which nodes a pod may start, beside what runs and what waits."""

from typing import Any

import pytest

from helpers.imported_rounds import left_out, notes_of
from helpers.kubernetes_objects import HOSTNAME, apart, near, node, pod, read, term
from helpers.node_conditions import chosen_nodes
from helpers.plans import plan_for
from placeopt import Instance, build, solve
from placeopt.check import violations
from placeopt.importers import KubernetesObjects
from placeopt.model import Policy, Weights

ZONE, RACK, ROW = "topology.kubernetes.io/zone", "topology.kubernetes.io/rack", "example.com/row"
WEB, DB = {"app": "web"}, {"app": "db"}


def zoned(*names: str) -> list[dict[str, Any]]:
    """Return nodes ``a1``, ``b2`` in the zones of their first letters."""
    return [node(name, labels={ZONE: name[0], HOSTNAME: name}) for name in names]


def gang(name: str, **more: Any) -> dict[str, Any]:
    """Return a pod of the gang ``g``."""
    return pod(name, **{**more, "labels": {"jobset.sigs.k8s.io/jobset-name": "g", **more.get("labels", {})}})


def pair(nodes: list[dict[str, Any]], **more: Any) -> list[dict[str, Any]]:
    """Return these nodes, and a gang of two equal pods."""
    return [*nodes, gang("p", **more), gang("q", **more)]


def preferred(key: str, chosen: dict[str, Any], weight: int) -> dict[str, Any]:
    """Return affinity or anti-affinity that is preferred."""
    return {key: {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight, "podAffinityTerm": chosen}]}}


def expressed(*expressions: tuple[str, str, list[str]], key: str = HOSTNAME, **more: Any) -> dict[str, Any]:
    """Return a term whose selector has expressions."""
    made = [{"key": label, "operator": operator, "values": values} for label, operator, values in expressions]
    return {"topologyKey": key, "labelSelector": {"matchExpressions": made}, **more}


AB, ABC = zoned("a", "b"), zoned("a1", "a2", "b1")
SAME_RACKS = [node(zone, labels={ZONE: zone, RACK: "r1"}) for zone in "ab"]
RUNNING_WEB, WAITING_WEB = pod("r", "a1", labels=WEB), pod("r", labels=WEB)
P_WEB, O_WEB = pod("p", labels=WEB), pod("p", namespace="other", labels=WEB)
TEAM = {"namespaceSelector": {"matchLabels": {"team": "x"}}}
DAEMON = {"asks": {"cpu": "1"}, "ownerReferences": [{"kind": "DaemonSet", "controller": True}]}
OF_TEAM = pod("r", "a", namespace="other", affinity=apart(term(WEB, **TEAM)))
SOME_TEAM = {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "Exists"}]}}
OF_SOME_TEAM = pod("r", "a", namespace="other", affinity=apart(term(WEB, **SOME_TEAM)))


def repels(*terms: dict[str, Any]) -> dict[str, Any]:
    """Return a pod that runs on ``a1`` and keeps others away."""
    return pod("r", "a1", affinity=apart(*terms))


def space(team: str) -> dict[str, Any]:
    """Return the namespace of the pods, of a team."""
    return {"kind": "Namespace", "metadata": {"name": "default", "labels": {"team": team}}}


def may_start(found: Instance) -> tuple[str, ...]:
    """Return the nodes on which the pod ``p`` may start alone, by the referee."""
    (job,) = [job for job in found.jobs if job.id.endswith("/p")]
    gpus = found.cluster.gpus_by_node
    free = {name: list(range(count)) for name, count in gpus.items()}
    for assignment in (a for held in found.running for a in held.assignments):
        free[assignment.node] = [gpu for gpu in free[assignment.node] if str(gpu) not in assignment.gpus]
    places = {name: build.placement(job, [(name, (free[name][0],))]) for name in free}
    return tuple(name for name, place in places.items() if not violations(found, plan_for(found, {job.id: place})))


@pytest.mark.parametrize(
    ("nodes", "objects"),
    [  # against what runs: by host, by zone, in both directions, in other namespaces
        (("a2", "b1"), [*ABC, RUNNING_WEB, pod("p", affinity=apart(term(WEB)))]),
        (("b1",), [*ABC, RUNNING_WEB, pod("p", affinity=apart(term(WEB, ZONE)))]),
        (("b1",), [*ABC, repels(term(WEB, ZONE)), P_WEB]),
        (("a1", "a2", "b1"), [*ABC, repels(term(WEB, ZONE)), pod("p")]),
        (("a1", "a2", "b1"), [*ABC, repels(term(WEB, ZONE)), O_WEB]),
        (("a2", "b1"), [*ABC, repels(term(WEB, namespaces=["other"])), O_WEB]),
        (("a2", "b1"), [*ABC, repels(term(WEB, namespaceSelector={})), O_WEB]),
        (("a1", "a2", "b1"), [*ABC, repels(term(None)), P_WEB]),
        # expressions: another application, a label that is there, or is not, combined
        (("a2", "b1"), [*ABC, RUNNING_WEB, pod("p", affinity=apart(expressed(("app", "In", ["web", "db"]))))]),
        (("a1", "a2", "b1"), [*ABC, RUNNING_WEB, pod("p", affinity=apart(expressed(("app", "NotIn", ["web"]))))]),
        (("a2", "b1"), [*ABC, RUNNING_WEB, pod("p", affinity=apart(expressed(("app", "NotIn", ["db"]))))]),
        (("a2", "b1"), [*ABC, RUNNING_WEB, pod("p", affinity=apart(expressed(("app", "Exists", []))))]),
        (("a1", "a2", "b1"), [*ABC, RUNNING_WEB, pod("p", affinity=apart(expressed(("app", "DoesNotExist", []))))]),
        (
            ("a1", "a2", "b1"),
            [*ABC, RUNNING_WEB, pod("p", affinity=apart(expressed(("app", "Exists", []), ("tier", "Exists", []))))],
        ),
        # near what runs; a first pod that meets its own term goes anywhere with the label; with nobody, nowhere
        (("a1",), [*ABC, RUNNING_WEB, pod("p", affinity=near(term(WEB)))]),
        (("a1", "a2"), [*ABC, RUNNING_WEB, pod("p", affinity=near(term(WEB, ZONE)))]),
        (("a1", "a2", "b1"), [*ABC, node("bare"), pod("p", labels=WEB, affinity=near(term(WEB, ZONE)))]),
        (("a1", "a2"), [*ABC, RUNNING_WEB, pod("p", labels=WEB, affinity=near(term(WEB, ZONE)))]),
        ((), [*ABC, node("bare"), pod("p", affinity=near(term(WEB, ZONE)))]),
        ((), [*ABC, RUNNING_WEB, pod("p", affinity=near(term(None)))]),
        ((), [*ABC, WAITING_WEB, pod("p", affinity=near(term(WEB)))]),
        # several terms: a pod counts that all of them select, in the domain of each
        (("a1",), [*ABC, RUNNING_WEB, pod("p", affinity=near(term(WEB), term(WEB, ZONE)))]),
        ((), [*ABC, RUNNING_WEB, pod("s", "b1", labels=DB), pod("p", affinity=near(term(WEB, ZONE), term(DB, ZONE)))]),
        # a label that is no level, and racks of one name in two zones: one domain
        (("a1", "a2", "b1"), [*ABC, RUNNING_WEB, pod("p", affinity=apart(term(WEB, ROW)))]),
        ((), [*SAME_RACKS, pod("r", "a", labels=WEB), pod("p", affinity=apart(term(WEB, RACK)))]),
        # namespaces by their labels; of one that is not listed, what runs is apart from all
        (("b",), [*AB, OF_TEAM, P_WEB, space("x")]),
        (("a", "b"), [*AB, OF_TEAM, P_WEB, space("y")]),
        (("b",), [*AB, OF_TEAM, P_WEB]),
        (("b",), [*AB, OF_SOME_TEAM, P_WEB]),
        # a daemon that is meant is a job that runs
        (
            ("a2", "b1"),
            [
                *ABC,
                pod("r", "a1", labels=WEB, asks={"cpu": "1"}, owner="DaemonSet"),
                pod("p", affinity=apart(term(WEB))),
            ],
        ),
        # what is preferred keeps no pod off
        (("a1", "a2", "b1"), [*ABC, RUNNING_WEB, pod("p", affinity=preferred("podAntiAffinity", term(WEB), 1))]),
    ],
)
def test_where_a_pod_may_start(nodes: tuple[str, ...], objects: list[dict[str, Any]]) -> None:
    found = read(*objects)
    assert may_start(found) == nodes
    assert ("namespaces that are not listed" in notes_of(found)) == (
        objects[2:] in ([OF_TEAM, P_WEB], [OF_SOME_TEAM, P_WEB])
    )


@pytest.mark.parametrize(
    ("reason", "objects"),
    [
        ("namespaces", [*AB, pod("r", "a", namespace="o", labels=WEB), pod("p", affinity=apart(term(WEB, **TEAM)))]),
        (
            "selects some pods",
            [*ABC, repels(term(WEB)), gang("p", labels=WEB), gang("q")],
        ),
    ],
)
def test_what_cannot_be_said_of_a_job_is_left_out(reason: str, objects: list[dict[str, Any]]) -> None:
    (line,) = left_out(read(*objects))
    assert reason in line


NOTHING_ELSE = Policy(weights=Weights(communication=0, interference=0, fragmentation=0, resource=1000))


def starts(found: Instance, policy: Policy | None = None) -> dict[str, list[str]]:
    """Return the nodes of each job that the best plan starts, proven by an exact model."""
    plan = solve(found, method="counts", policy=policy)
    assert plan.status == "optimal"
    names = {held.job for held in found.running}
    return {
        placed.job.removeprefix("default/"): sorted(a.node for a in placed.assignments for _ in a.workers)
        for placed in plan.placements
        if placed.job not in names
    }


def test_pods_that_wait_and_exclude_each_other_are_all_read() -> None:
    """Three replicas apart by zone, two zones: two start, in one zone each."""
    own = {"labels": WEB, "affinity": apart(term(WEB, ZONE))}
    found = starts(read(*ABC, *(pod(f"p{i}", **own) for i in range(3))))
    assert sorted(nodes[0][0] for nodes in found.values()) == ["a", "b"]


def test_one_that_excludes_another_that_waits() -> None:
    """Whichever of the two has the term."""
    for fields in ({"p": {"affinity": apart(term(WEB, ZONE))}, "w": {"labels": WEB}},):
        found = starts(read(*AB, *(pod(name, **more) for name, more in fields.items())))
        assert sorted(nodes[0] for nodes in found.values()) == ["a", "b"]
        assert len(starts(read(node("a", labels={ZONE: "a"}), *(pod(n, **m) for n, m in fields.items())))) == 1


def test_a_pod_follows_one_that_waits_too() -> None:
    """The one that is wanted starts anyway; the other where it is, or both wait."""
    full = pod("full", "b", asks={"nvidia.com/gpu": "8"})
    found = starts(read(*AB, full, WAITING_WEB, pod("p", affinity=near(term(WEB, ZONE)))))
    assert found == {"r": ["a"], "p": ["a"]}


def test_two_that_want_each_other_start_together() -> None:
    """Neither could start first."""
    one, other = ({"labels": own, "affinity": near(term(wanted, ZONE))} for own, wanted in ((WEB, DB), (DB, WEB)))
    found = starts(read(*AB, pod("p", **one), pod("q", **other)))
    assert found["p"] == found["q"]


def test_replicas_near_each_other_share_one_domain() -> None:
    """Kubernetes lets the first pod open a rack, and the others follow: as many start as one rack holds."""
    own = {"labels": WEB, "affinity": near(term(WEB, RACK)), "asks": {"nvidia.com/gpu": "2"}}
    racks = [node(name, labels={RACK: name[0]}) for name in ("r1", "s1", "s2")]
    found = starts(read(*racks, *(pod(f"p{i}", **own) for i in range(5))))
    assert len(found) == 4
    assert {nodes[0][0] for nodes in found.values()} == {"s"}


def test_affinity_inside_a_gang() -> None:
    """One worker a host, or a zone; all in one zone, or on one host; by a label that is no level."""
    near_zone, near_host = (near(term(WEB, key)) for key in (ZONE, HOSTNAME))
    assert len(set(starts(read(*pair(ABC, labels=WEB, affinity=apart(term(WEB)))))["g"])) == 2
    assert [n[0] for n in starts(read(*pair(ABC, labels=WEB, affinity=apart(term(WEB, ZONE)))))["g"]] == ["a", "b"]
    assert len({n[0] for n in starts(read(*pair(ABC, labels=WEB, affinity=near_zone)))["g"]}) == 1
    assert len(set(starts(read(*pair(ABC, labels=WEB, affinity=near_host)))["g"])) == 1
    assert starts(read(*pair(ABC, labels=WEB, affinity=near(term(WEB, ROW))))) == {}
    assert starts(read(*pair(SAME_RACKS, labels=WEB, affinity=apart(term(WEB, RACK))))) == {}


def test_preferred_terms_cost_their_weight() -> None:
    """Where nothing else costs: the node without the other pod; that of one that it likes more than it dislikes it."""
    dislikes, likes = preferred("podAntiAffinity", term(WEB), 10), preferred("podAffinity", term(DB), 20)
    beside = [*AB, pod("w", "a", labels=WEB), pod("d", "a", labels=DB)]
    assert starts(read(*beside, pod("p", affinity=dislikes)), NOTHING_ELSE) == {"p": ["b"]}
    assert starts(read(*beside, pod("p", affinity={**dislikes, **likes})), NOTHING_ELSE) == {"p": ["a"]}


def test_pods_that_take_part_in_rules_may_move() -> None:
    """What is asked of others goes with them."""
    keeps = pod("r", "a2", affinity=apart(term(DB)))
    found = read(*zoned("a1", "a2"), pod("w", "a1", labels=WEB), keeps, pod("p", affinity=apart(term(WEB))))
    assert [chosen_nodes(found, job) for job in found.jobs] == [("a1", "a2")] * 3
    assert may_start(found) == ("a2",)


def test_a_pod_alone_has_all_its_labels() -> None:
    """Read beside a cluster that is known: which relations select it is the cluster's matter."""
    job = KubernetesObjects(ABC).job(pod("p", labels=WEB, affinity=apart(term(DB, ZONE))))
    assert job.labels == {**WEB, "metadata.namespace": "default"}
    assert [relation.text for relation in job.relations] == [
        f"apart from jobs with app in (db) and metadata.namespace in (default) by {ZONE}"
    ]
