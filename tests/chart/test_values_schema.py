"""values.schema.json: what it refuses and in which words, and that it knows exactly what there is."""

import json
from collections.abc import Iterator
from typing import Any, Final

import jsonschema  # type: ignore[import-untyped]
import pytest

from jobset_gate import settings
from jobset_gate.cli import settings_file
from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.podgroups.model import Format
from jobset_gate.settings import Native
from tests.chart.helm import CHART, KUBERNETES, Helm, Json, at, defaults, merged

SCHEMA: Final[Json] = json.loads((CHART / "values.schema.json").read_text())

BAD: Final[list[tuple[str, Any, str]]] = [
    # path, value, what Helm says of it
    ("webhok", {}, "additional properties 'webhok' not allowed"),
    ("webhook.replicas", 3, "additional properties 'replicas' not allowed"),
    ("webhook.replicaCount", "2", "/webhook/replicaCount': got string, want integer"),
    ("webhook.replicaCount", -1, "/webhook/replicaCount': minimum: got -1, want 0"),
    ("webhook.replicaCount", None, "missing property 'replicaCount'"),
    ("webhook.port", 70000, "/webhook/port': maximum: got 70,000, want 65,535"),
    ("webhook.failurePolicy", "fail", "/webhook/failurePolicy': value must be one of 'Fail', 'Ignore'"),
    ("webhook.timeoutSeconds", 31, "/webhook/timeoutSeconds': maximum: got 31, want 30"),
    ("webhook.certificates.mode", "self", "value must be one of 'own', 'certManager', 'secret'"),
    (
        "webhook.certificates.leafDuration",
        "1 day",
        "/webhook/certificates/leafDuration': '1 day' does not match pattern",
    ),
    ("webhook.certificates.issuerRef", {"kind": "Issuer"}, "/webhook/certificates/issuerRef': missing property 'name'"),
    ("webhook.podLabels", {"app.kubernetes.io/name": "x"}, "/webhook/podLabels/app.kubernetes.io~1name': false schema"),
    ("webhook.podAnnotations", {"a": 1}, "/webhook/podAnnotations/a': got number, want string"),
    ("webhook.tolerations", [{"effects": "NoSchedule"}], "/webhook/tolerations/0': additional properties 'effects'"),
    ("webhook.extraEnv", [{"value": "x"}], "/webhook/extraEnv/0': missing property 'name'"),
    ("webhook.resources", {"request": {}}, "/webhook/resources': additional properties 'request' not allowed"),
    ("webhook.strategy", {"type": "Rolling"}, "/webhook/strategy/type': value must be one of"),
    ("controller.leaderElection.retryPeriodSeconds", 0, "/controller/leaderElection/retryPeriodSeconds'"),
    ("controller.workers", 0, "/controller/workers': minimum: got 0, want 1"),
    ("controller.patchConcurrency", 1.5, "/controller/patchConcurrency': got number, want integer"),
    ("image.digest", "sha256:abc", "/image/digest': 'sha256:abc' does not match pattern"),
    ("image.tag", "a b", "/image/tag': 'a b' does not match pattern"),
    ("image.pullPolicy", "always", "/image/pullPolicy': value must be one of 'Always', 'IfNotPresent', 'Never'"),
    ("imagePullSecrets", ["pull"], "/imagePullSecrets/0': got string, want object"),
    ("fullnameOverride", "Gate", "/fullnameOverride': 'Gate' does not match pattern"),
    ("logging.level", "trace", "/logging/level': value must be one of"),
    ("barrier.image", "", "/barrier/image': '' does not match pattern"),
    ("barrier.runAsUser", 0, "/barrier/runAsUser': minimum: got 0, want 1"),
    ("barrier.pollSeconds", 0.01, "/barrier/pollSeconds': minimum"),
    ("barrier.graceSeconds", 86_401, "/barrier/graceSeconds': maximum"),
    ("barrier.streamUrl", "https://x", "/barrier/streamUrl': 'https://x' does not match pattern"),
    ("barrier.resources", {"requests": {"cpu": True}}, "/barrier/resources/requests/cpu'"),
    ("groups.ways", [], "/groups/ways': minItems: got 0, want 1"),
    ("groups.ways", ["volcano"], "/groups/ways/0': value must be one of 'koordinator-annotations'"),
    ("groups.schedulerNames", ["it's"], "/groups/schedulerNames/0': 'it\\'s' does not match pattern"),
    ("groups.capacityCheck", "fit", "/groups/capacityCheck': value must be one of 'Fit', 'Probe', 'Off'"),
    ("groups.capacityCheck", True, "/groups/capacityCheck': value must be one of 'Fit', 'Probe', 'Off'"),
    ("groups.native", "on", "/groups/native': value must be one of 'Off', 'On'"),
    ("groups.waitSeconds", None, "/groups': missing property 'waitSeconds'"),
    ("groups.wait", 60, "/groups': additional properties 'wait' not allowed"),
    ("statusPage.port", 0, "/statusPage/port': minimum: got 0, want 1"),
    ("statusPage.tlsSecretName", "a b", "/statusPage/tlsSecretName': 'a b' does not match pattern"),
    ("statusPage.insecure", True, "/statusPage': additional properties 'insecure' not allowed"),
    ("admissionPolicies.enabled", "on", "/admissionPolicies/enabled': value must be one of 'auto', true, false"),
    ("crds.keep", "yes", "/crds/keep': got string, want boolean"),
    ("podDisruptionBudget.maxUnavailable", "half", "/podDisruptionBudget/maxUnavailable': 'half' does not match"),
    ("metrics.serviceMonitor.interval", "often", "/metrics/serviceMonitor/interval': 'often' does not match"),
    ("networkPolicy.metricsFrom", [{"namespace": "x"}], "/networkPolicy/metricsFrom/0': additional properties"),
    ("networkPolicy.apiServerPorts", [], "/networkPolicy/apiServerPorts': minItems: got 0, want 1"),
    ("tests.namespace", "Default", "/tests/namespace': 'Default' does not match pattern"),
    ("extraObjects", {}, "/extraObjects': got object, want array"),
]

