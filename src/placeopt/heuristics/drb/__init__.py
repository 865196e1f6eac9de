"""Dual recursive bi-partitioning (SC'17 algorithms 1 to 3)."""
