"""The suite on a real cluster: kind's, or any that a kubeconfig names. `python -m e2e` runs it."""
