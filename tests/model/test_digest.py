"""The digest of an instance is of its content: not of how it was made, nor of the file's spelling."""

import json

import pytest
from hypothesis import given

from made_rounds import generate
from placeopt.build import instance, job
from placeopt.documents import dumps, loads
from placeopt.model import Instance, JobOrigin
from strategies import rounds


@pytest.mark.parametrize(("spec", "jobs"), [("varied", 300), ("gangs", 300), ("uniform", 0)])
def test_of_generated_rounds(spec: str, jobs: int) -> None:
    """From columns, from a file with templates, from JSON in which each job states all of it, and from Python."""
    round_ = generate(spec, jobs=jobs, nodes=20, gpus=8, seed=3)
    flat = Instance.model_validate_json(round_.model_dump_json())
    alone = round_.model_copy(update={"jobs": tuple(job.model_copy(deep=True) for job in round_.jobs)})
    for same in (loads(Instance, dumps(round_)), flat, alone):
        assert (same, same.digest) == (round_, round_.digest)


@given(round_=rounds(resources=True))
def test_every_field_of_a_job_counts(round_: Instance) -> None:
    """Whatever jobs have, once or twice under other ids, comes back; another field is another digest."""
    many = round_.model_copy(
        update={"jobs": tuple(one.model_copy(update={"id": f"{one.id}-{i}"}) for i in range(2) for one in round_.jobs)}
    )
    many = many.model_copy(update={"running": ()})
    again = loads(Instance, dumps(many))
    assert (again, again.digest) == (many, many.digest)
    changes = {"user": "zed", "priority": 7, "origin": JobOrigin(name="x"), "deadline_ms": 1, "profile": "p"}
    first = many.jobs[:1]
    for one in first:
        for name, value in changes.items():
            if getattr(one, name) != value:
                changed = (one.model_copy(update={name: value}), *many.jobs[1:])
                assert many.model_copy(update={"jobs": changed}).digest != many.digest


def test_depends_on_content_not_on_spelling() -> None:
    """A copy with other content must not keep the digest that was computed before; labels have no order."""
    round_ = instance(1)
    before = round_.digest
    assert round_.model_copy(update={"revision": 4}).digest != before
    one, two = (instance(1, [job("a", node_selector=s)]) for s in ({"a": "1", "b": "2"}, {"b": "2", "a": "1"}))
    assert one.digest == two.digest
    three = instance(1, [job(name, gpus=2) for name in "abc"])
    renamed = json.loads(dumps(three))
    renamed["templates"] = {"other": renamed["templates"]["t0"], "unused": {}}
    renamed["jobs"] = [{**entry, "template": "other"} for entry in renamed["jobs"]]
    assert loads(Instance, json.dumps(renamed)).digest == three.digest
    swapped = three.model_copy(update={"jobs": three.jobs[::-1]})
    assert swapped.digest != three.digest
