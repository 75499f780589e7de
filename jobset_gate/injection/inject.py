"""A JobSet on its way in: the JSON patch that puts the barrier in on CREATE and keeps it in on UPDATE (A3)."""

from typing import Final

from jobset_gate.injection import render, restore
from jobset_gate.objects.json_patch import PatchBuilder
from jobset_gate.objects.unstructured import Json, config_of, nested
from jobset_gate.settings import Settings

SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""What an API server draws the ends of generated names from: no vowels, nothing that looks like something else."""
SUFFIX_LENGTH: Final = 5
LONGEST_PREFIX: Final = 63 - SUFFIX_LENGTH


def patch(
    new: Json, old: Json | None, *, settings: Settings, generated_name: str | None = None, token: str = ""
) -> list[Json]:
    """The operations (RFC 6902) that make of the incoming object the one to be stored; none if it is that already.

    `old` is None on CREATE. `generated_name` is used where metadata.name is empty. `token` is what the gang's pods show
    at the gate stream, random and new for each JobSet; without it they are told of no stream. The JobSet is to be free
    of violations (`validate.violations`); where it has one, the part that has it is left as it is. Raises
    bounds.PatchTooLarge.
    """
    return injected(new, old, settings=settings, generated_name=generated_name, token=token).operations


def injected(
    new: Json, old: Json | None, *, settings: Settings, generated_name: str | None = None, token: str = ""
) -> PatchBuilder:
    """The same with the resulting object beside the operations; neither `new` nor `old` is changed."""
    edit = PatchBuilder(new)
    if old is not None:
        restore.restore_barriers(edit, new, old)
        restore.restore_defaults(edit, new, old)
        restore.restore_spelling(edit, new, old)
        return edit
    config = config_of(new).config
    if config is not None:
        render.add_barriers(edit, new, config, settings.barrier, generated_name, token=token)
    return edit


def needs_name(new: Json) -> str | None:
    """The metadata.generateName of an object that has no name yet; None if there is no name to be completed."""
    prefix = nested(new, "metadata", "generateName")
    if nested(new, "metadata", "name") or not isinstance(prefix, str) or not prefix:
        return None
    return prefix


def generated_name(prefix: str, suffix: str) -> str:
    """The name that an API server would make of a metadata.generateName and five random characters."""
    return prefix[:LONGEST_PREFIX] + suffix
