"""Cost: path length between a job's GPUs, weighted by traffic (SC'17 eq. 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from placeopt.linear import ModelBuilder
from placeopt.model import Communication as CommunicationRecord
from placeopt.problem import UNLIMITED, IntArray, Placement, Problem, State
from placeopt.problem.tree import Tree
from placeopt.terms.linearized_costs import CostPrices
from placeopt.terms.protocols import Cost, Expression, Form, Part
from placeopt.terms.variables import STAY, Variables


class Communication(Cost):
    """
    Sum over pairs of a job's GPUs of pair weight x shortest-path distance; 0 for one GPU.

    The printed index range of eq. 3 is ambiguous; each unordered pair counts once. The weights are ours.
    """

    name = "communication"
    unit = "weighted path"
    never_lowered_by_starts = True

    def of(self, state: State, part: Part) -> int:
        """Sum over jobs, and over trees."""
        problem = state.problem
        own = sum(job_cost(problem, job, held) for job, held in state.placed(part.jobs).items())
        return own + sum(tree_traffic(problem, tree, state.placed(tree.members)) for tree in part.trees)

    def worst(self, problem: Problem) -> int:
        """Return the sum over jobs of each one's own worst: all its traffic over the longest path of the cluster."""
        longest = problem.topology.max_distance
        per_class = [0] * len(problem.class_communication)  # of Python's integers, which do not overflow
        for o, k in enumerate(problem.options.job_class):
            per_class[k] = max(per_class[k], _traffic(problem, o) * longest)
        jobs = np.bincount(problem.job_class, minlength=len(per_class)).tolist()
        own = sum(worst * count for worst, count in zip(per_class, jobs, strict=True))
        between = sum(most_tree_traffic(problem, tree) for tree in problem.trees)
        return int(own) + between

    def gpu_classes(self, problem: Problem) -> IntArray | None:
        """GPUs alike: those that swap without changing any distance; all alone on machines such as a cube mesh."""
        apart = any(self.forbids_folding(problem, o) for o in range(len(problem.options)))
        return alike_by_distance(problem) if apart else None

    def forbids_folding(self, problem: Problem, option: int) -> bool:
        """Return whether jobs in the option have several GPUs and the same traffic between all of them."""
        return _traffic(problem, option) > 0 and not has_graph(problem, option)

    def form(self, problem: Problem) -> Form:
        """
        Return ``exact`` where pairs of a job's GPUs weigh alike, and those of a node are equally far from the network.

        The bound charges a traffic graph as if all its GPUs were as close as any are, and any GPU the way out of its
        node from the closest one; it leaves out traffic between members of a tree.
        """
        options = range(len(problem.options))
        if any(has_graph(problem, o) and _traffic(problem, o) for o in options):
            return "bound"
        if any(most_tree_traffic(problem, tree) for tree in problem.trees if len(tree.members) > 1):
            return "bound"
        leaves = any(problem.options.bundles[o] > 1 and _traffic(problem, o) for o in options)
        lopsided = any(root.min(initial=UNLIMITED) < root.max(initial=0) for root in problem.topology.root)
        return "bound" if leaves and lopsided else "exact"

    def add_to(self, builder: ModelBuilder, variables: Variables) -> Expression:
        """
        Add the cost by level: with k GPUs in all and k_d in a domain d, the pairs that leave d are k_d (k - k_d).

        Between nodes distances are sums over tree edges, so each edge costs its weight x the pairs that cross it.
        Inside a machine whose distances form levels (an ultrametric) the same holds by group; elsewhere (cube mesh)
        each pair of GPUs has a column that is 1 where both are held. What a running job costs where it stays is known.
        """
        prices, problem = CostPrices(builder), variables.problem
        for s, option in enumerate(variables.start_option.tolist()):
            start, known = variables.start[s : s + 1], 0
            if variables.start_kind[s] == STAY:
                job = variables.unit_jobs[variables.start_unit[s]][0]
                known = job_cost(problem, job, problem.running[job])
            elif has_graph(problem, option):
                known = _traffic(problem, option) * _shortest(problem)
            elif _traffic(problem, option):
                price_start(prices, variables, s, problem.class_communication[problem.options.job_class[option]].weight)
            if known:
                prices.add(start, np.array([known], dtype=np.int64))
        return (*prices.hand_over(), self.score(problem, variables.state.allocation()))


