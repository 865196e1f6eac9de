"""Whatever happens to a resident cluster, it is what a fresh load of its snapshot would be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.live_engine import assert_as_if_fresh, engine_of, step
from strategies import Choice, choices, rounds


@pytest.mark.parametrize("kind", ["plain", "resources", "failing GPUs"])
@given(data=st.data(), choice=choices)
def test_a_changed_cluster_equals_a_fresh_one(kind: str, data: st.DataObject, choice: Choice) -> None:
    """The promise of ``load``, of all reports, ``place`` and ``commit`` together."""
    with engine_of(data.draw(rounds(resources=kind == "resources"))) as engine:
        for _ in range(6):
            step(choice, engine, failing_gpus=kind == "failing GPUs")
            assert_as_if_fresh(engine)
