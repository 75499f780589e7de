"""The keepers of pod groups: what is seen of them, and what is done about it (groups.md)."""
