"""`doctor` on clusters that are well, ill in one place, and hidden from who asks."""

import asyncio
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from controllers.podgroups import crds
from jobset_gate import names
from jobset_gate.cli.commands.doctor import findings
from jobset_gate.cli.doctor import dry_runs
from jobset_gate.cli.doctor.check import ClusterReader, FindingLevel
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import (
    CRDS,
    DEPLOYMENTS,
    JOBSETS,
    MUTATING_WEBHOOKS,
    NODES,
    PODS,
    SECRETS,
    VALIDATING_WEBHOOKS,
)
from jobset_gate.settings import Gangs, Settings
from jobset_gate.sources.table import JOBSET
from jobset_gate_demo.fake import jobset_crd
from tests.fakes import jobsets, stored_pod_groups
from tests.fakes.admission_server import BUNDLE, limited, registered, registered_for_pods, registered_for_start_groups
from tests.fakes.cli_runner import RunCli
from tests.fakes.doctor_shell import WEBHOOK, DoctorShell, deployment, only_embedded
from tests.fakes.grouped_pods import pod
from tests.fakes.stored_gang import StoredJobSet
from tests.fakes.stored_pod_groups import kubeconfig_of, lease
from tests.plane.embedded import Embedded
from tests.plane.planes import Real
from webhook import registration
from webhook.certs import ca
from webhook.certs.ca import joined
from webhook.certs.serving import self_signed

Json = dict[str, Any]
PATIENCE = 60
STARTING = Settings(gangs=Gangs(sources=("jobset", "startgroup")))
only_real = pytest.mark.parametrize("plane", [pytest.param("real", marks=pytest.mark.real)], indirect=True)


# --- A cluster that is well ------------------------------------------------------------------------------------------


async def test_where_all_is_well_nothing_is_worse_than_a_warning(camp: StoredJobSet, doctor: DoctorShell) -> None:
    await stored_pod_groups.install_pod_group_crds(camp.client)
    await camp.jobset()
    await lease(camp.client, camp.namespace)
    async with (
        registered(camp.client, camp.namespace),
        registered_for_pods(camp.client, camp.namespace),
        registered_for_start_groups(camp.client, camp.namespace, STARTING),
    ):
        found = await doctor.found()
        message = await doctor()
    well = {what for what, it in found.items() if it["level"] == "ok"}
    assert {
        f"JobSet's CRD has spec.{names.CONFIG_FIELD}",
        f"MutatingWebhookConfiguration zz-jobset-gate-{camp.namespace} is there",
        f"ValidatingWebhookConfiguration jobset-gate-{camp.namespace} is there",
        f"MutatingWebhookConfiguration zz-jobset-gate-pods-{camp.namespace} is there",
        f"MutatingWebhookConfiguration zz-jobset-gate-barrier-pods-{camp.namespace} is there",
        "a gated JobSet gets its barrier",
        "Jobs are sent to the webhook",
        "a gated Job gets its barrier",
        "a pod of a start group gets its barrier",
        "wrong settings of a gate are refused",
        "a pod of a group is held",
        "a controller leads",
        f"1 gang in namespace {camp.namespace}",
        "every gang has its barrier",
        *(f"the CRD {name} can be used" for name in crds.GROUPS),
    } <= well
    assert [it for it in found.values() if it["level"] == "error"] == []
    assert all(it["remedy"] for it in found.values() if it["level"] != "ok")
    assert (message.code, message.err) == (0, "")
    assert "ok       a gated JobSet gets its barrier: in namespace" in message.out
    assert f"the CA that zz-jobset-gate-{camp.namespace} trusts" in message.out  # for how long depends on the time


# --- One thing is wrong ----------------------------------------------------------------------------------------------


