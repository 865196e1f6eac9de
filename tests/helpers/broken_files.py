"""
Instance files with one fault each: every one must end in `BadInput` that names the field, in nothing else.

``FAULTS`` lists (name, bytes of the file, the path that the message must name; empty where there is none).
"""

import copy
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from placeopt import BadInput, read_instance

GOLDEN = Path(__file__).parents[1] / "data" / "golden" / "instance-1.json"
VALID: dict[str, Any] = json.loads(GOLDEN.read_bytes())


class Fault(NamedTuple):
    """A broken file and the path that the message about it must name."""

    name: str
    data: bytes
    expected_field: str


def holder(document: Any, path: str) -> tuple[Any, Any]:
    """Walk ``jobs[3].options``: return what holds its last step, and that step as key or index."""
    *above, last = path.replace("[", ".").replace("]", "").split(".")
    for step in above:
        document = document[int(step) if isinstance(document, list) else step]
    return document, int(last) if isinstance(document, list) else last


def changed(path: str, value: Any) -> dict[str, Any]:
    """Return the valid document with ``value`` at ``path``."""
    document: dict[str, Any] = copy.deepcopy(VALID)
    inner, last = holder(document, path)
    inner[last] = value
    return document


def without(path: str) -> dict[str, Any]:
    """Return the valid document without what is at ``path``."""
    document: dict[str, Any] = copy.deepcopy(VALID)
    inner, last = holder(document, path)
    del inner[last]
    return document


def encode(document: Any) -> bytes:
    """Write a document as JSON, as compact as the fault allows."""
    return json.dumps(document).encode()


def spelled(path: str, text: str) -> bytes:
    """Write the valid document with ``text``, which need not be JSON, at ``path``."""
    return encode(changed(path, "@@here@@")).replace(b'"@@here@@"', text.encode())


# One field of every type, in every record.
INTEGERS = [
    "revision", "now_ms",
    "cluster.machines[0].cpu_millicores", "cluster.machines[0].memory_mib",
    "cluster.machines[0].memory_bandwidth_mbps", "cluster.machines[0].parts[0].uplink_weight",
    "cluster.machines[0].gpus[0].memory_mib", "cluster.machines[0].links[0].lanes",
    "cluster.machines[0].links[0].gpus[0]", "cluster.machines[1].gpu_distance_matrix[0][1]",
    "cluster.domains[0].uplink_mbps", "cluster.nodes[0].price_milli_per_hour",
    "jobs[0].priority", "jobs[0].arrival_ms", "jobs[3].deadline_ms", "jobs[3].utility_min_thousandths",
    "jobs[0].communication.weight", "jobs[0].communication.edges[0].weight",
    "jobs[0].communication.edges[0].ranks[0]",
    "jobs[3].options[0].workers", "jobs[0].options[0].workers_min", "jobs[0].options[0].value",
    "jobs[3].options[0].rate_milli", "jobs[3].options[0].splits[0].domains",
    "jobs[0].options[0].demand.gpus", "jobs[0].options[0].demand.gpu_milli",
    "jobs[0].options[0].demand.gpu_memory_mib", "jobs[0].options[0].demand.cpu_millicores",
    "running[0].started_ms", "running[0].assignments[0].cpu_millicores", "running[0].assignments[0].gpus.0",
    "running[0].assignments[0].workers[0].rank", "running[0].assignments[0].workers[0].gpus[0]",
    "slowdowns[0].gpu_thousandths",
    "policy.jobs_per_gpu_max", "policy.usable.memory_bandwidth_percent", "policy.weights.communication",
    "policy.fragmentation.level_weights.node", "policy.horus.memory_thousandths",
    "policy.queues[0].quota.gpu_milli", "policy.queues[0].weight", "policy.changes.moves_max",
]  # fmt: skip
NO_INTEGERS: list[tuple[str, Any]] = [
    ("text", "1"),
    ("unit", "16GiB"),
    ("fraction", 3.5),
    ("float", 1.0),
    ("true", True),
    ("negative", -1_000_001),
    ("huge", 10**18),
    ("array", [1]),
]
BOOLEANS = [
    "cluster.nodes[2].drained",
    "jobs[3].options[1].single_node",
    "running[1].movable",
    "policy.changes.last_submitted_first",
]
TEXTS = [
    "name",
    "note",
    "cluster.nodes[0].id",
    "cluster.machines[0].gpus[0].model",
    "jobs[0].options[0].id",
    "running[0].job",
    "policy.name",
]
ARRAYS = [
    "jobs",
    "cluster.nodes",
    "cluster.machines[0].gpus",
    "jobs[0].options",
    "jobs[0].tolerations",
    "running[0].assignments",
    "policy.queues",
]
OBJECTS = [
    "cluster",
    "cluster.nodes[0]",
    "cluster.nodes[0].labels",
    "jobs[0]",
    "jobs[0].options[0].demand",
    "jobs[3].node_selector",
    "running[0].assignments[0].gpus",
    "policy",
    "policy.changes",
]
CHOICES = [
    "jobs[0].kind",
    "cluster.machines[0].parts[0].level",
    "cluster.machines[0].links[0].kind",
    "policy.share_mode",
    "policy.order",
    "policy.interference.model",
    "policy.fragmentation.form",
]
REQUIRED = [
    "cluster",
    "cluster.machines",
    "cluster.nodes",
    "cluster.machines[0].id",
    "cluster.machines[0].cpu_millicores",
    "cluster.machines[0].gpus[0].model",
    "cluster.nodes[1].machine",
    "jobs[0].id",
    "jobs[0].communication.edges[0].ranks",
    "jobs[3].options[0].splits[0].level",
    "running[0].option",
    "running[0].assignments[0].workers",
    "slowdowns[0].beside",
    "policy.queues[0].id",
]

