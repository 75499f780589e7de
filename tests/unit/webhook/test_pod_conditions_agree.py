"""The match conditions and the handler agree on every pod: who is sent is held, and who is not never would be."""

from typing import Any

from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from jobset_gate import names
from jobset_gate.fake.apiserver import cel
from jobset_gate.podgroups.admission import admit_pod
from jobset_gate.podgroups.formats import NAME_KEYS
from jobset_gate.podgroups.model import Format
from jobset_gate.settings import Groups
from tests.fakes.grouped_pods import Json
from webhook.registration import pod_match_conditions

KEYS = {holder: [key for where, key in NAME_KEYS.values() if where == holder] for holder in ("labels", "annotations")}
NAMES = st.sampled_from(["g", ""])
"""Two different ones are refused, which is no question of being sent."""

owners = st.fixed_dictionaries(
    {"apiVersion": st.just("apps/v1"), "kind": st.sampled_from(["DaemonSet", "ReplicaSet"]), "name": st.just("o")},
    optional={"controller": st.booleans()},
)
metas = st.fixed_dictionaries(
    {},
    optional={
        "labels": st.dictionaries(st.sampled_from([*KEYS["labels"], names.ALIBABA_MINIMUM, "app"]), NAMES, max_size=2),
        "annotations": st.dictionaries(
            st.sampled_from([*KEYS["annotations"], names.KOORDINATOR_MINIMUM, names.MIRROR_POD]), NAMES, max_size=2
        ),
        "ownerReferences": st.lists(owners, max_size=2),
    },
)
specs = st.fixed_dictionaries(
    {"schedulerName": st.sampled_from(["default-scheduler", "second", "volcano"])},  # the API server fills it in
    optional={
        "nodeName": st.sampled_from(["", "n1"]),
        "schedulingGroup": st.just({"podGroupName": "x"}),
        "schedulingGates": st.lists(st.just({"name": "theirs"}), max_size=1),
    },
)
settings = st.builds(
    Groups,
    ways=st.sets(st.sampled_from(list(Format)), min_size=1).map(tuple),
    scheduler_names=st.sampled_from([("default-scheduler",), ("default-scheduler", "second"), ("second",)]),
)


@limits(max_examples=600)
@given(metas, specs, settings)
def test_exactly_those_are_sent_that_are_held(meta: Json, spec: Json, groups: Groups) -> None:
    pod: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", **meta}, "spec": spec}
    values = {
        name: cel.evaluate(text, {"object": pod, "oldObject": None}) for name, text in pod_match_conditions(groups)
    }
    verdict = admit_pod(pod, "team", groups)
    held = bool(verdict.operations or verdict.violations)
    assert all(values.values()) is held, values
