"""Files that commands name: standard input at most once, policies by name or file, targets that are writable."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placeopt.cli.output import UsageError, write_bytes_out, write_error, write_out
from placeopt.errors import BadInput
from placeopt.readable import plain, plural

if TYPE_CHECKING:
    from placeopt.model import Cluster, Instance, Plan, Policy
    from placeopt.scheduling.policy import Scheduling
    from placeopt.simulation.records.scenario import Scenario

STREAM = "-"
SIMULATIONS = "simulations.json"
"""The answer of ``simulate --out``, in its folder."""


def check_sources(paths: Mapping[str, str | None]) -> None:
    """Refuse to read standard input twice, or a closed one."""
    names = [name for name, path in paths.items() if path == STREAM]
    if len(names) > 1:
        raise UsageError(f"'-' stands for {' and '.join(names)}; standard input can be read only once")
    if names and sys.stdin is None:
        raise BadInput("standard input: is closed")


def check_target(path: str | None, sources: Iterable[str | None] = ()) -> None:
    """Refuse a target that cannot be written, before any work is done."""
    if path is None or path == STREAM:
        return
    try:
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise BadInput(f"{path}: cannot be written: is a folder")
        if not target.parent.is_dir():
            raise BadInput(f"{path}: cannot be written: no folder {str(Path(path).parent)!r}")
        if not os.access(target if target.exists() else target.parent, os.W_OK):
            raise BadInput(f"{path}: cannot be written: permission denied")
    except ValueError as error:  # a NUL byte in the name
        raise BadInput(f"{path!r}: no file name: {error}") from None
    if target.is_file() and any(source and os.path.realpath(source) == str(target) for source in sources):
        raise UsageError(f"{path} is also an input and would be overwritten; name another output")


def write_document(path: str, data: bytes) -> None:
    """Write a document to a file, all or nothing, or to standard output."""
    from placeopt.documents.files import write_bytes

    if path == STREAM:
        write_bytes_out(data)
    else:
        write_bytes(path, data)


def read_policy(text: str) -> Policy | Scheduling:
    """Return the scheduling policy of that name, or the policy in that file, of rounds alone or a whole one."""
    from placeopt.documents import read_any
    from placeopt.model import Policy
    from placeopt.scheduling import named_policy, policy_names
    from placeopt.scheduling.policy import Scheduling

    known = policy_names()
    if text in known:
        return named_policy(text)
    if text != STREAM and not text.endswith((".json", ".gz")) and os.sep not in text and not os.path.exists(text):
        raise UsageError(f"--policy: no policy and no file {text!r}; known policies: {', '.join(known)}")
    return read_any(text, (Policy, Scheduling))


def read_scheduling(text: str) -> Scheduling:
    """Return the scheduling policy of that name, or in that file; one of rounds alone makes whole rounds."""
    from placeopt.model import Policy
    from placeopt.scheduling import named_policy

    policy = read_policy(text)
    if isinstance(policy, Policy):
        return named_policy("rounds").model_copy(update={"policy": policy})
    return policy


def say(text: str, out: str) -> None:
    """Print what was written: on standard output, unless the document itself went there."""
    if out == STREAM:
        write_error(text)
    else:
        write_out(f"{text}\nwritten to {plain(out)}\n")


def summary(document: Instance | Scenario, unit: str = "node") -> str:
    """Return a line about a round or a scenario; ``unit`` is the word for a node."""
    from placeopt.model import Instance
    from placeopt.report.views import instance_line

    if isinstance(document, Instance):
        return f"{document.name}: {instance_line(document)}"
    jobs, nodes = len(document.arrivals), len(document.cluster.nodes)
    return f"{document.name}: {plural(jobs, 'job')} on {plural(nodes, unit)}"


def write_made(path: str, document: Instance | Scenario) -> None:
    """Write a round or a scenario, and print a line about it."""
    from placeopt.documents.documents import dumps

    write_document(path, dumps(document))
    say(summary(document), path)


def parsed(path: str) -> tuple[Any, str]:
    """Return the document in a file, and its name for messages."""
    from placeopt.documents.documents import parse_document
    from placeopt.documents.files import label, read_bytes

    source = label(path)
    return parse_document(read_bytes(path), source), source


def peek(path: str) -> tuple[Any, str, str]:
    """Return the document in a file, its name for messages, and the kind that it states; empty: none."""
    document, source = parsed(path)
    kind = document.get("document") if isinstance(document, dict) else None
    return document, source, kind if isinstance(kind, str) else ""


def read_cluster(path: str, *, or_machine: bool = False) -> Cluster:
    """
    Return the cluster of an instance or of a scenario, or one that stands alone, as ``import topo`` writes it.

    ``or_machine``: a machine alone becomes a cluster of one node.
    """
    from placeopt.documents import read_any
    from placeopt.model import Cluster, Instance, Machine, Node
    from placeopt.simulation.records.scenario import Scenario

    document = read_any(path, (Cluster, Instance, Scenario, Machine))
    match document:
        case Cluster():
            return document
        case Instance() | Scenario():
            return document.cluster
        case Machine() if or_machine:
            return Cluster(machines=(document,), nodes=(Node(id=document.id, machine=document.id),))
    raise BadInput(f"{path}: has no nodes, expected a round, a scenario, or a cluster of machines and nodes")


def read_round_or_scenario(path: str) -> Instance | Scenario:
    """Read a round or a scenario, whichever the file states that it is."""
    from placeopt.documents import read_any
    from placeopt.model import Instance
    from placeopt.simulation.records.scenario import Scenario

    return read_any(path, (Instance, Scenario))


def read_placed(path: str, instance: Instance) -> Plan:
    """Read a plan, or placements alone."""
    from placeopt.documents import read_any
    from placeopt.model import Plan
    from placeopt.whatif import Placements, plan_of

    document = read_any(path, (Plan, Placements))
    return document if isinstance(document, Plan) else plan_of(instance, document.placements)
