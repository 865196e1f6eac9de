"""The digest of an instance is of its text as pydantic writes it, however the text is made."""

import hashlib

import pytest
from hypothesis import given

from made_rounds import generate
from placeopt.build import instance, job, option
from placeopt.formats import dumps
from placeopt.model import Instance
from strategies import rounds


def digest_of(round_: Instance) -> str:
    return hashlib.sha256(round_.model_dump_json(exclude_defaults=True).encode()).hexdigest()


@pytest.mark.parametrize(("spec", "jobs"), [("varied", 3000), ("gangs", 3000), ("fractions", 2300), ("uniform", 0)])
def test_of_generated_rounds(spec: str, jobs: int) -> None:
    """Jobs that share their options, and from a file, where they share nothing; of 2,300 few are in the last part."""
    round_ = generate(spec, jobs=jobs, nodes=20, gpus=8, seed=3)
    again = Instance.model_validate_json(dumps(round_))
    assert round_.digest == again.digest == digest_of(round_) == digest_of(again)


@given(round_=rounds(resources=True))
def test_of_jobs_with_every_field(round_: Instance) -> None:
    """Jobs with all that jobs can have, each 150 times under other ids."""
    jobs = (one.model_copy(update={"id": f"{one.id}-{i}"}) for i in range(150) for one in round_.jobs)
    many = round_.model_copy(update={"jobs": tuple(jobs)})
    assert many.digest == digest_of(many)


def test_of_names_that_json_must_escape_or_may_leave() -> None:
    names = ('"q"', "back\\slash", "ümlaut", "日本", "🙂", "a/b")
    shared = (option(workers=2),)
    round_ = instance(1, [job(f"{name}{i}", user=name, options=shared) for i in range(100) for name in names])
    assert round_.digest == digest_of(round_)


def test_depends_on_content_not_on_spelling() -> None:
    """A copy with other content must not keep the digest that was computed before; labels have no order."""
    round_ = instance(1)
    before = round_.digest
    assert before == digest_of(round_)
    assert round_.model_copy(update={"revision": 4}).digest != before
    one, two = (instance(1, [job("a", node_selector=s)]) for s in ({"a": "1", "b": "2"}, {"b": "2", "a": "1"}))
    assert one.digest == two.digest
