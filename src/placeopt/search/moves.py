"""Neighbourhoods: jobs taken away, and which jobs are then placed again, where, and in which order."""

from __future__ import annotations

from placeopt.search import gangs, home, insertion, limits, memory, placing, rng, state
from placeopt.search.state import State


def change(s: State, move: int) -> None:
    """Change the plan by one of seven moves, 0 to 6: take jobs away, then place as many as find room."""
    jobs = ruin(s, move)
    for i in range(jobs):
        recreate(s, s.queue[i])


def draw(s: State) -> int:
    """Return a move: of two that are drawn the one by which more of its steps led to a new best plan."""
    one, other = _any(s), _any(s)
    return one if (s.better[one] + 1) * (s.tried[other] + 1) >= (s.better[other] + 1) * (s.tried[one] + 1) else other


def _any(s: State) -> int:
    """Return a move, each with the same chance."""
    return rng.below(s, 7)


def ruin(s: State, move: int) -> int:
    """Take jobs away by a move; queue them, and some that wait, in an order. Returns how many there are."""
    s.candidate_count, s.shifted, first, refills = 0, 0, -1, move == 5
    s.move += 1
    if move == 0:
        _one_job(s)
    elif move == 1:
        _two_jobs(s)
    elif move == 2:
        _gpus(s)
    elif move == 3:
        _nodes(s)
    elif move == 4:
        first = _for_one_that_waits(s)
    elif refills:
        _refill(s)
    else:
        first = _workers(s)
    jobs = _jobs_to_place(s, 128 if refills else 4 if move > 0 else 0, first)
    _sort(s, jobs, first, 3 if refills else rng.below(s, 4))
    s.everywhere = move == 0 or (not refills and (s.nodes <= s.few or rng.below(s, 8) == 0))
    if not refills and not s.everywhere:
        for _ in range(4):
            _add_candidate(s, rng.below(s, s.nodes))
    if s.zones and rng.below(s, 2):
        _confine(s)
    return jobs


def recreate(s: State, job: int) -> None:
    """Place a job of the queue, if it finds room among the nodes that the move looks at, or as the move says."""
    if s.shifted:
        insertion.put(s, job, s.old_option[job], s.first_trial, s.shifted)
        s.shifted = 0
    elif s.everywhere:
        insertion.insert(s, job, 0, s.nodes)
    else:
        insertion.insert(s, job, s.nodes, s.candidate_count)


def _confine(s: State) -> None:
    """Let the candidates be the nodes of a zone: jobs that have to be in one find each other there."""
    row, node = rng.below(s, s.zones), rng.below(s, s.nodes)
    zone = s.zone[row, node]
    if zone < 0:
        return
    s.everywhere, s.candidate_count = 0, 0
    for other in range(s.nodes):
        if s.zone[row, other] == zone:
            s.candidates[s.nodes + s.candidate_count] = other
            s.candidate_count += 1


def _add_candidate(s: State, node: int) -> None:
    """Append a node to the candidates, unless it is one."""
    if s.candidate_of[node] != s.move:
        s.candidate_of[node] = s.move
        s.candidates[s.nodes + s.candidate_count] = node
        s.candidate_count += 1


def _remove(s: State, job: int) -> None:
    """Take away a job that is placed, and what runs only with it, so that it can be undone."""
    memory.note(s, job)
    placing.take_away(s, job)
    member = s.next_member[job]
    while member != job:
        if s.option[member] >= 0 and s.fixed[member] == 0:
            memory.note(s, member)
            placing.take_away(s, member)
        member = s.next_member[member]


def _one_job(s: State) -> None:
    """Take away a job: it is placed where it costs least; a running one from elsewhere where it has run."""
    if s.placed_count == 0:
        return
    job = s.placed[rng.below(s, s.placed_count)]
    is_away = s.home[job] >= 0 and not home.is_home(s, job)
    _remove(s, job)
    if not is_away:
        return
    for slot in range(s.first_slot[job], s.first_slot[job] + s.home_entries[job]):
        for gpu in range(s.gpus[s.home_node[slot]]):
            if s.home_gpus[slot] >> gpu & 1:
                _clear(s, s.home_node[slot], gpu)


