"""`validate` on the manifests that people get wrong, each finding with its place, and on what only looks wrong."""

import json
from collections.abc import Sequence

import pytest

from jobset_gate import names
from tests.fakes.cli_runner import RunCli
from tests.fakes.manifest_texts import CONFIG, POD, RING, TRAIN, noted, train

SECOND = """\
  - name: others
    template: {spec: {template: {spec: {containers: [{name: main, image: x}]}}}}
"""
JOB = f"""\
apiVersion: batch/v1
kind: Job
metadata: {{name: train, annotations: {{{names.ON_TIMEOUT}: Release}}}}
spec:
{CONFIG}  template: {{spec: {{restartPolicy: Never, containers: [{{name: m, image: x}}]}}}}
"""
RANGE = "must be an integer from 1 to 2147483647"
EIGHT = train(
    ("name: train", "name: Train_1"),
    ("spec:\n  group", f"  annotations: {{{names.DOMAIN}/bypas: 'true', {names.ON_TIMEOUT}: fail}}\nspec:\n  group"),
    ("timeoutAfterSeconds: 300", "timeoutAfterSeconds: 0"),
    ("[workers]", "[workers, worker]"),
    ("parallelism: 2", 'parallelism: "2"'),
    ("name: main", "name: group-scheduling-init"),
    ("image: x", "imagee: x"),
)
"""Eight mistakes at once."""

