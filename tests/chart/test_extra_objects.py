"""extraObjects: whatever else belongs to an installation, with Helm's templates in it."""

from tests.chart.helm import Helm, Json, RenderedObjects

OBJECT: Json = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "{{ .Release.Name }}-a"},
    "data": {"n": "1"},
}
TEXT = """
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "jobset-gate.fullname" . }}-b
data:
  port: {{ .Values.webhook.port | quote }}
"""


def extra(helm: Helm, *objects: object) -> RenderedObjects:
    return helm.render({"extraObjects": list(objects)}, release="gates")


def test_a_mapping_may_hold_templates(helm: Helm) -> None:
    assert extra(helm, OBJECT).one("ConfigMap", "gates-a")["data"] == {"n": "1"}


def test_a_text_may_hold_templates(helm: Helm) -> None:
    assert extra(helm, TEXT).one("ConfigMap", "gates-jobset-gate-b")["data"] == {"port": "10250"}


def test_there_may_be_many(helm4: Helm) -> None:
    found = extra(helm4, OBJECT, TEXT, OBJECT | {"metadata": {"name": "c"}})
    assert len(found.kind("ConfigMap")) == 4