# (name, path, value, path in the message if it is another one)
CONTENT: list[tuple[str, str, Any, str]] = [
    # references to nothing
    ("machine of a node", "cluster.nodes[1].machine", "gone", ""),
    ("domain of a node", "cluster.nodes[1].domain", "gone", ""),
    ("parent of a domain", "cluster.domains[1].parent", "gone", ""),
    ("parent domain listed later", "cluster.domains[1].parent", "r1", ""),
    ("domain its own parent", "cluster.domains[1].parent", "r0", ""),
    ("part of a GPU", "cluster.machines[0].gpus[0].part", "gone", ""),
    ("parent of a part", "cluster.machines[0].parts[1].parent", "gone", ""),
    ("queue of a job", "jobs[0].queue", "gone", ""),
    ("allowed node", "jobs[3].nodes_allowed[1]", "gone", ""),
    ("level of a split", "jobs[3].options[0].splits[0].level", "gone", ""),
    ("running job", "running[0].job", "gone", ""),
    ("running option", "running[0].option", "gone", ""),
    ("link to a GPU that is not there", "cluster.machines[0].links[0].gpus", [0, 4], ""),
    ("edge to a worker that is not there", "jobs[0].communication.edges[0].ranks", [0, 3], ""),
    # twice
    ("machine twice", "cluster.machines[1].id", "minsky", ""),
    ("node twice", "cluster.nodes[1].id", "n0", ""),
    ("domain twice", "cluster.domains[2].id", "r0", ""),
    ("part twice", "cluster.machines[0].parts[1].id", "s0", ""),
    ("link twice", "cluster.machines[0].links[1].gpus", [1, 0], ""),
    ("job twice", "jobs[1].id", "run", ""),
    ("option twice", "jobs[3].options[1].id", "spread", ""),
    ("edge twice", "jobs[0].communication.edges[1].ranks", [1, 0], ""),
    ("job runs twice", "running[1].job", "run", ""),
    ("running on a node twice", "running[0].assignments[1].node", "n0", ""),
    ("queue twice", "policy.queues[1].id", "research", ""),
    ("slowdown twice", "slowdowns", [VALID["slowdowns"][0]] * 2, "slowdowns[1]"),
    # contradictions
    ("link to itself", "cluster.machines[0].links[0].gpus", [1, 1], ""),
    ("matrix of the wrong size", "cluster.machines[1].gpu_distance_matrix", [[0]], ""),
    ("ragged matrix", "cluster.machines[1].gpu_distance_matrix", [[0, 1], [1]], ""),
    ("matrix not symmetric", "cluster.machines[1].gpu_distance_matrix", [[0, 1], [2, 0]],
     "cluster.machines[1].gpu_distance_matrix[1][0]"),
    ("matrix with a diagonal", "cluster.machines[1].gpu_distance_matrix", [[5, 1], [1, 0]],
     "cluster.machines[1].gpu_distance_matrix[0][0]"),
    ("reserved level", "cluster.domains[0].level", "socket", ""),
    ("level twice on a path", "cluster.domains[0].level", "rack", "cluster.domains[1].level"),
    ("label against a domain", "cluster.nodes[0].labels.rack", "r7", "cluster.nodes[0].labels"),
    ("share of several GPUs", "jobs[0].options[0].demand.gpus", 2, "jobs[0].options[0].demand.gpu_milli"),
    ("limit below request", "jobs[0].options[0].demand.gpu_milli_limit", 499, ""),
    ("minimum above workers", "jobs[0].options[0].workers_min", 4, ""),
    ("extra value in a gang", "jobs[3].options[0].value_per_extra_worker", 1, ""),
    ("split that does not add up", "jobs[3].options[0].splits[0].workers", 2, "jobs[3].options[0].splits[0]"),
    ("exact split of an elastic job", "jobs[3].options[0].workers_min", 1, "jobs[3].options[0].splits[0].workers"),
    ("edge to itself", "jobs[0].communication.edges[0].ranks", [1, 1], ""),
    ("GPUs of a CPU job", "jobs[4].options[0].demand.gpus", 1, ""),
    ("weights do not sum up", "policy.weights.resource", 51, "policy.weights"),
    ("overcommit without a number", "policy.jobs_per_gpu_max", None, ""),
    ("exclusive with a number", "policy.share_mode", "exclusive", "policy.jobs_per_gpu_max"),
    ("running with a rank twice", "running[0].assignments[0].workers[1].rank", 0, "running[0].assignments"),
    ("running with too many workers", "jobs[0].options[0].workers", 2, "jobs[0].communication.edges[1].ranks"),
    ("running workers fewer than the gang", "running[2].job", "etl", "running[2].assignments[0].workers[0].gpus"),
    ("running share above the limit", "running[0].assignments[0].gpus.1", 801, 'running[0].assignments[0].gpus["1"]'),
    ("running GPUs not listed", "running[0].assignments[0].gpus", {"0": 500}, ""),
    ("running GPU of two workers", "running[0].assignments[0].workers[1].gpus", [0],
     "running[0].assignments[0].workers"),
    ("running CPU off by one", "running[0].assignments[0].cpu_millicores", 2001, ""),
    ("running memory off by one", "running[0].assignments[0].memory_mib", 4095, ""),
    # form of ids, keys, sizes
    ("empty id", "jobs[0].id", "", ""),
    ("blank in an id", "jobs[0].id", "a b", ""),
    ("line break in an id", "cluster.nodes[0].id", "n0\n", ""),
    ("endless id", "jobs[0].id", "x" * 254, ""),
    ("control character in a name", "jobs[0].user", "a\u0000b", ""),
    ("endless note", "note", "x" * 10_001, ""),
    ("blank in a label's key", "cluster.nodes[0].labels", {"a b": "c"}, 'cluster.nodes[0].labels["a b"]'),
    ("GPU index with a sign", "running[0].assignments[0].gpus", {"+0": 500}, 'running[0].assignments[0].gpus["+0"]'),
    ("GPU index with a zero before", "running[0].assignments[0].gpus", {"00": 500},
     'running[0].assignments[0].gpus["00"]'),
    ("no nodes", "cluster.nodes", [], ""),
    ("no options", "jobs[0].options", [], ""),
    ("no workers", "running[0].assignments[0].workers", [], ""),
    ("no assignments", "running[0].assignments", [], ""),
    ("three ends of a link", "cluster.machines[0].links[0].gpus", [0, 1, 2], ""),
    ("one end of a link", "cluster.machines[0].links[0].gpus", [0], "cluster.machines[0].links[0].gpus[1]"),
    ("a billion workers", "jobs[0].options[0].workers", 10**9, ""),
    ("257 options", "jobs[0].options", [{"id": f"o{i}"} for i in range(257)], ""),
    ("1025 GPUs", "cluster.machines[1].gpus", [{"model": "T4"}] * 1025, ""),
    ("no share", "jobs[0].options[0].demand.gpu_milli", 0, ""),
    ("more than a GPU", "jobs[0].options[0].demand.gpu_milli", 1001, ""),
    ("101 percent", "policy.usable.pcie_bandwidth_percent", 101, ""),
]  # fmt: skip

