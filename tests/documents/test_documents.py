"""Instances and plans as files: round trips, golden files for ever, schemas, and messages that lead to the fault."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from helpers.plans import plan_for
from placeopt import BadInput, read_instance, read_plan, write_document
from placeopt.build import instance, job, machine
from placeopt.check import violations
from placeopt.documents import dumps, loads
from placeopt.edits import Patch
from placeopt.model import Instance, Plan, Policy, Record
from placeopt.scheduling import Scheduling
from placeopt.simulation import Scenario, simulate, summarise

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
DOCS = Path(__file__).parents[2] / "docs"
PLANS = ["plan-2", "plan-2-some-jobs", "plan-2-standing"]
TINY: dict[str, Any] = {
    "cluster": {"machines": [{"id": "m", "cpu_millicores": 1, "memory_mib": 1}], "nodes": [{"id": "n", "machine": "m"}]}
}


def refused(text: str | bytes, kind: type[Record] = Instance) -> str:
    """Return the message with which ``text`` is refused."""
    with pytest.raises(BadInput) as caught:
        loads(kind, text, source="f.json")
    return str(caught.value)


class TestGolden:
    """Files of version 2, with every field: what is read is written again, to the byte."""

    @pytest.mark.parametrize("name", ["instance-2", "instance-2-holds", "instance-2-origin", *PLANS])
    def test_bytes_are_stable(self, name: str) -> None:
        """Read and written again, a file is the same to the byte."""
        data = (GOLDEN / f"{name}.json").read_bytes()
        assert dumps(loads(Plan if name in PLANS else Instance, data)) == data

    def test_digests_are_stable(self) -> None:
        """A file that states all defaults is the same round; the golden plan names its digests, and is valid for it."""
        round_, plan = read_instance(GOLDEN / "instance-2.json"), read_plan(GOLDEN / "plan-2.json")
        full = read_instance(GOLDEN / "instance-2-defaults.json")
        assert (full, full.digest) == (round_, round_.digest)
        assert (plan.instance.digest, plan.policy.digest) == (round_.digest, round_.policy.digest)
        assert violations(round_, plan) == violations(round_, read_plan(GOLDEN / "plan-2-some-jobs.json")) == []

    @pytest.mark.parametrize(
        ("kind", "files"),
        [  # the second of them states no defaults: each field that can differ from its default does so at least once
            (Instance, ["instance-2-defaults", "instance-2-holds", "instance-2-origin"]),
            (Instance, ["instance-2", "instance-2-holds", "instance-2-origin"]),
            (Plan, PLANS),
        ],
    )
    def test_every_field_is_there(self, kind: type[Record], files: list[str]) -> None:
        """A field added to the model must be added to the golden files too."""
        assert unstated(*(kind.model_validate_json((GOLDEN / f"{name}.json").read_bytes()) for name in files)) == set()

    def test_a_curve_of_ones_own(self) -> None:
        """What the golden policy has by name may be stated; read and written again it is the same."""
        curve = '{"square_millionths":1000000,"linear_millionths":2,"constant_millionths":3}'
        policy = loads(Policy, f'{{"interference": {{"curve": {curve}}}}}')
        assert policy.model_dump_json(exclude_defaults=True) == f'{{"interference":{{"curve":{curve}}}}}'


def unstated(*records: Record) -> set[str]:
    """Return the fields that are stated nowhere in these records, with the path to the records that have them."""
    fields: set[str] = set()
    stated: set[str] = set()
    todo: list[tuple[str, Any]] = [("", record) for record in records]
    while todo:
        path, value = todo.pop()
        if isinstance(value, Record):
            fields |= {f"{path}.{name}" for name, field in type(value).model_fields.items() if not field.exclude}
            stated |= {f"{path}.{name}" for name in value.model_fields_set}
            below = {name: path if name == "groups" else f"{path}.{name}" for name in type(value).model_fields}
            todo += [(there, getattr(value, name)) for name, there in below.items()]  # groups are as options are
        elif isinstance(value, tuple | dict):
            todo += [(path, item) for item in (value.values() if isinstance(value, dict) else value)]
    return fields - stated


def published_schema(name: str) -> dict[str, Any]:
    """Return the schema of a document."""
    return dict(json.loads((DOCS / "schema" / f"{name}-2.json").read_text()))


class TestSchema:
    """What is published is what is read."""

    def test_published_schemas_are_current(self, tmp_path: Path) -> None:
        """If this fails, run ``python docs/write_schemas.py`` and review the difference."""
        subprocess.run([sys.executable, DOCS / "write_schemas.py", tmp_path], check=True)
        published = {path.name: json.loads(path.read_text()) for path in (DOCS / "schema").iterdir()}
        assert {path.name: json.loads(path.read_text()) for path in tmp_path.iterdir()} == published

    @pytest.mark.parametrize("name", ["instance-2", "instance-2-defaults", "plan-2", "plan-2-some-jobs"])
    def test_golden_files_validate(self, name: str) -> None:
        """The schema takes what the library writes."""
        schema = published_schema(name.split("-")[0])
        jsonschema.Draft202012Validator(schema).validate(json.loads((GOLDEN / f"{name}.json").read_bytes()))

    @pytest.mark.parametrize("name", ["instance", "plan", "scenario", "scheduling"])
    def test_every_field_has_a_description(self, name: str) -> None:
        """The reference of the file formats is generated from them."""
        schema = published_schema(name)
        records = [schema, *schema["$defs"].values()]
        fields = [(one["title"], key, field) for one in records for key, field in one.get("properties", {}).items()]
        assert [(title, key) for title, key, field in fields if "description" not in field] == []

    def test_schema_refuses_what_types_refuse(self) -> None:
        """Units in strings, unknown fields and negative numbers."""
        validator = jsonschema.Draft202012Validator(published_schema("instance"))
        changes: list[dict[str, Any]] = [{}, {"revision": "1"}, {"unknown": 1}, {"now_ms": -1}]
        assert [validator.is_valid({**TINY, **change}) for change in changes] == [True, False, False, False]


class TestRoundTrip:
    """What is written is read back equal."""

    @pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
    def test_through_files(self, tmp_path: Path, name: str) -> None:
        """Instance and plan, plain and packed."""
        round_ = instance(2, [job("a", workers=2), job("b")])
        plan = plan_for(round_, {"a": [("n0", [0]), ("n1", [3])]})
        write_document(tmp_path / name, round_)
        assert read_instance(tmp_path / name) == round_
        write_document(tmp_path / name, plan)
        assert read_plan(tmp_path / name) == plan

    def test_of_instances_as_text(self) -> None:
        """What it is and the version are written at their defaults too; one job a line, to be searched and compared."""
        text = dumps(instance(1, [job("a"), job("b", workers=3)]))
        assert text.startswith(b'{\n  "document": "round",\n  "format_version": 2,')
        assert b'\n    {"id":"a"},\n    {"id":"b","options":[{"workers":3}]}\n' in text

    def test_byte_order_mark_is_taken(self) -> None:
        """Editors on some systems write one."""
        assert loads(Instance, b"\xef\xbb\xbf" + json.dumps(TINY).encode()) == loads(Instance, json.dumps(TINY))

    def test_equal_options_are_one_object(self) -> None:
        """Two of three jobs are alike but for their name; the third asks for another share."""
        jobs = [job(name, gpu_milli=milli, gpu_memory_mib=0) for name, milli in (("a", 500), ("b", 500), ("c", 400))]
        given = instance(1, jobs)
        read = loads(Instance, dumps(given))
        first, second, third = (one.options for one in read.jobs)
        assert first is second
        assert first != third
        assert (read, read.digest) == (given, given.digest)


FOUR_GPUS = {**TINY["cluster"], "machines": [{**TINY["cluster"]["machines"][0], "gpus": [{"model": "x"}] * 4}]}
PART = {"node": "n", "gpus": {"3": 1000}, "workers": [{"rank": 0, "gpus": [2]}]}
ELSEWHERE = {"job": "a", "option": "default", "assignments": [PART]}


def tiny(**more: Any) -> str:
    """Return a cluster of one node, and more fields, as text."""
    return json.dumps({**TINY, **more})


class TestMessages:
    """File, path inside it, value, what was expected."""

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                tiny(jobs=[{"id": "a"}, {"id": "b", "options": [{"demand": {"memory_mib": "16GiB"}}]}]),
                'jobs[1].options[0].demand.memory_mib: "16GiB", expected a whole number, without quotes, fraction or '
                "unit",
            ),
            (tiny(jobs=[{"id": "a", "prio": 1}]), "jobs[0].prio: unknown field; did you mean 'priority'?"),
            (  # of a later format nothing but the version is told: its other faults mean nothing here
                tiny(format_version=3, new_field=1),
                "format_version: 3, this version of placeopt reads 2; was the file written by another one?",
            ),
            (  # checks between records know only the path below them
                tiny(cluster={**TINY["cluster"], "nodes": [{"id": "n", "machine": "zz"}]}),
                "cluster.nodes[0].machine: no machine type 'zz'; add it to 'machines'",
            ),
            (  # what runs is kept as it is, so it has to be well formed: here a worker on another GPU than is held
                tiny(cluster=FOUR_GPUS, jobs=[{"id": "a"}], running=[ELSEWHERE]),
                "running[0].assignments[0].gpus: lists [3], the workers hold [2]",
            ),
        ],
    )
    def test_one_fault_is_one_line(self, text: str, message: str) -> None:
        assert refused(text) == f"f.json: {message}"

    def test_a_list_is_read_up_to_its_first_wrong_element(self) -> None:
        """60,000 faults must not become a message of megabytes, nor cost gigabytes."""
        wrong = [{"id": "j", "priority": 0.5, "kind": 3}] * 500
        lines = refused(tiny(jobs=[{"id": "a"}, *wrong], revision=-1)).splitlines()
        assert lines == [
            "f.json: 3 faults:",
            "  revision: -1, expected at least 0",
            "  jobs[1].kind: 3, expected 'training', 'inference', 'modelling' or 'cpu'",
            "  jobs[1].priority: 0.5, expected a whole number, without quotes, fraction or unit",
        ]

    def test_twenty_are_shown_and_the_rest_counted(self) -> None:
        lines = refused(tiny(**{f"x{i}": 1 for i in range(500)})).splitlines()
        assert lines[0] == "f.json: 500 faults, the first 20 are:"
        assert len(lines) == 21

    def test_faults_are_fields_too(self) -> None:
        """Path and what is wrong, for programs that read no prose."""
        with pytest.raises(BadInput) as caught:
            loads(Instance, tiny(revision=-1, now_ms="x"), source="f.json")
        assert [(fault.where, fault.what.split(",")[0]) for fault in caught.value.faults] == [
            ("revision", "-1"),
            ("now_ms", '"x"'),
        ]

    def test_values_are_shortened(self) -> None:
        """A megabyte of text in the wrong place is not repeated."""
        assert len(refused(tiny(revision="x" * 1_000_000))) < 200
        assert "an array of 1000" in refused(tiny(revision=list(range(1000))))

    def test_the_other_document(self) -> None:
        """A plan given where an instance is wanted, and so on: both are named, not fields that are unknown there."""
        kinds: dict[type[Record], str] = {Plan: "plan", Policy: "policy", Scheduling: "scheduling policy"}
        for kind, called in {**kinds, Scenario: "scenario", Patch: "patch"}.items():
            assert f"looks like an instance, one round, expected a {called}" in refused(tiny(jobs=[]), kind)
        for kind in (Instance, Plan, Policy, Patch):
            assert "looks like a scenario, jobs that arrive over time, expected a" in refused(tiny(arrivals=[]), kind)
        assert "looks like a patch, expected a scenario" in refused('{"steps": []}', Scenario)
        assert refused((GOLDEN / "plan-2.json").read_bytes()) == "f.json: document: \"plan\", expected 'round'"
        assert "looks like a plan, expected an instance" in refused('{"placements": []}')
        assert "looks like a machine, expected an instance" in refused(machine().model_dump_json())
        assert refused(dumps(machine())) == "f.json: document: \"machine\", expected 'round'"
        assert "placeopt import kubernetes" in refused('{"apiVersion": "v1", "items": []}')

    def test_cut_off(self) -> None:
        """Every proper beginning of a file is refused; the message says that the file ends too early."""
        text = json.dumps(TINY)
        for end in range(1, len(text)):
            assert re.search(r"f\.json: line 1 column \d+: ", refused(text[:end]))


def test_documented_files_are_valid() -> None:
    """The examples of docs/files.md are what they say."""
    examples = re.findall(r"```json\n(.*?)```", (DOCS / "files.md").read_text(encoding="utf-8"), re.DOTALL)
    round_ = loads(Instance, examples[0])
    plan = loads(Plan, examples[1])
    assert violations(round_, plan) == []
    history = simulate(loads(Scenario, examples[2]), loads(Scheduling, examples[3]))
    assert summarise(history).last_end_s == 70
