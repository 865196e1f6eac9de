"""
Random machines, clusters, policies, jobs, rounds, plans and scenarios, as Hypothesis strategies.

Each choice shrinks to its first or smallest value, so a failing round shrinks to a few jobs on a bare node; it is
printed as JSON, which ``Instance.model_validate_json`` reads (``tests/conftest.py``). Rounds are small enough for
`helpers.brute_force`.

==========================  ====================================================================================
`machines`                  machine types of every shape; ``wired_machines``: any tree of switches with any links
`clusters`                  up to 3 nodes in racks and zones; ``trees``: nodes anywhere in domains of any depth
`policies`, `weights`       every share mode, limit, cost and queue, each on and off
`jobs`                      whole GPUs, shares, CPU, gangs, elastic, split, picky
`rounds`                    all of it, with what runs, changes and minimal utilities, each on request or left out
`odd_rounds`                a limit lowered, a node or GPU gone, a demand changed under what runs
`gang_rounds`               one gang that spreads among racks, beside running jobs
`tree_rounds`               jobs of groups of unlike workers, with segments, spread and preferred levels;
                            ``make_large_tree_round``: on 20 to 60 nodes
`relation_rounds`           jobs that must, or should, be near others or apart from them
`filling_rounds`   what fillings count in full, and some that they refuse
`plans`, `any_plans`        lawful plans of a round; plans with something broken
`scenarios`                 jobs that arrive over time
`graphs`, `distances`       symmetric matrices
`choices`                   choices that a test goes on making in its body
==========================  ====================================================================================
"""

from hypothesis import strategies as st

from strategies.broken_plans import make_any_plan
from strategies.choice import Choice, seeded, strategy
from strategies.clusters import make_cluster, make_machine, make_tree, make_wired_machine
from strategies.jobs import make_job
from strategies.matrices import make_distances, make_graph
from strategies.odd_rounds import make_odd_round
from strategies.plans import make_plan
from strategies.policies import make_cost_weights, policies
from strategies.relation_rounds import make_relation_round
from strategies.rounds import make_filling_round, make_gang_round, make_round, where_of
from strategies.scenarios import make_scenario
from strategies.tree_rounds import make_large_tree_round, make_tree_round

__all__ = [
    "Choice",
    "any_plans",
    "choices",
    "clusters",
    "distances",
    "filling_rounds",
    "gang_rounds",
    "graphs",
    "jobs",
    "machines",
    "make_distances",
    "make_graph",
    "make_large_tree_round",
    "make_plan",
    "make_round",
    "odd_rounds",
    "plans",
    "policies",
    "relation_rounds",
    "rounds",
    "scenarios",
    "seeded",
    "strategy",
    "tree_rounds",
    "trees",
    "weights",
    "where_of",
    "wired_machines",
]

choices = st.builds(Choice)
machines, wired_machines = strategy(make_machine), strategy(make_wired_machine)
clusters, trees = strategy(make_cluster), strategy(make_tree)
weights, jobs = strategy(make_cost_weights), strategy(make_job)
rounds, gang_rounds, odd_rounds = strategy(make_round), strategy(make_gang_round), strategy(make_odd_round)
tree_rounds, relation_rounds = strategy(make_tree_round), strategy(make_relation_round)
filling_rounds = strategy(make_filling_round)
plans, any_plans, scenarios = strategy(make_plan), strategy(make_any_plan), strategy(make_scenario)
graphs, distances = strategy(make_graph), strategy(make_distances)