# Duplicate keys at every level: (path of an object in the valid document, a key of it)
DUPLICATES = [
    ("", "name"), ("cluster", "nodes"), ("cluster.machines[0]", "id"), ("cluster.machines[0].parts[1]", "level"),
    ("cluster.machines[0].gpus[3]", "model"), ("cluster.machines[0].links[0]", "weight"),
    ("cluster.domains[1]", "parent"), ("cluster.nodes[2]", "drained"), ("cluster.nodes[0].labels", "disk"),
    ("jobs[0]", "id"), ("jobs[0].options[0]", "workers"), ("jobs[0].options[0].demand", "gpu_milli"),
    ("jobs[3].options[0].splits[0]", "domains"), ("jobs[0].communication", "weight"),
    ("jobs[0].communication.edges[1]", "ranks"), ("jobs[3].node_selector", "zone"), ("running[0]", "job"),
    ("running[0].assignments[1]", "node"), ("running[0].assignments[0].workers[1]", "rank"),
    ("slowdowns[0]", "profile"), ("policy", "name"), ("policy.usable", "memory_bandwidth_percent"),
    ("policy.weights", "horus"), ("policy.queues[0].quota", "gpu_milli"), ("policy.changes", "moves_max"),
]  # fmt: skip


def duplicated(path: str, key: str) -> bytes:
    """Write the valid document with ``key`` standing a second time, with the same value, in the object at ``path``."""
    document: Any = copy.deepcopy(VALID)
    inner, last = holder({"": document}, f".{path}" if path else "")
    inner = inner[last]
    value = inner.pop(key)
    inner["@@here@@"] = 0
    twice = f'"{key}": {json.dumps(value)}, "{key}": {json.dumps(value)}'
    return encode(document).replace(b'"@@here@@": 0', twice.encode())


