"""Is what the plan says of standing limits true?"""

from placeopt.check.case import CheckCase


def check_standing(case: CheckCase) -> None:
    """
    Every entry of ``standing`` is a limit that running jobs broke and still do; the last rule, for it asks the others.

    A plan need not list them: whoever makes plans for others may not know them.
    """
    if not case.plan.standing:
        return
    found = {(one.job, one.rule, one.node) for one in case.standing}
    for i, entry in enumerate(case.plan.standing):
        if (entry.job, entry.rule, entry.node) not in found:
            case.add("standing", f"standing[{i}]", f"no running job breaks {entry.rule!r} there")
