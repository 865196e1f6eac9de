"""Queues that bound what their jobs hold: of Kueue (ClusterQueues and Cohorts), KAI, Volcano and YuniKorn."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from math import floor

from placeopt.documents.faults import make_record
from placeopt.errors import BadInput
from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.kubernetes.makers import YUNIKORN, GroupRules, parsed
from placeopt.importers.kubernetes.nodes import KubernetesNode
from placeopt.importers.kubernetes.objects import Listed, by_id
from placeopt.importers.kubernetes.pods import Pod
from placeopt.importers.kubernetes.resources import MIB, NANO, quantity, unit_of
from placeopt.model import Flavor, Queue, Quota

MOST = 10**12
"""Largest amount of a queue."""
COHORT = "cohort/"
"""Begins the ids of Kueue's Cohorts."""
FIELDS = tuple(Quota.model_fields)
Key = tuple[str, str]
"""Flavor of nodes, "" for all nodes; and one of `FIELDS`."""
Units = Mapping[str, tuple[str, int]]
"""Resource -> the field of its quotas, and the amount that is 1 there, in nano units."""
ROOT, PROVIDED, NAMESPACE = "root", "provided", "namespace"
YUNIKORN_MAPS, YUNIKORN_QUEUES = ("yunikorn-configs", "yunikorn-defaults"), "queues.yaml"
"""ConfigMaps of YuniKorn, the first of which that has its queues states them."""
UNREAD_OF_YUNIKORN = frozenset({"childtemplate", "limits", "maxapplications"})
MAX_QUEUES = 10_000
Rules = tuple[tuple[str, bool], ...]
KAI_UNITS = {"gpu": Fraction(1, 1000), "cpu": Fraction(1), "memory": MIB / 10**6}
"""Field of KAI's queues -> the amount that is 1 in ours, of GPUs, millicores and megabytes."""


@dataclass
class StatedQueue:
    """
    A queue as an object states it; what is left out of ``borrow`` and ``lend`` has no limit.

    ``sums``: Whether its quota is beside those of the queues below it (Kueue), not above them. ``covers_all``: Whether
    its jobs may ask for what it states nothing of.
    """

    entry: JsonEntry
    parent: str | None = None
    quota: dict[Key, int] = field(default_factory=dict)
    borrow: dict[Key, int] = field(default_factory=dict)
    lend: dict[Key, int] = field(default_factory=dict)
    weight: int = 1
    stopped: bool = False
    sums: bool = False
    covers_all: bool = True


