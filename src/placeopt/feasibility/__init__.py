"""
One job while all else stays as it is: whether it fits, how, and with how many workers. Exact, without a solver.

``requirement`` takes the job's record apart into options, and groups of constraints that can be dropped from them;
``room`` is what a state leaves free to it; ``layout`` counts the ways to lie over nodes and domains; ``fit`` answers.
"""
