"""The client of the Kubernetes API: configuration, transport, verbs, errors, resources.

The only package that speaks to an API server. Everything that does I/O may import it; it imports nothing of ours but
the base of errors.
"""
