"""The state of the local search: what the round is, as arrays, and which jobs are where, with its value and cost."""

from __future__ import annotations

from collections.abc import Mapping

from placeopt.search.tables import Block, Reals, Row, Table, zeros

OF_JOBS = (
    *("option", "entries", "placed", "waiting", "position", "met", "met_level", "queue", "touched", "touched_jobs"),
    *("old_option", "old_entries", "changed", "changed_jobs", "best_option_of", "best_entries_of", "home_entries"),
)
OF_NODES = (
    *("first_of_node", "candidate_of", "grown_workers", "grown_gpus", "near_cost", "near_gpus", "far_cost", "closed"),
)
OF_SLOTS = (
    *("slot_node", "slot_gpus", "slot_workers", "next_slot", "previous_slot"),
    *("old_node", "old_gpus", "old_workers", "best_node", "best_gpus", "best_workers"),
    *("home_node", "home_gpus", "home_workers"),
)
COUNTS = (
    *("placed_count", "waiting_count", "candidate_count", "touched_count", "changed_count", "searches", "move"),
    *("stopped", "chosen", "everywhere", "shifted", "best_cost", "best_option", "best_entries", "grown_cost"),
    *("best_value", "best_plan_cost", "best_changes", "away_count"),
)
"""Rows by job, by node and by slot, and numbers, that begin with zeros."""


