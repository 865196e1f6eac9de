"""Stand-ins for what the cluster does not list, and who may not be changed for the way it stands: by hand."""

from typing import Any

import pytest

from placeopt.build import instance, job, machine, node, running
from placeopt.model import Changes, Gpu, Instance, Policy
from placeopt.problem import Placement, compile_problem
from placeopt.problem.running import LOST_MODEL, find_lost

MAY = {"movable": True, "shrinkable": True, "preemptible": True}
ALL = Changes(moves_max=9, shrinks_max=9, preemptions_max=9)


def round_of(where: dict[str, Any], *, nodes: Any = 2, **fields: Any) -> Instance:
    """Jobs of as many workers and GPUs each as ``where`` says; they run there."""
    jobs = [job(name, workers=len(at), gpus=len(at[0][1])) for name, at in where.items()]
    runs = [running(one, where[one.id]) for one in jobs]
    return instance(nodes, [*jobs, job("waits")], running=runs, **fields)


class TestLost:
    def test_nothing_is_lost(self) -> None:
        """The last GPU of a node is there; nobody runs."""
        assert find_lost(round_of({"a": [("n1", [3])]})) is None
        assert find_lost(round_of({"a": [("n1", [])]})) is None
        assert find_lost(instance(1)) is None
        assert find_lost(round_of({"a": [("n1", [])]}, machines=[machine(gpus=0)])) is None

    def test_gpus_of_a_node_that_is_there(self) -> None:
        """
        GPUs 4 and 9 of n0, held by two jobs, and 9 of n1: types of six and of five GPUs, the lost ones last.

        The node keeps all else that it has; n2 is as it was.
        """
        kept = node("n0", labels={"disk": "ssd"}, taints=("t",))
        nodes = (kept, node("n1"), node("n2"))
        found = find_lost(round_of({"a": [("n0", [9, 2])], "b": [("n0", [4])], "c": [("n1", [9])]}, nodes=nodes))
        assert found is not None
        assert found.gpu_index == {"n0": {4: 4, 9: 5}, "n1": {9: 4}}
        cluster = found.instance.cluster
        first, second, third = cluster.nodes
        assert (first.id, first.labels, first.taints, first.drained) == ("n0", {"disk": "ssd"}, ("t",), False)
        assert third == nodes[2]
        kinds = {kind.id: kind for kind in cluster.machines}
        assert [[gpu.model for gpu in kinds[one.machine].gpus] for one in (first, second, third)] == [
            ["V100"] * 4 + [LOST_MODEL] * 2,
            ["V100"] * 4 + [LOST_MODEL],
            ["V100"] * 4,
        ]
        assert kinds[first.machine].cpu_millicores == 32_000
        assert found.listed == {first.machine: 4, second.machine: 4}

    def test_nodes_that_are_gone(self) -> None:
        """Drained, after the others; as many GPUs as are held there, be it none; alike ones share a machine type."""
        found = find_lost(round_of({"a": [("x", [7, 5]), ("y", [0, 1])], "b": [("z", [])], "c": [("n0", [0])]}))
        assert found is not None
        assert found.gpu_index == {"x": {5: 0, 7: 1}, "y": {0: 0, 1: 1}, "z": {}}
        cluster = found.instance.cluster
        assert [(one.id, one.drained) for one in cluster.nodes] == [
            *(("n0", False), ("n1", False)),
            *(("x", True), ("y", True), ("z", True)),
        ]
        kinds = {kind.id: kind for kind in cluster.machines}
        x, y, z = (kinds[one.machine] for one in cluster.nodes[2:])
        assert x is y
        assert (len(x.gpus), len(z.gpus), x.cpu_millicores, x.memory_mib) == (2, 0, 0, 0)
        assert found.listed == {x.id: 0, z.id: 0}

    def test_each_machine_type_has_its_own_stand_ins(self) -> None:
        """Two types that lost one GPU each, and a node that is gone: three, named after what they stand for."""
        nodes = (node("n0"), node("n1", "small"))
        where = {"a": [("n0", [4])], "b": [("n1", [2])], "c": [("x", [0])]}
        found = find_lost(round_of(where, nodes=nodes, machines=[machine(), machine("small", 2)]))
        assert found is not None
        assert [one.machine for one in found.instance.cluster.nodes] == ["lost-m-1", "lost-small-1", "lost-node-1"]
        assert found.listed == {"lost-m-1": 4, "lost-small-1": 2, "lost-node-1": 0}
        assert found.instance.cluster.machines[-1].gpus[0].model == "lost"

    def test_a_stated_matrix_of_no_gpus(self) -> None:
        """There is no distance to take over."""
        found = find_lost(round_of({"a": [("n0", [0, 1])]}, machines=[machine(gpus=0, gpu_distance_matrix=())]))
        assert found is not None
        assert found.instance.cluster.machines[-1].gpu_distance_matrix == ((0, 0), (0, 0))

    def test_names_that_are_taken(self) -> None:
        """A machine type of that name is another one."""
        first = find_lost(round_of({"a": [("x", [0])]}))
        assert first is not None
        name = first.instance.cluster.nodes[-1].machine
        kinds = [machine(), machine(name), machine(f"{name}-")]
        again = find_lost(round_of({"a": [("x", [0])]}, machines=kinds))
        assert again is not None
        assert again.instance.cluster.nodes[-1].machine == f"{name}--"
        assert len({kind.id for kind in again.instance.cluster.machines}) == 4

    def test_stated_distances_are_extended(self) -> None:
        """Lost GPUs are as far from every other as any two are, and 0 from themselves."""
        near = ((0, 1, 20), (1, 0, 7), (20, 7, 0))
        kinds = [machine(gpus=3, gpu_distance_matrix=near)]
        found = find_lost(round_of({"a": [("n0", [3, 4])]}, machines=kinds))
        assert found is not None
        stand_in = found.instance.cluster.machines[-1]
        assert stand_in.gpu_distance_matrix == (
            (0, 1, 20, 20, 20),
            (1, 0, 7, 20, 20),
            (20, 7, 0, 20, 20),
            (20, 20, 20, 0, 20),
            (20, 20, 20, 20, 0),
        )

    def test_compiled(self) -> None:
        """
        n0 of four GPUs lost two more, ``x`` is gone with one: with n1's four there are eleven, eight of them listed.

        Running jobs hold their stand-ins; nothing fits on a lost GPU, whatever it asks for.
        """
        round_ = round_of({"a": [("n0", [3, 9, 6])], "b": [("x", [5])]})
        problem = compile_problem(round_)
        assert problem.given is round_
        assert problem.node_ids == ("n0", "n1", "x")
        assert (problem.num_gpus, problem.num_listed_gpus) == (11, 8)
        assert problem.lost_gpu == {0: {6: 4, 9: 5}, 2: {5: 0}}
        assert problem.running == {0: Placement(0, (0,), (3, 5, 4)), 1: Placement(1, (2,), (10,))}
        assert problem.type_lost[problem.gpu_type].tolist() == [False] * 4 + [True] * 2 + [False] * 4 + [True]
        assert problem.gpu_ok(1).tolist() == [not lost for lost in problem.type_lost[problem.gpu_type].tolist()]
        assert problem.node_ok(1).tolist() == [True, True, False]
        assert problem.node_ok(0).tolist() == [True, True, False]
        assert problem.node_schedulable.tolist() == [True, True, False]
        whole = compile_problem(instance(2, [job("a")]))
        assert (whole.num_listed_gpus, whole.lost_gpu, whole.given) == (8, {}, whole.instance)

    def test_a_lost_gpu_like_one_that_is_listed_is_of_another_type(self) -> None:
        """A machine whose own GPUs are called the same."""
        kinds = [machine(gpus=[Gpu(model=LOST_MODEL)])]
        problem = compile_problem(round_of({"a": [("n0", [0, 1])]}, machines=kinds))
        assert problem.type_lost.tolist() == [False, True]
        assert problem.gpu_type.tolist() == [0, 1, 0]
        assert problem.held_types.tolist() == [[True, True], [False, False]]


