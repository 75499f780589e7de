"""values.schema.json: what it refuses and in which words, and that it knows exactly what there is."""

import json
from collections.abc import Iterator
from functools import reduce
from typing import Any, Final

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest

from jobset_gate import settings
from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.podgroups.model import Format
from jobset_gate.settings import Native
from tests.chart.helm import CHART, KUBERNETES, Helm, Json, at, defaults, merged

SCHEMA: Final[Json] = json.loads((CHART / "values.schema.json").read_text())

REFUSED: Final[dict[str, list[Any]]] = {
    # Path: values that the schema refuses there.
    "webhok": [{}],
    "webhook.replicas": [3],
    "webhook.replicaCount": ["2", -1, None],
    "webhook.port": [70000],
    "webhook.failurePolicy": ["fail"],
    "webhook.timeoutSeconds": [31],
    "webhook.certificates.mode": ["self"],
    "webhook.certificates.leafDuration": ["1 day"],
    "webhook.certificates.issuerRef": [{"kind": "Issuer"}],
    "webhook.podLabels": [{"app.kubernetes.io/name": "x"}],
    "webhook.podAnnotations": [{"a": 1}],
    "webhook.tolerations": [[{"effects": "NoSchedule"}]],
    "webhook.extraEnv": [[{"value": "x"}]],
    "webhook.resources": [{"request": {}}],
    "webhook.strategy": [{"type": "Rolling"}],
    "controller.leaderElection.retryPeriodSeconds": [0],
    "controller.workers": [0],
    "controller.patchConcurrency": [1.5],
    "image.digest": ["sha256:abc"],
    "image.tag": ["a b"],
    "image.pullPolicy": ["always"],
    "imagePullSecrets": [["pull"]],
    "fullnameOverride": ["Gate"],
    "logging.level": ["trace"],
    "statusPage.port": [0],
    "statusPage.tlsSecretName": ["a b"],
    "statusPage.prices": [{"nvidia.com/gpu": "2.50"}, {"nvidia.com/gpu": -1}],
    "statusPage.insecure": [True],
    "admissionPolicies.enabled": ["on"],
    "crds.keep": ["yes"],
    "podDisruptionBudget.maxUnavailable": ["half"],
    "metrics.serviceMonitor.interval": ["often"],
    "networkPolicy.metricsFrom": [[{"namespace": "x"}]],
    "networkPolicy.apiServerPorts": [[]],
    "tests.namespace": ["Default"],
    "extraObjects": [{}],
    "gangs.sources": [[], ["job"], ["jobset", "pods"]],
    "gangs.podFailurePolicy": ["fail", True],
    "groups.waitSeconds": [None],
    "groups.wait": [60],
}
IN_HELMS_WORDS: Final = {
    "webhok": ({}, "additional properties 'webhok' not allowed"),
    "webhook.replicaCount": ("2", "/webhook/replicaCount': got string, want integer"),
    "webhook.port": (70000, "/webhook/port': maximum: got 70,000, want 65,535"),
    "crds.keep": (1, "/crds/keep"),
    "groups.ways": (["volcano"], "/groups/ways/0': value must be one of 'koordinator-annotations'"),
    "barrier.streamUrl": ("https://x", "/barrier/streamUrl': 'https://x' does not match pattern"),
}

CONFLICTS: Final[list[tuple[Json, str]]] = [
    (at("controller.leaderElection.enabled", False), "controller.leaderElection.enabled: false needs"),
    (at("controller.leaderElection.renewDeadlineSeconds", 15), "leaseDurationSeconds must be above"),
    (at("controller.leaderElection.retryPeriodSeconds", 5), "above twice retryPeriodSeconds"),
    (at("webhook.shutdownDelaySeconds", 25), "webhook.terminationGracePeriodSeconds must be at least"),
    (at("webhook.certificates.mode", "secret"), "webhook.certificates.secretName: mode secret needs"),
    (
        merged(at("gangs.sources", ["jobset", "startgroup"]), at("controller.patchConcurrency", 0)),
        "gangs.sources: startgroup needs controller.patchConcurrency above 0",
    ),
    (
        merged(at("gangs.sources", ["jobset", "lws"]), at("controller.patchConcurrency", 0)),
        "gangs.sources: lws needs controller.patchConcurrency above 0",
    ),
    (
        at("metrics", {"serviceMonitor": {"enabled": True}, "podMonitor": {"enabled": True}}),
        "metrics: enable serviceMonitor or podMonitor, not both",
    ),
]


def test_each_bad_value_is_refused_with_its_path() -> None:
    validator = jsonschema.Draft7Validator(SCHEMA)
    assert list(validator.iter_errors(defaults())) == []
    for path, values in REFUSED.items():
        for value in values:
            given = merged(defaults(), at(path, value))
            if value is None:  # Helm takes a null for a value that is taken out
                *parents, last = path.split(".")
                del reduce(lambda part, key: part[key], parents, given)[last]
            errors = [".".join(map(str, one.absolute_path)) for one in validator.iter_errors(given)]
            assert errors, (path, value)
            assert all(one.startswith(path) or path.startswith(one) for one in errors), (path, value, errors)


