"""What a plan claims, against referee, audit and the optimum."""

from placeopt import Instance, Plan, audit
from placeopt.check import judge


def complaints(round_: Instance, plan: Plan) -> list[str]:
    """Return what is wrong with a plan by referee and audit, and by what it says stands."""
    found = judge(round_, plan)
    wrong = [str(one) for one in found.violations] + audit(round_, plan)
    if [one.message for one in found.standing] != [one.detail for one in plan.standing]:
        wrong.append("the plan lists other limits than the referee finds")
    return wrong


def untrue(plan: Plan, best: int, least: int) -> list[str]:
    """Return what a plan says of its optimum that is not so; ``best`` value, and ``least`` cost at that value."""
    value, cost = plan.levels[0], next((level for level in plan.levels if level.name == "cost"), None)
    wrong = []
    if value.objective > best or value.bound is None or value.bound < best:
        wrong.append(f"value {value.objective}, bound {value.bound}, the best is {best}")
    if plan.status == "optimal" and value.objective != best:
        wrong.append(f"called optimal at {value.objective} of {best}")
    if cost is not None and value.objective == best:
        if cost.objective < least or (cost.bound is not None and cost.bound > least):
            wrong.append(f"cost {cost.objective}, bound {cost.bound}, the least is {least}")
        if plan.status == "optimal" and cost.objective != least:
            wrong.append(f"called optimal at cost {cost.objective}, the least is {least}")
    return wrong
