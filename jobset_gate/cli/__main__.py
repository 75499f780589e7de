"""`python -m jobset_gate.cli`."""

from jobset_gate.cli.main import main

main()
