"""`validate` of pod groups: what is wrong with each manifest and with the gangs they make, and the corrected form."""

import json

import pytest
import yaml

from tests.fakes.cli_runner import CliResult, RunCli
from tests.fakes.podgroups import design_manifests
from tests.fakes.podgroups.sources import ALIBABA, ALIBABA_MINIMUM, GANG, KEP24, PLUGINS, Json


def pod(name: str, *, labels: Json | None = None, notes: Json | None = None, namespace: str = "team") -> Json:
    meta = {"name": name, "namespace": namespace, "labels": labels or {}, "annotations": notes or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [{"name": "m", "image": "x"}]}}


def validated(run: RunCli, *objects: Json) -> CliResult:
    return run("validate", "-f", "-", stdin=yaml.safe_dump_all(objects))


def corrected(ran: CliResult) -> list[Json]:
    _, mark, rest = ran.out.partition("---\n# corrected: ")
    return list(yaml.safe_load_all("# " + rest)) if mark else []


@pytest.mark.parametrize("design", design_manifests.MADE)
def test_the_manifests_of_each_design_are_fine(run: RunCli, design: str) -> None:
    ran = run("validate", "-f", "-", stdin=design_manifests.MADE[design])
    assert (ran.code, ran.err, corrected(ran)) == (0, "", [])
    assert f"({design})" in ran.out
    assert all(": ok: " in line for line in ran.out.splitlines())


@pytest.mark.parametrize("printed", design_manifests.PRINTED)
def test_what_koordinators_text_prints_is_refused_and_its_corrected_form_is_fine(run: RunCli, printed: str) -> None:
    ran = run("validate", "-f", "-", stdin=design_manifests.PRINTED[printed])
    assert ran.code == 1
    right = corrected(ran)
    assert len(right) == design_manifests.PRINTED[printed].count("metadata:")
    for each in right:
        if each["kind"] == "Pod":  # what it runs was never said
            each["spec"] = {"containers": [{"name": "main", "image": "x"}]}
    alone = [validated(run, each) for each in right]
    assert [it.code for it in alone] == [0] * len(right), [it.out for it in alone]


def test_a_document_with_two_metadata_keys_is_read_as_two_pods(run: RunCli) -> None:
    ran = run("validate", "-f", "-", stdin=design_manifests.KOORDINATOR_TWO)
    assert "stdin:1:1: object without a name (document 1, part 1): metadata: null: is given twice: " in ran.out
    assert "stdin:7:1: object without a name (document 1, part 2): metadata: null: is given twice: " in ran.out
    notes = [it["metadata"]["annotations"] for it in corrected(ran)]
    gangs = [(it[f"{GANG}name"], it[f"{GANG}groups"]) for it in notes]
    assert gangs == [("role-a", '["teama/role-a","teamb/role-b"]'), ("role-b", "")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            design_manifests.PLUGINS.replace("scheduling.x-k8s.io/v1alpha1", "scheduling.x-k8s.io/v1beta1"),
            'apiVersion: "scheduling.x-k8s.io/v1beta1": is not known here, only scheduling.x-k8s.io/v1alpha1',
        ),
        (
            json.dumps({"kind": "List", "items": [pod("p", labels={ALIBABA: "g", ALIBABA_MINIMUM: 3})]}),
            f"Pod team/p (document 1, items[0]): metadata.labels[{ALIBABA_MINIMUM}]: 3: must be a string",
        ),
    ],
    ids=["version", "item of a list in JSON"],
)
def test_what_is_wrong_is_reported_once_with_file_line_and_field(run: RunCli, text: str, words: str) -> None:
    ran = run("validate", "-f", "-", stdin=text)
    assert (ran.code, ran.out.count(words)) == (1, 1)


def test_a_pod_that_names_two_groups_or_a_minimum_of_none_is_refused(run: RunCli) -> None:
    ran = validated(run, pod("p", labels={PLUGINS: "g"}, notes={KEP24: "h"}), pod("q", labels={ALIBABA_MINIMUM: "3"}))
    for words in ("names two groups, a pod belongs to one", f"[{ALIBABA}]: null: must be given with {ALIBABA_MINIMUM}"):
        assert words in ran.out
    assert ran.code == 1


def test_members_that_contradict_each_other_in_different_files_and_kinds(run: RunCli) -> None:
    one = pod("p", labels={ALIBABA: "g", ALIBABA_MINIMUM: "3"})
    other = pod("q", labels={ALIBABA: "g", ALIBABA_MINIMUM: "4"})
    ran = validated(run, one, other)
    assert ran.code == 1
    assert "group team/g: " in ran.out
    assert "members contradict each other: 3 by Pod team/p (document 1); 4 by Pod team/q (document 2)" in ran.out
    apart = pod("q", labels={ALIBABA: "g", ALIBABA_MINIMUM: "4"}, namespace="other")
    assert validated(run, one, apart).code == 0


def gang(name: str, groups: str, namespace: str = "team") -> Json:
    notes = {f"{GANG}name": name, f"{GANG}min-available": "1", f"{GANG}groups": groups}
    return pod(name, notes=notes, namespace=namespace)


def test_a_ganggroup_of_two_namespaces_is_fine_with_a_warning(run: RunCli) -> None:
    both = '["far/b","team/a"]'
    ran = validated(run, gang("a", both), gang("b", both, namespace="far"))
    assert ran.code == 0
    assert ran.out.count(": opens together with gangs of other namespaces only where a setting allows it") == 2


def test_koordinators_annotations_that_are_ignored_are_named(run: RunCli) -> None:
    """With Alibaba's labels all of them, else those that came after the design."""
    labels = {ALIBABA: "g", ALIBABA_MINIMUM: "3"}
    ran = validated(run, pod("p", labels=labels, notes={f"{GANG}mode": "NonStrict", f"{GANG}waiting-time": "5s"}))
    assert ran.code == 0
    assert f"warning: annotation {GANG}mode is ignored" in ran.out
    assert f"warning: annotation {GANG}waiting-time is ignored" in ran.out
    notes = {f"{GANG}name": "g", f"{GANG}min-available": "1", f"{GANG}match-policy": "once-satisfied"}
    ran = validated(run, pod("p", notes=notes))
    assert ran.out.count("is ignored") == 1
    assert f"warning: annotation {GANG}match-policy is ignored" in ran.out