class TestFixed:
    def problem(self, *runs: tuple[Any, dict[str, Any]], **policy: Any) -> Any:
        jobs = [job(f"j{i}", **fields) for i, (_, fields) in enumerate(runs)]
        held = [running(one, where, **MAY) for one, (where, _) in zip(jobs, runs, strict=True)]
        return compile_problem(instance(2, jobs, running=held, policy=Policy(**{"changes": ALL, **policy})))

    def test_single_node_jobs_on_two_nodes(self) -> None:
        """The first may not be changed; one on a node, and a gang on two, may."""
        pair = (("n0", [0]), ("n1", [0]))
        gang = {"workers": 2, "workers_min": 1}
        problem = self.problem(
            (pair, {"single_node": True, **gang}),
            ((("n0", [1]), ("n0", [2])), {"single_node": True, **gang}),
            ((("n0", [3]), ("n1", [3])), gang),
        )
        assert problem.may_move == problem.may_shrink == problem.may_preempt == problem.changeable == {1, 2}

    @pytest.mark.parametrize(
        ("policy", "free", "crowd_matters"),
        [
            ({"share_mode": "exclusive"}, {2, 3}, True),
            ({"jobs_per_gpu_max": 1}, {2, 3}, True),
            ({"jobs_per_gpu_max": 2}, {0, 1, 2, 3}, True),
            ({}, {0, 1, 2, 3}, True),
        ],
    )
    def test_jobs_on_a_gpu_that_too_many_hold(
        self, policy: dict[str, Any], free: set[int], crowd_matters: bool
    ) -> None:
        half = {"gpu_milli": 500}
        runs = [((at,), half) for at in (("n1", [2]), ("n1", [2]), ("n1", [3]), ("n0", [2]))]
        problem = self.problem(*runs, **policy)
        assert problem.may_move == problem.may_preempt == problem.changeable == free
        assert problem.may_shrink == set()
        assert problem.max_running_per_gpu == 2
        assert problem.gpus_are_shared == crowd_matters

    def test_crowds(self) -> None:
        """Jobs on the fullest GPU; shared are GPUs where they may be, or are."""
        alone = self.problem(((("n0", [0, 1]),), {"gpus": 2}), share_mode="exclusive")
        assert (alone.max_running_per_gpu, alone.gpus_are_shared) == (1, False)
        empty = compile_problem(instance(1, [job("a")], policy=Policy(share_mode="exclusive")))
        assert (empty.max_running_per_gpu, empty.gpus_are_shared) == (0, False)
        assert compile_problem(instance(1, [job("a")])).gpus_are_shared
        one = compile_problem(instance(1, [job("a")], policy=Policy(jobs_per_gpu_max=1)))
        assert not one.gpus_are_shared

    def test_no_job_may_be_changed(self) -> None:
        """Then nothing is taken away, and the problem is the same."""
        pair = (("n0", [0]), ("n1", [0]))
        problem = self.problem((pair, {"workers": 2, "single_node": True}), changes=Changes())
        assert problem.changeable == set()
        assert problem.running[0] == Placement(0, (0, 1), (0, 4))