def test_helm_says_all_that_is_wrong_at_once(helm: Helm) -> None:
    said = helm.refusal(merged(*(at(path, value) for path, (value, _) in IN_HELMS_WORDS.items())))
    assert [words for _, words in IN_HELMS_WORDS.values() if words not in said] == []


@pytest.mark.parametrize(("values", "words"), CONFLICTS, ids=[words for _, words in CONFLICTS])
def test_values_that_contradict_each_other_are_refused(helm4: Helm, values: Json, words: str) -> None:
    assert words in helm4.refusal(values)


def test_numbers_of_the_election_may_come_by_set(helm: Helm) -> None:
    """Helm makes another type of number of those than of what stands in a file."""
    number = "controller.leaderElection.leaseDurationSeconds=20"
    said = helm.run("template", "x", str(CHART), "--kube-version", KUBERNETES, "--set", number)
    assert "leaseDuration: 20\n" in said


def test_nothing_undeclared_is_accepted_anywhere_but_in_global(helm4: Helm) -> None:
    open_ = [path for path, part in _parts(SCHEMA) if "properties" in part and part.get("additionalProperties", True)]
    assert open_ == []
    assert SCHEMA["properties"]["global"] == {"type": "object"}
    assert helm4.text(at("global.whatever", [1, {"a": None}])) == helm4.text()


EDGES: Final[dict[str, dict[str, tuple[list[Any], list[Any]]]]] = {
    # Section, key: values that are accepted, and values that are refused.
    "barrier": {
        "runAsUser": ([1], [0]),
        "runAsGroup": ([2**31 - 1], [2**31]),
        "graceSeconds": ([0, 86_400], [86_401]),
        "maxWaitSeconds": ([1, 2**31 - 1], [0]),
        "pollSeconds": ([0.05, 10], [0.01, 10.5]),
        "image": ([], ["", "a b"]),
        "streamUrl": (["http://[::1]:80/x/"], ["https://x", "http://x/?q"]),
        "resources": ([{"limits": {"cpu": 1, "memory": "1Gi"}}], [{"claims": []}, {"requests": {"cpu": True}}]),
    },
    "groups": {
        "enabled": ([], ["yes"]),
        "ways": ([[way.value] for way in Format], [[], ["volcano"]]),
        "schedulerNames": ([["Mine-1.2_3"]], [[], ["-a"], ["a'b"]]),
        "capacityCheck": ([check.value for check in CapacityCheck], ["off"]),
        "starvationSeconds": ([0, 86_400], [-1, 86_401]),
        "waitSeconds": ([1], [0, 1.5, 2**31]),
        "acrossNamespaces": ([], [1]),
        "native": ([native.value for native in Native], ["Auto"]),
        "gateConcurrency": ([1024], [0, 1025]),
    },
}


@pytest.mark.parametrize("section", EDGES)
def test_schema_and_program_agree(section: str) -> None:
    """So that a value which Helm accepts never ends in a pod that does not start."""
    schema = SCHEMA | {"$ref": f"#/definitions/{section}"}
    schema["definitions"] = {**SCHEMA["definitions"], section: SCHEMA["properties"][section]}
    validator = jsonschema.Draft7Validator(schema)
    for key, values in EDGES[section].items():
        for fine, members in zip((True, False), values, strict=True):
            for value in members:
                assert validator.is_valid(defaults()[section] | {key: value}) is fine, (key, value)
                assert _program_takes({section: {key: value}}) is fine, (key, value)


def test_the_schema_has_every_setting_of_the_program() -> None:
    ours = {it.encode_name for it in msgspec.structs.fields(settings.Barrier)}
    assert set(SCHEMA["properties"]["barrier"]["properties"]) == ours
    of_gangs = {it.encode_name for it in msgspec.structs.fields(settings.Gangs)}
    assert set(SCHEMA["properties"]["gangs"]["properties"]) == of_gangs
    of_groups = {it.encode_name for it in msgspec.structs.fields(settings.Groups)}
    assert set(SCHEMA["properties"]["groups"]["properties"]) == of_groups


def _program_takes(values: Json) -> bool:
    try:
        settings.load(values)
    except settings.BadSettings:
        return False
    return True


def _parts(part: Any, path: str = "$") -> Iterator[tuple[str, Json]]:
    if isinstance(part, dict):
        yield path, part
        for key, one in part.items():
            yield from _parts(one, f"{path}.{key}")
    if isinstance(part, list):
        for index, one in enumerate(part):
            yield from _parts(one, f"{path}[{index}]")