APART: Final[list[tuple[Json, str]]] = [
    # What goes together, and is not.
    (at("controller.leaderElection.enabled", False), "controller.leaderElection.enabled: false needs"),
    (at("controller.leaderElection.renewDeadlineSeconds", 15), "leaseDurationSeconds must be above"),
    # The controller refuses to start with it.
    (at("controller.leaderElection.retryPeriodSeconds", 5), "above twice retryPeriodSeconds"),
    (at("webhook.shutdownDelaySeconds", 25), "webhook.terminationGracePeriodSeconds must be at least"),
    (at("webhook.certificates.mode", "secret"), "webhook.certificates.secretName: mode secret needs"),
    (
        at("metrics", {"serviceMonitor": {"enabled": True}, "podMonitor": {"enabled": True}}),
        "metrics: enable serviceMonitor or podMonitor, not both",
    ),
]


@pytest.mark.parametrize(("path", "value", "words"), BAD, ids=[f"{path}={value!r}"[:60] for path, value, _ in BAD])
def test_a_bad_value_is_refused_with_its_path(helm4: Helm, path: str, value: Any, words: str) -> None:
    assert words in helm4.refusal(at(path, value))


@pytest.mark.parametrize(("path", "value", "words"), BAD[:6:2])
def test_helm_3_says_the_same(helm: Helm, path: str, value: Any, words: str) -> None:
    assert words in helm.refusal(at(path, value))


@pytest.mark.parametrize(("values", "words"), APART, ids=[words for _, words in APART])
def test_values_that_do_not_go_together_are_refused(helm4: Helm, values: Json, words: str) -> None:
    assert words in helm4.refusal(values)


