"""The first few of many, for people: a thousand would say no more than the first few."""

from collections.abc import Sequence


def truncate_list(texts: Sequence[str], most: int, between: str = ", ") -> str:
    """So many of them in one line, and how many more there are."""
    more = len(texts) - most
    rest = f"{' ' if between == ', ' else between}and {more} more" if more > 0 else ""
    return between.join(texts[:most]) + rest
