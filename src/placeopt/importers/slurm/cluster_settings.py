"""What Slurm states beside nodes and jobs: licences, reservations, and which running jobs others may replace."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from placeopt.errors import BadInput
from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.observed_round import ObservedHold
from placeopt.importers.slurm.fields import parse_indices, parse_time_ms, parse_tres
from placeopt.importers.slurm.lists import JobLeftOut, expand_node_list, milliseconds, read_list
from placeopt.importers.source_file import SourceFile, read_source
from placeopt.model import Cluster
from placeopt.model.base import MAX_AMOUNT, Amounts

LICENSE = "license/"
"""Before a licence's name, in trackable resources and in named resources of a round."""
_ITEM = re.compile(r"([^\s:=|,]+)(?:[:=]([0-9]{1,9}))?\Z")


class Licenses:
    """
    The licences of a cluster, as ``scontrol show licenses --json`` lists them (None: none), and what jobs take of them.

    A running job whose licences its workers cannot share evenly has none of its own: they are missing in `left`, as
    those are that hidden jobs hold.
    """

    def __init__(self, source: str | Path | dict[str, Any] | None) -> None:
        self.listed = source is not None
        self._total: dict[str, int] = {}
        self._used: dict[str, int] = {}
        self._held: Counter[str] = Counter()
        for entry in () if source is None else read_list(source, "licenses", "'scontrol show licenses --json'")[1]:
            name = LICENSE + entry.text("LicenseName")
            total, used, reserved = (entry.integer(key, 0, 2**32, 0) for key in ("Total", "Used", "Reserved"))
            self._total[name], self._used[name] = min(total, MAX_AMOUNT) - reserved, used

    def asked(self, entry: JsonEntry) -> list[dict[str, int]]:
        """Return what a job takes, in each of the ways that it allows; raises `JobLeftOut` if one is not listed."""
        ways = entry.parsed("licenses", parse_licenses)
        if unknown := set().union(*ways) - self._total.keys():
            raise JobLeftOut(f"asks for {min(unknown)[:60]}, which is not listed")
        return ways

    def held(self, entry: JsonEntry, workers: int) -> dict[str, int]:
        """Return what each worker takes that runs: nothing where it cannot be divided evenly."""
        try:
            (held,) = self.asked(entry)
        except (BadInput, JobLeftOut, ValueError):  # one of several, say
            return {}
        if any(count % workers for count in held.values()):
            return {}
        self._held.update(held)
        return {name: count // workers for name, count in held.items()}

    def left(self) -> Amounts:
        """Return the licences that the jobs which were read may hold together."""
        hidden = {name: max(0, used - self._held[name]) for name, used in self._used.items()}
        return Amounts((name, max(0, total - hidden[name])) for name, total in sorted(self._total.items()))


def parse_licenses(text: str) -> list[dict[str, int]]:
    """Return how many of each licence a job asks for, ``a:2,b``; of alternatives, ``a:2|b``, one of them."""
    ways = []
    for way in text.split("|") if text != "(null)" else [""]:
        asked: Counter[str] = Counter()
        for item in filter(None, way.split(",")):
            match = _ITEM.match(item)
            if match is None or ("|" in text and "," in text):
                raise ValueError(f"{item[:60]!r}, expected a licence such as matlab:2")
            asked[LICENSE + match[1]] += int(match[2] or 1)
        ways.append(dict(asked))
    return ways


class _Reservation(NamedTuple):
    entry: JsonEntry
    name: str
    magnetic: bool
    jobs: dict[str, None]


class Reservations:
    """
    What ``scontrol show reservations --json`` lists; None: nothing.

    A job may take of the room if it asks for the reservation by name or, of a magnetic one, if user and account are
    among those that it lists. One that has not begun counts against jobs that may run into it by their time limit.
    """

    def __init__(self, source: str | Path | dict[str, Any] | None) -> None:
        command = "'scontrol show reservations --json'"
        entries = [] if source is None else read_list(source, "reservations", command)[1]
        self._listed = [
            _Reservation(entry, entry.text("name"), "MAGNETIC" in entry.words("flags"), {}) for entry in entries
        ]

    def admit(self, entry: JsonEntry, job: str) -> None:
        """Note a job of the round, with its entry in the list of jobs."""
        asked = entry.text("resv_name", "").split(",")
        for listed in self._listed:
            who = {"users": entry.text("user_name", ""), "accounts": entry.text("account", "")}
            if listed.name in asked or (listed.magnetic and all(_lists(listed.entry, *one) for one in who.items())):
                listed.jobs[job] = None

    def holds(
        self, cluster: Cluster, threads: dict[str, int], now_ms: int, notes: ImportNotes
    ) -> Iterator[ObservedHold]:
        """
        Yield the room that is held of each node, whole or, of a reservation of cores, by cores and its share of GPUs.

        ``threads``: CPUs of a core, by node.
        """
        machines = {machine.id: machine for machine in cluster.machines}
        machine_of = {node.id: machines[node.machine] for node in cluster.nodes}
        for entry, name, _, jobs in self._listed:
            begins, ends = (milliseconds(entry, key, 1000) for key in ("start_time", "end_time"))
            if ends is not None and ends <= max(now_ms, begins or 0):
                continue
            nodes = [node for node in dict.fromkeys(expand_node_list(entry, "node_list")) if node in machine_of]
            cores = {
                one.text("node"): one.parsed("core", parse_indices) for one in entry.entries("core_specializations")
            }
            gpus = -(-entry.parsed("tres", parse_tres).gpus // max(1, len(nodes)))
            if cores:
                notes.assume("Memory of reservations of cores is not read; of their GPUs each node has an equal part.")
            for node in nodes:
                whole, held = machine_of[node], len(cores.get(node, ())) * threads[node]
                yield ObservedHold(
                    f"reservation:{name}@{node}",
                    node,
                    gpus if cores else len(whole.gpus),
                    1000 * held if cores else whole.cpu_millicores,
                    0 if cores else whole.memory_mib,
                    {} if cores else whole.resources,
                    jobs=tuple(jobs),
                    from_ms=begins or 0,
                    until_ms=ends,
                )


def _lists(entry: JsonEntry, key: str, name: str) -> bool:
    """Return whether a list of a reservation has a name, or excludes others alone (``-bob``); an empty one has all."""
    names = [word.strip() for word in entry.text(key, "").split(",") if word.strip()]
    return f"-{name}" not in names and (name in names or all(word.startswith("-") for word in names))


FREES_GPUS = frozenset({"REQUEUE", "CANCEL"})
"""Modes in which a preempted job gives up its GPUs; a suspended one keeps memory and generic resources."""
_PAIR = re.compile(r"([A-Za-z]\w*)\s*=\s*(\S*)")
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
    """Return the time after which a job may be preempted; None: not stated."""
    text = row.get("preemptexempttime", "")
    if text in ("", "-1") or text.upper() in ("NONE", "INFINITE", "UNLIMITED"):
        return None
    try:
        return int(parse_time_ms(text))
    except ValueError as error:
        whose = f"QOS {row['name'][:60]!r}" if "name" in row else "the cluster"
        raise BadInput(f"PreemptExemptTime of {whose}: {error}") from None


def _tier(row: _Row) -> int:
    text = row.get("prioritytier", row.get("priority", "1"))
    if not re.fullmatch(r"[0-9]{1,9}", text):
        name = row.get("partitionname", "")
        raise BadInput(f"PriorityTier of partition {name[:60]!r}: {text[:60]!r}, expected a number")
    return int(text)