def test_numbers_of_the_election_may_come_by_set(helm: Helm) -> None:
    """Helm makes another type of number of those than of what stands in a file."""
    number = "controller.leaderElection.leaseDurationSeconds=20"
    said = helm.run("template", "x", str(CHART), "--kube-version", KUBERNETES, "--set", number)
    assert "leaseDuration: 20\n" in said


def test_all_that_is_wrong_is_said_at_once(helm4: Helm) -> None:
    said = helm4.refusal(merged(at("crds.keep", 1), at("webhook.port", 0)))
    assert "/crds/keep" in said
    assert "/webhook/port" in said


def test_it_is_a_draft_07_schema() -> None:
    assert SCHEMA["$schema"] == "http://json-schema.org/draft-07/schema#"
    jsonschema.Draft7Validator.check_schema(SCHEMA)


def test_nothing_undeclared_is_accepted_anywhere_but_in_global() -> None:
    open_ = [path for path, part in _parts(SCHEMA) if "properties" in part and part.get("additionalProperties", True)]
    assert open_ == []
    assert SCHEMA["properties"]["global"] == {"type": "object"}


def test_global_may_hold_anything(helm4: Helm) -> None:
    assert helm4.text(at("global.whatever", [1, {"a": None}])) == helm4.text()


def test_schema_and_values_know_the_same_values() -> None:
    declared = {path for path in _declared(SCHEMA) if not path.startswith(("podSecurityContext.", "securityContext."))}
    values = {path for path in _paths(defaults()) if path in declared or path.count(".") < 1}
    missing = {path for path in declared if path not in set(_paths(defaults()))} - OPTIONAL
    assert missing == set()
    assert {path for path in values if path.count(".") < 1} == set(SCHEMA["properties"])


OPTIONAL: Final = {
    # Parts of Kubernetes' own types that have no default here.
    *(
        f"{component}.{probe}.{key}"
        for component in ("webhook", "controller")
        for probe in ("livenessProbe", "readinessProbe")
        for key in ("initialDelaySeconds", "successThreshold")
    ),
    *(
        f"{component}.{key}"
        for component in ("webhook", "controller")
        for key in (
            "resources.claims",
            "affinity.nodeAffinity",
            "affinity.podAffinity",
            "affinity.podAntiAffinity",
        )
    ),
    *(f"webhook.certificates.issuerRef.{key}" for key in ("name", "kind", "group")),
    *(f"barrier.resources.{key}" for key in ("requests", "limits")),
}


BARRIER_EDGES: Final[list[tuple[str, Any, bool]]] = [
    ("runAsUser", 1, True),
    ("runAsUser", 0, False),
    ("runAsGroup", 2**31 - 1, True),
    ("runAsGroup", 2**31, False),
    ("graceSeconds", 0, True),
    ("graceSeconds", 86_400, True),
    ("graceSeconds", 86_401, False),
    ("maxWaitSeconds", 1, True),
    ("maxWaitSeconds", 0, False),
    ("maxWaitSeconds", 2**31 - 1, True),
    ("pollSeconds", 0.05, True),
    ("pollSeconds", 10, True),
    ("pollSeconds", 10.5, False),
    ("image", "a b", False),
    ("streamUrl", "http://[::1]:80/x/", True),
    ("streamUrl", "http://x/?q", False),
    ("resources", {"limits": {"cpu": 1, "memory": "1Gi"}}, True),
    ("resources", {"claims": []}, False),
]


