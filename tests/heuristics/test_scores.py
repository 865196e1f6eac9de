"""The scores of greedy's family, each on an example worked by hand."""

import numpy as np

from placeopt.build import instance, job, machine, running
from placeopt.heuristics import greedy
from placeopt.model import (
    Communication,
    Fragmentation,
    Gpu,
    Instance,
    Interference,
    Job,
    Part,
    Policy,
    Slowdown,
    TargetWorker,
)
from placeopt.problem import compile_problem

TWO_SOCKETS = machine(
    gpus=[Gpu(model="V100", memory_mib=16_384, part=f"s{i // 2}") for i in range(4)],
    parts=(Part(id="s0", level="socket"), Part(id="s1", level="socket")),
)


def chosen(round_: Instance, score: str, waiting: str = "w", seed: int = 0) -> tuple[str, list[int]]:
    """Node and GPU indexes that ``waiting`` gets, first of all."""
    problem = compile_problem(round_)
    placement = greedy(problem, np.array([problem.job_ids.index(waiting)]), score, seed=seed).allocation[
        problem.job_ids.index(waiting)
    ]
    first = problem.first_gpu[placement.nodes[0]]
    return problem.node_ids[placement.nodes[0]], [gpu - first for gpu in placement.gpus]


class TestDotProduct:
    """n0 has 8 of 32 cores and 4 of 4 GPUs free, n1 32 cores and 1 GPU."""

    @staticmethod
    def where(cores: int, milli: int) -> str:
        """The node of a job that asks for so much."""
        cpu = job("cpu", gpus=0, cpu_millicores=24_000)
        full = job("full", gpus=3)
        runs = [running(cpu, [("n0", [])]), running(full, [("n1", [0, 1, 2])])]
        asks = job("w", gpu_milli=milli, cpu_millicores=1000 * cores)
        return chosen(instance(2, [cpu, full, asks], running=runs), "dot_product")[0]

    def test_what_is_asked_decides(self) -> None:
        """Whole GPU, no core: 1 x 1/4 against 1/4 x 1/4. Eight cores, quarter GPU: 1/16 + 1/16 against 1/4 + 1/64."""
        assert self.where(0, 1000) == "n1"
        assert self.where(8, 250) == "n0"


class TestPackingAndClustering:
    """n0 idle; n1 holds a half; n2 a half and a whole GPU; n3 two whole GPUs of one job."""

    @staticmethod
    def where(score: str, **asks: int) -> tuple[str, list[int]]:
        """Node and GPUs of a job that asks for so much."""
        held = [job("h1", gpu_milli=500), job("h2", gpu_milli=400), job("one"), job("two", gpus=2)]
        places = [("n1", [1]), ("n2", [2]), ("n2", [0]), ("n3", [0, 1])]
        runs = [running(one, [place]) for one, place in zip(held, places, strict=True)]
        return chosen(instance(4, [*held, job("w", **asks)], running=runs), score)

    def test_packing(self) -> None:
        """The fuller shared GPU; idle GPUs of a node in use, as few as possible; an idle node."""
        assert self.where("gpu_packing", gpu_milli=500) == ("n1", [1])  # 500 left, on n2 600
        assert self.where("gpu_packing", gpu_milli=600) == ("n2", [2])
        assert self.where("gpu_packing", gpus=1)[0] == "n1"  # as good on n2 and n3
        assert self.where("gpu_packing", gpus=4)[0] == "n0"

    def test_clustering(self) -> None:
        """Only its own kind, its kind among others, an idle node before other kinds."""
        assert self.where("gpu_clustering", gpu_milli=100)[0] == "n1"
        assert self.where("gpu_clustering", gpus=1)[0] == "n2"
        assert self.where("gpu_clustering", gpus=2)[0] == "n3"
        assert self.where("gpu_clustering", gpus=3)[0] == "n0"


