"""Values to YAML or JSON text: block style, the order kept, strings that stay strings in every reader of YAML.

No control character of a string stands there as itself.
"""

import json
from collections.abc import Sequence
from typing import Any

import yaml

from jobset_gate.cli.manifests.yaml_loader import parse_scalar
from jobset_gate.objects import terminal_text

_AMBIGUOUS = "!ambiguous"


class Dumper(yaml.SafeDumper):
    """Quotes whatever any dialect of YAML would take for something else than a string."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the base class's signature
        """Shared parts are written out: anchors are legal YAML, but rare in manifests."""
        return True

    def resolve(self, kind: type[yaml.Node], value: str | None, implicit: Any) -> str:
        """What a reader would take a plain scalar for; a doubtful one for nothing that we write plain."""
        tag = str(super().resolve(kind, value, implicit))  # type: ignore[no-untyped-call]  # PyYAML's stubs
        doubtful = (
            kind is yaml.ScalarNode
            and implicit[0]
            and tag.endswith(":str")
            and not isinstance(parse_scalar(value or ""), str)
        )
        return _AMBIGUOUS if doubtful else tag


def _string(dumper: Dumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    if terminal_text.escaped(text) != text:  # controls, and line breaks of YAML 1.1: within quotes they can be escaped
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


Dumper.add_representer(str, _string)


def to_yaml(documents: Sequence[Any]) -> str:
    """All documents, with `---` between them."""
    dumped = (
        yaml.dump(each, Dumper=Dumper, sort_keys=False, default_flow_style=False, allow_unicode=True, width=2**31)
        for each in documents
    )
    return "---\n".join(map(terminal_text.escaped, dumped))


def to_json(documents: Sequence[Any]) -> str:
    """All documents one after the other, as kubectl and jq read them."""
    return "".join(terminal_text.escaped(json.dumps(each, indent=2, ensure_ascii=False)) + "\n" for each in documents)