def _typed() -> list[Fault]:
    faults = []
    for i, path in enumerate(INTEGERS):
        # All wrong values on a few fields, three of them, in turn, on the others: every type meets every record.
        for k, (name, value) in enumerate(NO_INTEGERS):
            if i % 8 == 0 or (i + k) % 3 == 0:
                faults.append(Fault(f"{name} for integer {path}", encode(changed(path, value)), _said(path)))
    for kind, paths, values in (
        ("boolean", BOOLEANS, (1, "true", None)),
        ("text", TEXTS, (7, None)),
        ("array", ARRAYS, ({}, "a")),
        ("object", OBJECTS, ([], 3)),
        ("choice", CHOICES, ("no such word", 1)),
    ):
        faults += [
            Fault(f"{json.dumps(value)} for {kind} {path}", encode(changed(path, value)), _said(path))
            for path in paths
            for value in values
        ]
    return faults


def _said(path: str) -> str:
    """Write a path of ours as messages do: keys that are no words stand in brackets."""
    return path.replace(".gpus.0", '.gpus["0"]')


def _texts() -> list[Fault]:
    valid = GOLDEN.read_bytes()
    deep = b"[" * 100_000 + b"]" * 100_000
    faults = [
        Fault("empty file", b"", ""),
        Fault("white space", b" \n\t\n", ""),
        Fault("not JSON", b"apiVersion: v1\nkind: Pod\n", "line 1 column 1"),
        Fault("single quotes", b"{'name': 'x'}", "line 1 column 2"),
        Fault("trailing comma", b'{"name": "x",}', "line 1 column"),
        Fault("comment", b'{"name": "x" /* note */}', "line 1 column 14"),
        Fault("trailing garbage", valid + b"x", "line"),
        Fault("two documents", valid + valid, "line"),
        Fault("an array of instances", b"[" + valid + b"]", "document"),
        Fault("null", b"null", "document"),
        Fault("a number", b"12", "document"),
        Fault("a text", b'"instance"', "document"),
        Fault("an empty object", b"{}", "cluster"),
        Fault("binary", bytes(range(256)) * 4, ""),
        Fault("a picture", b"\x89PNG\r\n\x1a\n" + bytes(100), ""),
        Fault("UTF-16", valid.decode().encode("utf-16"), "UTF-8"),
        Fault("UTF-16 without mark", valid.decode().encode("utf-16-le"), "UTF-8"),
        Fault("UTF-32", valid.decode().encode("utf-32"), "UTF-8"),
        Fault("Latin-1", valid.decode().replace("日本", "").encode("latin-1"), "UTF-8"),
        Fault("broken UTF-8 in a name", valid.replace(b"golden instance", b"golden \xc3\x28"), "UTF-8"),
        Fault("UTF-8 surrogate", valid.replace(b"golden instance", b"golden \xed\xa0\x80"), "UTF-8"),
        Fault("lone surrogate escape", valid.replace(b"golden instance", b"golden \\ud800"), ""),
        Fault("raw line break in a text", valid.replace(b"golden instance", b"golden\ninstance"), "line 3 column"),
        Fault("wrong escape", valid.replace(b"golden instance", b"golden \\x"), "line 3 column"),
        Fault("two marks", b"\xef\xbb\xbf\xef\xbb\xbf" + valid, ""),
        Fault("deep arrays", deep, "nested"),
        Fault("deep objects", b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested"),
        Fault("deep in a field", valid.replace(b'"revision": 7', b'"revision": ' + deep), "nested"),
        Fault(
            "somewhat deep in a field",
            valid.replace(b'"revision": 7', b'"revision": ' + b"[" * 300 + b"]" * 300),
            "nested",
        ),
        Fault("deep and cut off", b"[" * 100_000, "nested"),
        Fault("gzip cut off", gzip.compress(valid)[:-20], "gzip"),
        Fault("gzip header only", gzip.compress(valid)[:10], "gzip"),
        Fault("gzip magic only", b"\x1f\x8b", "gzip"),
        Fault("gzip with wrong check sum", gzip.compress(valid)[:-8] + bytes(8), "gzip"),
        Fault("gzip with garbage after it", gzip.compress(valid) + b"garbage", "gzip"),
        Fault("gzip of nothing", gzip.compress(b""), ""),
        Fault("gzip of gzip", gzip.compress(gzip.compress(valid)), "gzip"),
        Fault("gzip of 64 MiB of blanks", gzip.compress(b" " * (64 << 20), compresslevel=1), ""),
        Fault("gzip of a text of 16 MiB", gzip.compress(b'{"name":"' + b"x" * (16 << 20) + b'"}'), "gzip"),
        Fault("a text of 16 MiB", b'{"name":"' + b"x" * (16 << 20) + b'"}', "name"),
        Fault("an XML file", b'<?xml version="1.0"?><topology/>', "line 1 column 1"),
        Fault("a CSV file", b"sn,cpu_milli,memory_mib\nopenb-node-0000,64000,262144\n", "line 1 column 1"),
        Fault("a plan", GOLDEN.with_name("plan-1.json").read_bytes(), "placements"),
    ]
    faults += [Fault(f"cut off at {end} %", valid[: len(valid) * end // 100], "line") for end in range(5, 100, 5)]
    for path in (
        "now_ms",
        "cluster.machines[0].memory_mib",
        "jobs[0].options[0].demand.gpu_milli",
        "policy.horus.memory_thousandths",
    ):
        for text in ("NaN", "Infinity", "-Infinity", "1e400", "1e3", "9" * 5000, "-0.0"):
            faults.append(Fault(f"{text[:10]} for {path}", spelled(path, text), path))
        for text in ("nan", "01", "1.", ".5", "+1", "0x10", "1_000", "undefined"):
            faults.append(Fault(f"{text} for {path}", spelled(path, text), "line 1 column"))
    return faults


def _versions() -> list[Fault]:
    return [
        Fault(f"format_version {json.dumps(version)}", encode(changed("format_version", version)), "format_version")
        for version in (0, 2, 99, -1, 10**30, "1", 1.0, 1.5, True, None, [1], {})
    ]


def _unknown() -> list[Fault]:
    return [
        Fault(
            f"unknown field in {path or 'the document'}",
            encode(changed(f"{path}.x_new" if path else "x_new", 1)),
            f"{path}.x_new" if path else "x_new",
        )
        for path in (
            "",
            "cluster",
            "cluster.machines[0]",
            "cluster.machines[0].gpus[0]",
            "cluster.machines[0].links[0]",
            "cluster.machines[0].parts[0]",
            "cluster.domains[0]",
            "cluster.nodes[0]",
            "jobs[0]",
            "jobs[0].options[0]",
            "jobs[0].options[0].demand",
            "jobs[3].options[0].splits[0]",
            "jobs[0].communication",
            "jobs[0].communication.edges[0]",
            "running[0]",
            "running[0].assignments[0]",
            "running[0].assignments[0].workers[0]",
            "slowdowns[0]",
            "policy",
            "policy.usable",
            "policy.weights",
            "policy.interference",
            "policy.fragmentation",
            "policy.horus",
            "policy.queues[0]",
            "policy.queues[0].quota",
            "policy.changes",
        )
    ]


def _all() -> list[Fault]:
    faults = _texts() + _typed() + _versions() + _unknown()
    faults += [Fault(name, encode(changed(path, value)), said or _said(path)) for name, path, value, said in CONTENT]
    faults += [Fault(f"{path} missing", encode(without(path)), _said(path)) for path in REQUIRED]
    faults += [
        Fault(f"{key} twice in {path or 'the document'}", duplicated(path, key), f"{path}.{key}" if path else key)
        for path, key in DUPLICATES
    ]
    return faults


FAULTS: list[Fault] = _all()


def judge(fault: Fault, folder: Path, read: Callable[[Path], object] = read_instance) -> str:
    """Read the broken file; return what is said about it, or raise `AssertionError` if that is not as it should be."""
    path = folder / "round.json"
    path.write_bytes(fault.data)
    try:
        read(path)
    except BadInput as error:
        message = str(error)
    except Exception as error:  # any other exception is the finding
        raise AssertionError(f"{fault.name}: {type(error).__name__} instead of BadInput: {error}") from error
    else:
        raise AssertionError(f"{fault.name}: taken without a word")
    assert message.startswith(f"{path}: "), f"{fault.name}: does not name the file: {message}"
    told = [line.strip() for line in message.removeprefix(f"{path}: ").splitlines()]
    assert any(names_field(line, fault.expected_field) for line in told), (
        f"{fault.name}: does not name {fault.expected_field!r}: {message[:500]}"
    )
    assert len(message) < 6000, f"{fault.name}: {len(message)} characters are no message"
    return message


def names_field(line: str, field: str) -> bool:
    """Tell whether a line of a message is about ``field``: a path, ``line``, or a word where there is no path."""
    if field in ("UTF-8", "gzip", "nested", ""):
        return field in line
    return line.startswith((f"{field}:", f"{field} ")) or (field.startswith("line") and line.startswith(field))