Finding = tuple[int, int, str]
BROKEN: dict[str, tuple[str, Sequence[Finding]]] = {
    "a timeout with a unit": (
        train(("300", "5m")),
        [(7, 5, f'spec.groupSchedulingConfig.timeoutAfterSeconds: "5m": {RANGE}: write 300 (seconds)')],
    ),
    "an unknown key of the config": (
        train(("timeoutAfterSeconds", "timeoutSeconds")),
        [(7, 5, "spec.groupSchedulingConfig.timeoutSeconds: 300: unknown key; the keys are timeoutAfterSeconds and")],
    ),
    "the config by half its name": (
        train(("groupSchedulingConfig", "groupScheduling")),
        [(6, 3, "unknown field: did you mean groupSchedulingConfig?")],
    ),
    "an annotation that is not JSON, and a value in lower case": (
        train((CONFIG, ""), noted(f"{names.CONFIG}: '{{timeout'", f"{names.ON_TIMEOUT}: fail")),
        [
            (6, 5, f'metadata.annotations[{names.CONFIG}]: "{{timeout": must be a JSON object'),
            (7, 5, f'metadata.annotations[{names.ON_TIMEOUT}]: "fail": must be "Fail" or "Release"'),
        ],
    ),
    "two replicatedJobs that wait for each other": (
        train(
            ("[workers]", "[workers, others]"),
            ("    replicas", "    dependsOn: [{name: others, status: Ready}]\n    replicas"),
        )
        + SECOND.replace("    template", "    dependsOn: [{name: workers, status: Ready}]\n    template"),
        [(11, 5, "spec.replicatedJobs[0].dependsOn: "), (23, 5, "spec.replicatedJobs[1].dependsOn: ")],
    ),
    "numbers as strings, and a pod that nearly names the group": (
        RING,
        [
            (4, 8, 'spec.minMember: "4": must be a number: take the quotes away'),
            (4, 24, 'spec.scheduleTimeoutSeconds: "ten": must be'),
            (8, 47, "group team/rinq: its PodGroup is not among these manifests (did you mean ring?); without it"),
        ],
    ),
    "a list": ("- a\n- b\n", [(1, 1, "must be an object, here is a list: put --- between objects")]),
    "another API version": (
        train(("v1alpha2", "v1")),
        [(1, 1, 'apiVersion: "jobset.x-k8s.io/v1": unknown: did you mean jobset.x-k8s.io/v1alpha2?')],
    ),
    "eight at once": (
        EIGHT,
        [
            (4, 3, 'metadata.name: "Train_1": must be a name'),
            (5, 17, f'metadata.annotations[{names.DOMAIN}/bypas]: "true": unknown annotation'),
            (5, 48, f'metadata.annotations[{names.ON_TIMEOUT}]: "fail": must be'),
            (8, 5, "spec.groupSchedulingConfig.timeoutAfterSeconds: 0: must be"),
            (9, 37, 'spec.groupSchedulingConfig.targetReplicatedJobs[1]: "worker": no replicatedJob'),
            (15, 9, 'spec.replicatedJobs[0].template.spec.parallelism: "2": must be an integer'),
            (20, 15, f'{POD}.containers[0].name: "group-scheduling-init": is reserved'),
            (21, 15, f'{POD}.containers[0].imagee: "x": unknown field'),
        ],
    ),
    "in a List": (
        "apiVersion: v1\nkind: List\nitems:\n-\n" + "".join(f"  {it}\n" for it in train(("300", "0")).splitlines()),
        [(11, 7, f"spec.groupSchedulingConfig.timeoutAfterSeconds: 0: {RANGE}")],
    ),
    "through an anchor": (
        train(("targetReplicatedJobs: [workers]", "targetReplicatedJobs: &t [worker]"))
        + "  successPolicy: {operator: All, targetReplicatedJobs: *t}\n",
        [(8, 31, 'spec.groupSchedulingConfig.targetReplicatedJobs[0]: "worker": no replicatedJob')],
    ),
    "with the line ends of Windows": (
        train(("300", "0")).replace("\n", "\r\n"),
        [(7, 5, f"spec.groupSchedulingConfig.timeoutAfterSeconds: 0: {RANGE}")],
    ),
    "on a plain Job": (
        JOB,
        [
            (
                5,
                3,
                f"has no effect here: the config of a Job is the annotation {names.CONFIG} in metadata.annotations",
            ),
        ],
    ),
    "a kind in other letters": (train(("JobSet", "Jobset")), [(2, 1, 'kind: "Jobset": unknown: did you mean JobSet?')]),
    "no API version": (
        train(("apiVersion: jobset.x-k8s.io/v1alpha2\n", "")),
        [(1, 1, "apiVersion: null: must be given: did you mean jobset.x-k8s.io/v1alpha2?")],
    ),
    "on the replicatedJob": (
        train((CONFIG, ""), ("    replicas", "    groupSchedulingConfig: {}\n    replicas")),
        [
            (
                8,
                5,
                (
                    "spec.replicatedJobs[0].groupSchedulingConfig: {}: has no effect here: it is read at "
                    "spec.groupSchedulingConfig alone"
                ),
            )
        ],
    ),
    "mistyped annotations": (
        train(noted(f"{names.DOMAIN}/prefetch-image: 'true'", "jobset-gate.io/on-timeout: Release")),
        [
            (6, 5, f"without effect on a JobSet: did you mean {names.PREFETCH_IMAGES}?"),
            (7, 5, f"without effect on a JobSet: did you mean {names.ON_TIMEOUT}?"),
        ],
    ),
}


@pytest.mark.parametrize("mistake", BROKEN)
def test_every_mistake_is_named_once_with_its_place_in_the_order_of_lines(run: RunCli, mistake: str) -> None:
    text, expected = BROKEN[mistake]
    ran = run("validate", "-f", "-", "-o", "json", stdin=text)
    found = json.loads(ran.out)["findings"]
    assert [(it["line"], it["column"]) for it in found] == [it[:2] for it in expected], ran.out
    for finding, (_, _, words) in zip(found, expected, strict=True):
        assert words in f"{finding['field']}: {finding['message']}"
    assert ran.code == 1


def test_what_cannot_be_corrected_is_not_printed_as_corrected(run: RunCli) -> None:
    assert "# corrected" not in run("validate", "-f", "-", stdin=RING).out
    assert "# corrected" in run("validate", "-f", "-", stdin=RING.replace("ten", "10")).out


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
    "no name": (train(("name: train", "labels: {}")), "error", "metadata.name: null: must be given, or metadata.gen"),
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
