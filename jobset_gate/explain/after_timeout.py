"""What happens at the timeout, said as far as it is known: the user's own policies decide what follows (A7)."""

from jobset_gate import names
from jobset_gate.barrier.model import JobSetSeen
from jobset_gate.explain.model import FailurePolicies


def after_timeout(jobset: JobSetSeen, policy: FailurePolicies | None) -> str:
    """One sentence; "" where there is no timeout."""
    if jobset.config.timeout is None:
        return ""
    if jobset.releases_on_timeout:
        return f"the gate opens without those that are missing ({names.ON_TIMEOUT}: {names.ON_TIMEOUT_RELEASE})"
    ends = f"every barrier ends with exit code {names.EXIT_TIMED_OUT}"
    if policy is None:
        return f"{ends}; what follows is up to backoffLimit and failurePolicy"
    return "; ".join((ends, _pods(policy), _jobset(policy)))


def _pods(policy: FailurePolicies) -> str:
    """From the pods to their Job."""
    if policy.exit_actions:
        return f"podFailurePolicy says {' or '.join(policy.exit_actions)} to that"
    limits = " or ".join(map(str, policy.backoff_limits))
    again = "kubelets restart it, with the same result, until" if policy.restarts_in_place else "until"
    if policy.backoff_limits == (0,):
        return "with backoffLimit 0 its Job fails at once"
    if not policy.restarts_in_place:
        return f"Jobs replace their pods until backoffLimit {limits} is used up, then they fail"
    return f"{again} backoffLimit {limits} is used up and the Jobs fail"


def _jobset(policy: FailurePolicies) -> str:
    """From a failed Job to the JobSet."""
    if policy.max_restarts is None:
        return "without a failurePolicy the JobSet fails then"
    if policy.rules:
        rules = ", ".join(policy.rules)
        return f"the first rule of the failurePolicy that fits decides ({rules}), else {_restart(policy)}"
    return _restart(policy)


def _restart(policy: FailurePolicies) -> str:
    limit = policy.max_restarts or 0
    left = max(0, limit - policy.counted)
    if not left:
        used = f": {policy.counted} of {limit} restarts are used" if limit else " (maxRestarts 0)"
        return f"the JobSet fails{used}"
    return f"the JobSet restarts all its Jobs ({left} of {limit} restarts are left)"
