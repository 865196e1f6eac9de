"""Templates: what jobs have in common stands once in a file."""

import json
from typing import Any

import pytest

from placeopt import BadInput
from placeopt.build import instance, job, scenario
from placeopt.documents import dumps, loads
from placeopt.model import Instance, JobOrigin
from placeopt.simulation import Arrival, Scenario

ROUND = instance(
    2,
    [
        job("a", gpus=2, user="ann", arrival_ms=5),
        job("b", gpus=2, origin=JobOrigin(name="there", id="7")),
        job("c", gpus=2, deadline_ms=9),
        job("d", workers=3),
    ],
)


def test_what_two_jobs_share_is_a_template_and_the_rest_stands_in_the_job() -> None:
    document = json.loads(dumps(ROUND))
    assert document["templates"] == {"t0": {"options": [{"demand": {"gpus": 2}}]}}
    assert document["jobs"] == [
        {"id": "a", "template": "t0", "user": "ann", "arrival_ms": 5},
        {"id": "b", "template": "t0", "origin": {"name": "there", "id": "7"}},
        {"id": "c", "template": "t0", "deadline_ms": 9},
        {"id": "d", "options": [{"workers": 3}]},
    ]


def test_jobs_of_a_template_are_whole_and_share_its_objects() -> None:
    read = loads(Instance, dumps(ROUND))
    assert (read, read.digest) == (ROUND, ROUND.digest)
    first, second, _, other = (one.options for one in read.jobs)
    assert first is second
    assert first != other
    assert Instance.model_validate(json.loads(dumps(ROUND))) == ROUND


def test_jobs_of_a_scenario_have_templates() -> None:
    given = scenario(2, [Arrival(job=one, actual_run_time_ms=1000 + i) for i, one in enumerate(ROUND.jobs)])
    text = dumps(given)
    assert b'{"job":{"id":"a","template":"t0","user":"ann","arrival_ms":5},"actual_run_time_ms":1000}' in text
    assert b'\n    {"job":{"id":"d","options":[{"workers":3}]},"actual_run_time_ms":1003}\n' in text
    read = loads(Scenario, text)
    assert (read, read.digest) == (given, given.digest)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"templates": [1]}, "templates: an array of 1, expected an object"),
        ({"templates": {"t0": 5}}, "templates.t0: 5, expected an object"),
        ({"templates": {"a b": {}}}, 'templates["a b"]: the key "a b", expected 1 to 253 characters'),
        (
            {"templates": {"t0": {"options": [{"workers": "x"}]}}},
            'templates.t0.options[0].workers: "x", expected a whole',
        ),
        ({"templates": {"t0": {"kind": "cpu"}}}, "templates.t0.options[0].demand.gpus: 1 in a job of kind 'cpu'"),
        ({"templates": {"t0": {"user": "x"}}}, "templates.t0.user: a job states it, not a template"),
        ({"templates": {"t0": {"prio": 1}}}, "templates.t0.prio: unknown field"),
        ({"templates": {"x": {}}}, "jobs[0].template: no template 't0'; there are: x"),
        (
            {"templates": {"t0": {"options": [{"splits": [{"level": "z", "domains": 1}]}]}}},
            "jobs[0].options[0].splits[0].level: no level 'z' in the cluster",
        ),
        ({"jobs": [{"id": "a", "template": ["t0"]}]}, "jobs[0].template: no template ['t0']; there are: t0"),
        ({"jobs": [{"template": "t0"}]}, "jobs[0].id: is missing"),
        ({"jobs": [{"id": "a"}, {"id": "b c", "template": "t0"}]}, 'jobs[1].id: "b c", expected 1 to 253 characters'),
        ({"jobs": [{"id": "a", "template": "t0", "priority": 3}]}, "jobs[0].priority: the template states it"),
        ({"jobs": [{"id": "a", "template": "t0", "prio": 3}]}, "jobs[0].prio: unknown field"),
        (
            {"jobs": [{"id": "a", "template": "t0", "arrival_ms": 2.5}]},
            "jobs[0].arrival_ms: 2.5, expected a whole",
        ),
        ({"jobs": [{"id": "a", "template": "t0", "origin": {}}]}, "jobs[0].origin.name: is missing"),
        ({"jobs": [{"id": "a", "template": "t0"}, {"id": "a"}]}, "jobs[1].id: 'a' appears twice"),
        ({"jobs": 5}, "jobs: 5, expected an array"),
        ({"jobs": [5]}, "jobs[0]: 5, expected an object"),
    ],
)
def test_faults_have_their_place_in_the_file(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput) as caught:
        loads(Instance, json.dumps({**json.loads(dumps(ROUND)), **changed}), source="f.json")
    assert f"f.json: {message}" in str(caught.value)


def test_a_template_without_templates_is_unknown() -> None:
    with pytest.raises(BadInput, match=r"jobs\[0\]\.template: unknown field"):
        loads(Instance, json.dumps({**json.loads(dumps(instance(1))), "jobs": [{"id": "a", "template": "t0"}]}))


def test_faults_of_a_scenario_have_theirs() -> None:
    document = json.loads(dumps(scenario(2, [job("a"), job("b")], run_time_ms={"a": 5, "b": 5})))
    document["arrivals"][1]["job"]["arrival_ms"] = "x"
    with pytest.raises(BadInput, match=r"f: arrivals\[1\]\.job\.arrival_ms: \"x\", expected a whole number"):
        loads(Scenario, json.dumps(document), source="f")
