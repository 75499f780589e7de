"""Helm as the tests use it: renders the chart into objects, or tells what it refuses."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).parents[2] / "charts" / "jobset-gate"
NAMESPACE = "jobset-gate-system"
RELEASE = "jobset-gate"
KUBERNETES = "1.36.0"
TAKES_AT_MOST = 240.0  # seconds; a tenth of one is usual, and hooks are waited for

Json = dict[str, Any]
Values = Mapping[str, Any]


class HelmError(Exception):
    """Helm ended with an error; the message is what it said."""


@dataclass(frozen=True, slots=True)
class Helm:
    """One of the two programs, with folders of its own, so that a person's plugins and settings stay out of it."""

    major: int
    binary: Path
    home: Path

    def run(self, *arguments: str, values: Values | None = None, kubeconfig: Path | None = None) -> str:
        """What it prints. Raises Refused."""
        given = ["--values", "-"] if values is not None else []
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
        folders = {f"HELM_{kind}_HOME": str(self.home / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
        ran = subprocess.run(  # noqa: S603 - the program of tests.tools, with arguments of the tests
            [str(self.binary), *arguments, *given],
            input=json.dumps(values) if values is not None else "",
            env=kept | folders | {"KUBECONFIG": str(kubeconfig or os.devnull), "GOGC": "400"},
            capture_output=True,
            text=True,
            timeout=TAKES_AT_MOST,
            check=False,
        )
        if ran.returncode:
            raise HelmError(ran.stderr or ran.stdout)
        return ran.stdout

    def text(
        self,
        values: Values | None = None,
        *,
        release: str = RELEASE,
        namespace: str = NAMESPACE,
        kubernetes: str = KUBERNETES,
        chart: Path = CHART,
    ) -> str:
        """What `helm template` prints."""
        where = ("--namespace", namespace, "--kube-version", kubernetes)
        return self.run("template", release, str(chart), *where, values=values or {})

    def render(self, values: Values | None = None, **how: Any) -> "RenderedObjects":
        """The same as objects, which nobody changes."""
        return _rendered(self, json.dumps(values or {}), tuple(sorted(how.items())))

    def refusal(self, values: Values, **how: Any) -> str:
        """What it says to values that it must refuse."""
        try:
            self.text(values, **how)
        except HelmError as refused:
            return str(refused)
        raise AssertionError(f"accepted: {values}")


@dataclass(frozen=True, slots=True)
class RenderedObjects:
    """The objects of a release, hooks included."""

    all: tuple[Json, ...]

    def kind(self, kind: str) -> list[Json]:
        return [one for one in self.all if one["kind"] == kind]

    def one(self, kind: str, name: str | None = None) -> Json:
        """The only one of its kind (and name)."""
        found = [one for one in self.kind(kind) if name in (None, one["metadata"]["name"])]
        assert len(found) == 1, f"{kind} {name}: {[one['metadata']['name'] for one in self.kind(kind)]}"
        return found[0]

    def deployment(self, component: str) -> Json:
        return self.one("Deployment", f"{RELEASE}-{component}")

    def pod(self, component: str) -> Json:
        """The pod template of a component."""
        return dict(self.deployment(component)["spec"]["template"])

    def container(self, component: str) -> Json:
        (container,) = self.pod(component)["spec"]["containers"]
        return dict(container)

    def names(self) -> list[tuple[str, str]]:
        return sorted((one["kind"], one["metadata"]["name"]) for one in self.all)


class StrictYamlLoader(yaml.CSafeLoader):
    """YAML as Kubernetes reads it: a key that is given twice is an error."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        doubled = {key for key in keys if keys.count(key) > 1}
        assert not doubled, f"line {node.start_mark.line}: said twice: {doubled}"
        return super().construct_mapping(node, deep)


@cache
def _rendered(helm: Helm, values: str, how: tuple[tuple[str, Any], ...]) -> RenderedObjects:
    """Each set of values once; test_objects.py has those that are rendered twice."""
    return RenderedObjects(tuple(_parsed(helm.text(json.loads(values), **dict(how)))))


def _parsed(text: str) -> list[Json]:
    return [one for one in yaml.load_all(text, StrictYamlLoader) if one is not None]


@cache
def defaults() -> Json:
    """values.yaml."""
    read: Json = yaml.safe_load((CHART / "values.yaml").read_text())
    return read


def at(path: str, value: Any) -> Json:
    """`at("a.b", 1)` is {"a": {"b": 1}}."""
    for key in reversed(path.split(".")):
        value = {key: value}
    return dict(value)


def leaves(values: Values, above: str = "") -> Iterator[str]:
    """The paths of all values that hold no others."""
    for key, value in values.items():
        path = f"{above}.{key}" if above else key
        if isinstance(value, dict) and value:
            yield from leaves(value, path)
        else:
            yield path


def merged(*values: Values) -> Json:
    """Later ones win, deeply."""
    result: Json = {}
    for one in values:
        for key, value in one.items():
            old = result.get(key)
            both = isinstance(old, Mapping) and isinstance(value, Mapping)
            result[key] = merged(old, value) if both else value  # type: ignore[arg-type]
    return result
