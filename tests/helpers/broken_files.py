"""Instance files with one fault each: every one must end in `BadInput` that names the field, in nothing else."""

import copy
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

GOLDEN = Path(__file__).parents[1] / "data" / "golden" / "instance-2.json"
TEXT = GOLDEN.read_bytes()
VALID: dict[str, Any] = json.loads(TEXT)
GONE: Any = object()
"""In place of a value: the field is missing."""


class Fault(NamedTuple):
    """A broken file, and the field or place that the message about it must name; empty where there is none."""

    name: str
    data: bytes
    expected_field: str


def holder(document: Any, path: str) -> tuple[Any, Any]:
    """Walk ``jobs[3].options``: return what holds its last step, and that step as key or index."""
    *above, last = path.replace("[", ".").replace("]", "").split(".")
    for step in above:
        document = document[int(step) if isinstance(document, list) else step]
    return document, int(last) if isinstance(document, list) else last


def changed(path: str, value: Any) -> bytes:
    """Return the valid document with ``value`` at ``path``."""
    document = copy.deepcopy(VALID)
    inner, last = holder(document, path)
    if value is GONE:
        del inner[last]
    else:
        inner[last] = value
    return json.dumps(document).encode()


def spelled(path: str, text: str) -> bytes:
    """Return the valid document with ``text``, which need not be JSON, at ``path``."""
    return changed(path, "@@here@@").replace(b'"@@here@@"', text.encode())


def twice(path: str) -> bytes:
    """Return the valid document with the key at ``path`` standing a second time, with the same value."""
    document = copy.deepcopy(VALID)
    inner, key = holder(document, path)
    field = f'"{key}": {json.dumps(inner.pop(key))}'
    inner["@@here@@"] = 0
    return json.dumps(document).encode().replace(b'"@@here@@": 0', f"{field}, {field}".encode())


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
    "policy.fragmentation.level_weights.node", "policy.costs.horus.memory_thousandths",
    "policy.queues[0].quota.gpu_milli", "policy.queues[0].weight", "policy.changes.moves_max",
]  # fmt: skip
NO_INTEGERS: list[Any] = ["1", "16GiB", 3.5, 1.0, True, -1_000_001, 10**18, [1]]
BOOLEANS = (
    "cluster.nodes[2].drained", "jobs[3].options[1].single_node", "running[1].movable",
    "policy.changes.last_submitted_first",
)  # fmt: skip
TEXTS = (
    "name", "note", "cluster.nodes[0].id", "cluster.machines[0].gpus[0].model", "jobs[0].options[0].id",
    "running[0].job", "policy.name",
)  # fmt: skip
ARRAYS = (
    "jobs", "cluster.nodes", "cluster.machines[0].gpus", "jobs[0].options", "jobs[0].conditions.tolerations",
    "running[0].assignments", "policy.queues",
)  # fmt: skip
OBJECTS = (
    "cluster", "cluster.nodes[0]", "cluster.nodes[0].labels", "jobs[0]", "jobs[0].options[0].demand",
    "jobs[3].conditions.node_selector", "running[0].assignments[0].gpus", "policy", "policy.changes",
)  # fmt: skip
CHOICES = (
    "jobs[0].kind", "cluster.machines[0].parts[0].level", "cluster.machines[0].links[0].kind", "policy.share_mode",
    "policy.order", "policy.interference.model", "policy.fragmentation.form",
    "cluster.nodes[1].taints[0].effect", "jobs[0].conditions.tolerations[0].operator",
)  # fmt: skip
REQUIRED = (
    "cluster", "cluster.machines", "cluster.nodes", "cluster.machines[0].id", "cluster.machines[0].cpu_millicores",
    "cluster.machines[0].gpus[0].model", "cluster.nodes[1].machine", "jobs[0].id",
    "jobs[0].communication.edges[0].ranks", "jobs[3].options[0].splits[0].level", "running[0].option",
    "running[0].assignments[0].workers", "slowdowns[0].beside", "policy.queues[0].id",
)  # fmt: skip
REFERENCES = (
    "cluster.nodes[1].machine", "cluster.nodes[1].domain", "cluster.domains[1].parent",
    "cluster.machines[0].gpus[0].part", "cluster.machines[0].parts[1].parent", "jobs[0].queue",
    "jobs[3].options[0].splits[0].level", "running[0].job", "running[0].option",
)  # fmt: skip
WRONG = (
    (BOOLEANS, (1, "true", None)), (TEXTS, (7, None)), (ARRAYS, ({}, "a")), (OBJECTS, ([], 3)),
    (CHOICES, ("no such word", 1)), (REQUIRED, (GONE,)), (REFERENCES, ("gone",)),
)  # fmt: skip
"""Fields, and values that none of them takes."""