def job_cost(problem: Problem, job: int, placement: Placement) -> int:
    """Communication cost of one job where it is; at most its traffic x the longest distance."""
    communication = problem.class_communication[problem.job_class[job]]
    if communication.edges:
        return _along_edges(problem, communication, [placement])
    return int(communication.weight) * (problem.topology.path(placement.gpus) if communication.weight else 0)


def alike_by_distance(problem: Problem) -> IntArray:
    """Shape (G,): GPUs of a node with equal numbers swap without changing any distance."""
    out = np.zeros(problem.num_gpus, dtype=np.int64)
    for n, m in enumerate(problem.topology.node_machine.tolist()):
        out[problem.node_gpu_start[n] : problem.node_gpu_start[n + 1]] = problem.topology.machine_levels[m].leaf
    return out


def rank_traffic(communication: CommunicationRecord, workers: int) -> IntArray:
    """Shape (workers, workers), symmetric: traffic between GPUs of two workers; the diagonal has no meaning."""
    weights = np.full((workers, workers), 0 if communication.edges else communication.weight, dtype=np.int64)
    for edge in communication.edges:
        a, b = edge.ranks
        if max(a, b) < workers:
            weights[a, b] = weights[b, a] = edge.weight
    return weights


def has_graph(problem: Problem, option: int) -> bool:
    """Return whether it matters which of a job's workers holds which GPU: several workers, and edges between them."""
    return bool(
        problem.class_communication[problem.options.job_class[option]].edges and problem.options.workers[option] > 1
    )


def _shortest(problem: Problem) -> int:
    """Return a distance that no two GPUs of the cluster are closer than."""
    topology = problem.topology
    inside = [int(d[~np.eye(len(d), dtype=bool)].min(initial=UNLIMITED)) for d in topology.distance]
    ways = [int(root.min(initial=UNLIMITED)) for root in topology.root]
    between = [2 * (ways[m] + int(up)) for m, up in zip(topology.node_machine, topology.node_uplink, strict=True)]
    return min(*inside, *between) if problem.num_gpus > 1 else 0


