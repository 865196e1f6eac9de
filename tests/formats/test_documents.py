"""Instances and plans as files: round trips, golden files for ever, schemas, and messages that lead to the fault."""

import json
import re
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest

from helpers.plans import plan_for
from placeopt import BadInput, read_instance, read_plan, write_instance, write_plan
from placeopt.build import instance, job, machine, node
from placeopt.check import violations
from placeopt.formats import DOCUMENTS, document_schema, dumps, loads
from placeopt.model import Instance, Plan, Policy, Record, Scenario, Scheduling
from placeopt.simulation import simulate, summarise
from placeopt.whatif import Patch

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
DOCS = Path(__file__).parents[2] / "docs"
TINY = {
    "cluster": {"machines": [{"id": "m", "cpu_millicores": 1, "memory_mib": 1}], "nodes": [{"id": "n", "machine": "m"}]}
}


def refused(text: str | bytes, kind: type[Record] = Instance) -> str:
    """Return the message with which ``text`` is refused."""
    with pytest.raises(BadInput) as caught:
        loads(kind, text, source="f.json")
    return str(caught.value)


class TestGolden:
    """Files of version 1 stay readable for ever; a failure here means a broken promise, not a stale test."""

    def test_bytes_are_stable(self) -> None:
        """Read and written again, a file is the same to the byte."""
        for kind, name in (
            (Instance, "instance-1.json"),
            (Instance, "instance-1-origin.json"),
            (Plan, "plan-1.json"),
            (Plan, "plan-1-some-jobs.json"),
            (Plan, "plan-1-standing.json"),
        ):
            data = (GOLDEN / name).read_bytes()
            assert dumps(loads(kind, data)) == data

    def test_stated_defaults_mean_the_same(self) -> None:
        """A file that states every default is the same instance, with the same digest."""
        sparse, full = read_instance(GOLDEN / "instance-1.json"), read_instance(GOLDEN / "instance-1-defaults.json")
        assert sparse == full
        assert sparse.digest == full.digest

    def test_digests_are_stable(self) -> None:
        """The golden plan names the digests of the golden instance and policy, and is valid for it."""
        round_, plan = read_instance(GOLDEN / "instance-1.json"), read_plan(GOLDEN / "plan-1.json")
        assert plan.instance.digest == round_.digest
        assert plan.policy.digest == round_.policy.digest
        assert violations(round_, plan) == []
        some = read_plan(GOLDEN / "plan-1-some-jobs.json")
        assert violations(round_, some) == []

    @pytest.mark.parametrize(
        ("kind", "files"),
        [
            (Instance, ["instance-1-defaults.json", "instance-1-origin.json"]),
            (Plan, ["plan-1.json", "plan-1-some-jobs.json", "plan-1-standing.json"]),
        ],
    )
    def test_every_field_is_there(self, kind: type[Record], files: list[str]) -> None:
        """A field added to the model must be added to the golden files too."""
        assert missing_fields(kind, [json.loads((GOLDEN / name).read_bytes()) for name in files]) == []

    def test_fields_are_not_at_their_defaults(self) -> None:
        """The short files have each field that can differ from its default at least once with another value."""
        texts = [json.loads((GOLDEN / name).read_bytes()) for name in ("instance-1.json", "instance-1-origin.json")]
        assert missing_fields(Instance, texts) == []

    def test_a_curve_of_ones_own(self) -> None:
        """What the golden policy has by name may be stated; read and written again it is the same."""
        curve = '{"square_millionths":1000000,"linear_millionths":2,"constant_millionths":3}'
        policy = loads(Policy, f'{{"interference": {{"curve": {curve}}}}}')
        assert policy.model_dump_json(exclude_defaults=True) == f'{{"interference":{{"curve":{curve}}}}}'


def missing_fields(kind: type[Record], values: list[Any]) -> list[str]:
    """List the fields of ``kind`` and of the records below it that none of ``values`` states."""
    missing = []
    for name, field in kind.model_fields.items():
        stated = [value[field.alias or name] for value in values if (field.alias or name) in value]
        if not stated:
            missing.append(f"{kind.__name__}.{name}")
        inner = record_in(field.annotation)
        if inner is not None:
            below = [item for value in stated for item in ([value] if not isinstance(value, list) else value)]
            if name == "costs":
                below = [item for value in below for item in value.values()]
            if any(isinstance(value, str) for value in below):
                continue  # a name in the place of a record, which has a test of its own
            missing += missing_fields(inner, below)
    return missing