NUMBERS = (
    "now_ms", "cluster.machines[0].memory_mib", "jobs[0].options[0].demand.gpu_milli",
    "policy.costs.horus.memory_thousandths",
)  # fmt: skip
LITERALS = ("NaN", "Infinity", "-Infinity", "1e400", "1e3", "-0.0")
HUGE = "9" * 5000
NO_LITERALS = ("nan", "01", "1.", ".5", "+1", "0x10", "1_000", "undefined")

RECORDS = (
    "", "cluster", "cluster.machines[0]", "cluster.machines[0].gpus[0]", "cluster.machines[0].links[0]",
    "cluster.machines[0].parts[0]", "cluster.domains[0]", "cluster.nodes[0]", "jobs[0]", "jobs[0].options[0]",
    "jobs[0].options[0].demand", "jobs[3].options[0].splits[0]", "jobs[0].communication",
    "jobs[0].communication.edges[0]", "running[0]", "running[0].assignments[0]",
    "running[0].assignments[0].workers[0]", "slowdowns[0]", "policy", "policy.usable", "policy.weights",
    "policy.interference", "policy.fragmentation", "policy.costs.horus", "policy.queues[0]", "policy.queues[0].quota",
    "policy.changes",
)  # fmt: skip
"""Each gets a field that it does not have."""
TWICE = (
    "name", "cluster.nodes", "cluster.machines[0].id", "cluster.machines[0].parts[1].level",
    "cluster.machines[0].gpus[3].model", "cluster.machines[0].links[0].weight", "cluster.domains[1].parent",
    "cluster.nodes[2].drained", "cluster.nodes[0].labels.disk", "jobs[0].id", "jobs[0].options[0].workers",
    "jobs[0].options[0].demand.gpu_milli", "jobs[3].options[0].splits[0].domains", "jobs[0].communication.weight",
    "jobs[0].communication.edges[1].ranks", "jobs[3].conditions.node_selector.zone", "running[0].job",
    "running[0].assignments[1].node", "running[0].assignments[0].workers[1].rank", "slowdowns[0].profile",
    "policy.name", "policy.usable.memory_bandwidth_percent", "policy.weights.horus",
    "policy.queues[0].quota.gpu_milli", "policy.changes.moves_max",
)  # fmt: skip
"""Keys that stand twice, at every level."""

