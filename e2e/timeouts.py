"""How long the suite waits in vain before it gives up."""

from typing import Final

TIMEOUT: Final = 150.0
"""Seconds that anything may take on a busy machine."""
