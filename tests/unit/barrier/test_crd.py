"""The patches for the CRD, as data."""

from __future__ import annotations

from typing import Any

from jobset_gate.barrier import crd as crd_schema
from tests.fakes.jobset_like_crd import JobSetLikeCrd

Json = dict[str, Any]


def stored(managed: list[Json] | None = None) -> Json:
    crd = JobSetLikeCrd().manifest
    crd["metadata"] |= {"resourceVersion": "7", "managedFields": managed or []}
    return crd


def entry(manager: str, operation: str, field: str) -> Json:
    return {"manager": manager, "operation": operation, "time": "1", "fieldsV1": {"f:spec": {field: {}}}}


def test_a_field_of_another_owner_is_left_alone_both_ways() -> None:
    """A JobSet that has the field itself one day is its owner."""
    crd = stored()
    properties = crd["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    properties["groupSchedulingConfig"] = dict(crd_schema.FIELD_SCHEMA) | {"description": "theirs"}
    assert crd_schema.extension(crd) == []
    assert crd_schema.retraction(crd) == []


def test_odd_crds_are_reported_to_be_no_place_for_the_field() -> None:
    for spec in ({}, {"versions": None}, {"versions": [{"name": "v1alpha2", "served": True, "schema": {}}]}):
        crd = {"metadata": {"resourceVersion": "1"}, "spec": spec}
        assert not crd_schema.can_be_extended(crd)
        assert not crd_schema.is_extended(crd)


def test_owners_are_restored_without_us_and_none_as_the_api_server_wants_it_said() -> None:
    ours = entry(crd_schema.MANAGER, "Update", "f:versions")
    owner = entry("owner", "Update", "f:versions")
    other = entry("other", "Apply", "f:group")
    assert crd_schema.managed_fields_without_us(stored([owner, other, ours])) == [owner, other]
    assert crd_schema.restoration(stored(), [])[1]["value"] == [{}]