@only_embedded
async def test_a_cluster_without_jobset_and_one_without_the_field(
    embedded_plane: Embedded, doctor: DoctorShell
) -> None:
    """Native gangs are tried only where the command line says so."""
    native = "the scheduler does not place native gangs"
    found = await doctor.found()
    assert native not in found
    assert {
        "JobSet is not installed": "error",
        "MutatingWebhookConfiguration zz-jobset-gate is missing": "error",
        "ValidatingWebhookConfiguration jobset-gate is missing": "error",
        "MutatingWebhookConfiguration zz-jobset-gate-pods is missing": "warning",
        "no controller leads": "error",
    }.items() <= levels(found).items()
    assert yaml.safe_load((await doctor("-o", "yaml")).out)["summary"]["error"] == 4
    async with embedded_plane.client() as client:
        await jobset_crd.install(client)
    found = await doctor.found("--native")
    lacking = found[f"JobSet's CRD lacks spec.{names.CONFIG_FIELD}"]
    remedy = f"run `jobset-gate install-crd-field --kubeconfig {embedded_plane.kubeconfig}`"
    assert (lacking["level"], lacking["remedy"]) == ("warning", remedy)
    assert (found[native]["level"], found[native]["why"]) == ("error", "the API server has no native PodGroups")


def levels(found: dict[str, Json]) -> dict[str, str]:
    return {what: it["level"] for what, it in found.items()}


@pytest.mark.parametrize(
    ("stops", "what", "words"),
    [
        (True, "API servers do not reach mutate.jobset-gate.dev", "pods are ready"),
        (False, "API servers do not trust mutate.jobset-gate.dev", "certificate"),
    ],
    ids=["does not listen", "serves another certificate"],
)
async def test_a_webhook_that_cannot_be_called(camp: StoredJobSet, stops: bool, what: str, words: str) -> None:
    """An API server reads a changed configuration after a while: the check is repeated until then."""
    reader, checks = (
        ClusterReader(camp.client, camp.namespace, camp.namespace),
        [("x", partial(dry_runs.gets_barrier, JOBSET))],
    )
    async with registered(camp.client, camp.namespace) as server, asyncio.timeout(PATIENCE):
        if stops:
            await server.stop()
        else:
            other = {"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": self_signed().ca_bundle}
            name = f"{registration.MUTATING}-{camp.namespace}"
            await camp.client.patch(MUTATING_WEBHOOKS, name, body=[other], patch=PatchType.JSON)
        while (found := (await findings(reader, checks))[0]).what != what:
            pass
    assert (found.level, words in found.why + found.remedy) == (FindingLevel.ERROR, True)


@only_embedded
async def test_configurations_that_do_not_hold(camp: StoredJobSet, doctor: DoctorShell) -> None:
    loose, bare = registration.configurations(url="https://127.0.0.1:1", failure_policy="Ignore")
    loose["webhooks"][0]["clientConfig"]["caBundle"] = BUNDLE.ca_bundle
    for each in (loose, bare):
        expression = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [camp.namespace]}
        each["webhooks"][0]["namespaceSelector"] = {"matchExpressions": [expression]}
    await camp.client.create(MUTATING_WEBHOOKS, loose)
    await camp.client.create(VALIDATING_WEBHOOKS, bare)
    found = await doctor.found()
    tried = found["whether a gated JobSet gets its barrier"]
    assert (tried["level"], tried["why"]) == ("unknown", f"namespace {camp.namespace} is exempt from our webhooks")
    assert found["MutatingWebhookConfiguration zz-jobset-gate has the failurePolicy Ignore"]["level"] == "warning"
    assert found["ValidatingWebhookConfiguration jobset-gate has no caBundle"]["level"] == "error"


@only_embedded
async def test_a_certificate_that_is_managed_elsewhere(camp: StoredJobSet, doctor: DoctorShell) -> None:
    volumes = [{"name": it, "secret": {"secretName": it}} for it in ("old", "torn", "none")]
    await camp.client.create(
        DEPLOYMENTS, deployment("webhook", "gate:1", labels=WEBHOOK, volumes=volumes), camp.namespace
    )
    ended = ca.create("old", now=datetime.now(UTC) - timedelta(days=9), life=timedelta(days=8))
    for name, text in (("old", joined([ended.certificate])), ("torn", b"?")):
        data = {"tls.crt": b64encode(text).decode()}
        await camp.client.create(SECRETS, {"metadata": {"name": name}, "data": data}, camp.namespace)
    found = await doctor.found()
    of = f"the webhook's certificate in Secret {camp.namespace}"
    for name, why in (
        ("old", "valid until "),
        ("torn", "there is no certificate"),
        ("none", "there is no certificate"),
    ):
        finding = found[f"{of}/{name} is not valid now"]
        assert (finding["level"], finding["why"].startswith(why)) == ("error", True)


