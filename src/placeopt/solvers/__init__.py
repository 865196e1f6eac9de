"""
Solvers: how a `placeopt.linear.LinearModel` is solved, and where.

`pool` runs a solve, in a process or in a thread; `registry` says who can do what; `cpsat` and
`highs` are the only places that read what a solver returns; `result` is what goes in and out; `certify` turns duals
into a bound that holds exactly. Nothing is imported here: solvers are heavy, and who asks only for `result` should
not pay for them.
"""
