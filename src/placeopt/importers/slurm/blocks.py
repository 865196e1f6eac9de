"""How the nodes of Slurm's jobs lie in blocks, beyond the cluster's own rule (`placeopt.model.BlockSize`)."""

from __future__ import annotations

from collections.abc import Sequence

from placeopt.importers.fabric import level_name
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.slurm.job_requests import JobLeftOut, node_count, slurm_number
from placeopt.importers.slurm.lists import is_set
from placeopt.model import Cluster, Option, Split, Spread


def in_blocks(entry: JsonEntry, options: Sequence[Option], cluster: Cluster) -> list[Option]:
    """
    Return the options of a job with what they state of the domains in which workers lie.

    Slurm takes a block that holds the least number of nodes: of a range, and one node for any number of tasks. The
    nodes of a job with ``--segment`` are in blocks that hold a segment, several of which may share one; a segment that
    is larger than the job counts as none. ``--spread-segments``: each in a block of its own. With
    ``--consolidate-segments`` all are in one block of a size that holds the job. ``--switches=1``: all lie under one
    leaf switch, also when the time for which the job waits for that is over. Raises `JobLeftOut` if a rule cannot be
    stated.
    """
    switches = slurm_number(entry, "required_switches") or 0
    numbers = [node_count(option) for option in options]
    if switches and any(switches < (number or option.workers) for number, option in zip(numbers, options, strict=True)):
        if switches > 1 or not cluster.domains or any(one.nodes is not None for one in cluster.block_sizes):
            raise JobLeftOut("asks for --switches, and not for one of a tree of switches")
        return [_ruled(option, (Split(level=level_name(1), domains=1),)) for option in options]
    sizes = [(one.level, one.nodes) for one in cluster.block_sizes if one.nodes is not None]
    least = min(number or 1 for number in numbers)
    ranges = None in numbers or (len(set(numbers)) > 1 and not is_set(entry.raw("job_size_str")))
    segment = slurm_number(entry, "segment_size") or 0
    if 0 < segment <= least and not cluster.domains:
        raise JobLeftOut("states segment_size, and no topology is given")
    if sizes and 0 < segment <= least and (ranges or any(option.splits for option in options)):
        raise JobLeftOut("states segment_size, and no fixed number of equal workers a node")
    if not sizes or ranges:
        return [_ruled(option, _together(sizes, least)) for option in options]
    flags = entry.words("flags")
    return [
        _ruled(option, *_segments(sizes, segment, option.workers, flags)) if 0 < segment <= option.workers else option
        for option in options
    ]


def _ruled(option: Option, splits: Sequence[Split], spread: Sequence[Spread] = ()) -> Option:
    return option.model_copy(update={"splits": (*option.splits, *splits), "spread": tuple(spread)})


def _together(sizes: Sequence[tuple[str, int]], nodes: int) -> tuple[Split, ...]:
    """Return the split that keeps so many nodes in one block; none where no block is that large."""
    return tuple(Split(level=level, domains=1) for level, size in sizes if size >= nodes)[:1]


def _segments(
    sizes: Sequence[tuple[str, int]], segment: int, nodes: int, flags: Sequence[str]
) -> tuple[list[Split], list[Spread]]:
    if nodes % segment:
        raise JobLeftOut("asks for segments that do not divide its nodes")
    place = next((place for place, (_, size) in enumerate(sizes) if size >= segment), len(sizes))
    spread = "SPREAD_SEGMENTS" in flags
    if place == len(sizes) or (place and (spread or sizes[place][1] > 2 * sizes[place - 1][1])):
        raise JobLeftOut("asks for segments over several blocks")
    level, count = sizes[place][0], nodes // segment
    splits = [Split(level=level, domains=count, workers=segment)] if spread else []
    if "CONSOLIDATE_SEGMENTS" in flags:
        splits += _together(sizes, count * sizes[0][1] if spread else nodes)
    return splits, [Spread(level=level, segment=segment)]
