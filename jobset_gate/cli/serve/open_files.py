"""How many files this process may have open: each barrier at the gate stream is one."""

import resource


def raise_limit() -> None:
    """As many as the hard limit says; a process may ask for them."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