@dataclass(frozen=True)
class Queues:
    """
    The queues of a listing. ``names``: Name that a pod states, of a LocalQueue with its namespace -> id of its queue.

    ``stopped``: Such names of queues that start nothing. ``rules``: Of YuniKorn, the first of which that fits names the
    queue of a pod: `PROVIDED`, `NAMESPACE`, or a name; and whether it may make that queue.
    """

    queues: tuple[Queue, ...] = ()
    flavors: tuple[Flavor, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    stopped: frozenset[str] = frozenset()
    rules: Rules = ()

    def of(self, pod: Pod, gangs: Mapping[str, GroupRules]) -> str | None:
        """Return the queue of a pod; None if it names none, or one that is not listed while others are."""
        name = self._name(pod, gangs)
        return self.names.get(name or "") if self.queues else name

    def unread(self, pod: Pod, gangs: Mapping[str, GroupRules]) -> str | None:
        """Return why it is not known what its queue admits."""
        name = self._name(pod, gangs)
        unlisted = self.queues and name is not None and name not in self.names
        return "of a queue that is not listed, or cannot be read" if unlisted else None

    def is_stopped(self, pod: Pod, gangs: Mapping[str, GroupRules]) -> bool:
        """Return whether its queue starts no pod that waits."""
        return self._name(pod, gangs) in self.stopped

    def _name(self, pod: Pod, gangs: Mapping[str, GroupRules]) -> str | None:
        group = gangs.get(pod.group.source or "") if pod.group is not None else None
        name = pod.queue or (None if group is None else group.queue)
        if pod.scheduler == "yunikorn" and self.rules:
            stated = name or pod.labels.get("queue", "")
            for rule, makes in self.rules:
                wanted = {PROVIDED: stated, NAMESPACE: _escaped(pod.namespace)}.get(rule, rule)
                name = wanted if f"{wanted}.".startswith(f"{ROOT}.") else f"{ROOT}.{wanted}"
                if wanted and (makes or name in self.names):
                    while name not in self.names:  # those above it bound a queue that is made
                        name = name.rpartition(".")[0]
                    break
        local = f"{pod.namespace}/{name}"
        return local if local in self.names else name


def read_queues(listed: Listed, nodes: Mapping[str, KubernetesNode], resource: str, notes: ImportNotes) -> Queues:
    """Return the listed queues; ``resource`` counts GPUs. Jobs of a queue that cannot be read are left out."""
    of_field = (NANO // 1000, unit_of("cpu"), unit_of("memory"))
    units = dict(zip((resource, "cpu", "memory"), zip(FIELDS, of_field, strict=True), strict=True))
    stated: dict[str, StatedQueue] = {}
    others: set[str] = set()
    for kind, read in (("ClusterQueue", _of_kueue), ("Cohort", _of_kueue), ("Queue", _queue)):
        for entry in listed.get(kind, ()):
            try:
                name = entry.entry("metadata").text("name")
                stated[COHORT + name if kind == "Cohort" else name] = read(entry, kind, units, others)
            except BadInput as error:
                notes.assume(f"A queue cannot be read, so its jobs are left out: {error}.")
    rules: Rules = ()
    try:
        of_yunikorn, rules = _of_yunikorn(listed, units, others)
        stated |= of_yunikorn
    except BadInput as error:
        notes.assume(f"Queues of YuniKorn cannot be read, so its quotas are not: {error}.")
    for queue in list(stated.values()):
        if queue.parent is not None and queue.sums:  # a cohort needs no object of its own
            stated.setdefault(queue.parent, StatedQueue(queue.entry, sums=True))
    for name, queue in stated.items():
        if queue.parent is not None and (queue.parent not in stated or name in _above(name, stated)):
            notes.assume("Queues above others that are not listed, or that form a circle, are not read.")
            queue.parent = None
    flavors = _flavors(listed, stated, nodes, notes)
    _sum_up(stated)
    if others:
        notes.assume(f"Quotas of other resources are not read: {', '.join(sorted(others)[:10])}.")
    names = {name: name for name in stated if not name.startswith(COHORT)}
    stopped = {name for name in names if stated[name].stopped}
    for name, local in by_id(listed.get("LocalQueue", ())).items():
        cluster_queue = local.entry("spec").text("clusterQueue", "")
        if cluster_queue in stated:
            names[name] = cluster_queue
            if cluster_queue in stopped or local.entry("spec").text("stopPolicy", "None") != "None":
                stopped.add(name)
    queues = tuple(_record(name, queue) for name, queue in stated.items())
    return Queues(queues, flavors, names, frozenset(stopped), rules)


def _above(name: str, stated: Mapping[str, StatedQueue]) -> list[str]:
    """Return the queues above one, itself at the end where they form a circle."""
    found: list[str] = []
    while (queue := stated.get(name)) is not None and queue.parent is not None and queue.parent not in found:
        found.append(name := queue.parent)
    return found


def _of_kueue(entry: JsonEntry, kind: str, units: Units, others: set[str]) -> StatedQueue:
    """Read a ClusterQueue or a Cohort; ``others`` get the resources that quotas do not count."""
    spec = entry.entry("spec")
    keys = ("parentName", "parent") if kind == "Cohort" else ("cohortName", "cohort")
    above = next((name for key in keys if (name := spec.text(key, ""))), None)
    stopped = spec.text("stopPolicy", "None") != "None"
    found = StatedQueue(entry, above and COHORT + above, stopped=stopped, sums=True, covers_all=kind == "Cohort")
    amounts = {"nominalQuota": found.quota, "borrowingLimit": found.borrow, "lendingLimit": found.lend}
    for flavor in (flavor for group in spec.entries("resourceGroups") for flavor in group.entries("flavors")):
        for one in flavor.entries("resources"):
            name = one.text("name")
            if name not in units:
                others.add(name)
                continue
            for field_, by_key in amounts.items():
                if field_ in one:
                    key, unit = units[name]
                    by_key[flavor.text("name"), key] = min(MOST, quantity(one, field_) // unit)
    return found


def _queue(entry: JsonEntry, _kind: str, units: Units, others: set[str]) -> StatedQueue:
    """Read a queue of KAI, or of Volcano: what it is due is its quota, what it may have beside that it borrows."""
    spec = entry.entry("spec")
    kai = entry.text("apiVersion", "").startswith("scheduling.run.ai/") or "resources" in spec or "parentQueue" in spec
    parent = spec.text("parentQueue" if kai else "parent", "")
    found = StatedQueue(entry, parent if parent not in ("", ROOT) else None)
    if kai:
        for (name, amount), key in zip(KAI_UNITS.items(), FIELDS, strict=True):
            one = spec.entry("resources").entry(name)
            _bound(found, key, _number(one, "limit", amount), _number(one, "quota", amount))
            if name == "gpu":
                found.weight = max(1, _number(one, "overQuotaWeight", Fraction(1)) or 1)
            if "lendingLimit" in one:
                others.add("lendingLimit")
        return found
    found.weight = max(1, spec.integer("weight", 0, 10**6, 1))
    found.stopped = entry.entry("status").text("state", "Open") in ("Closed", "Closing")
    _limit(found, spec.entry("capability"), spec.entry("deserved"), units, others)
    if "guarantee" in spec:
        others.add("guarantee")
    return found


def _limit(found: StatedQueue, most: JsonEntry, due: JsonEntry, units: Units, others: set[str]) -> None:
    """State the most that a queue may hold, of which it is due some."""
    for name in most.names():
        if name in units:
            key, unit = units[name]
            _bound(
                found, key, *(min(MOST, quantity(one, name) // unit) if name in one else None for one in (most, due))
            )
        else:
            others.add(name)


def _of_yunikorn(listed: Listed, units: Units, others: set[str]) -> tuple[dict[str, StatedQueue], Rules]:
    """Return the queues of YuniKorn by their paths, and its placement rules; raises `BadInput`."""
    maps = {entry.entry("metadata").text("name", ""): entry.entry("data") for entry in listed.get("ConfigMap", ())}
    config = next((maps[name] for name in YUNIKORN_MAPS if name in maps and YUNIKORN_QUEUES in maps[name]), None)
    if config is None:
        return {}, ()
    partition = next(iter(_yaml(config, YUNIKORN_QUEUES).entries("partitions")), config)
    rules = []
    for one in partition.entries("placementrules"):
        kind, value = one.text("name").lower(), one.text("value", "")
        rule = {"fixed": value, PROVIDED: PROVIDED, "tag": NAMESPACE if value == NAMESPACE else ""}.get(kind)
        if not rule or "parent" in one or "filter" in one:
            raise one.bad("name", "provided, fixed, or tag of namespace, without parent and filter")
        rules.append((rule, one.flag("create")))
    found = {ROOT: StatedQueue(config)}
    units = {**units, "vcore": units["cpu"]}
    unread = [(ROOT, entry) for entry in partition.entries("queues")]
    for above, entry in unread:
        path = entry.text("name")
        if path != ROOT:
            path = f"{above}.{path}"
            found[path] = StatedQueue(entry, above)
            resources = entry.entry("resources")
            _limit(found[path], resources.entry("max"), resources.entry("guaranteed"), units, others)
        others |= UNREAD_OF_YUNIKORN.intersection(entry.names())
        unread += [(path, one) for one in entry.entries("queues")]
        if len(unread) > MAX_QUEUES:
            raise entry.bad("queues", f"at most {MAX_QUEUES} queues together")
    for entry in listed.get("Namespace", ()) if any(rule == NAMESPACE for rule, _ in rules) else ():
        metadata, path = entry.entry("metadata"), f"{ROOT}.{_escaped(entry.entry('metadata').text('name'))}"
        if path not in found:
            found[path] = StatedQueue(entry, ROOT)
            keys = (f"{YUNIKORN}namespace.quota", f"{YUNIKORN}namespace.guaranteed")
            most, due = (parsed(metadata, key).entry(key) for key in keys)
            _limit(found[path], most, due, units, others)
    return found, tuple(rules) or ((PROVIDED, False),)


def _escaped(namespace: str) -> str:
    """Return the name of a namespace's queue."""
    return namespace.replace(".", "_dot_")


def _yaml(data: JsonEntry, key: str) -> JsonEntry:
    """Return the document in a text of YAML."""
    try:
        import yaml
    except ImportError:
        raise data.bad(key, "PyYAML to read it, which placeopt[kubernetes] brings") from None
    try:
        return JsonEntry("", yaml.safe_load(data.text(key)), data)
    except (yaml.YAMLError, ValueError, RecursionError):
        raise data.bad(key, "a text of YAML") from None


def _number(entry: JsonEntry, key: str, unit: Fraction) -> int | None:
    """Return a number that KAI states, in units of a field, 0 by default; None: -1, without limit."""
    value = entry.raw(key)
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int | float) or not -1 <= value <= MOST:
        raise entry.bad(key, "a number, or -1")
    return None if value == -1 else min(MOST, floor(Fraction(value) / unit))


def _bound(found: StatedQueue, name: str, most: int | None, due: int | None) -> None:
    """State the most that a queue may hold of a field, of which it is due some; None: all."""
    if most is not None:
        found.quota["", name] = most if due is None else min(due, most)
        found.borrow["", name] = most - found.quota["", name]


def _flavors(
    listed: Listed, stated: Mapping[str, StatedQueue], nodes: Mapping[str, KubernetesNode], notes: ImportNotes
) -> tuple[Flavor, ...]:
    """
    Return the kinds of nodes of which queues have quotas, as far as nodes are of one kind alone.

    Else quotas are summed over the flavors of queues: what these admit, the sums admit, too.
    """
    named = dict.fromkeys(flavor for queue in stated.values() for flavor, _ in queue.quota if flavor)
    known = {entry.entry("metadata").text("name", ""): entry for entry in listed.get("ResourceFlavor", ())}
    labels = {}
    with suppress(KeyError, BadInput):
        labels = {name: known[name].entry("spec").texts("nodeLabels") for name in named}
    kinds = [{id(node) for node in nodes.values() if own.items() <= node.labels.items()} for own in labels.values()]
    if len(labels) < len(named) or any(one & other for one, other in combinations(kinds, 2)):
        notes.assume(
            "Flavors of Kueue that are not listed, or share nodes, are not read: quotas are sums over flavors."
        )
        for queue in stated.values():
            _sum_flavors(queue)
        return ()
    if any("tolerations" in known[name].entry("spec") for name in named):
        notes.assume("Tolerations that flavors of Kueue add to pods are not read.")
    return tuple(make_record(Flavor, known[name].where, id=name, node_selector=labels[name]) for name in named)


def _sum_flavors(queue: StatedQueue) -> None:
    """Sum amounts over flavors; a limit that one of them lacks is none."""
    keys: dict[str, list[Key]] = defaultdict(list)
    for key in queue.quota:
        keys[key[1]].append(key)
    for by_key in (queue.borrow, queue.lend, queue.quota):
        sums = {("", name): sum(by_key[key] for key in some) for name, some in keys.items() if by_key.keys() >= {*some}}
        by_key.clear()
        by_key.update(sums)


def _sum_up(stated: Mapping[str, StatedQueue]) -> None:
    """Let a cohort have what it states and what the queues below it have; without a limit these borrow all of that."""
    own = {name: dict(queue.quota) for name, queue in stated.items() if queue.sums}
    for name, amounts in own.items():
        for above in _above(name, stated):
            total = stated[above].quota
            total |= {key: total.get(key, 0) + amount for key, amount in amounts.items()}
    for name in own:
        queue, roots = stated[name], _above(name, stated)[-1:]
        for key, amount in queue.quota.items() if roots else ():
            queue.borrow.setdefault(key, stated[roots[0]].quota[key] - amount)


def _record(name: str, queue: StatedQueue) -> Queue:
    allowed: dict[str, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    for part, amounts in (("quota", queue.quota), ("borrow", queue.borrow), ("lend", queue.lend)):
        for (flavor, key), amount in amounts.items():
            if queue.parent is not None or part == "quota" or not queue.sums:
                allowed[flavor][part][key] = amount
    covered = {key for _, key in queue.quota}
    if not queue.covers_all:
        allowed[""]["quota"] |= {key: 0 for key in FIELDS if key not in covered}
    of_all = allowed.pop("", {})
    flavors = tuple({"flavor": flavor, **parts} for flavor, parts in allowed.items())
    fields = {"id": name, "parent": queue.parent, "weight": queue.weight, "flavors": flavors, **of_all}
    return make_record(Queue, queue.entry.where, **fields)
