"""Does the plan belong to this instance, and does every job stand in it exactly once?"""

from collections.abc import Collection

from placeopt.check.case import CheckCase


def check_reference(case: CheckCase) -> None:
    """
    The plan names the instance, its content and revision, and the policy whose values it carries.

    A plan for some jobs names no content, and so says null: reading all of it would cost more than the plan.
    """
    instance, ref, policy = case.instance, case.plan.instance, case.plan.policy
    for field, stated, true in (
        ("instance.name", ref.name, instance.name),
        ("instance.revision", ref.revision, instance.revision),
        ("instance.digest", ref.digest, instance.digest if case.plan.asked is None else None),
        ("policy.name", policy.name, policy.values.name),
        ("policy.digest", policy.digest, policy.values.digest),
    ):
        if stated != true:
            case.add("reference", field, f"the plan says {stated!r}, expected {true!r}")


def check_account(case: CheckCase) -> None:
    """
    Every job stands exactly once, in ``placements`` or in ``unplaced``, and an unplaced one has a reason.

    A plan for some jobs has those jobs and no others, and they are waiting ones.
    """
    placed = [placement.job for placement in case.plan.placements]
    waiting = [unplaced.job for unplaced in case.plan.unplaced]
    stands = {*placed, *waiting}
    asked = case.plan.asked
    wanted: Collection[str] = case.jobs.keys() if asked is None else dict.fromkeys(asked).keys()
    for job in asked or ():
        if job in case.directory.running:
            case.add("account", f"job {job!r}", "was asked for, but runs already")
        elif job not in case.jobs:
            case.add("account", f"job {job!r}", "was asked for, but the instance has no such job")
    if len(stands) != len(placed) + len(waiting) or stands != wanted:
        _tell_faults(case, placed, waiting, wanted)
    for i, unplaced in enumerate(case.plan.unplaced):
        if not unplaced.reason.strip():
            case.add("account", f"unplaced[{i}]", f"job {unplaced.job!r} has no reason")


def _tell_faults(case: CheckCase, placed: list[str], waiting: list[str], wanted: Collection[str]) -> None:
    """Say which jobs are unknown, not asked for, stand twice or are missing."""
    stands: dict[str, str] = {}
    for group, ids in (("placements", placed), ("unplaced", waiting)):
        for i, job in enumerate(ids):
            where = f"{group}[{i}]"
            if job not in case.jobs:
                case.add("account", where, f"the instance has no job {job!r}")
            elif job not in wanted:
                case.add("account", where, f"the plan is for {len(wanted)} jobs, and job {job!r} is none of them")
            elif job in stands:
                case.add("account", where, f"job {job!r} stands in {stands[job]} already")
            else:
                stands[job] = where
    for job in wanted:
        if job not in stands:
            case.add("account", f"job {job!r}", "neither in placements nor in unplaced")
