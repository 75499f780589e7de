"""`validate` on likely mistakes beyond the review's list, and on what only looks like one."""

import json

import pytest

from jobset_gate import names
from tests.fakes.cli_runner import RunCli
from tests.fakes.manifest_texts import CONFIG, POD, RING, TRAIN, noted, train

MORE = {
    "a field of the pod in the Job": (
        train(("        backoffLimit: 0\n", "        containers: []\n")),
        "error",
        (
            "spec.replicatedJobs[0].template.spec.containers: []: unknown field: "
            "spec.replicatedJobs[].template.spec.template.spec has one"
        ),
    ),
    "a key of the config a level too high": (
        train((CONFIG, "  timeoutAfterSeconds: 300\n")),
        "error",
        "spec.timeoutAfterSeconds: 300: unknown field: it belongs into spec.groupSchedulingConfig",
    ),
    "a field that a newer Kubernetes may have": (
        train(("image: x", "image: x\n              hologram: {}")),
        "warning",
        f"{POD}.containers[0].hologram: {{}}: unknown field",
    ),
    "a choice in lower case": (
        train(("  replicatedJobs", "  startupPolicy: {startupPolicyOrder: inorder}\n  replicatedJobs")),
        "error",
        'spec.startupPolicy.startupPolicyOrder: "inorder": must be "AnyOrder" or "InOrder": did you mean InOrder?',
    ),
    "an object for a list": (
        train(("            - name: main\n              image: x", "              name: main")),
        "error",
        f'{POD}.containers: {{"name":"main"}}: must be a list: put - before each entry',
    ),
    "a list for an object": (
        train(("  replicatedJobs", "  network: [enableDNSHostnames]\n  replicatedJobs")),
        "error",
        'spec.network: ["enableDNSHostnames"]: must be an object: take the - away',
    ),
    "a number for an annotation": (
        train(noted("example.com/epochs: 3")),
        "error",
        "metadata.annotations[example.com/epochs]: 3: must be a string: put it in quotes",
    ),
    "what two rules name": (
        train(noted(f"{names.ON_TIMEOUT}: true")),
        "error",
        f"metadata.annotations[{names.ON_TIMEOUT}]: true: must be",
    ),
    "an annotation of a JobSet in a template": (
        train(
            ("        template:", f"        template:\n          metadata: {{annotations: {{{names.BYPASS}: 'true'}}}}")
        ),
        "error",
        (
            f'spec.replicatedJobs[0].template.spec.template.metadata.annotations[{names.BYPASS}]: "true": has no '
            f"effect here: it is read at metadata.annotations[{names.BYPASS}] alone"
        ),
    ),
    "no kind": (train(("kind: JobSet\n", "")), "error", "kind: null: must be given: did you mean JobSet?"),
    "a group without API version": (
        RING.replace("apiVersion: scheduling.x-k8s.io/v1alpha1\n", ""),
        "error",
        "apiVersion: null: must be given: known are incubator.scheduling.k8s.io/v1alpha1, ",
    ),
    "a mistyped label of a group": (
        RING.replace("pod-group: rinq", "podgroup: ring"),
        "error",
        (
            'metadata.labels[scheduling.x-k8s.io/podgroup]: "ring": names no group: did you mean '
            "scheduling.x-k8s.io/pod-group?"
        ),
    ),
    "a label of a group as annotation": (
        RING.replace("labels", "annotations"),
        "error",
        'metadata.annotations[scheduling.x-k8s.io/pod-group]: "rinq": names no group: it is read among labels alone',
    ),
}


@pytest.mark.parametrize("mistake", MORE)
def test_so_are_others_as_errors_or_as_warnings(run: RunCli, mistake: str) -> None:
    text, level, words = MORE[mistake]
    found = json.loads(run("validate", "-f", "-", "-o", "json", stdin=text).out)["findings"]
    said = [it["level"] for it in found if words in f"{it['field']}: {it['message']}"]
    assert said == [level], found


FINE = {
    "the native PodGroup": "apiVersion: scheduling.k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {name: a}\n",
    "another project's JobSet": "apiVersion: example.com/v1\nkind: JobSet\nmetadata: {name: a}\n",
    "a Job without a gate": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\n",
    "a runtime that holds a JobSet's config": (
        "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainingRuntime\nmetadata: {name: a}\nspec:\n"
        "  template:\n    spec: {groupSchedulingConfig: {}}\n"
        f"    metadata: {{annotations: {{{names.BYPASS}: 'true'}}}}\n"
    ),
    "a stored JobSet": TRAIN + "status: {restarts: 0, anything: 1}\n",
    "quantities and ports of both types": train(
        (
            "image: x",
            (
                "image: x\n              resources: {limits: {cpu: 1, memory: 2Gi, ephemeral-storage: 1.5}}\n"
                "              livenessProbe: {httpGet: {port: 80}}\n"
                "              startupProbe: {httpGet: {port: http}}"
            ),
        )
    ),
    "a group's label with its annotation": (
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  labels: {scheduling.k8s.io/group-name: a}\n"
        "  annotations: {scheduling.k8s.io/group-name: a}\nspec: {}\n---\n"
        "apiVersion: incubator.scheduling.k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {name: a}\nspec: {minMembers: 1}\n"
    ),
}


@pytest.mark.parametrize("what", FINE)
def test_what_only_looks_alike_is_left_alone(run: RunCli, what: str) -> None:
    ran = run("validate", "-f", "-", "--strict", stdin=FINE[what])
    assert (ran.code, "error" in ran.out, "warning" in ran.out) == (0, False, False), ran.out
