"""`validate` on the manifests that people get wrong, each finding with its place, and on what only looks wrong."""

import json
from collections.abc import Sequence

import pytest

from jobset_gate import names
from tests.fakes.cli_runner import RunCli
from tests.fakes.manifest_texts import CONFIG, POD, RING, TRAIN, noted, train

JOB = f"""\
apiVersion: batch/v1
kind: Job
metadata: {{name: train, annotations: {{{names.ON_TIMEOUT}: Release}}}}
spec:
{CONFIG}  template: {{spec: {{restartPolicy: Never, containers: [{{name: m, image: x}}]}}}}
"""
GOOD_RING = RING.replace('"4"', "4").replace("ten", "10").replace("rinq", "ring")
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

TIMEOUT = "spec.groupSchedulingConfig.timeoutAfterSeconds"
TARGETS = "spec.groupSchedulingConfig.targetReplicatedJobs"
IN_LIST = "apiVersion: v1\nkind: List\nitems:\n-\n" + "".join(f"  {it}\n" for it in train(("300", "0")).splitlines())
BROKEN: dict[str, tuple[str, Sequence[str]]] = {
    "the config by half its name": (
        train(("groupSchedulingConfig", "groupScheduling")),
        ["6:3 unknown field: did you mean groupSchedulingConfig?"],
    ),
    "a key of the config a level too high": (
        train((CONFIG, "  timeoutAfterSeconds: 300\n")),
        ["6:3 spec.timeoutAfterSeconds: 300: unknown field: it belongs into spec.groupSchedulingConfig"],
    ),
    "eight at once": (
        EIGHT,
        [
            '4:3 metadata.name: "Train_1": must be a name',
            f'5:17 metadata.annotations[{names.DOMAIN}/bypas]: "true": unknown annotation',
            f'5:48 metadata.annotations[{names.ON_TIMEOUT}]: "fail": must be',
            f"8:5 {TIMEOUT}: 0: must be",
            f'9:37 {TARGETS}[1]: "worker": no replicatedJob',
            '15:9 spec.replicatedJobs[0].template.spec.parallelism: "2": must be an integer',
            f'20:15 {POD}.containers[0].name: "group-scheduling-init": is reserved',
            f'21:15 {POD}.containers[0].imagee: "x": unknown field',
        ],
    ),
    "a list": ("- a\n- b\n", ["1:1 must be an object, here is a list: put --- between objects"]),
    "in a List": (IN_LIST, [f"11:7 {TIMEOUT}: 0: {RANGE}"]),
    "through an anchor": (
        train(("targetReplicatedJobs: [workers]", "targetReplicatedJobs: &t [worker]"))
        + "  successPolicy: {operator: All, targetReplicatedJobs: *t}\n",
        [f'8:31 {TARGETS}[0]: "worker": no replicatedJob'],
    ),
    "with the line ends of Windows": (train(("300", "0")).replace("\n", "\r\n"), [f"7:5 {TIMEOUT}: 0: {RANGE}"]),
    "on a plain Job": (
        JOB,
        [f"5:3 has no effect here: the config of a Job is the annotation {names.CONFIG} in metadata"],
    ),
    "on the replicatedJob": (
        train((CONFIG, ""), ("    replicas", "    groupSchedulingConfig: {}\n    replicas")),
        ["8:5 has no effect here: it is read at spec.groupSchedulingConfig alone"],
    ),
    "another API version": (
        train(("v1alpha2", "v1")),
        ['1:1 apiVersion: "jobset.x-k8s.io/v1": unknown: did you mean jobset.x-k8s.io/v1alpha2?'],
    ),
    "a kind in other letters": (train(("JobSet", "Jobset")), ['2:1 kind: "Jobset": unknown: did you mean JobSet?']),
    "no kind": (train(("kind: JobSet\n", "")), ["1:1 kind: null: must be given: did you mean JobSet?"]),
    "no name": (train(("name: train", "labels: {}")), ["3:1 metadata.name: null: must be given, or metadata.gen"]),
    "a number for an annotation": (
        train(noted("example.com/epochs: 3")),
        ["6:5 metadata.annotations[example.com/epochs]: 3: must be a string: put it in quotes"],
    ),
    "what two rules name": (
        train(noted(f"{names.ON_TIMEOUT}: true")),
        [f"6:5 metadata.annotations[{names.ON_TIMEOUT}]: true: must be"],
    ),
    "an annotation of a JobSet in a template": (
        train(
            ("        template:", f"        template:\n          metadata: {{annotations: {{{names.BYPASS}: 'true'}}}}")
        ),
        [f'17:36 "true": has no effect here: it is read at metadata.annotations[{names.BYPASS}] alone'],
    ),
    "a field of the pod in the Job": (
        train(("        backoffLimit: 0\n", "        containers: []\n")),
        ["15:9 []: unknown field: spec.replicatedJobs[].template.spec.template.spec has one"],
    ),
    "a field that a newer Kubernetes may have": (
        train(("image: x", "image: x\n              hologram: {}")),
        [f"21:15 warning {POD}.containers[0].hologram: {{}}: unknown field"],
    ),
    "a choice in lower case": (
        train(("  replicatedJobs", "  startupPolicy: {startupPolicyOrder: inorder}\n  replicatedJobs")),
        ['9:19 startupPolicyOrder: "inorder": must be "AnyOrder" or "InOrder": did you mean InOrder?'],
    ),
    "an object for a list": (
        train(("            - name: main\n              image: x", "              name: main")),
        [f'18:13 {POD}.containers: {{"name":"main"}}: must be a list: put - before each entry'],
    ),
    "a list for an object": (
        train(("  replicatedJobs", "  network: [enableDNSHostnames]\n  replicatedJobs")),
        ['9:3 spec.network: ["enableDNSHostnames"]: must be an object: take the - away'],
    ),
    "numbers as strings, and a pod that nearly names the group": (
        RING,
        [
            '4:8 spec.minMember: "4": must be a number: take the quotes away',
            '4:24 spec.scheduleTimeoutSeconds: "ten": must be',
            "8:47 warning group team/rinq: its PodGroup is not among these manifests (did you mean ring?); without it",
        ],
    ),
    "a group without API version": (
        GOOD_RING.replace("apiVersion: scheduling.x-k8s.io/v1alpha1\n", ""),
        [
            "1:1 apiVersion: null: must be given: known are incubator.scheduling.k8s.io/v1alpha1, ",
            "7:47 warning group team/ring: ",
        ],
    ),
    "a mistyped label of a group": (
        GOOD_RING.replace("pod-group:", "podgroup:"),
        ['8:47 podgroup]: "ring": names no group: did you mean scheduling.x-k8s.io/pod-group?'],
    ),
    "a label of a group as annotation": (
        GOOD_RING.replace("labels", "annotations"),
        ['8:52 pod-group]: "ring": names no group: it is read among labels alone'],
    ),
}


@pytest.mark.parametrize("mistake", BROKEN)
def test_every_mistake_is_named_once_with_its_place_in_the_order_of_lines(run: RunCli, mistake: str) -> None:
    text, expected = BROKEN[mistake]
    ran = run("validate", "-f", "-", "-o", "json", stdin=text)
    found = json.loads(ran.out)["findings"]
    assert [f"{it['line']}:{it['column']}" for it in found] == [it.split()[0] for it in expected], ran.out
    for finding, sentence in zip(found, expected, strict=True):
        words = sentence.partition(" ")[2]
        assert (finding["level"] == "warning") is words.startswith("warning "), ran.out
        assert words.removeprefix("warning ") in f"{finding['field']}: {finding['message']}"
    assert ran.code == any(it["level"] == "error" for it in found)


def test_what_cannot_be_corrected_is_not_printed_as_corrected(run: RunCli) -> None:
    assert "# corrected" not in run("validate", "-f", "-", stdin=RING).out
    assert "# corrected" in run("validate", "-f", "-", stdin=RING.replace("ten", "10")).out


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
