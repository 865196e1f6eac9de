"""
Reproduces figures that papers report, beside ours (``placeopt bench papers``).

A module per paper holds settings, figures and orders of policies; `scenarios` makes the workloads, `one_at_a_time`
plays FGD's protocol. `campaign` runs the simulations, `tables` and `report` compare them with the papers.
"""
