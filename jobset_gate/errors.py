"""The errors of the pure rules.

JobsetGateError
 └─ Malformed        something in the cluster does not have the form that its API or we give it
"""


class JobsetGateError(Exception):
    """Whatever jobset-gate raises on purpose."""

    hint = ""
    """What such an error means to the user of a command, in words that go before it."""


class Malformed(JobsetGateError, ValueError):
    """A text or an object does not have the form it must have; says where and what was found."""

    def __init__(self, where: str, found: object, expected: str) -> None:
        super().__init__(f"{where}: {found!r}: must be {expected}")
        self.where, self.found, self.expected = where, found, expected
