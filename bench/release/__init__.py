"""How fast a gang is released on real kubelets: `python -m bench.release` (docs/release.md)."""