def record_in(annotation: Any) -> type[Record] | None:
    """Find the record in a field's type."""
    if isinstance(annotation, type) and issubclass(annotation, Record):
        return annotation
    return next((found for inner in get_args(annotation) if (found := record_in(inner))), None)


class TestSchema:
    """What is published is what is read."""

    @pytest.mark.parametrize("name", DOCUMENTS)
    def test_published_schema_is_current(self, name: str) -> None:
        """If this fails, run ``placeopt.formats.write_schemas("docs/schema")`` and review the difference."""
        assert json.loads((DOCS / "schema" / f"{name}-1.json").read_text()) == document_schema(name)

    @pytest.mark.parametrize("name", ["instance-1", "instance-1-defaults", "plan-1", "plan-1-some-jobs"])
    def test_golden_files_validate(self, name: str) -> None:
        """The schema takes what the library writes."""
        schema = document_schema("instance") if name.startswith("instance") else document_schema("plan")
        jsonschema.Draft202012Validator(schema).validate(json.loads((GOLDEN / f"{name}.json").read_bytes()))

    @pytest.mark.parametrize("name", DOCUMENTS)
    def test_every_field_has_a_description(self, name: str) -> None:
        """The reference of the file formats is generated from them."""
        schema = document_schema(name)
        records = [schema, *schema["$defs"].values()]
        fields = [(one["title"], key, field) for one in records for key, field in one.get("properties", {}).items()]
        assert [(title, key) for title, key, field in fields if "description" not in field] == []

    def test_schema_refuses_what_types_refuse(self) -> None:
        """Units in strings, unknown fields and negative numbers."""
        validator = jsonschema.Draft202012Validator(document_schema("instance"))
        for change in ({"revision": "1"}, {"unknown": 1}, {"now_ms": -1}):
            assert not validator.is_valid({**TINY, **change})
        assert validator.is_valid(TINY)


class TestRoundTrip:
    """What is written is read back equal."""

    @pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
    def test_through_files(self, tmp_path: Path, name: str) -> None:
        """Instance and plan, plain and packed."""
        round_ = instance(2, [job("a", workers=2), job("b")])
        plan = plan_for(round_, {"a": [("n0", [0]), ("n1", [3])]})
        write_instance(tmp_path / name, round_)
        assert read_instance(tmp_path / name) == round_
        write_plan(tmp_path / name, plan)
        assert read_plan(tmp_path / name) == plan

    def test_version_is_always_written(self) -> None:
        """Although it is at its default."""
        assert b'"format_version": 1' in dumps(instance())

    def test_one_job_a_line(self) -> None:
        """Files can be read, searched and compared by line."""
        lines = dumps(instance(1, [job("a"), job("b", workers=3)])).decode().splitlines()
        assert '    {"id":"a"},' in lines
        assert '    {"id":"b","options":[{"workers":3}]}' in lines

    def test_byte_order_mark_is_taken(self) -> None:
        """Editors on some systems write one."""
        assert loads(Instance, b"\xef\xbb\xbf" + json.dumps(TINY).encode()) == loads(Instance, json.dumps(TINY))


