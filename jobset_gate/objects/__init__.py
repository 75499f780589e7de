"""Helpers for untyped Kubernetes objects: nested fields, JSON patches, field errors, quantities. Pure."""
