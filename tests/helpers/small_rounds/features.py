"""Names of what a round has, for campaigns to count."""

from __future__ import annotations

from collections import Counter

from placeopt.model import Instance


def _runs_beyond(instance: Instance) -> bool:
    """Whether running jobs hold more of a named resource than their node has."""
    machines = {machine.id: machine.resources for machine in instance.cluster.machines}
    has = {node.id: machines[node.machine] for node in instance.cluster.nodes}
    demands = {(job.id, option.id): option.demand for job in instance.jobs for option in job.options}
    held: Counter[tuple[str, str]] = Counter()
    for running in instance.running:
        for at in running.assignments:
            for name, amount in demands[running.job, running.option].resources.items():
                held[at.node, name] += len(at.workers) * amount
    return any(amount > has[node].get(name, 0) for (node, name), amount in held.items())


def features(instance: Instance) -> set[str]:
    """Name what a round has, for a campaign to count."""
    policy, options = instance.policy, [option for job in instance.jobs for option in job.options]
    machines = {machine.id: machine for machine in instance.cluster.machines}
    used = [machines[node.machine] for node in instance.cluster.nodes]
    demands = [option.demand for option in options]
    weights = policy.weights.model_dump()
    present = {
        f"share mode {policy.share_mode}": True,
        "jobs_per_gpu_max stated": policy.jobs_per_gpu_max is not None,
        "fractions": any(d.gpu_milli < 1000 for d in demands),
        "request below limit": any(d.gpu_milli_limit not in (None, d.gpu_milli) for d in demands),
        "several GPU types": len({(gpu.model, gpu.memory_mib) for machine in used for gpu in machine.gpus}) > 1,
        "GPU models asked for": any(d.gpu_models for d in demands),
        "named resources asked for": any(any(d.resources.values()) for d in demands),
        "named resources below what runs": _runs_beyond(instance),
        "GPU memory asked for": any(d.gpu_memory_mib for d in demands),
        "CPU asked for": any(d.cpu_millicores for d in demands),
        "memory bandwidth limited": any(d.memory_bandwidth_mbps for d in demands)
        and any(machine.memory_bandwidth_mbps is not None for machine in used),
        "PCIe bandwidth limited": any(d.pcie_bandwidth_mbps for d in demands)
        and any(machine.pcie_bandwidth_mbps is not None for machine in used),
        "network limited": any(o.workers > 1 and not o.single_node and o.demand.network_bandwidth_mbps for o in options)
        and any(machine.network_bandwidth_mbps is not None for machine in used),
        "domains": bool(instance.cluster.domains),
        "several options": any(len(job.options) > 1 for job in instance.jobs),
        "options with and without GPUs": any(
            len({option.demand.gpus > 0 for option in job.options}) > 1 for job in instance.jobs
        ),
        "elastic": any(o.workers_min not in (None, o.workers) for o in options),
        "gang of several workers": any(o.workers > 1 for o in options),
        "single node gang": any(o.workers > 1 and o.single_node for o in options),
        "workers per node limited": any(o.workers > 1 and o.workers_per_node_max for o in options),
        "split": any(o.splits for o in options),
        "exact split": any(split.workers for o in options for split in o.splits),
        "selector": any(job.node_selector for job in instance.jobs),
        "nodes allowed": any(job.nodes_allowed is not None for job in instance.jobs),
        "taint": any(node.taints for node in instance.cluster.nodes),
        "drained": any(node.drained for node in instance.cluster.nodes),
        "queues": bool(policy.queues),
        "dominant share": any(queue.dominant_share_percent is not None for queue in policy.queues),
        "minimal utility": any(job.utility_min_thousandths is not None for job in instance.jobs),
        f"postponed by utility, {policy.postpone.utility}": policy.postpone.rule == "utility",
        "running": bool(instance.running),
        "running with more than the request": any(
            share != option.demand.gpu_milli
            for running in instance.running
            for job in instance.jobs
            for option in job.options
            if (job.id, option.id) == (running.job, running.option)
            for assignment in running.assignments
            for share in assignment.gpus.values()
        ),
        "may be moved": bool(policy.changes.moves_max) and any(running.movable for running in instance.running),
        "may be shrunk": bool(policy.changes.shrinks_max)
        and any(
            running.shrinkable and option.workers_min not in (None, sum(len(a.workers) for a in running.assignments))
            for running in instance.running
            for job in instance.jobs
            for option in job.options
            if (job.id, option.id) == (running.job, running.option)
        ),
        "may be preempted": bool(policy.changes.preemptions_max)
        and any(running.preemptible for running in instance.running),
        "last submitted first": policy.changes.last_submitted_first,
        "traffic": any(job.communication.weight for job in instance.jobs),
        "traffic edges": any(job.communication.edges for job in instance.jobs),
        "traffic edges between workers of several GPUs": any(
            job.communication.edges and any(o.workers > 1 and o.demand.gpus > 1 for o in job.options)
            for job in instance.jobs
        ),
        "GPUs unequally far from the network": any(len({gpu.part for gpu in machine.gpus}) > 1 for machine in used)
        and any(gpu.part is None for machine in used for gpu in machine.gpus),
        "closer domain disturbs less": any(
            s.gpu_thousandths < s.switch_thousandths
            or s.switch_thousandths < s.socket_thousandths
            or s.socket_thousandths < s.node_thousandths
            for s in instance.slowdowns
        ),
        "stated distances": any(machine.gpu_distance_matrix is not None for machine in used),
        "direct links": any(machine.links for machine in used),
        "sockets or switches": any(machine.parts for machine in used),
        f"interference {policy.interference.model}": bool(weights["interference"]),
        f"fragmentation {policy.fragmentation.form}": bool(weights["fragmentation"]),
        "stated target workload": policy.fragmentation.form == "fgd" and bool(policy.fragmentation.target),
        **{f"cost {name}": weight > 0 for name, weight in weights.items()},
    }
    return {name for name, here in present.items() if here}