HELD = "running[0].assignments[0]"
CONTENT: dict[str, tuple[Any, ...]] = {
    # references to what stands later, to itself, beyond the end; twice
    "cluster.domains[1].parent": ("r1", "r0"),
    "cluster.machines[0].links[0].gpus": ([0, 4], [1, 1], [0, 1, 2]),
    "jobs[0].communication.edges[0].ranks": ([0, 3], [1, 1]),
    "cluster.machines[1].id": ("minsky",),
    "cluster.nodes[1].id": ("n0",),
    "cluster.domains[2].id": ("r0",),
    "cluster.machines[0].parts[1].id": ("s0",),
    "cluster.machines[0].links[1].gpus": ([1, 0],),
    "jobs[1].id": ("run",),
    "jobs[3].options[1].id": ("spread",),
    "jobs[0].communication.edges[1].ranks": ([1, 0],),
    "running[1].job": ("run",),
    "running[0].assignments[1].node": ("n0",),
    "policy.queues[1].id": ("research",),
    # contradictions
    "cluster.machines[1].gpu_distance_matrix": ([[0]], [[0, 1], [1]]),
    "cluster.domains[0].level": ("socket",),  # reserved
    "jobs[0].options[0].demand.gpu_milli_limit": (499,),
    "jobs[0].options[0].workers_min": (4,),
    "jobs[3].options[0].value_per_worker": (1,),
    "jobs[4].options[0].demand.gpus": (1,),  # of a CPU job
    "policy.jobs_per_gpu_max": (None,),
    f"{HELD}.gpus": ({"0": 500},),
    f"{HELD}.cpu_millicores": (2001,),
    f"{HELD}.memory_mib": (4095,),
    # form of ids, sizes
    "jobs[0].id": ("", "a b", "x" * 254),
    "cluster.nodes[0].id": ("n0\n",),
    "jobs[0].user": ("a\u0000b",),
    "note": ("x" * 10_001,),
    "cluster.nodes": ([],),
    "jobs[0].options": ([], [{"id": f"o{i}"} for i in range(257)]),
    f"{HELD}.workers": ([],),
    "running[0].assignments": ([],),
    "jobs[0].options[0].workers": (10**9,),
    "cluster.machines[1].gpus": ([{"model": "T4"}] * 1025,),
    "jobs[0].options[0].demand.gpu_milli": (0, 1001),
    "policy.usable.pcie_bandwidth_percent": (101,),
    "format_version": (0, 1, 3, 99, -1, 10**30, "1", 1.0, 1.5, True, None, [1], {}),
}
"""Field -> values of the right type that it cannot have."""
ELSEWHERE = [  # field, value, and the field in the message, where that is another one
    ("slowdowns", [VALID["slowdowns"][0]] * 2, "slowdowns[1]"),
    ("cluster.machines[1].gpu_distance_matrix", [[0, 1], [2, 0]], "cluster.machines[1].gpu_distance_matrix[1][0]"),
    ("cluster.machines[1].gpu_distance_matrix", [[5, 1], [1, 0]], "cluster.machines[1].gpu_distance_matrix[0][0]"),
    ("cluster.domains[0].level", "rack", "cluster.domains[1].level"),  # twice on a path
    ("cluster.nodes[0].labels.rack", "r7", "cluster.nodes[0].labels"),  # against the domain
    ("jobs[0].options[0].demand.gpus", 2, "jobs[0].options[0].demand.gpu_milli"),
    ("jobs[3].options[0].splits[0].workers", 2, "jobs[3].options[0].splits[0]"),
    ("jobs[3].options[0].workers_min", 1, "jobs[3].options[0].splits[0].workers"),
    ("policy.weights.resource", 51, "policy.weights"),
    ("policy.costs", {"resource": {}}, "policy.costs.resource"),  # has no parameters
    ("policy.costs", {"hours": {}}, "policy.costs.hours"),
    ("policy.share_mode", "exclusive", "policy.jobs_per_gpu_max"),
    (f"{HELD}.workers[1].rank", 0, "running[0].assignments"),
    ("jobs[0].options[0].workers", 2, "jobs[0].communication.edges[1].ranks"),
    ("running[2].job", "etl", "running[2].assignments[0].workers[0].gpus"),
    (f"{HELD}.gpus.1", 801, f'{HELD}.gpus["1"]'),  # above the limit
    (f"{HELD}.workers[1].gpus", [0], f"{HELD}.workers"),
    ("cluster.nodes[0].labels", {"a b": "c"}, 'cluster.nodes[0].labels["a b"]'),
    (f"{HELD}.gpus", {"+0": 500}, f'{HELD}.gpus["+0"]'),
    (f"{HELD}.gpus", {"00": 500}, f'{HELD}.gpus["00"]'),
    ("cluster.machines[0].links[0].gpus", [0], "cluster.machines[0].links[0].gpus[1]"),
]


def named(new: bytes) -> bytes:
    """Return the valid document with its name spelled otherwise."""
    return TEXT.replace(b"golden instance", new)


