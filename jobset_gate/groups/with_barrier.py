"""A group whose pods also wait in the start barrier: both have to want the same pods, in the same time (G6)."""

from fractions import Fraction

from jobset_gate.violation import Violation


def minimum(path: str, wanted: int, expected: int) -> Violation | None:
    """What forbids a gated JobSet in a group: the group may open with fewer pods than the barrier waits for, or never.

    `path` is where the minimum is said, `expected` how many pods the barrier expects (A4).
    """
    if wanted == expected:
        return None
    return Violation(path, wanted, f"must equal what the start barrier waits for: {wanted} pods here, {expected} there")


def timeout(limit: int | None, wait: Fraction) -> str | None:
    """What to warn of: the barrier gives up while the group is still being placed. `limit` None: it never does."""
    if limit is None or limit > wait:
        return None
    return f"the start barrier's timeout of {limit}s must be above the group's wait limit of {float(wait):g}s"
