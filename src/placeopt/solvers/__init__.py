"""
Solvers: how a `placeopt.linear.LinearModel` is solved, and where.

`pool` runs a solve, in a process or in a thread; `registry` lists what each solver can do; `cpsat`,
`highs` and `pulp_gateway` read what a solver returns; `result` is what goes in and out; `certify` turns duals into a
bound that holds exactly. Nothing is imported here, since solvers take long to load.
"""
