"""The embedded cluster of `jobset-gate demo` and of fast tests: API server, controllers, scheduler and kubelets.

It plays what those need and no more; all else is tested on a real API server. It stands on `kube`, `runtime` and the
pure rules; only `cli.demo`, tests, benchmarks and e2e import it. It is not part of the image nor of the wheel
jobset-gate: the distribution jobset-gate-demo ships it.
"""
