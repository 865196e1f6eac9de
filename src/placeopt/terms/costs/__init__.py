"""Costs: what is good, one file each, stated once and used by every formulation and heuristic."""
