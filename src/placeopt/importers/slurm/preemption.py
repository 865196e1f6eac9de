"""Slurm's settings of preemption: which running jobs others may take the place of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from placeopt.errors import BadInput
from placeopt.importers.source_file import read_source

FREES_GPUS = frozenset({"REQUEUE", "CANCEL"})
"""Modes in which a preempted job gives up its GPUs; a suspended one keeps memory and generic resources."""
_PAIR = re.compile(r"([A-Za-z]\w*)\s*=\s*(\S*)")


@dataclass(frozen=True)
class SlurmPreemption:
    """
    What Slurm may preempt, as its configuration states.

    ``plugin``: ``PreemptType``; empty: not stated. ``mode``: Of the cluster, in capitals. ``tiers``,
    ``partition_mode``: Of partitions that state them. ``preempted``: QOS that another QOS may preempt. ``qos_mode``: Of
    a QOS that states one. ``exempt_ms``, ``qos_exempt_ms``: Run time before which no job is preempted, of the cluster
    and of QOS that state it. Without any of it nothing is preemptible.
    """

    plugin: str = ""
    mode: str = ""
    tiers: Mapping[str, int] = field(default_factory=dict)
    partition_mode: Mapping[str, str] = field(default_factory=dict)
    preempted: frozenset[str] = frozenset()
    qos_mode: Mapping[str, str] = field(default_factory=dict)
    exempt_ms: int = 0
    qos_exempt_ms: Mapping[str, int] = field(default_factory=dict)

    def protects_ms(self, qos: str) -> int:
        """Return the run time before which a job of a QOS is not preempted (``PreemptExemptTime``)."""
        return self.qos_exempt_ms.get(qos, self.exempt_ms)

    def allows(self, partition: str, qos: str, beside: Iterable[str], *, requeues: bool) -> bool:
        """
        Return whether a running job may be preempted so that its GPUs are free and it waits again.

        By ``preempt/partition_prio`` that is a job that has nodes of a partition of a higher tier (``beside``: all
        partitions of its nodes), by ``preempt/qos`` one whose QOS another may preempt; the mode of partition or QOS,
        else of the cluster, is REQUEUE or CANCEL, and the job itself may be requeued (``requeues``): what is carried
        out is a requeue.
        """
        if self.plugin.endswith("partition_prio"):
            tier = self.tiers.get(partition)
            below = tier is not None and any(self.tiers.get(other, tier) > tier for other in beside)
            mode = self.partition_mode.get(partition, self.mode)
        elif self.plugin.endswith("qos"):
            below, mode = qos in self.preempted, self.qos_mode.get(qos, self.mode)
        else:
            return False
        return below and requeues and bool(FREES_GPUS & set(mode.split(",")))


NO_PREEMPTION = SlurmPreemption()


def read_preemption(paths: Iterable[str | Path]) -> SlurmPreemption:
    """
    Return what some files state together.

    Each is ``slurm.conf``, or the output of ``scontrol show config``, ``scontrol show partitions`` (oneliner or not),
    or ``sacctmgr -P show qos format=name,preempt,preemptmode,preemptexempttime``. Raises `BadInput` if a file is none
    of these, a tier is not a number, or a time is none of Slurm's.
    """
    cluster: dict[str, str] = {}
    partitions: dict[str, dict[str, str]] = {}
    defaults: dict[str, str] = {}
    qos: dict[str, dict[str, str]] = {}
    for path in paths:
        source = read_source(path)
        lines = re.sub(r"\\\n", " ", source.text).splitlines()
        head = next((line for line in lines if line.strip()), "").lower().split("|")
        if len(head) > 1:
            if not {"name", "preempt"} <= set(head):
                raise BadInput(
                    f"{source.name}: columns {'|'.join(head)[:60]!r}, expected Name and Preempt, separated by |"
                )
            rows = [dict(zip(head, line.split("|"), strict=False)) for line in lines if line.strip()][1:]
            qos |= {row["name"]: row for row in rows}
            continue
        known = False
        current: dict[str, str] | None = None
        for line in lines:
            pairs = [(key.lower(), value) for key, value in _PAIR.findall(line.partition("#")[0])]
            if pairs and pairs[0][0] == "partitionname":
                name = pairs[0][1]
                current = defaults if name.upper() == "DEFAULT" else partitions.setdefault(name, dict(defaults))
            elif not line[:1].isspace():  # scontrol indents what belongs to a partition
                current = None
            known = known or bool(pairs)
            if current is not None:
                current.update(pairs)
            else:
                cluster.update(pairs)
        if not known:
            raise BadInput(
                f"{source.name}: no KEY=VALUE and no table of QOS; expected slurm.conf, or the output of "
                "'scontrol show config', 'scontrol show partitions' or 'sacctmgr -P show qos'"
            )
    exempt = {name: _exempt_ms(f"QOS {name[:60]!r}", row.get("preemptexempttime", "")) for name, row in qos.items()}
    modes = {name: row.get("preemptmode", "").upper() for name, row in qos.items()}
    return SlurmPreemption(
        plugin=cluster.get("preempttype", "").lower(),
        mode=cluster.get("preemptmode", "").upper(),
        tiers={
            name: _tier(name, found.get("prioritytier", found.get("priority", "1")))
            for name, found in partitions.items()
        },
        partition_mode={name: row["preemptmode"].upper() for name, row in partitions.items() if "preemptmode" in row},
        preempted=frozenset(word for row in qos.values() for word in row["preempt"].split(",") if word),
        qos_mode={name: mode for name, mode in modes.items() if mode not in ("", "CLUSTER")},
        exempt_ms=_exempt_ms("the cluster", cluster.get("preemptexempttime", "")) or 0,
        qos_exempt_ms={name: time for name, time in exempt.items() if time is not None},
    )


def _exempt_ms(whose: str, text: str) -> int | None:
    """Return a time as Slurm writes it: ``[days-]hours:minutes:seconds``, ``days-hours``, minutes; None: not stated."""
    if text in ("", "-1") or text.upper() in ("NONE", "INFINITE", "UNLIMITED"):
        return None
    match = re.fullmatch(r"(?:([0-9]{1,6})-)?([0-9]{1,9})(?::([0-9]{1,2}))?(?::([0-9]{1,2}))?", text)
    if match is None:
        raise BadInput(f"PreemptExemptTime of {whose}: {text[:60]!r}, expected a time such as 01:00:00")
    days, *parts = (None if part is None else int(part) for part in match.groups())
    first, second, third = (part or 0 for part in parts)
    units = (3600, 60, 1) if days is not None or match[4] is not None else (60, 1, 0)
    return 1000 * (86_400 * (days or 0) + first * units[0] + second * units[1] + third * units[2])


def _tier(partition: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise BadInput(f"PriorityTier of partition {partition!r}: {text[:60]!r}, expected a number")
    return int(text)
