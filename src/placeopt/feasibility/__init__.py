"""
One job while all else stays as it is: whether it fits, how, and with how many workers. Exact, without a solver.

``requirement`` divides the job's record into options, and groups of constraints that can be dropped from them;
``free_capacity`` is what a state leaves free to it; ``worker_distribution`` counts the ways to lie over nodes and
domains; ``fit`` decides.
"""
