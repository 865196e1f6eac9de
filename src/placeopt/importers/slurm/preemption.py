"""Slurm's settings of preemption: which running jobs others may take the place of."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from placeopt.errors import BadInput
from placeopt.importers.source_file import SourceFile, read_source

FREES_GPUS = frozenset({"REQUEUE", "CANCEL"})
"""Modes in which a preempted job gives up its GPUs; a suspended one keeps memory and generic resources."""
_PAIR = re.compile(r"([A-Za-z]\w*)\s*=\s*(\S*)")
_TIME = re.compile(r"(?:([0-9]{1,6})-)?([0-9]{1,9})(?::([0-9]{1,2}))?(?::([0-9]{1,2}))?")
_Row = dict[str, str]
"""Settings by name in small letters."""


class SlurmPreemption:
    """
    What Slurm may preempt, as some files state together; without any nothing is preemptible.

    Each is ``slurm.conf``, or the output of ``scontrol show config``, ``scontrol show partitions`` (oneliner or not),
    or ``sacctmgr -P show qos format=name,preempt,preemptmode,preemptexempttime``. Raises `BadInput` if a file is none
    of these, a tier is not a number, or a time is none of Slurm's.
    """

    def __init__(self, paths: Iterable[str | Path]) -> None:
        self._cluster: _Row = {}
        self._partitions: dict[str, _Row] = {}
        self._qos: dict[str, _Row] = {}
        for path in paths:
            self._read(read_source(path))
        for row in (self._cluster, *self._qos.values()):
            _exempt_ms(row)
        for row in self._partitions.values():
            _tier(row)

    def protects_ms(self, qos: str) -> int:
        """Return the run time before which a job of a QOS is not preempted (``PreemptExemptTime``)."""
        own = _exempt_ms(self._qos.get(qos, {}))
        return own if own is not None else _exempt_ms(self._cluster) or 0

    def allows(self, partition: str, qos: str, beside: Iterable[str], *, requeues: bool) -> bool:
        """
        Return whether a running job may be preempted so that its GPUs are free and it waits again.

        By ``preempt/partition_prio`` that is a job that has nodes of a partition of a higher tier (``beside``: all
        partitions of its nodes), by ``preempt/qos`` one whose QOS another may preempt; the mode of partition or QOS,
        else of the cluster, is REQUEUE or CANCEL, and the job itself may be requeued (``requeues``): what is carried
        out is a requeue.
        """
        plugin, own, below = self._cluster.get("preempttype", "").lower(), _Row(), False
        if plugin.endswith("partition_prio"):
            own = self._partitions.get(partition, {})
            tiers = [_tier(self._partitions[other]) for other in beside if other in self._partitions]
            below = partition in self._partitions and max(tiers, default=0) > _tier(own)
        elif plugin.endswith("qos"):
            own = self._qos.get(qos, {})
            below = any(qos in row.get("preempt", "").split(",") for row in self._qos.values() if qos)
        mode = own.get("preemptmode", "").upper()
        mode = self._cluster.get("preemptmode", "").upper() if mode in ("", "CLUSTER") else mode
        return below and requeues and bool(FREES_GPUS & set(mode.split(",")))

    def _read(self, source: SourceFile) -> None:
        lines = [line for line in re.sub(r"\\\n", " ", source.text).splitlines() if line.strip()]
        head = lines[0].lower().split("|") if lines else []
        if len(head) > 1:
            if not {"name", "preempt"} <= set(head):
                columns = "|".join(head)[:60]
                raise BadInput(f"{source.name}: columns {columns!r}, expected Name and Preempt, separated by |")
            rows = (dict(zip(head, line.split("|"), strict=False)) for line in lines[1:])
            self._qos |= {row.get("name", ""): row for row in rows}
            return
        known, current = False, self._cluster
        for line in lines:
            pairs = [(key.lower(), value) for key, value in _PAIR.findall(line.partition("#")[0])]
            if pairs and pairs[0][0] == "partitionname":
                name = "DEFAULT" if pairs[0][1].upper() == "DEFAULT" else pairs[0][1]
                current = self._partitions.setdefault(name, dict(self._partitions.get("DEFAULT", {})))
            elif not line[:1].isspace():  # scontrol indents what belongs to a partition
                current = self._cluster
            known = known or bool(pairs)
            current.update(pairs)
        if not known:
            raise BadInput(
                f"{source.name}: no KEY=VALUE and no table of QOS; expected slurm.conf, or the output of "
                "'scontrol show config', 'scontrol show partitions' or 'sacctmgr -P show qos'"
            )


def _exempt_ms(row: _Row) -> int | None:
    """Return a time as Slurm writes it: ``[days-]hours:minutes:seconds``, ``days-hours``, minutes; None: not stated."""
    text = row.get("preemptexempttime", "")
    if text in ("", "-1") or text.upper() in ("NONE", "INFINITE", "UNLIMITED"):
        return None
    match = _TIME.fullmatch(text)
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
