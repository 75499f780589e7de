"""A6: what a JobSet gets about the gate stream, and that its token lives as long as it does."""

import copy

import pytest

from jobset_gate import names
from jobset_gate.injection import inject
from jobset_gate.injection.validate import field_errors
from jobset_gate.injection.verify import not_injected
from jobset_gate.settings import Barrier, Settings
from tests.fakes.jobsets import Json, applied, barrier, created, defaulted, jobset, replicated, updated, without

STREAM = Settings(barrier=Barrier(stream_url="http://gate.system.svc:8082"))
OTHER = Settings(barrier=Barrier(stream_url="http://moved.system.svc:9000"))
TOKEN = "a-token"
GANG = "http://gate.system.svc:8082/v1/gangs/default/gang/"


def made(given: Json, token: str = TOKEN, settings: Settings = STREAM) -> Json:
    """The JobSet as it is stored after CREATE."""
    edit = inject.injected(given, None, settings=settings, token=token)
    assert applied(given, edit.operations) == edit.document
    return defaulted(copy.deepcopy(edit.document))


def message(it: Json, index: int = 0) -> str | None:
    """The URL that the pods of a replicatedJob use."""
    variables = {variable["name"]: variable for variable in barrier(it, index)["env"]}
    assert (names.ENV_STREAM in variables) == (names.ENV_POD in variables)
    found = variables.get(names.ENV_STREAM)
    return found["value"] if found else None


def test_the_barrier_gets_the_url_of_its_gang_and_the_uid_of_its_pod() -> None:
    it = made(jobset())
    assert message(it) == GANG + "a-token"
    pod = {"name": "JOBSET_GATE_POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}
    assert pod in barrier(it)["env"]


@pytest.mark.parametrize(("settings", "token"), [(Settings(), "a-token"), (STREAM, "")])
def test_without_a_url_or_a_token_it_gets_neither(settings: Settings, token: str) -> None:
    it = made(jobset(), token, settings)
    assert message(it) is None
    assert it == created(jobset())


@pytest.mark.parametrize(("namespace", "place"), [("team-a", "team-a"), (None, "default")])
def test_the_namespace_is_the_objects_own(namespace: str | None, place: str) -> None:
    given = without(jobset(), "metadata", "namespace")
    if namespace:
        given["metadata"]["namespace"] = namespace
    assert message(made(given)) == f"http://gate.system.svc:8082/v1/gangs/{place}/gang/a-token"


def test_a_copy_gets_a_token_of_its_own_in_all_targets() -> None:
    copied = made(made(jobset(replicated(), replicated("b")), "old"), "new")
    assert {message(copied, index) for index in range(2)} == {GANG + "new"}
    assert not_injected(copied, None) == []
    assert inject.injected(copied, None, settings=STREAM, token="new").operations == []


def test_a_copy_gets_no_url_where_there_is_no_stream() -> None:
    assert message(made(made(jobset()), settings=Settings())) is None


@pytest.mark.parametrize("settings", [STREAM, OTHER, Settings()])
def test_an_update_never_changes_it_whatever_the_settings_are_then(settings: Settings) -> None:
    """Also with the user's manifest in the stored object's place, and through a suspension."""
    stored = made(jobset())
    assert updated(copy.deepcopy(stored), stored, settings) == stored
    assert message(updated(jobset(), stored, settings)) == GANG + "a-token"
    assert message(updated(jobset(), created(jobset()), settings)) is None
    suspended = updated(jobset(spec={"suspend": True}), stored, settings)
    assert message(suspended) == GANG + "a-token"


def test_a_manifest_rendered_offline_may_be_applied_again() -> None:
    """`render` knows no token and puts another in its place; the stored one stays."""
    stored, rendered = made(jobset()), made(jobset(), "0" * 22)
    assert not field_errors(rendered, stored, settings=STREAM)
    assert updated(rendered, stored, STREAM) == stored
    (found,) = field_errors(made(jobset(), settings=OTHER), stored, settings=OTHER)
    assert "initContainers[0]" in found.path, "another address is no mere other token"