@only_embedded
async def test_gangs_without_a_barrier_pods_without_a_leader_and_old_versions(
    camp: StoredJobSet, doctor: DoctorShell
) -> None:
    await camp.jobset()
    job = await camp.job()
    await camp.started(0, job, phase="Pending")
    await camp.passed(1, job)
    gates = [{"name": names.POD_GROUP_GATE}]
    grouped = pod(name="h-0", meta={"labels": {names.POD_GROUP_LABEL: "x"}}, schedulingGates=gates)
    await camp.client.create(PODS, grouped, camp.namespace)
    bare = jobsets.defaulted(jobsets.jobset(name="bare"))
    bare["metadata"]["namespace"] = camp.namespace
    await camp.client.create(JOBSETS, bare, camp.namespace)
    await lease(camp.client, camp.namespace, ago=600)
    for name, version in (("old", "v0.8.1"), ("new", "v0.10.1")):
        image = f"registry.test/jobset/jobset:{version}"
        await camp.client.create(DEPLOYMENTS, deployment(name, image), camp.namespace)
    await camp.client.create(NODES, {"metadata": {"name": "far"}})
    found = await doctor.found()
    assert {
        "no controller leads, and 2 pods wait for its word": "error",
        "1 of 2 gangs have no barrier": "error",
        "JobSet v0.8.1 is too old": "error",
        "JobSet v0.10.1": "ok",
        "how often kubelets look at their pods": "unknown",
    }.items() <= levels(found).items()
    assert found["1 of 2 gangs have no barrier"]["why"] == f"their pods start at once: {camp.namespace}/bare"
    assert any(what.startswith("Kubernetes v1.") for what in found)
    assert all(it["remedy"] for it in found.values() if it["level"] != "ok")


@only_embedded
async def test_others_that_read_the_same_keys_and_a_kind_of_pod_group_that_says_nothing(
    camp: StoredJobSet, doctor: DoctorShell
) -> None:
    for name, image in (("koord-scheduler", "koordinator/koord-scheduler:v1"), ("koord-manager", "koord-manager:v1")):
        await camp.client.create(DEPLOYMENTS, deployment(name, image), camp.namespace)
    volcano = registration.configuration(
        "MutatingWebhookConfiguration",
        "volcano-admission-service-pods-mutate",
        {
            "name": "mutatepod.volcano.sh",
            "clientConfig": {"url": "https://127.0.0.1:1"},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}],
            "objectSelector": {"matchLabels": {"nobody": "at-all"}},
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
        },
    )
    await camp.client.create(MUTATING_WEBHOOKS, volcano)
    made = crds.manifest(names.PLUGINS_GROUP)
    made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = {"type": "object"}
    del made["metadata"]["labels"]
    await camp.client.create(CRDS, made)
    async with registered_for_pods(camp.client, camp.namespace):
        found = await doctor.found()
    assert {
        f"Koordinator runs here ({camp.namespace}/koord-scheduler)": "warning",
        "the webhook configuration volcano-admission-service-pods-mutate changes pods, too": "warning",
        f"there is no CRD {crds.crd_name(names.KEP24_GROUP)}": "warning",
    }.items() <= levels(found).items()
    assert not any("koord-manager" in it for it in found)
    message = found[f"the CRD {crds.crd_name(names.PLUGINS_GROUP)} cannot be used; it is another project's"]
    assert (message["level"], "has no spec.minMember" in message["why"]) == ("error", True)


# --- Rights ----------------------------------------------------------------------------------------------------------


