"""Slurm's settings of preemption: which running jobs others may take the place of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from placeopt.errors import BadInput
from placeopt.importers.source_file import SourceFile, read_source

FREES_GPUS = frozenset({"REQUEUE", "CANCEL"})
"""Modes in which a preempted job gives up its GPUs; a suspended one keeps memory and generic resources."""
_PAIR = re.compile(r"([A-Za-z]\w*)\s*=\s*(\S*)")
_Row = dict[str, str]
"""Settings by name in small letters."""


@dataclass(frozen=True)
class SlurmPreemption:
    """
    What Slurm may preempt, as its configuration states; without any of it nothing is preemptible.

    ``cluster``: Settings of the cluster. ``partitions``, ``qos``: Settings of each of them.
    """

    cluster: _Row = field(default_factory=dict)
    partitions: Mapping[str, _Row] = field(default_factory=dict)
    qos: Mapping[str, _Row] = field(default_factory=dict)

    def protects_ms(self, qos: str) -> int:
        """Return the run time before which a job of a QOS is not preempted (``PreemptExemptTime``)."""
        own = _exempt_ms(self.qos.get(qos, {}))
        return own if own is not None else _exempt_ms(self.cluster) or 0

    def allows(self, partition: str, qos: str, beside: Iterable[str], *, requeues: bool) -> bool:
        """
        Return whether a running job may be preempted so that its GPUs are free and it waits again.

        By ``preempt/partition_prio`` that is a job that has nodes of a partition of a higher tier (``beside``: all
        partitions of its nodes), by ``preempt/qos`` one whose QOS another may preempt; the mode of partition or QOS,
        else of the cluster, is REQUEUE or CANCEL, and the job itself may be requeued (``requeues``): what is carried
        out is a requeue.
        """
        plugin = self.cluster.get("preempttype", "").lower()
        if plugin.endswith("partition_prio"):
            own = self.partitions.get(partition, {})
            tiers = {_tier(self.partitions[other]) for other in beside if other in self.partitions}
            below = partition in self.partitions and max(tiers, default=0) > _tier(own)
        elif plugin.endswith("qos"):
            own = self.qos.get(qos, {})
            below = any(qos in row["preempt"].split(",") for row in self.qos.values() if qos)
        else:
            return False
        mode = own.get("preemptmode", "").upper()
        mode = self.cluster.get("preemptmode", "").upper() if mode in ("", "CLUSTER") else mode
        return below and requeues and bool(FREES_GPUS & set(mode.split(",")))


def read_preemption(paths: Iterable[str | Path]) -> SlurmPreemption:
    """
    Return what some files state together.

    Each is ``slurm.conf``, or the output of ``scontrol show config``, ``scontrol show partitions`` (oneliner or not),
    or ``sacctmgr -P show qos format=name,preempt,preemptmode,preemptexempttime``. Raises `BadInput` if a file is none
    of these, a tier is not a number, or a time is none of Slurm's.
    """
    found = SlurmPreemption({}, {}, {})
    for path in paths:
        source = read_source(path)
        lines = re.sub(r"\\\n", " ", source.text).splitlines()
        head = next((line for line in lines if line.strip()), "").lower().split("|")
        if len(head) > 1:
            found = SlurmPreemption(found.cluster, found.partitions, {**found.qos, **_qos(source, head, lines)})
        else:
            found = _settings(source, lines, found)
    for row in (found.cluster, *found.qos.values()):
        _exempt_ms(row)
    for row in found.partitions.values():
        _tier(row)
    return found


def _qos(source: SourceFile, head: list[str], lines: list[str]) -> dict[str, _Row]:
    if not {"name", "preempt"} <= set(head):
        raise BadInput(f"{source.name}: columns {'|'.join(head)[:60]!r}, expected Name and Preempt, separated by |")
    rows = [dict(zip(head, line.split("|"), strict=False)) for line in lines if line.strip()][1:]
    return {row["name"]: row for row in rows}


def _settings(source: SourceFile, lines: list[str], before: SlurmPreemption) -> SlurmPreemption:
    cluster, partitions = dict(before.cluster), dict(before.partitions)
    known, current = False, cluster
    for line in lines:
        pairs = [(key.lower(), value) for key, value in _PAIR.findall(line.partition("#")[0])]
        if pairs and pairs[0][0] == "partitionname":
            name = "DEFAULT" if pairs[0][1].upper() == "DEFAULT" else pairs[0][1]
            current = partitions.setdefault(name, dict(partitions.get("DEFAULT", {})))
        elif not line[:1].isspace():  # scontrol indents what belongs to a partition
            current = cluster
        known = known or bool(pairs)
        current.update(pairs)
    if not known:
        raise BadInput(
            f"{source.name}: no KEY=VALUE and no table of QOS; expected slurm.conf, or the output of "
            "'scontrol show config', 'scontrol show partitions' or 'sacctmgr -P show qos'"
        )
    return SlurmPreemption(cluster, partitions, before.qos)


def _exempt_ms(row: _Row) -> int | None:
    """Return a time as Slurm writes it: ``[days-]hours:minutes:seconds``, ``days-hours``, minutes; None: not stated."""
    text = row.get("preemptexempttime", "")
    if text in ("", "-1") or text.upper() in ("NONE", "INFINITE", "UNLIMITED"):
        return None
    match = re.fullmatch(r"(?:([0-9]{1,6})-)?([0-9]{1,9})(?::([0-9]{1,2}))?(?::([0-9]{1,2}))?", text)
    if match is None:
        whose = f"QOS {row['name'][:60]!r}" if "name" in row else "the cluster"
        raise BadInput(f"PreemptExemptTime of {whose}: {text[:60]!r}, expected a time such as 01:00:00")
    days, first, second, third = (int(part or 0) for part in match.groups())
    units = (3600, 60, 1) if match[1] is not None or match[4] is not None else (60, 1, 0)
    return 1000 * (86_400 * days + first * units[0] + second * units[1] + third * units[2])


def _tier(row: _Row) -> int:
    text = row.get("prioritytier", row.get("priority", "1"))
    if not re.fullmatch(r"[0-9]{1,9}", text):
        name = row.get("partitionname", "")
        raise BadInput(f"PriorityTier of partition {name[:60]!r}: {text[:60]!r}, expected a number")
    return int(text)
