"""Solve a round."""

from placeopt import generate, solve

plan = solve(generate("uniform", jobs=5, nodes=2, gpus=4, seed=0), time_limit_s=20)
assert plan.status == "optimal", plan.status
