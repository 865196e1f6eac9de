"""Prices of nodes: stated by node or by machine type, and kept while a resource manager's readings come in."""

from helpers.live_engine import engine_of
from placeopt import build
from placeopt.live_cluster import changes_between, keep_prices

TYPES = [build.machine(price_milli_per_hour=5000)]


def test_a_node_may_cost_what_is_the_default() -> None:
    """A price of 1000 on a node was taken for none, so the node cost what its machine type costs."""
    nodes = [build.node("own", price_milli_per_hour=1000), build.node("typed")]
    made = build.cluster(nodes, machines=TYPES)
    assert [made.price_of(node) for node in made.nodes] == [1000, 5000]
    assert made.price_of(build.node("free", price_milli_per_hour=0)) == 0
    plain = build.cluster(1)
    assert plain.price_of(plain.nodes[0]) == 1000


def test_prices_by_type_replace_those_of_nodes() -> None:
    """`--price TYPE=AMOUNT` holds for all nodes of the type."""
    made = build.cluster([build.node("own", price_milli_per_hour=1000)], machines=TYPES).with_prices({"m": 700})
    assert made.price_of(made.nodes[0]) == 700


def test_a_reading_takes_no_price_away() -> None:
    """Every refresh of a live cluster lost the prices: resource managers state none."""
    priced = build.instance([build.node("n0", price_milli_per_hour=1000), build.node("n1")], machines=TYPES)
    reading = build.instance([build.node("n0"), build.node("n1", labels={"zone": "z"})])
    changes = changes_between(priced, reading)
    assert changes.reload == ()
    assert set(changes.nodes) == {"n1"}
    with engine_of(priced) as engine:
        engine.apply(changes)
        cluster = engine.snapshot.cluster
        assert [cluster.price_of(node) for node in cluster.nodes] == [1000, 5000]


def test_a_reading_that_is_loaded_whole_keeps_prices_too() -> None:
    """A new machine type makes the engine load; what is not new keeps its price."""
    priced = build.instance([build.node("n0", price_milli_per_hour=1000), build.node("n1")], machines=TYPES)
    more = [build.node("n0"), build.node("n1"), build.node("big", "b")]
    reading = build.instance(more, machines=[build.machine(), build.machine("b", gpus=8)])
    with engine_of(priced) as engine:
        assert changes_between(engine.snapshot, reading).reload
        engine.load(keep_prices(engine.snapshot, reading))
        cluster = engine.snapshot.cluster
        assert [cluster.price_of(node) for node in cluster.nodes] == [1000, 5000, 1000]
    stated = build.instance([build.node("n0", price_milli_per_hour=3), build.node("n1")])
    assert [one.price_milli_per_hour for one in keep_prices(priced, stated).cluster.nodes] == [3, None]