class TestMessages:
    """File, path inside it, value, what was expected."""

    def test_one_fault_is_one_line(self) -> None:
        """The line in full, by hand."""
        text = json.dumps(
            {**TINY, "jobs": [{"id": "a"}, {"id": "b", "options": [{"demand": {"memory_mib": "16GiB"}}]}]}
        )
        assert refused(text) == (
            'f.json: jobs[1].options[0].demand.memory_mib: "16GiB", expected a whole number, without quotes, fraction '
            "or unit"
        )

    def test_twenty_are_shown_and_the_rest_counted(self) -> None:
        """60,000 faults must not become a message of megabytes."""
        lines = refused(
            json.dumps({**TINY, "jobs": [{"id": f"j{i}", "priority": 0.5} for i in range(500)]})
        ).splitlines()
        assert lines[0] == "f.json: 500 faults, the first 20 are:"
        assert len(lines) == 21
        assert lines[20].startswith("  jobs[19].priority: 0.5")

    def test_values_are_shortened(self) -> None:
        """A megabyte of text in the wrong place is not repeated."""
        assert len(refused(json.dumps({**TINY, "revision": "x" * 1_000_000}))) < 200
        assert "an array of 1000" in refused(json.dumps({**TINY, "revision": list(range(1000))}))

    def test_unknown_version_has_its_own_message(self) -> None:
        """Only the version is told: the other faults of a later format mean nothing to us."""
        message = refused(json.dumps({**TINY, "format_version": 2, "new_field": 1}))
        assert message == (
            "f.json: format_version: 2, this version of placeopt reads 1; was the file written by a later one?"
        )

    def test_references_have_the_whole_path(self) -> None:
        """Checks between records know only the path below them; the message has it from the top."""
        text = json.dumps({**TINY, "cluster": {**TINY["cluster"], "nodes": [{"id": "n", "machine": "zz"}]}})
        assert refused(text) == "f.json: cluster.nodes[0].machine: no machine type 'zz'; add it to 'machines'"

    def test_misspelt_field(self) -> None:
        """The closest name is suggested."""
        assert refused(json.dumps({**TINY, "jobs": [{"id": "a", "prio": 1}]})) == (
            "f.json: jobs[0].prio: unknown field; did you mean 'priority'?"
        )

    def test_the_other_document(self) -> None:
        """A plan given where an instance is wanted, and so on: both are named, not fields that are unknown there."""
        assert "looks like a plan, expected an instance" in refused((GOLDEN / "plan-1.json").read_bytes())
        round_, steps = (GOLDEN / "instance-1.json").read_bytes(), b'{"steps": []}'
        kinds = (Plan, "plan"), (Policy, "policy"), (Scheduling, "scheduling policy"), (Scenario, "scenario")
        for kind, called in (*kinds, (Patch, "patch")):
            assert f"looks like an instance, one round, expected a {called}" in refused(round_, kind)
        world = json.dumps({"cluster": TINY["cluster"], "arrivals": []})
        for other in (Instance, Plan, Policy, Patch):
            assert "looks like a scenario, jobs that arrive over time, expected a" in refused(world, other)
        assert "looks like a patch, expected a scenario" in refused(steps, Scenario)
        box = json.dumps(TINY["cluster"]["machines"][0])
        assert "looks like a machine, expected an instance" in refused(box)
        assert "placeopt import kubernetes" in refused(b'{"apiVersion": "v1", "items": []}')

    def test_cut_off(self) -> None:
        """Every proper beginning of a file is refused; the message says that the file ends too early."""
        text = json.dumps(TINY)
        for end in range(1, len(text)):
            assert re.search(r"f\.json: line 1 column \d+: ", refused(text[:end]))

    def test_malformed_running_placement(self) -> None:
        """What runs is kept as it is, so it has to be well formed: here a worker on another GPU than is held."""
        entry = {"node": "n0", "gpus": {"3": 1000}, "workers": [{"rank": 0, "gpus": [2]}]}
        round_ = json.loads(dumps(instance([node("n0")], [job("a")], machines=[machine()])))
        round_["running"] = [{"job": "a", "option": "default", "assignments": [entry]}]
        assert refused(json.dumps(round_)) == (
            "f.json: running[0].assignments[0].gpus: lists [3], the workers hold [2]"
        )


def test_documented_files_are_valid() -> None:
    """The examples of docs/files.md are what they say."""
    examples = re.findall(r"```json\n(.*?)```", (DOCS / "files.md").read_text(encoding="utf-8"), re.DOTALL)
    round_ = loads(Instance, examples[0])
    plan = loads(Plan, examples[1])
    assert violations(round_, plan) == []
    history = simulate(loads(Scenario, examples[2]), loads(Scheduling, examples[3]))
    assert summarise(history).last_end_s == 70