GROUPS_EDGES: Final[list[tuple[str, Any, bool]]] = [
    ("enabled", "yes", False),
    *(("ways", [way.value], True) for way in Format),
    ("ways", [], False),
    ("ways", ["volcano"], False),
    ("schedulerNames", ["Mine-1.2_3"], True),
    ("schedulerNames", [], False),
    ("schedulerNames", ["-a"], False),
    ("schedulerNames", ["a'b"], False),
    *(("capacityCheck", check.value, True) for check in CapacityCheck),
    ("capacityCheck", "off", False),
    ("starvationSeconds", 0, True),
    ("starvationSeconds", -1, False),
    ("starvationSeconds", 86_400, True),
    ("starvationSeconds", 86_401, False),
    ("waitSeconds", 0, False),
    ("waitSeconds", 1, True),
    ("waitSeconds", 1.5, False),
    ("waitSeconds", 2**31, False),
    ("acrossNamespaces", 1, False),
    *(("native", native.value, True) for native in Native),
    ("native", "Auto", False),
    ("gateConcurrency", 0, False),
    ("gateConcurrency", 1024, True),
    ("gateConcurrency", 1025, False),
]


@pytest.mark.parametrize(("key", "value", "fine"), GROUPS_EDGES, ids=[f"{k}={v!r}" for k, v, _ in GROUPS_EDGES])
def test_schema_and_program_agree_on_groups(key: str, value: Any, fine: bool) -> None:
    schema = SCHEMA | {"$ref": "#/definitions/groups"}
    schema["definitions"] = {**SCHEMA["definitions"], "groups": SCHEMA["properties"]["groups"]}
    assert jsonschema.Draft7Validator(schema).is_valid(defaults()["groups"] | {key: value}) is fine
    assert _program_takes({"groups": {key: value}}) is fine


@pytest.mark.parametrize(("key", "value", "fine"), BARRIER_EDGES, ids=[f"{k}={v!r}" for k, v, _ in BARRIER_EDGES])
def test_schema_and_program_agree_on_the_barrier(key: str, value: Any, fine: bool) -> None:
    """So that a value which Helm takes never ends in a pod that does not start."""
    schema = SCHEMA | {"$ref": "#/definitions/barrier", "definitions": _with_barrier()}
    assert jsonschema.Draft7Validator(schema).is_valid(defaults()["barrier"] | {key: value}) is fine
    assert _program_takes({"barrier": {key: value}}) is fine


def test_the_schema_knows_all_that_the_program_may_be_told() -> None:
    ours = {field.alias for field in settings.Barrier.model_fields.values()}
    assert set(SCHEMA["properties"]["barrier"]["properties"]) == ours
    of_groups = {field.alias for field in settings.Groups.model_fields.values()}
    assert set(SCHEMA["properties"]["groups"]["properties"]) == of_groups


def test_every_setting_of_the_controller_is_said() -> None:
    """By the settings file that the chart renders; its values have other names where those tell more."""
    text = (CHART / "templates" / "_settings.tpl").read_text()
    fields = [field.alias for field in settings_file.ControllerSection.model_fields.values()]
    assert [alias for alias in fields if f"\n  {alias}:" not in text] == []


def _program_takes(values: Json) -> bool:
    try:
        settings.load(values)
    except settings.BadSettings:
        return False
    return True


def _with_barrier() -> Json:
    return {**SCHEMA["definitions"], "barrier": SCHEMA["properties"]["barrier"]}


def _parts(part: Any, path: str = "$") -> Iterator[tuple[str, Json]]:
    if isinstance(part, dict):
        yield path, part
        for key, one in part.items():
            yield from _parts(one, f"{path}.{key}")
    if isinstance(part, list):
        for index, one in enumerate(part):
            yield from _parts(one, f"{path}[{index}]")


def _declared(part: Json, above: str = "") -> Iterator[str]:
    if "$ref" in part:
        part = SCHEMA["definitions"][part["$ref"].rpartition("/")[2]]
    for key, one in part.get("properties", {}).items():
        path = f"{above}.{key}" if above else key
        yield path
        yield from _declared(one, path)


def _paths(values: Any, above: str = "") -> Iterator[str]:
    if isinstance(values, dict):
        for key, value in values.items():
            path = f"{above}.{key}" if above else key
            yield path
            yield from _paths(value, path)
