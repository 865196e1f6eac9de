"""Queue orders: which waiting job is considered first. The engine hands the order to a heuristic."""

from placeopt.queueing.orders import ORDERS, order_jobs

__all__ = ["ORDERS", "order_jobs"]
