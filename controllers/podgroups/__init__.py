"""Controllers of pod groups (docs/design/pod-groups.md): cache, admission, ungating, eviction, status. For the manager,
the status page and `kubectl jobset-gate get groups`.
"""
