"""Records take what ``json.loads`` returns, as strictly as the text itself."""

import gzip
import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from placeopt import read_instance
from placeopt.build import job, option
from placeopt.documents import dumps, loads
from placeopt.model import Instance, Job

FOLDER = Path(__file__).parents[2] / "instances"
INSTANCES = [*sorted(FOLDER.glob("hand/*.json"))[:8], *sorted(FOLDER.glob("generated/*.json.gz"))[::3]]


@pytest.mark.parametrize("path", INSTANCES, ids=lambda path: path.stem)
def test_parsed_text_is_as_good_as_text(path: Path) -> None:
    instance = read_instance(path)
    data = path.read_bytes()
    parsed = Instance.model_validate(json.loads(gzip.decompress(data) if path.suffix == ".gz" else data))
    assert parsed == instance
    assert dumps(parsed) == dumps(instance)
    assert Instance.model_validate(instance.model_dump(mode="json")) == instance


@pytest.mark.parametrize(
    "fields",
    [
        *({"priority": wrong} for wrong in ("1", 1.0, True)),
        *({"options": wrong} for wrong in ([{"workers": "1"}], [{"demand": {"gpus": "1"}}], [], {}, "ab")),
        {"options": [{"single_node": 1}]},
        {"options": [{"splits": [{"level": "rack", "domains": "1"}]}]},
        {"conditions": {"tolerations": "ab"}},
        {"conditions": {"tolerations": [1]}},
        {"communication": {"edges": [{"ranks": [0, "1"], "weight": 1}]}},
        {"communication": {"edges": [{"ranks": [0, 1, 2], "weight": 1}]}},
        {"unknown": []},
    ],
)
def test_what_a_text_may_not_hold_a_dict_may_not_either(fields: dict[str, object]) -> None:
    document = {"id": "a", **fields}
    with pytest.raises(ValidationError):
        Job.model_validate_json(json.dumps(document))
    with pytest.raises(ValidationError):
        Job.model_validate(document)


def test_records_inside_dicts_stay_as_they_are() -> None:
    two = option(workers=2)
    assert Job.model_validate({"id": "a", "options": [two]}).options[0] is two
    assert Job.model_validate({"id": "a", "options": [{}]}) == loads(Job, '{"id": "a", "options": [{}]}') == job("a")
