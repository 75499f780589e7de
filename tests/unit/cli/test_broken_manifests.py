"""`validate` on the manifests that people get wrong: each finding with its place, and the exit code."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from jobset_gate import names
from tests.fakes.cli_runner import RunCli
from tests.fakes.manifest_texts import CONFIG, POD, RING, noted, train

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
BROKEN: dict[str, tuple[str, int, Sequence[Finding]]] = {
    "01 a target that is not there": (
        train(("[workers]", "[worker]")),
        1,
        [(8, 28, 'spec.groupSchedulingConfig.targetReplicatedJobs[0]: "worker": no replicatedJob has this name;')],
    ),
    "02 a timeout with a unit": (
        train(("300", "5m")),
        1,
        [(7, 5, f'spec.groupSchedulingConfig.timeoutAfterSeconds: "5m": {RANGE}: write 300 (seconds)')],
    ),
    "03 a timeout below zero": (
        train(("300", "-1")),
        1,
        [(7, 5, f"spec.groupSchedulingConfig.timeoutAfterSeconds: -1: {RANGE}")],
    ),
    "04 an unknown key of the config": (
        train(("timeoutAfterSeconds", "timeoutSeconds")),
        1,
        [(7, 5, "spec.groupSchedulingConfig.timeoutSeconds: 300: unknown key; the keys are timeoutAfterSeconds and")],
    ),
    "05 the config by half its name": (
        train(("groupSchedulingConfig", "groupScheduling")),
        1,
        [(6, 3, "unknown field: did you mean groupSchedulingConfig?")],
    ),
    "06 InOrder and one target": (
        train(("  replicatedJobs", "  startupPolicy: {startupPolicyOrder: InOrder}\n  replicatedJobs")),
        0,
        [],
    ),
    "07 an annotation that is not JSON, and a value in lower case": (
        train((CONFIG, ""), noted(f"{names.CONFIG}: '{{timeout'", f"{names.ON_TIMEOUT}: fail")),
        1,
        [
            (6, 5, f'metadata.annotations[{names.CONFIG}]: "{{timeout": must be a JSON object'),
            (7, 5, f'metadata.annotations[{names.ON_TIMEOUT}]: "fail": must be "Fail" or "Release"'),
        ],
    ),
    "08 a tab": (
        train(("    replicas", "\t\treplicas")),
        1,
        [(11, 1, "invalid YAML: found character '\\t' that cannot")],
    ),
    "09 a reserved name": (
        train(("name: main", "name: group-scheduling-init")),
        1,
        [(19, 15, f'{POD}.containers[0].name: "group-scheduling-init": is reserved')],
    ),
    "10 two replicatedJobs that wait for each other": (
        train(
            ("[workers]", "[workers, others]"),
            ("    replicas", "    dependsOn: [{name: others, status: Ready}]\n    replicas"),
        )
        + SECOND.replace("    template", "    dependsOn: [{name: workers, status: Ready}]\n    template"),
        1,
        [(11, 5, "spec.replicatedJobs[0].dependsOn: "), (23, 5, "spec.replicatedJobs[1].dependsOn: ")],
    ),
    "11 Windows, twice": (
        train(
            (
                "            containers",
                (
                    "            nodeSelector:\n              kubernetes.io/os: windows\n"
                    "            os: {name: windows}\n            containers"
                ),
            )
        ),
        1,
        [(19, 15, f"{POD}.nodeSelector[kubernetes.io/os]: "), (20, 18, f"{POD}.os.name: ")],
    ),
    "12 a key given twice": (
        train(("    replicas: 2\n", "    replicas: 2\n    replicas: 3\n")),
        1,
        [(12, 5, "the key 'replicas' is given twice: kubectl silently takes the last value")],
    ),
    "13 numbers as strings, and a pod that nearly names the group": (
        RING,
        1,
        [
            (4, 8, 'spec.minMember: "4": must be a number: take the quotes away'),
            (4, 24, 'spec.scheduleTimeoutSeconds: "ten": must be'),
            (8, 47, "group team/rinq: its PodGroup is not among these manifests (did you mean ring?); without it"),
        ],
    ),
    "14 another API version": (
        train(("v1alpha2", "v1")),
        1,
        [(1, 1, 'apiVersion: "jobset.x-k8s.io/v1": unknown: did you mean jobset.x-k8s.io/v1alpha2?')],
    ),
    "15 a list": ("- a\n- b\n", 1, [(1, 1, "must be an object, here is a list: put --- between objects")]),
    "17 a mistyped field and a number in quotes": (
        train(("image: x", "imagee: x"), ("parallelism: 2", 'parallelism: "2"')),
        1,
        [
            (14, 9, 'spec.replicatedJobs[0].template.spec.parallelism: "2": must be an integer: take the quotes away'),
            (20, 15, f'{POD}.containers[0].imagee: "x": unknown field: did you mean image?'),
        ],
    ),
    "18 eight at once": (
        EIGHT,
        1,
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
    "19 a Helm template": (
        train(("replicas: 2", "replicas: {{ .Values.replicas }}")),
        1,
        [(11, 16, "a Helm template must be rendered first: helm template CHART | jobset-gate validate -f -")],
    ),
    "20 field and annotation that differ": (
        train(noted(f"{names.CONFIG}: '{{}}'")),
        1,
        [(6, 5, f'metadata.annotations[{names.CONFIG}]: "{{}}": differs from spec.groupSchedulingConfig')],
    ),
    "22 a timeout beyond an int32": (
        train(("300", "100000000000000")),
        1,
        [(7, 5, f"spec.groupSchedulingConfig.timeoutAfterSeconds: 100000000000000: {RANGE}")],
    ),
    "23 a config that is a list": (
        train((CONFIG, "  groupSchedulingConfig: [workers]\n")),
        1,
        [(6, 3, 'spec.groupSchedulingConfig: ["workers"]: must be an object with the keys')],
    ),
    "24 a config that is a string": (
        train((CONFIG, "  groupSchedulingConfig: workers\n")),
        1,
        [(6, 3, 'spec.groupSchedulingConfig: "workers": must be an object with the keys')],
    ),
    "30 InOrder and two targets": (
        train(
            ("[workers]", "[workers, others]"),
            ("  replicatedJobs", "  startupPolicy: {startupPolicyOrder: InOrder}\n  replicatedJobs"),
        )
        + SECOND,
        1,
        [(9, 19, 'spec.startupPolicy.startupPolicyOrder: "InOrder": ')],
    ),
    "31 in a List": (
        "apiVersion: v1\nkind: List\nitems:\n-\n" + "".join(f"  {it}\n" for it in train(("300", "0")).splitlines()),
        1,
        [(11, 7, f"spec.groupSchedulingConfig.timeoutAfterSeconds: 0: {RANGE}")],
    ),
    "32 through an anchor": (
        train(("targetReplicatedJobs: [workers]", "targetReplicatedJobs: &t [worker]"))
        + "  successPolicy: {operator: All, targetReplicatedJobs: *t}\n",
        1,
        [(8, 31, 'spec.groupSchedulingConfig.targetReplicatedJobs[0]: "worker": no replicatedJob')],
    ),
    "33 with the line ends of Windows": (
        train(("300", "0")).replace("\n", "\r\n"),
        1,
        [(7, 5, f"spec.groupSchedulingConfig.timeoutAfterSeconds: 0: {RANGE}")],
    ),
    "34 on a plain Job": (
        JOB,
        1,
        [
            (
                5,
                3,
                f"has no effect here: the config of a Job is the annotation {names.CONFIG} in metadata.annotations",
            ),
        ],
    ),
    "40 a kind in other letters": (
        train(("JobSet", "Jobset")),
        1,
        [(2, 1, 'kind: "Jobset": unknown: did you mean JobSet?')],
    ),
    "41 no API version": (
        train(("apiVersion: jobset.x-k8s.io/v1alpha2\n", "")),
        1,
        [(1, 1, "apiVersion: null: must be given: did you mean jobset.x-k8s.io/v1alpha2?")],
    ),
    "42 on the replicatedJob": (
        train((CONFIG, ""), ("    replicas", "    groupSchedulingConfig: {}\n    replicas")),
        1,
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
    "43 the config in other letters": (
        train(("groupSchedulingConfig", "GroupSchedulingConfig")),
        1,
        [(6, 3, "unknown field: did you mean groupSchedulingConfig?")],
    ),
    "44 mistyped annotations": (
        train(noted(f"{names.DOMAIN}/prefetch-image: 'true'", "jobset-gate.io/on-timeout: Release")),
        1,
        [
            (6, 5, f"without effect on a JobSet: did you mean {names.PREFETCH_IMAGES}?"),
            (7, 5, f"without effect on a JobSet: did you mean {names.ON_TIMEOUT}?"),
        ],
    ),
}
"""By the numbers of a review; its 16 and 21 hold no text of a manifest."""


@pytest.mark.parametrize("mistake", BROKEN)
def test_every_mistake_is_named_once_with_its_place_in_the_order_of_lines(run: RunCli, mistake: str) -> None:
    text, code, expected = BROKEN[mistake]
    ran = run("validate", "-f", "-", "-o", "json", stdin=text)
    found = json.loads(ran.out)["findings"]
    assert [(it["line"], it["column"]) for it in found] == [it[:2] for it in expected], ran.out
    for finding, (_, _, words) in zip(found, expected, strict=True):
        assert words in f"{finding['field']}: {finding['message']}"
    assert ran.code == code


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"# nothing\n", "error: no objects in m.yaml\n"), (b"a: 1\nb: \xff\n", "m.yaml:2:1: not UTF-8\n")],
    ids=["16 empty", "21 not UTF-8"],
)
def test_a_file_that_holds_no_manifest_is_an_error(
    run: RunCli, content: bytes, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.yaml").write_bytes(content)
    ran = run("validate", "m.yaml")
    assert (ran.code, ran.out + ran.err) == (1, said)


def test_what_cannot_be_corrected_is_not_printed_as_corrected(run: RunCli) -> None:
    assert "# corrected" not in run("validate", "-f", "-", stdin=RING).out
    assert "# corrected" in run("validate", "-f", "-", stdin=RING.replace("ten", "10")).out