class TestRandom:
    """By its seed repeatable, and everybody's turn."""

    def test_every_node_and_gpu_is_drawn(self) -> None:
        """Sixteen GPUs, 160 seeds: none stays out (it would by chance once in 2000 times)."""
        round_ = instance(4, [job("w", gpu_milli=500)])
        found = [chosen(round_, "random", seed=seed) for seed in range(160)]
        assert {(name, gpu) for name, (gpu,) in found} == {(f"n{n}", gpu) for n in range(4) for gpu in range(4)}
        assert found == [chosen(round_, "random", seed=seed) for seed in range(160)]

    def test_drawn_anew_for_every_job(self) -> None:
        """Forty small jobs of one class on eight nodes: no node has more than fifteen (once in 10,000 by chance)."""
        problem = compile_problem(instance(8, [job(f"j{i}", gpu_milli=100) for i in range(40)]))
        allocation = greedy(problem, np.arange(40), "random").allocation
        nodes = [placement.nodes[0] for placement in allocation if placement is not None]
        assert len(nodes) == 40
        assert max(np.bincount(nodes, minlength=8)) <= 15


class TestSharing:
    """One GPU a node, two jobs at most. n0: utilisation 80 %, no memory. n1: 10 %, 12 of 16 GiB."""

    @staticmethod
    def round_() -> Instance:
        """A job of 60 % and 4 GiB waits."""
        busy = job("busy", gpu_utilisation_percent=80)
        large = job("large", gpu_utilisation_percent=10, gpu_memory_mib=12_288)
        asks = job("w", gpu_utilisation_percent=60, gpu_memory_mib=4_096)
        policy = Policy(share_mode="overcommit", jobs_per_gpu_max=2)
        runs = [running(busy, [("n0", [0])]), running(large, [("n1", [0])])]
        return instance(2, [busy, large, asks], running=runs, policy=policy, machines=[machine(gpus=1)])

    def test_horus_goes_by_cost(self) -> None:
        """f(1.4) = 2.2824, f(0.7) = 0.5696: 1/2 x 4/16 + 1/2 x 2.2824 = 1.266; 1/2 x 16/16 + 1/2 x 0.5696 = 0.785."""
        assert chosen(self.round_(), "horus") == ("n1", [0])

    def test_opportunistic_goes_by_memory(self) -> None:
        """16 GiB free against 4."""
        assert chosen(self.round_(), "obp") == ("n0", [0])

    def test_the_lambda_cheapest_gpus_of_a_node(self) -> None:
        """GPUs 0 and 2 are in use: a job of two gets 1 and 3 from both scores."""
        held = [job("a", gpu_utilisation_percent=30), job("b", gpu_utilisation_percent=30)]
        runs = [running(held[0], [("n0", [0])]), running(held[1], [("n0", [2])])]
        policy = Policy(share_mode="overcommit", jobs_per_gpu_max=2)
        round_ = instance(1, [*held, job("w", gpus=2, gpu_utilisation_percent=10)], running=runs, policy=policy)
        assert chosen(round_, "horus") == chosen(round_, "obp") == ("n0", [1, 3])


class TestCloseFit:
    """Two sockets of two GPUs: on n0 one GPU of each is idle, on n1 three GPUs."""

    @staticmethod
    def round_(*, weight: int) -> Instance:
        """A job of two GPUs waits, with so much traffic between them."""
        held = [job("a"), job("b"), job("c")]
        runs = [running(held[0], [("n0", [0])]), running(held[1], [("n0", [2])]), running(held[2], [("n1", [0])])]
        asks = job("w", gpus=2, communication=Communication(weight=weight))
        return instance(2, [*held, asks], running=runs, machines=[TWO_SOCKETS])

    def test_gpus_with_traffic_are_close(self) -> None:
        """By fit alone the job would use up n0, across its sockets."""
        assert chosen(self.round_(weight=1), "close_fit") == ("n1", [2, 3])
        assert chosen(self.round_(weight=1), "best_fit") == ("n0", [1, 3])

    def test_without_traffic_by_fit(self) -> None:
        """Then it does not matter where they are."""
        assert chosen(self.round_(weight=0), "close_fit") == ("n0", [1, 3])