DEEP = b"[" * 100_000 + b"]" * 100_000
PACKED = gzip.compress(TEXT)
LONG = b'{"name":"' + b"x" * (16 << 20) + b'"}'
FILES: list[tuple[str, bytes, str]] = [  # what it is, its bytes, and the place in the message
    ("empty file", b"", ""),
    ("white space", b" \n\t\n", ""),
    ("not JSON", b"apiVersion: v1\nkind: Pod\n", "line 1 column 1"),
    ("single quotes", b"{'name': 'x'}", "line 1 column 2"),
    ("trailing comma", b'{"name": "x",}', "line 1 column"),
    ("comment", b'{"name": "x" /* note */}', "line 1 column 14"),
    ("trailing garbage", TEXT + b"x", "line"),
    ("two documents", TEXT + TEXT, "line"),
    ("an array of instances", b"[" + TEXT + b"]", "document"),
    ("null", b"null", "document"),
    ("a number", b"12", "document"),
    ("a text", b'"instance"', "document"),
    ("an empty object", b"{}", "cluster"),
    ("binary", bytes(range(256)) * 4, ""),
    ("a picture", b"\x89PNG\r\n\x1a\n" + bytes(100), ""),
    ("UTF-16", TEXT.decode().encode("utf-16"), "UTF-8"),
    ("UTF-16 without mark", TEXT.decode().encode("utf-16-le"), "UTF-8"),
    ("UTF-32", TEXT.decode().encode("utf-32"), "UTF-8"),
    ("Latin-1", TEXT.decode().replace("日本", "").encode("latin-1"), "UTF-8"),
    ("broken UTF-8 in a name", named(b"golden \xc3\x28"), "UTF-8"),
    ("UTF-8 surrogate", named(b"golden \xed\xa0\x80"), "UTF-8"),
    ("lone surrogate escape", named(b"golden \\ud800"), ""),
    ("raw line break in a text", named(b"golden\ninstance"), "line 4 column"),
    ("wrong escape", named(b"golden \\x"), "line 4 column"),
    ("two marks", b"\xef\xbb\xbf\xef\xbb\xbf" + TEXT, ""),
    ("deep arrays", DEEP, "nested"),
    ("deep objects", b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested"),
    ("deep in a field", TEXT.replace(b'"revision": 7', b'"revision": ' + DEEP), "nested"),
    ("300 deep in a field", TEXT.replace(b'"revision": 7', b'"revision": ' + b"[" * 300 + b"]" * 300), "revision"),
    ("deep and cut off", b"[" * 100_000, "nested"),
    ("gzip cut off", PACKED[:-20], "gzip"),
    ("gzip header only", PACKED[:10], "gzip"),
    ("gzip magic only", b"\x1f\x8b", "gzip"),
    ("gzip with wrong check sum", PACKED[:-8] + bytes(8), "gzip"),
    ("gzip with garbage after it", PACKED + b"garbage", "gzip"),
    ("gzip of nothing", gzip.compress(b""), ""),
    ("gzip of gzip", gzip.compress(PACKED), "gzip"),
    ("gzip of 64 MiB of blanks", gzip.compress(b" " * (64 << 20), compresslevel=1), ""),
    ("gzip of a text of 16 MiB", gzip.compress(LONG), "gzip"),
    ("a text of 16 MiB", LONG, "name"),
    ("an XML file", b'<?xml version="1.0"?><topology/>', "line 1 column 1"),
    ("a CSV file", b"sn,cpu_milli,memory_mib\nopenb-node-0000,64000,262144\n", "line 1 column 1"),
    ("a plan", GOLDEN.with_name("plan-2.json").read_bytes(), "document"),
    *((f"cut off at {end} %", TEXT[: len(TEXT) * end // 100], "line") for end in range(5, 100, 5)),
]


def _fields() -> Iterator[tuple[str, bytes, str]]:
    """Yield what is wrong at a field: its path, the file, and the place in the message if that is not the path."""
    for i, path in enumerate(INTEGERS):
        # All wrong values on a few fields, three of them, in turn, on the others: every type meets every record.
        values = [value for k, value in enumerate(NO_INTEGERS) if i % 8 == 0 or (i + k) % 3 == 0]
        yield from ((path, changed(path, value), "") for value in values)
    for paths, wrong in (*WRONG, *(((path,), wrong) for path, wrong in CONTENT.items())):
        yield from ((path, changed(path, value), "") for path in paths for value in wrong)
    yield from ((path, changed(path, value), said) for path, value, said in ELSEWHERE)
    for path in NUMBERS:
        yield from ((path, spelled(path, text), "") for text in LITERALS)
        yield from ((path, spelled(path, text), "line 1 column") for text in NO_LITERALS)
        yield path, spelled(path, HUGE), "line 1"
    for record in RECORDS:
        path = f"{record}.x_new".removeprefix(".")
        yield path, changed(path, 1), ""
    yield from ((path, twice(path), "") for path in TWICE)


FAULTS = [Fault(*row) for row in FILES] + [
    Fault(f"{path} ({number})", data, said or path.replace(".gpus.0", '.gpus["0"]'))
    for number, (path, data, said) in enumerate(_fields())
]
