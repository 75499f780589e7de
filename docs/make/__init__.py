"""Writes docs/reference/ from the code: `make reference`. A sentence that is missing there is written at its source."""