class State:
    """
    A round as arrays, and a plan of it under construction. Sets of GPUs of a node are bits of a mask.

    A job that is placed has an entry for each of its nodes: node, GPUs, number of workers. Entries stand at its slots,
    from ``first_slot`` on; slots after those of all jobs hold entries that are being tried. The entries on a node form
    a list. `arrays.state_of` fills in what the round is.
    """

    # Nodes. Domains above a node stand from the network down; -1 fills up.
    nodes: int
    domains: int
    resources: int
    depth: int  # most domains above a node
    kind: Row  # (N,) kind of node
    gpus: Row  # (N,) number of GPUs
    first_gpu: Row  # (N,) its GPUs have numbers from here on
    node_class: Row  # (N,) column of ``node_ok``
    above: Table  # (N, depth)
    uplink: Row  # (D,) path length from a domain to its parent
    link_most: Table  # (N + D, 2) what GPU jobs and CPU jobs may load uplinks of nodes, then of domains, with
    # Kinds of nodes. Tables by set of GPUs are filled where there are at most 8.
    ones: Row  # (256,) number of bits
    subsets: Row  # (256,) the sets of 8 GPUs by their size, then ascending
    subset_start: Row  # (10,) where those of a size begin
    distance: Block  # (kinds, g, g) between GPUs of a node
    way_out: Table  # (kinds, g) from a GPU to the domain of its node
    path_of_set: Table  # (kinds, 256) between all pairs
    way_of_set: Table  # (kinds, 256) sum of ``way_out``
    alike_count: Row  # (kinds,)
    alike: Table  # (kinds, ...) sets of GPUs that cannot be told apart while idle
    switch_count: Row  # (kinds,)
    switches: Table  # (kinds, ...) GPUs of a switch
    socket_count: Row  # (kinds,)
    sockets: Table  # (kinds, ...) GPUs of a socket
    # Fragmentation, inside nodes and at L levels above them.
    part_count: Row  # (kinds,)
    parts: Table  # (kinds, ...) GPUs of a domain inside a node
    part_weight: Table  # (kinds, ...)
    levels: int
    level_weight: Row  # (L,)
    level_domain: Table  # (L, N) -1 without
    level_total: Table  # (L, domains) GPUs
    listed: Table  # (kinds, L) GPUs that count
    # Options.
    value_of: Row  # (O,)
    cost_of: Row  # (O,)
    workers: Row  # (O,)
    bundles: Row  # (O,)
    gpus_of: Row  # (O,) of one worker
    milli: Row  # (O,) of each GPU
    memory: Row  # (O,) of each GPU
    idle_only: Row  # (O,) whether it takes no GPU that another job holds
    demand: Table  # (O, R) of one worker
    network: Row  # (O,) load of uplinks, by one worker
    per_node: Row  # (O,) most workers on a node
    node_ok: Table  # (O, classes)
    gpu_ok: Table  # (O, kinds) set of GPUs
    split_level: Row  # (O,) row of ``split_domain``, -1 without
    split_domains: Row  # (O,) number of domains
    split_workers: Row  # (O,) in each domain, 0 for any number
    split_domain: Table  # (levels, N) -1 without
    # A amounts that are limited beyond nodes: those of queues, one account for an option wherever it runs, then others.
    amounts: int
    amounts_anywhere: int
    takes: Table  # (O, A) of one worker
    account_of_option: Table  # (O, amounts anywhere) -1 without
    account_of_node: Table  # (N, other amounts) -1 without
    account_above: Row  # (accounts,) -1 without
    account_most: Row  # (accounts,)
    account_kept: Row  # (accounts,) what it counts with above at least
    # Jobs.
    jobs: int
    first_option: Row  # (J,)
    end_option: Row  # (J,)
    first_slot: Row  # (J,)
    profile: Row  # (J,) row of ``excess``, -1 without
    traffic: Row  # (J,) weight of paths
    path_counts: Row  # (J,) whether it costs that; else it only guides the choice of GPUs and nodes
    fixed: Row  # (J,) whether it stays where it is
    home: Row  # (J,) option that it runs in, if it runs and may be changed; -1 otherwise
    home_entries: Row  # (J,) of those jobs
    home_node: Row  # by slot
    home_gpus: Row
    home_workers: Row
    movable: Row  # (J,) whether such a job may run elsewhere
    away_price: Row  # (J,) what that costs
    out_price: Row  # (J,) and that it runs nowhere: more than all jobs are worth where that is not allowed
    away_most: int  # such jobs that run elsewhere
    out_most: int  # that run nowhere
    most_cost: int  # above which no step raises the cost, not for more value either
    size: Row  # (J,) GPU share in its first option
    next_member: Row  # (J,) the next job of a ring of those that run only together; of others the job itself
    excess: Block  # (4, P, P) what two jobs suffer together that meet at a GPU, a switch, a socket, a node
    most_jobs: int  # on a GPU
    # What a unit of each cost weighs: path, excess, gap, option.
    path_price: int
    excess_price: int
    excess_counts: int  # whether it is paid; else it only guides the choice of GPUs
    gap_price: int
    option_price: int
    # Free capacity.
    node_free: Table  # (N, R)
    gpu_free: Row  # (G,) thousandths
    gpu_memory: Row  # (G,)
    gpu_jobs: Row  # (G,)
    idle: Row  # (N,) set of GPUs
    idle_count: Row  # (N,)
    level_free: Table  # (L, domains)
    link_load: Table  # (N + D, 2)
    account_taken: Row  # (accounts,)
    # Entries.
    first_trial: int  # first of the slots after those of the jobs
    slot_job: Row
    slot_node: Row
    slot_gpus: Row
    slot_workers: Row
    first_of_node: Row  # (N,) first slot of the list of entries on a node, -1 without
    next_slot: Row
    previous_slot: Row
    # Jobs that are placed, and jobs that wait; no fixed ones.
    option: Row  # (J,) -1: waits
    entries: Row  # (J,) number of nodes
    placed: Row
    placed_count: int
    waiting: Row
    waiting_count: int
    position: Row  # (J,) in one of the two lists
    value: int
    cost: int
    away_count: int  # running jobs that lie elsewhere than they have run
    out_count: int  # that are not placed
    # The search.
    stopped: int  # whether another thread wants it to end
    words: Row  # (4,) of the random numbers
    never: int  # a cost that nothing reaches
    look: int  # nodes with room that decide where a job goes
    few: int  # nodes all of which are looked at
    blinks: int  # one of so many candidates is left out; 0: none
    quantiles: Reals  # of the exponential distribution
    lowest: Row  # (N,) lowest domain of a node, or D
    domain_start: Row  # (D + 2,) where its nodes begin
    domain_nodes: Row  # (N,) nodes by lowest domain
    candidates: Row  # (2 N,) all nodes, then those that a move looks at
    candidate_count: int
    everywhere: int  # whether a move looks at all nodes
    shifted: int  # entries of the first job of the queue that a move has found, 0: it is to be inserted
    zones: int  # levels whose domains some rule names that is judged elsewhere
    zone: Table  # (zones, N) -1 without
    closed: Row  # (N,) GPUs that the job being placed must not take; ``whole_node`` in it: none of the node
    whole_node: int
    candidate_of: Row  # (N,) number of the last move that had it as a candidate
    move: int
    queue: Row  # (J,) jobs that are to be placed
    key: Reals  # (J,)
    scarcity: Reals  # (R + 1,) what jobs ask for in parts of what there is, by unit; GPU shares last
    price: Reals  # (R + 1,)
    tried: Row  # of each kind of move
    kept: Row
    better: Row
    # The insertion that is tried, and the best one of a job, whose entries stand after those being tried.
    chosen: int  # set of GPUs
    best_cost: int
    best_option: int
    best_entries: int
    grown_cost: int
    grown_workers: Row  # (N,) of a gang
    grown_gpus: Row  # (N,)
    near_cost: Row  # (N,) of its next worker, on the node
    near_gpus: Row  # (N,)
    far_cost: Row  # (N,) and for paths to other nodes
    in_split: Row  # workers in each domain of its split
    # What the step changed, and where it was.
    touched: Row  # (J,)
    touched_jobs: Row
    touched_count: int
    old_option: Row
    old_entries: Row
    old_node: Row  # by slot
    old_gpus: Row
    old_workers: Row
    # The best plan, and what changed since.
    changed: Row  # (J,)
    changed_jobs: Row
    changed_count: int
    best_option_of: Row
    best_entries_of: Row
    best_node: Row  # by slot
    best_gpus: Row
    best_workers: Row
    best_value: int
    best_plan_cost: int
    best_changes: int  # of running jobs
    # Scratch: counts of domains, and where jobs were met.
    in_domain: Row  # (D,)
    met: Row  # (J,) number of the last search for neighbours that met the job
    met_level: Row  # (J,) the closest level at which it did
    searches: int

    def __init__(self, facts: Mapping[str, object]) -> None:
        """Take every field that says what the round is, and what is free, from ``facts``; no job is placed."""
        for name, fact in facts.items():
            setattr(self, name, fact)
        jobs, nodes, slots = self.jobs, self.nodes, self.first_trial + 2 * (self.nodes + 1)
        for name in OF_JOBS:
            setattr(self, name, zeros(jobs))
        for name in OF_NODES:
            setattr(self, name, zeros(nodes))
        for name in OF_SLOTS:
            setattr(self, name, zeros(slots))
        for name in COUNTS:
            setattr(self, name, 0)
        self.in_domain, self.in_split = zeros(self.domains), zeros(max(self.domains, nodes))
        self.tried, self.kept, self.better = zeros(8), zeros(8), zeros(8)
        for n in range(nodes):
            self.first_of_node[n] = -1
        for job in range(jobs):
            self.option[job] = self.best_option_of[job] = -1
            if not self.fixed[job]:
                wait(self, job)