class TestFragmentationGradient:
    """One GPU a node: n0 has 700 left, n1 is idle. A job of 300 waits."""

    @staticmethod
    def round_(policy: Policy, others: int = 0) -> Instance:
        """``others`` jobs of 700 wait too."""
        held = job("held", gpu_milli=300)
        jobs = [held, job("w", gpu_milli=300), *(job(f"o{i}", gpu_milli=700) for i in range(others))]
        runs = [running(held, [("n0", [0])])]
        return instance(2, jobs, running=runs, policy=policy, machines=[machine(gpus=1)])

    def test_the_target_of_the_policy(self) -> None:
        """Workers of 700 are expected: on n0 400 would be left to nobody, on n1 700 serve one. Best fit takes n0."""
        target = (TargetWorker(gpu_milli=700),)
        policy = Policy(fragmentation=Fragmentation(form="fgd", target=target))
        assert chosen(self.round_(policy), "fgd") == ("n1", [0])
        assert chosen(self.round_(policy), "best_fit") == ("n0", [0])

    def test_the_jobs_of_the_round_are_the_target_otherwise(self) -> None:
        """Twenty jobs of 700 and two of 300: 400 left serve the latter only. With two of 300 alone, n0 is as good."""
        assert chosen(self.round_(Policy(), others=20), "fgd") == ("n1", [0])
        assert chosen(self.round_(Policy()), "fgd") == ("n0", [0])

    def test_the_gpu_of_the_node(self) -> None:
        """Whole GPUs are expected: 500 go beside 500, which are no use any more, not to an idle GPU."""
        held = job("held", gpu_milli=500)
        policy = Policy(fragmentation=Fragmentation(form="fgd", target=(TargetWorker(),)))
        runs = [running(held, [("n1", [2])])]
        round_ = instance(2, [held, job("w", gpu_milli=500)], running=runs, policy=policy)
        assert chosen(round_, "fgd") == ("n1", [2])


class TestLeastSlowdown:
    """Nodes of two sockets of two GPUs. Jobs of profile x lose 300 to each other in a socket, y nothing to anybody."""

    @staticmethod
    def where(waiting: Job, *held: tuple[Job, int]) -> tuple[str, list[int]]:
        """Node and GPUs of a job beside others, each on so many GPUs from the first of n0 on."""
        runs = [running(one, [("n0", [gpu])]) for one, gpu in held]
        disturbs = Slowdown(profile="x", beside="x", gpu_thousandths=300, socket_thousandths=300)
        round_ = instance(
            2,
            [*(one for one, _ in held), waiting],
            machines=[TWO_SOCKETS],
            running=runs,
            policy=Policy(interference=Interference(model="pairwise")),
            slowdowns=(disturbs,),
        )
        return chosen(round_, "least_slowdown")

    def test_a_disturbing_job_goes_to_another_socket(self) -> None:
        """And beyond that to another node; who does not, beside it, where least is left."""
        x, y = job("x1", profile="x"), job("x2", profile="x")
        assert self.where(job("w", profile="y"), (x, 0)) == ("n0", [1])
        assert self.where(job("w", profile="x"), (x, 0)) == ("n0", [2])
        assert self.where(job("w", profile="x"), (x, 0), (y, 2)) == ("n1", [0])

    def test_disturbed_and_undisturbed_jobs_score_differently(self) -> None:
        """Asked for after a job of profile y that wants the same: n0, with an x in each socket, is still no place."""
        held = [(job("x1", profile="x"), "n0", [0]), (job("x2", profile="x"), "n0", [2])]
        held += [(job("y1", profile="y", gpus=3), "n2", [0, 1, 2])]
        first, second = job("w1", profile="y"), job("w2", profile="x")
        round_ = instance(
            3,
            [*(one for one, _, _ in held), first, second],
            machines=[TWO_SOCKETS],
            running=[running(one, [(where, gpus)]) for one, where, gpus in held],
            slowdowns=(Slowdown(profile="x", beside="x", socket_thousandths=300),),
        )
        problem = compile_problem(round_)
        placed = greedy(problem, np.array([3, 4]), "least_slowdown").allocation
        assert [problem.node_ids[one.nodes[0]] for one in placed[3:] if one is not None] == ["n2", "n1"]

    def test_a_way_apart_counts_as_run_time(self) -> None:
        """Two GPUs with traffic: packed on the idle node; without traffic, where the node is fuller."""
        one, other = job("x1", profile="y"), job("x2", profile="y")
        apart = Communication(weight=1, spread_slowdown_thousandths=200)
        assert self.where(job("w", gpus=2, communication=apart), (one, 0), (other, 2)) == ("n1", [0, 1])
        assert self.where(job("w", gpus=2), (one, 0), (other, 2)) == ("n0", [1, 3])
