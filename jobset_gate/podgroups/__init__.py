"""Pod groups: formats, admission rules, fit, eviction, status. Pure: no I/O and no clock.

Imported by the webhook, the controllers and the command line; imports `barrier`, `explain.text` and `objects`.
"""
