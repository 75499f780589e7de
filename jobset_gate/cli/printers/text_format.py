"""Text for people, JSON and YAML for programs."""

from enum import StrEnum


class TextFormat(StrEnum):
    """The form of what is printed."""

    TEXT = "text"
    JSON = "json"
    YAML = "yaml"