def _two_jobs(s: State) -> None:
    """Take away two jobs, of one size where some tries find such, that may swap places."""
    if s.placed_count < 2:
        return
    one = s.placed[rng.below(s, s.placed_count)]
    other = s.placed[rng.below(s, s.placed_count)]
    for _ in range(8):
        if s.size[one] == s.size[other] and one != other:
            break
        other = s.placed[rng.below(s, s.placed_count)]
    _add_candidate(s, s.slot_node[s.first_slot[one]])
    _add_candidate(s, s.slot_node[s.first_slot[other]])
    _remove(s, one)
    if s.option[other] >= 0:
        _remove(s, other)


def _gpus(s: State) -> None:
    """Take away the jobs on one or two GPUs of each of two or three nodes."""
    node = rng.below(s, s.nodes)
    for _ in range(2 + rng.below(s, 2)):
        if s.gpus[node]:
            for _ in range(1 + rng.below(s, 2)):
                _clear(s, node, rng.below(s, s.gpus[node]))
        _add_candidate(s, node)
        node = _near(s, node)


def _nodes(s: State) -> None:
    """Take away jobs of two or three nodes: on each a quarter of them, half, three quarters or all."""
    node = rng.below(s, s.nodes)
    for _ in range(2 + rng.below(s, 2)):
        _empty(s, node, 1 + rng.below(s, 4))
        _add_candidate(s, node)
        node = _near(s, node)


def _refill(s: State) -> None:
    """Take away all jobs of a node or two, which many that wait are then tried on."""
    node = rng.below(s, s.nodes)
    for _ in range(1 + rng.below(s, 2)):
        _empty(s, node, 4)
        _add_candidate(s, node)
        node = _near(s, node)


def _empty(s: State, node: int, quarters: int) -> None:
    """Take away each job of a node with a chance of so many quarters."""
    slot = s.first_of_node[node]
    while slot >= 0:
        after, job = s.next_slot[slot], s.slot_job[slot]
        if s.fixed[job] == 0 and rng.below(s, 4) < quarters:
            _remove(s, job)
            if s.next_member[job] != job:  # others of the node may have gone with it
                after = s.first_of_node[node]
        slot = after


def _for_one_that_waits(s: State) -> int:
    """Take away jobs so that one that waits has room in one of its options; return it, -1 where none waits."""
    if s.waiting_count == 0:
        return -1
    job = s.waiting[rng.below(s, s.waiting_count)]
    option = s.first_option[job] + rng.below(s, s.end_option[job] - s.first_option[job])
    node, found = rng.below(s, s.nodes), 0
    per_bundle = s.workers[option] // s.bundles[option]
    for _ in range(s.few):
        if found >= s.workers[option]:
            break
        if s.node_ok[option, s.node_class[node]]:
            found += _make_room(s, node, option, per_bundle)
            _add_candidate(s, node)
        node = _near(s, node)
    return job


def _workers(s: State) -> int:
    """
    Take away a gang, to move workers of it from a node to another, and there what is in their way.

    Returns the gang; -1 where the node has none, or it may not run on the other.
    """
    source = rng.below(s, s.nodes)
    target, slot, there = _near(s, source), s.first_of_node[source], 0
    while slot >= 0 and (s.fixed[s.slot_job[slot]] or s.bundles[s.option[s.slot_job[slot]]] == 1):
        slot = s.next_slot[slot]
    if slot < 0 or source == target or s.closed[target] & s.whole_node:
        return -1
    if s.home[s.slot_job[slot]] >= 0 and s.movable[s.slot_job[slot]] == 0:
        return -1
    job, workers = s.slot_job[slot], 1 + rng.below(s, s.slot_workers[slot])
    option = s.option[job]
    level = s.split_level[option]
    if not s.node_ok[option, s.node_class[target]]:
        return -1
    if level >= 0 and s.split_domain[level, source] != s.split_domain[level, target]:
        return -1
    for i in range(s.first_slot[job], s.first_slot[job] + s.entries[job]):
        there += s.slot_workers[i] if s.slot_node[i] == target else 0
    _add_candidate(s, source)
    _add_candidate(s, target)
    _remove(s, job)
    _make_room(s, target, option, there + workers)
    s.shifted = gangs.shift(s, job, option, slot, target, workers)
    return job


