"""Records written by columns are, byte for byte, what pydantic writes."""

import hashlib

import numpy as np
import pytest

from helpers.small_rounds import random_round
from placeopt.build import instance, job, option
from placeopt.formats.documents import dumps
from placeopt.generators import generate
from placeopt.model import Instance, Job
from placeopt.model.canonical import RecordColumns, canonical_list


def rows_by_columns(jobs: tuple[Job, ...]) -> str | None:
    """As they are written by columns; None where that does not pay."""
    return RecordColumns(Job).rows(jobs)


def plain(jobs: tuple[Job, ...]) -> str:
    """As pydantic writes them."""
    return ",".join(job.model_dump_json(exclude_defaults=True) for job in jobs)


@pytest.mark.parametrize("spec", ["varied", "gangs", "fractions"])
def test_rows_by_columns(spec: str) -> None:
    """Jobs of a generated round share their options; those that share nothing are left to pydantic."""
    round_ = generate(spec, jobs=3000, nodes=20, gpus=8, seed=3)
    assert rows_by_columns(round_.jobs) == plain(round_.jobs)
    assert "".join(canonical_list(round_.jobs)) == f"[{plain(round_.jobs)}]"
    assert round_.digest == hashlib.sha256(round_.model_dump_json(exclude_defaults=True).encode()).hexdigest()
    again = Instance.model_validate_json(dumps(round_))
    assert rows_by_columns(again.jobs) is None
    assert again.digest == round_.digest


def test_every_field(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random jobs with all that jobs can have, and names that JSON must escape or may leave."""
    monkeypatch.setattr("placeopt.model.canonical.FEW", 1)
    monkeypatch.setattr("placeopt.model.canonical.SHARED", 0)
    shared = (option(workers=2),)
    odd = tuple(job(name, user=name, options=shared) for name in ('"q"', "back\\slash", "ümlaut", "日本", "🙂", "a/b"))
    assert rows_by_columns(odd) == plain(odd)
    for seed in range(30):
        jobs = random_round(np.random.default_rng(50_000 + seed), named=seed % 2 == 1).jobs
        assert rows_by_columns(jobs) == plain(jobs)


def test_no_jobs() -> None:
    """The smallest instance has a digest, too."""
    empty = instance(1)
    assert empty.digest == hashlib.sha256(empty.model_dump_json(exclude_defaults=True).encode()).hexdigest()


def test_parts_of_a_long_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """Written part by part, the last of them by pydantic: its rows are too few for columns."""
    monkeypatch.setattr("placeopt.model.canonical.PART", 700)
    round_ = generate("uniform", jobs=1500, nodes=20, gpus=8, seed=3)
    assert 0 < len(round_.jobs) % 700 < 500
    assert round_.digest == hashlib.sha256(round_.model_dump_json(exclude_defaults=True).encode()).hexdigest()
