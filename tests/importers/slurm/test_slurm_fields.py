"""The small languages of Slurm's fields, as its manual pages write them."""

import pytest

from placeopt.importers.slurm import parse_tres
from placeopt.importers.slurm.fields import (
    Gres,
    Tres,
    is_mig,
    parse_constraint,
    parse_gres,
    parse_gres_detail,
    parse_memory,
    parse_tasks,
)


@pytest.mark.parametrize(
    ("text", "items"),
    [  # ``gpu:4`` is four of any type; sockets, indices, counts of shards
        ("gpu:4", [("gpu", None, 4)]),
        ("gres:gpu:4", [("gpu", None, 4)]),
        ("gres/gpu=4", [("gpu", None, 4)]),
        ("gres/gpu:a100=4", [("gpu", "a100", 4)]),
        ("gpu:a100", [("gpu", "a100", 1)]),
        ("gpu", [("gpu", None, 1)]),
        ("gpu:4090:2", [("gpu", "4090", 2)]),
        ("gpu:h100:2(S:0-1),gpu:4(S:0,1)", [("gpu", "h100", 2), ("gpu", None, 4)]),
        ("shard:t4:8,mps:400,gpu:a100_1g.5gb:7", [("shard", "t4", 8), ("mps", None, 400), ("gpu", "a100_1g.5gb", 7)]),
        ("shard:a100:1(1/8,-/8),gpu:2(CNT:2)", [("shard", "a100", 1), ("gpu", None, 2)]),
        ("gpu:a100:0(IDX:N/A)", [("gpu", "a100", 0)]),
        ("gpumem:80G", [("gpumem", None, 80 * 2**30)]),
        ("(null)", []),
        ("", []),
        *((odd, None) for odd in ("gpu:a:b:c", "gpu:", ":4", "gpu:4)", "gpu:2(IDX:0", "gpu:a100:lots:2")),
    ],
)
def test_generic_resources_in_all_spellings(text: str, items: list[tuple[str, str | None, int]] | None) -> None:
    if items is not None:
        assert [(one.name, one.type, one.count) for one in parse_gres(text)] == items
    else:
        with pytest.raises(ValueError, match="expected for example"):
            parse_gres(text)


def test_words() -> None:
    assert parse_gres("gpu:a100:2(IDX:0,3)") == [Gres("gpu", "a100", 2, "(IDX:0,3)")]
    assert [one.indices for one in parse_gres("gpu:2(S:0)(IDX:1-2),gpu:1(IDX:N/A)")] == ["1-2", None]
    assert [one.socket for one in parse_gres("gpu:1(S:1),gpu:1(S:0-1),gpu:1(S:0,1),gpu:1")] == [1, None, None, None]
    assert parse_tres("cpu=8,mem=1.5G,node=2,billing=9,gres/gpu:a100=4,gres/gpumem=4G").gpus == 4
    assert [parse_memory(text) for text in ("512", "1G", "1.5G", "2048K", "500Mn")] == [512, 1024, 1536, 2, 500]
    assert parse_tres("gres:gpu:a100:2") == Tres(2, ("a100",))
    assert parse_tres("gres/gpu=4,gres/shard=2") == Tres(4, named=(("gres/shard", 2),))
    assert parse_tres("gres/gpu:a:1,gres/gpu:b:1") == Tres(2, ("a", "b"))
    assert parse_tres("gres/gpu:1g.5gb:2") == Tres(2, ("1g.5gb",))
    assert parse_gres_detail("gpu:a100:2(IDX:0,3),gpu:l40s:0(IDX:N/A)") == Tres(2, indices=(0, 3))
    held = {
        text: parse_gres_detail(text) for text in ("shard:2(IDX:1)", "shard:t4:2(0/4,2/4,-/4)", "mps:50(50/100,-/100)")
    }
    assert [(one.gpus, one.indices, one.named) for one in held.values()] == [
        (1, (1,), (("gres/shard", 2),)),
        (1, (1,), (("gres/shard", 2),)),
        (1, (0,), (("gres/mps", 50),)),
    ]
    assert [parse_tasks(text) for text in ("1-9:4,12%2", "3,5-6,...")] == [[1, 5, 9, 12], [3, 5, 6]]
    terms = {text: parse_constraint(text) for text in ("(a|b)&c", "a|b&c", "a&b|c", "a|a")}
    assert [["".join(sorted(term)) for term in found or ()] for found in terms.values()] == [
        ["ac", "bc"],
        ["ac", "bc"],  # from the left to the right
        ["ab", "c"],
        ["a"],
    ]
    assert parse_constraint("&".join(f"(a{n}|b{n})" for n in range(7))) is None
    assert [parse_constraint(text) for text in ("a*2", "[a|b]", "(a", "a&", "&")] == [None] * 5
    assert all(map(is_mig, ("a100_1g.5gb", "3g.20gb", "1g.10gb+me")))
    assert not any(map(is_mig, ("a100", "l40s")))