def close_path(problem: Problem) -> IntArray:
    """
    Shape (O,): weighted path of a job in each option where its GPUs are as close to each other as ``best_paths`` says.

    An estimate, not a bound: traffic graphs count as if all pairs had the same share of their weight.
    """
    options = problem.options
    gpus = options.workers * options.gpus
    pairs = np.maximum(gpus * (gpus - 1) // 2, 1)
    traffic = np.array([_traffic(problem, o) for o in range(len(options))], dtype=np.int64)
    path: IntArray = traffic * problem.best_path // pairs
    return path


def _traffic(problem: Problem, option: int) -> int:
    """Sum of pair weights of a job in the option."""
    options = problem.options
    communication = problem.class_communication[options.job_class[option]]
    workers, gpus = int(options.workers[option]), int(options.gpus[option])
    if not communication.edges:
        k = workers * gpus
        return int(communication.weight) * (k * (k - 1) // 2)
    inside = workers * int(communication.weight) * (gpus * (gpus - 1) // 2)
    return inside + sum(int(edge.weight) * gpus * gpus for edge in communication.edges if max(edge.ranks) < workers)


def price_start(prices: CostPrices, v: Variables, s: int, weight: int) -> None:
    """
    State the path between all pairs of GPUs x ``weight`` of one start, whose unit is one job.

    A bound where GPUs of a node are not equally far from the network, and the start may leave the node.
    """
    problem, topology = v.problem, v.problem.topology
    option = int(v.start_option[s])
    total = int(problem.options.workers[option] * problem.options.gpus[option])
    together = problem.options.bundles[option] == 1  # all on one node or none
    grants = np.flatnonzero(v.grant_start == s)
    cell_node = problem.gpu_node[v.cell_gpu[v.grant_cell[grants]]]
    order = np.argsort(cell_node, kind="stable")
    nodes, first = np.unique(cell_node[order], return_index=True)
    k = np.arange(total + 1)
    pairs, crossing = k * (k - 1) // 2, k * (total - k)

    def price(members: IntArray, cost_of: IntArray) -> None:
        """State the cost ``cost_of[k]`` for k GPUs held through the grants ``members``."""
        room = min(int(v.cell_size[v.grant_cell[members]].sum()), total)
        prices.add_count(v.grant[members], cost_of[: room + 1] * weight)

    domains: dict[int, list[IntArray]] = {}
    for node, members in zip(nodes.tolist(), np.split(grants[order], first[1:]), strict=True):
        machine = int(topology.node_machine[node])
        levels = topology.machine_levels[machine]
        if together:
            inside = levels.height * int(pairs[total]) * weight
            prices.add(v.bundle[v.grant_bundle[members[:1]]], np.array([inside], dtype=np.int64))
        else:
            leave = int(topology.root[machine].min()) + int(topology.node_uplink[node])
            price(members, levels.height * pairs + leave * crossing)
        index = v.cell_gpu[v.grant_cell[members]] - problem.node_gpu_start[node]
        for gpus, drop in levels.groups:
            group = members[np.isin(index, gpus)]
            if len(group):
                price(group, -drop * pairs)
        if not levels.exist:  # cells are single GPUs
            a, b = np.triu_indices(len(members), 1)
            distance = topology.distance[machine][index[a], index[b]]
            prices.add_both(v.grant[members[a]], v.grant[members[b]], distance * weight)
        for domain in () if together else topology.node_ancestors(node):
            domains.setdefault(domain, []).append(members)
    for domain, parts in domains.items():
        price(np.concatenate(parts), int(topology.domain_uplink[domain]) * crossing)


def tree_traffic(problem: Problem, tree: Tree, placed: Mapping[int, Placement]) -> int:
    """
    Return the weighted path between GPUs of different members; with edges, between all workers, ranked over the leaves.

    ``placed``: The members that run or start.
    """
    traffic, path = tree.communication, problem.topology.path
    if not placed or not (traffic.edges or traffic.weight):
        return 0
    form = tree.forms[problem.options.name[next(iter(placed.values())).option]]
    parts = [placed[member] for _, of_leaf in form.leaves for member in of_leaf if member in placed]
    if traffic.edges:
        return _along_edges(problem, traffic, parts)
    together = tuple(gpu for part in parts for gpu in part.gpus)
    return traffic.weight * (path(together) - sum(path(part.gpus) for part in parts))


def _along_edges(problem: Problem, traffic: CommunicationRecord, parts: Sequence[Placement]) -> int:
    """Return the weighted path inside each worker of some placements, and along the edges between them."""
    workers = [gpus for part in parts for gpus in np.split(np.array(part.gpus, dtype=np.int64), len(part.nodes))]
    inside = traffic.weight * sum(problem.topology.path(tuple(gpus.tolist())) for gpus in workers if traffic.weight)
    ranks = ((*edge.ranks, edge.weight) for edge in traffic.edges if max(edge.ranks) < len(workers))
    pairs = ((workers[a][:, None], workers[b][None, :], weight) for a, b, weight in ranks)
    return inside + sum(weight * int(problem.topology.distances(a, b).sum()) for a, b, weight in pairs)


def most_tree_traffic(problem: Problem, tree: Tree) -> int:
    """Return a traffic that no placement of the tree exceeds, over the longest path of the cluster."""
    options, traffic = problem.options, tree.communication
    most = 0
    for member in tree.members:
        rows = list(problem.options_of(member))
        most += max((int(options.workers[o] * options.gpus[o]) for o in rows), default=0)
    pairs = most * (most - 1) // 2
    heaviest = max([traffic.weight, *(edge.weight for edge in traffic.edges)])
    return pairs * heaviest * problem.topology.max_distance