def count(s: State, gpus: int) -> int:
    """Return the number of GPUs of a set."""
    number = 0
    while gpus:
        number += s.ones[gpus & 255]
        gpus >>= 8
    return number


def wait(s: State, job: int) -> None:
    """Append a job to those that wait."""
    s.waiting[s.waiting_count] = job
    s.position[job] = s.waiting_count
    s.waiting_count += 1


def begin(s: State, job: int) -> None:
    """Take a job from those that wait to those that are placed."""
    at = s.position[job]
    s.waiting_count -= 1
    last = s.waiting[s.waiting_count]
    s.waiting[at] = last
    s.position[last] = at
    s.placed[s.placed_count] = job
    s.position[job] = s.placed_count
    s.placed_count += 1


def end(s: State, job: int) -> None:
    """Take a job from those that are placed to those that wait."""
    at = s.position[job]
    s.placed_count -= 1
    last = s.placed[s.placed_count]
    s.placed[at] = last
    s.position[last] = at
    wait(s, job)


def enter(s: State, slot: int) -> None:
    """Put the entry of a slot at the head of its node's list."""
    node = s.slot_node[slot]
    head = s.first_of_node[node]
    s.next_slot[slot] = head
    s.previous_slot[slot] = -1
    if head >= 0:
        s.previous_slot[head] = slot
    s.first_of_node[node] = slot


def leave(s: State, slot: int) -> None:
    """Take the entry of a slot out of its node's list."""
    before, after = s.previous_slot[slot], s.next_slot[slot]
    if before >= 0:
        s.next_slot[before] = after
    else:
        s.first_of_node[s.slot_node[slot]] = after
    if after >= 0:
        s.previous_slot[after] = before
