"""What a step changed, and the best plan: jobs that changed are copied, no others."""

from __future__ import annotations

from placeopt.search import placing
from placeopt.search.state import State


def note(s: State, job: int) -> None:
    """Remember where a job is before the step changes it."""
    if s.touched[job]:
        return
    s.touched[job] = 1
    s.touched_jobs[s.touched_count] = job
    s.touched_count += 1
    s.old_option[job] = s.option[job]
    if s.option[job] >= 0:
        s.old_entries[job] = s.entries[job]
        for slot in range(s.first_slot[job], s.first_slot[job] + s.entries[job]):
            s.old_node[slot] = s.slot_node[slot]
            s.old_gpus[slot] = s.slot_gpus[slot]
            s.old_workers[slot] = s.slot_workers[slot]


def undo(s: State) -> None:
    """Take back what the step changed."""
    for i in range(s.touched_count):
        if s.option[s.touched_jobs[i]] >= 0:
            placing.take_away(s, s.touched_jobs[i])
    for i in range(s.touched_count):
        job = s.touched_jobs[i]
        s.touched[job] = 0
        if s.old_option[job] >= 0:
            s.entries[job] = s.old_entries[job]
            for slot in range(s.first_slot[job], s.first_slot[job] + s.entries[job]):
                s.slot_node[slot] = s.old_node[slot]
                s.slot_gpus[slot] = s.old_gpus[slot]
                s.slot_workers[slot] = s.old_workers[slot]
            placing.place(s, job, s.old_option[job])
    s.touched_count = 0


def keep(s: State) -> None:
    """Keep what the step changed."""
    for i in range(s.touched_count):
        job = s.touched_jobs[i]
        s.touched[job] = 0
        if s.changed[job] == 0:
            s.changed[job] = 1
            s.changed_jobs[s.changed_count] = job
            s.changed_count += 1
    s.touched_count = 0


def save(s: State) -> None:
    """Let the plan be the best: copy what changed since the last one."""
    for i in range(s.changed_count):
        job = s.changed_jobs[i]
        s.changed[job] = 0
        s.best_option_of[job] = s.option[job]
        if s.option[job] >= 0:
            s.best_entries_of[job] = s.entries[job]
            for slot in range(s.first_slot[job], s.first_slot[job] + s.entries[job]):
                s.best_node[slot] = s.slot_node[slot]
                s.best_gpus[slot] = s.slot_gpus[slot]
                s.best_workers[slot] = s.slot_workers[slot]
    s.changed_count = 0
    s.best_value, s.best_plan_cost, s.best_changes = s.value, s.cost, s.away_count + s.out_count
