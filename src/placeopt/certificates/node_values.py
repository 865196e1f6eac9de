"""What nodes can be paid where nothing that they hold costs anything: by GPUs alone, or with amounts in view."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from placeopt.certificates.joint_filling import JointItem, best_joint_filling
from placeopt.certificates.master import Column
from placeopt.certificates.payment import Filling, Item, best_filling
from placeopt.certificates.prices import Paid, dot
from placeopt.certificates.room import NodeState, Room

Offered = list[tuple[int, int, int]]
"""Bundle, how many a node may have, and what one pays beyond the amounts that it takes."""


class NodeValues:
    """The nodes of a room at one set of prices after the other."""

    scale = 1 << 40
    """Parts of a unit of value in which prices are stated: an amount of a node in MiB or millicores costs little."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self.joint: frozenset[int] = frozenset()

    def most(self, bundle: Sequence[int], amounts: Sequence[Sequence[int]], known: Sequence[int]) -> Iterator[Paid]:
        """Yield what a node of each state can be paid, and a filling that pays more than is known; see `Nodes`."""
        room, best_of = self._room, dict[tuple[tuple[int, ...], tuple[Item, ...]], tuple[int, Filling]]()
        for s, state in enumerate(room.states):
            offered = [(b, most, bundle[b] - dot(amounts[s], room.bundles[b].amounts)) for b, most in state.fitting]
            items = [
                Item(b, room.bundles[b].gpus, room.bundles[b].share, count, pays)
                for b, count, pays in offered
                if pays > 0 and room.bundles[b].gpus
            ]
            key = (state.units, tuple(items))
            if key not in best_of:
                best_of[key] = best_filling(state.units, room.full, items)
            best, filling = best_of[key]
            alone = sum(count * pays for b, count, pays in offered if pays > 0 and not room.bundles[b].gpus)
            beyond = dot(amounts[s], state.free)
            most = best + alone + beyond
            if s in self.joint:
                found = self._joint_filling(state, bundle, offered, beyond, known[s])
                most, best, filling = (most, 0, {}) if found is None else (found[0], *found)
            column = Column(s, tuple(sorted(filling.items())))
            yield Paid(most, column if filling and best > known[s] else None)

    def _joint_filling(
        self, state: NodeState, bundle: Sequence[int], offered: Offered, beyond: int, known: int
    ) -> tuple[int, Filling] | None:
        """Return what a node of a state can be paid with all amounts in view, and a filling that pays more."""
        room = self._room
        offers = [(room.bundles[b], b, count, pays) for b, count, pays in offered if bundle[b] > 0]
        least = min((what.share for what, *_ in offers if what.gpus), default=0)
        items = [
            JointItem(
                b,
                what.gpus * what.share,
                count,
                pays,
                bundle[b],
                (*what.amounts, what.gpus * room.is_large(what.share)),
            )
            for what, b, count, pays in offers
        ]
        units, large = sum(unit for unit in state.units if unit >= least), sum(map(room.is_large, state.units))
        free = (*state.free, large if room.full > 1 else 0)
        return best_joint_filling(units, free, items, beyond, known)