def _make_room(s: State, node: int, option: int, workers: int) -> int:
    """Take away jobs on a node until so many workers of an option have room; return how many have."""
    need = s.gpus_of[option] * workers
    gpu = rng.below(s, s.gpus[node]) if s.gpus[node] else 0
    for _ in range(s.gpus[node]):
        if limits.has_room(s, node, option, workers) and state.count(s, limits.open_gpus(s, node, option)) >= need:
            break
        _clear(s, node, gpu)
        gpu = gpu + 1 if gpu + 1 < s.gpus[node] else 0
    if not limits.has_room(s, node, option, workers):
        return 0
    if need == 0:
        return workers
    free = state.count(s, limits.open_gpus(s, node, option))
    return min(free // s.gpus_of[option], s.per_node[option]) if free >= need else 0


def _clear(s: State, node: int, gpu: int) -> None:
    """Take away the jobs on a GPU."""
    slot = s.first_of_node[node]
    while slot >= 0:
        after, job = s.next_slot[slot], s.slot_job[slot]
        if s.fixed[job] == 0 and s.slot_gpus[slot] >> gpu & 1:
            _remove(s, job)
            if s.next_member[job] != job:
                after = s.first_of_node[node]
        slot = after


def _near(s: State, node: int) -> int:
    """Return another node: every other time one of the same domain."""
    start, end = s.domain_start[s.lowest[node]], s.domain_start[s.lowest[node] + 1]
    if end - start > 1 and rng.below(s, 2):
        return s.domain_nodes[start + rng.below(s, end - start)]
    return rng.below(s, s.nodes)


def _jobs_to_place(s: State, many: int, first: int) -> int:
    """Queue what was taken away, ``first``, and so many that wait, some more than once; return how many."""
    if first >= 0:
        _want(s, first)
    for _ in range(many if s.waiting_count > many else s.waiting_count):
        _want(s, s.waiting[rng.below(s, s.waiting_count)])
    for i in range(s.touched_count):
        s.queue[i] = s.touched_jobs[i]
    return s.touched_count


def _want(s: State, job: int) -> None:
    """Note a job that waits, and all that it runs with and that wait too, as what is to be placed."""
    memory.note(s, job)
    member = s.next_member[job]
    while member != job:
        if s.option[member] < 0 and s.fixed[member] == 0:
            memory.note(s, member)
        member = s.next_member[member]


def _sort(s: State, jobs: int, first: int, rule: int) -> None:
    """Order the queue by chance, size, value or value for what is needed, shaken by a fifth; ``first`` first."""
    for r in range(s.resources + 1):
        s.price[r] = s.scarcity[r] * s.quantiles[rng.below(s, 1024)]
    for i in range(jobs):
        job, shaken = s.queue[i], 1.0 + (rng.below(s, 1024) - 512) / 2560.0
        option = s.first_option[job]
        if job == first:
            s.key[i] = -(2.0**1000)
        elif rule == 0:
            s.key[i] = shaken
        elif rule == 1:
            s.key[i] = -shaken * s.size[job]
        elif rule == 2:
            s.key[i] = -shaken * s.value_of[option]
        else:
            s.key[i] = -shaken * s.value_of[option] / _rent(s, job, option)
    for i in range(1, jobs):
        job, key, at = s.queue[i], s.key[i], i
        while at > 0 and s.key[at - 1] > key:
            s.queue[at], s.key[at] = s.queue[at - 1], s.key[at - 1]
            at -= 1
        s.queue[at], s.key[at] = job, key


def _rent(s: State, job: int, option: int) -> float:
    """Return what a job needs, at the prices of the move."""
    rent = s.price[s.resources] * s.size[job] + 2.0**-30
    for r in range(s.resources):
        rent += s.price[r] * s.demand[option, r] * s.workers[option]
    return rent
