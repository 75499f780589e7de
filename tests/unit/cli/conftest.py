"""Command lines in this process."""

from tests.fakes.cli_runner import restored_logs, run

__all__ = ["restored_logs", "run"]
