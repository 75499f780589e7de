"""The ResourceQuotas of all namespaces, as they are now (KEP-24, G4)."""

from collections.abc import Sequence

from jobset_gate.podgroups.quota import QuotaLimits


class QuotaCache:
    """By namespace and name."""

    def __init__(self) -> None:
        self._all: dict[str, dict[str, QuotaLimits]] = {}

    def put_quota(self, key: tuple[str, str], new: QuotaLimits | None) -> bool:
        """One is now so, or gone; gives whether that is news."""
        namespace, name = key
        quotas = self._all.setdefault(namespace, {})
        before = quotas.pop(name, None)
        if new is not None:
            quotas[name] = new
        if not quotas:
            del self._all[namespace]
        return before != new

    def quotas_in(self, namespace: str) -> Sequence[QuotaLimits]:
        """Those of a namespace, by name."""
        return [quota for _, quota in sorted(self._all.get(namespace, {}).items())]
