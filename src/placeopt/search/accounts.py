"""Amounts that workers take of accounts: of queues, of domains and the whole cluster, and of nodes beside holds."""

from __future__ import annotations

from placeopt.search.state import State


def account_of(s: State, amount: int, option: int, node: int) -> int:
    """Return the account that a worker of an option takes an amount of on a node, -1 without."""
    if amount < s.amounts_anywhere:
        return s.account_of_option[option, amount]
    return s.account_of_node[node, amount - s.amounts_anywhere]


def take(s: State, option: int, node: int, workers: int, first: int) -> None:
    """
    Let so many workers of an option on a node take of the amounts from ``first`` on; less than 0 give back.

    An account counts with the one above it as what is taken of it, but at least as what it keeps.
    """
    for amount in range(first, s.amounts):
        more = s.takes[option, amount] * workers
        account = account_of(s, amount, option, node) if more else -1
        while account >= 0:
            before = max(s.account_taken[account], s.account_kept[account])
            s.account_taken[account] += more
            more = max(s.account_taken[account], s.account_kept[account]) - before
            account = s.account_above[account]


def have_room(s: State, option: int, node: int, workers: int, first: int, end: int) -> bool:
    """Return whether so many workers of an option on a node may take of the amounts from ``first`` to ``end``."""
    for amount in range(first, end):
        more = s.takes[option, amount] * workers
        account = account_of(s, amount, option, node) if more else -1
        while account >= 0:
            taken, kept = s.account_taken[account], s.account_kept[account]
            if taken + more > s.account_most[account]:
                return False
            more = max(taken + more, kept) - max(taken, kept)
            account = s.account_above[account]
    return True