@only_real
async def test_the_rights_of_the_controllers_account(real_plane: Real, camp: StoredJobSet, doctor: DoctorShell) -> None:
    await camp.client.create(DEPLOYMENTS, deployment("controller", "jobset-gate:1"), camp.namespace)
    await camp.client.create(
        DEPLOYMENTS, deployment("webhook", "gate:1", account="webhook", labels=WEBHOOK), camp.namespace
    )
    who = f"{camp.namespace}/controller"
    of_pods = registration.barrier_pod_configuration(
        Gangs(sources=("jobset", "lws", "startgroup")), url="https://127.0.0.1:1", suffix=f"-{camp.namespace}"
    )
    await camp.client.create(MUTATING_WEBHOOKS, limited(of_pods, camp.namespace))
    found = await doctor.found()
    lost = found[f"the ServiceAccount {camp.namespace}/webhook may not get mutatingwebhookconfigurations"]
    assert (lost["level"], "never gets ready" in lost["why"]) == ("error", True)
    assert found[f"the ServiceAccount {who} may not watch pods"]["level"] == "error"
    assert found[f"the ServiceAccount {who} may not get leases"]["why"] == "it cannot lead"
    assert found[f"the ServiceAccount {who} may not patch jobsets/status"]["level"] == "warning"
    assert found[f"the ServiceAccount {who} may not get statefulsets"]["level"] == "warning"
    assert found[f"the ServiceAccount {who} may not watch statefulsets"]["level"] == "error"
    assert found[f"the ServiceAccount {who} may not patch leaderworkersets/status"]["level"] == "warning"
    assert found[f"the ServiceAccount {who} may not patch pods"]["level"] == "error"
    assert found[f"you may look at gangs in namespace {camp.namespace}"]["level"] == "ok"
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": camp.namespace},
        "subjects": [{"kind": "ServiceAccount", "name": "controller", "namespace": camp.namespace}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    }
    await real_plane.kubectl("apply", "-f", "-", stdin=binding)
    try:
        async with asyncio.timeout(PATIENCE):
            while f"the ServiceAccount {who} has its rights" not in await doctor.found():
                pass  # the authorizer reads bindings when it likes
    finally:
        await real_plane.kubectl("delete", "clusterrolebinding", camp.namespace)
        await camp.client.delete(MUTATING_WEBHOOKS, of_pods["metadata"]["name"])


@only_real
async def test_a_user_with_few_rights_sees_what_is_not_known(
    real_plane: Real, camp: StoredJobSet, doctor: DoctorShell, run: RunCli, tmp_path: Path
) -> None:
    """And the own namespace instead of all."""
    await camp.jobset()
    rules = [{"apiGroups": [names.JOBSET_GROUP], "resources": ["jobsets"], "verbs": ["get", "list"]}]
    config = await kubeconfig_of(real_plane, camp.namespace, rules, tmp_path)
    found = await doctor.user(config).found()
    hidden = {what: it["why"] for what, it in found.items() if it["level"] == "unknown"}
    assert hidden["JobSet's CRD"].startswith("cannot get customresourcedefinitions.apiextensions.k8s.io")
    assert hidden["the webhook configurations"].startswith("cannot list mutatingwebhookconfigurations")
    assert hidden["JobSet's version"] == "cannot list deployments.apps in all namespaces"
    assert f"cannot list pods in namespace {camp.namespace}" in hidden["how many have started is not known"]
    assert "was refused" in hidden["whether a gated JobSet gets its barrier"]
    assert found[f"you cannot list pods in namespace {camp.namespace}"]["level"] == "warning"
    assert found[f"1 gang in namespace {camp.namespace}"]["level"] == "ok"
    assert [it for it in found.values() if it["level"] == "error"] == []
    ran = await asyncio.to_thread(run, "doctor", "--kubeconfig", str(config))
    assert ran.code == 0
    assert f"ok       1 gang in namespace {camp.namespace}" in ran.out
    message = "cannot list jobsets.jobset.x-k8s.io in all namespaces"
    assert f"unknown  only gangs of namespace {camp.namespace} were looked at: {message}" in ran.out
