"""Named resources laid over a small round: on machine types, in demands, some that no machine has."""

from __future__ import annotations

from helpers.small_rounds.dice import Dice
from placeopt.model import Demand, Instance, Job, Machine

NAMES = ("licence", "nic/port")
MISSING = "dongle"
"""Asked for now and then, and on no machine."""


def with_named_resources(dice: Dice, instance: Instance) -> Instance:
    """Give machine types and options amounts of one or two named resources; jobs of equal options stay equal."""
    names = NAMES[: dice.pick((1, 2))]
    machines = tuple(_machine(dice, machine, names) for machine in instance.cluster.machines)
    drawn: dict[Demand, Demand] = {}
    jobs = tuple(_job(dice, job, names, drawn) for job in instance.jobs)
    cluster = instance.cluster.model_copy(update={"machines": machines})
    return instance.model_copy(update={"cluster": cluster, "jobs": jobs})


def with_fewer(dice: Dice, instance: Instance) -> Instance:
    """Withdraw some of the named resources, perhaps below what running jobs hold."""
    machines = tuple(
        machine.model_copy(
            update={"resources": {name: dice.number(0, amount) for name, amount in machine.resources.items()}}
        )
        for machine in instance.cluster.machines
    )
    cluster = instance.cluster.model_copy(update={"machines": machines})
    return Instance.model_validate({**dict(instance), "cluster": cluster})


def _machine(dice: Dice, machine: Machine, names: tuple[str, ...]) -> Machine:
    resources = {name: dice.pick((0, 1, 2, 2, 3, 5)) for name in names if dice.chance(0.85)}
    return Machine.model_validate({**dict(machine), "resources": resources})


def _job(dice: Dice, job: Job, names: tuple[str, ...], drawn: dict[Demand, Demand]) -> Job:
    options = []
    for option in job.options:
        if option.demand not in drawn or dice.chance(0.3):
            wanted = {name: dice.pick((0, 1, 1, 2, 3)) for name in names if dice.chance(0.6)}
            if dice.chance(0.03):
                wanted[MISSING] = dice.number(0, 1)
            drawn[option.demand] = Demand.model_validate({**dict(option.demand), "resources": wanted})
        options.append(option.model_copy(update={"demand": drawn[option.demand]}))
    return job.model_copy(update={"options": tuple(options)})
