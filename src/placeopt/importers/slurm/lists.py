"""Lists that Slurm's commands print as JSON, and what of their fields is understood, or asks for nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from placeopt.documents.files import read_bytes
from placeopt.errors import BadInput, Unsupported
from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.json_entry import JsonEntry, read_json


def names(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


JOB_FIELDS = names(
    """
    array_job_id array_max_tasks array_task_id array_task_string comment admin_comment cpus cpus_per_task
    cpus_per_tres end_time excluded_nodes exclusive features flags gres_detail hold job_id job_resources job_size_str
    job_state max_nodes memory_per_cpu memory_per_node memory_per_tres minimum_cpus_per_node name node_count nodes
    partition preemptable_time priority qos requeue required_nodes required_switches resv_name segment_size shared
    start_time state_description state_reason submit_time tasks tasks_per_node time_limit tres_alloc_str tres_per_job
    tres_per_node tres_per_task tres_req_str user_name

    account accrue_time allocating_node association_id batch_flag batch_host billable_tres burst_buffer_state cluster
    cluster_features command container container_id container_type cpu_frequency_governor cpu_frequency_maximum
    cpu_frequency_minimum cron current_working_directory deadline delay_boot derived_exit_code eligible_time exit_code
    failed_node federation_origin federation_siblings_active federation_siblings_viable group_id group_name
    het_job_id_set het_job_offset last_sched_evaluation licenses_allocated mail_type mail_user max_cpus
    maximum_switch_wait_time memory_update_delay memory_update_margin nice oversubscribe power/flags pre_sus_time
    preempt_time prefer priority_by_partition profile reboot resize_time restart_cnt runtime scheduled_nodes
    selinux_context show_flags standard_error standard_input standard_output stderr_expanded stdin_expanded
    stdout_expanded step_id submit_line suspend_time system_comment time_minimum tres_bind tres_freq user_id wckey
    """
)
"""Of ``squeue --json``, data parser v0.0.37 to v0.0.46: read, and (from ``account`` on) no request for places."""
JOB_REQUESTS = names(
    """
    batch_features burst_buffer contiguous core_spec cores_per_socket dependency het_job_id licenses minimum_switches
    minimum_tmp_disk_per_node network sockets_per_board sockets_per_node tasks_per_board
    tasks_per_core tasks_per_socket tasks_per_tres thread_spec threads_per_core tres_per_socket
    """
)
"""Requests that a round cannot state; they are requests also where all jobs make them."""
UNREAD_FLAGS = ("GRES_BINDING_ENFORCED", "GRES_ENFORCE_BIND")
"""Of ``flags`` of a job: CPUs beside its GPUs (``--gres-flags=enforce-binding``), which a round cannot state."""
NODE_FIELDS = names(
    """
    active_features alloc_cpus cpus effective_cpus gpu_spec gres gres_drained gres_used name partitions real_memory
    res_cores_per_gpu reservation sockets specialized_cores specialized_cpus specialized_memory state state_flags
    threads

    address alloc_idle_cpus alloc_memory architecture boards boot_time burstbuffer_network_address cert_flags
    cluster_name comment cores cpu_binding cpu_load energy external_sensors extra features free_mem free_memory
    hostname idle_cpus instance_id instance_type last_busy next_state_after_reboot next_state_after_reboot_flags
    operating_system port power reason reason_changed_at reason_set_by_user resume_after slurmd_start_time
    slurmd_version suspend_time temporary_disk tls_cert_last_renewal topology tres tres_used tres_weighted version
    weight
    """
)
"""Of ``scontrol show nodes --json``, the same versions: read, and (from ``address`` on) no limit of what it takes."""
NODE_LIMITS = frozenset(("owner",))
"""Limits of what a node takes that a round cannot state."""

UNSET_TEXTS = frozenset(("", "(null)", "N/A", "None", "none"))
UNSET_NUMBERS = frozenset((0, 0x7FFE, 0xFFFE, 0xFFFF, 0xFFFFFFFE, 0xFFFFFFFF, 2**64 - 2, 2**64 - 1))
"""What Slurm writes for 'none' and 'no limit' in numbers of 16, 32 and 64 bits, and for no specialized cores."""


def is_set(value: object) -> bool:
    """Return whether a field of Slurm's JSON states anything."""
    if isinstance(value, dict):
        if "set" in value:
            return bool(value["set"]) and not value.get("infinite") and is_set(value.get("number"))
        return any(map(is_set, value.values()))
    if isinstance(value, str):
        return value not in UNSET_TEXTS
    return bool(value) and not (isinstance(value, int | float) and value is not True and value in UNSET_NUMBERS)


TEXT = re.compile(r"\s*(NodeName=|JobId=|JOBID\b|NODELIST\b|PARTITION\b|LicenseName=|ReservationName=)")
"""How the output of scontrol, squeue and sinfo begins without ``--json``."""
KEYS = ("jobs", "nodes", "partitions", "sinfo", "licenses", "reservations")


def read_list(source: str | Path | dict[str, Any], key: str, command: str) -> tuple[JsonEntry, list[JsonEntry]]:
    """Return a document, a file or parsed, and the entries of its list; ``command``: what prints it, for messages."""
    if not isinstance(source, dict) and str(source) != "-":
        match = TEXT.match(read_bytes(source)[:4096].decode(errors="replace"))
        if match is not None:
            begins = f"{source}: begins with {match[1]!r}: Slurm's plain text, which is not read"
            raise Unsupported(f"{begins}; give the output of {command}")
    document = read_json(source, key)
    return document, entries_of(document, key, command)


def entries_of(document: JsonEntry, key: str, command: str) -> list[JsonEntry]:
    """Return the entries of a list; raises `Unsupported` where a document has another of Slurm's lists instead."""
    if isinstance(document.raw(key), list):
        return document.entries(key)
    if other := next((other for other in KEYS if other in document), None):
        raise Unsupported(
            f"{document.where}: no list {key!r}, but Slurm's list of {other}; give the output of {command}"
        )
    raise BadInput(f"{document.where}: no list {key!r}; expected the output of {command}")


class UnreadFields:
    """
    Finds what entries of one list set beside the fields that are read.

    A field that all entries set alike, but for ``requests``, is taken as the cluster's own setting: ``notes`` names it
    once. One entry alone is no evidence of that.
    """

    def __init__(
        self,
        entries: Sequence[JsonEntry],
        read: frozenset[str],
        requests: frozenset[str],
        notes: ImportNotes,
        called: str,
    ) -> None:
        first = entries[0] if len(entries) > 1 else JsonEntry("", {})
        alike = [
            name
            for name in first.others(read | requests)
            if is_set(value := first.raw(name)) and all(entry.raw(name) == value for entry in entries)
        ]
        for name in alike:
            notes.assume(f"All {called} state the same {name[:60]}, which is not read.")
        self._read = read.union(alike)

    def of(self, entry: JsonEntry, read: frozenset[str] = frozenset()) -> str | None:
        """Return the first field, or flag of a job, that an entry sets and that is not read, if any."""
        names = (name for name in entry.others(self._read | read) if is_set(entry.raw(name)))
        return next(names, None) or next((word for word in entry.words("flags") if word in UNREAD_FLAGS), None)
