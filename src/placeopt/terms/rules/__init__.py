"""Rules: what is allowed, one file each, stated once and used by every formulation and heuristic."""
