"""The settings file of --config: what an operator sets for webhook and controller, in one YAML file."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

from msgspec import Meta

from jobset_gate import settings
from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.manifests.reader import read as read_documents

SECTION: Final = "controller"
_Many = Annotated[int, Meta(ge=1, le=1024)]
_ManyOrNone = Annotated[int, Meta(ge=0, le=1024)]
_Port = Annotated[int, Meta(ge=0, le=65535)]
_Seconds = Annotated[float, Meta(gt=0, le=3600)]
_Price = Annotated[float, Meta(ge=0, le=1e12)]


class ControllerSection(settings.Section, frozen=True):
    """The section `controller`. Durations in seconds; None leaves it to the controller."""

    workers: _Many | None = None
    """Concurrent reconciles of gangs."""
    patch_concurrency: _ManyOrNone | None = None
    """Pods patched at once; 0 patches none: gate stream and ConfigMap alone release them."""
    extend_crd: bool | None = None
    """Whether the field is kept in the JobSet CRD."""
    pod_group_crds: bool | None = None
    """Whether the kinds of PodGroups are made where they are missing, and kept up to date where they are ours."""
    stream_host: str | None = None
    """Where the gate stream listens while this replica leads."""
    stream_port: _Port | None = None
    """Its port; None: no gate stream."""
    page_port: _Port | None = None
    """Where the status page listens, on every replica; 0 or None: there is none."""
    page_address: str | None = None
    """Its address; any but loopback needs a certificate."""
    page_tls_cert: str | None = None
    """The page's certificate in PEM, read again when it is renewed; None: no TLS."""
    page_tls_key: str | None = None
    """The key of that certificate in PEM."""
    page_prices: dict[str, _Price] | None = None
    """What one accelerator costs for an hour, by resource name such as nvidia.com/gpu; the page shows the cost of those
    that are held."""
    tracing: bool | None = None
    """Whether a trace of each gang is exported over OTLP/HTTP; needs the extra `traces`."""
    tracing_endpoint: str | None = None
    """Base URL of the collector, as http://collector:4318; None: OTEL_EXPORTER_OTLP_ENDPOINT says it."""
    progress_every: _Seconds | None = None
    """A gang's condition tells its progress at most this often."""
    lease_duration: _Seconds | None = None
    """How long a leader that has gone silent is waited for."""
    renew_deadline: _Seconds | None = None
    """When a leader that cannot renew stops writing."""
    retry: _Seconds | None = None
    """How often the lease is tried for and renewed."""


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """What the file says; defaults where it says nothing."""

    admission: settings.Settings = field(default_factory=settings.Settings)
    controller: ControllerSection = field(default_factory=ControllerSection)


def read(path: Path | None) -> SettingsFile:
    """The settings of a file; all defaults without one. Raises CommandError naming each bad value with its path."""
    if path is None:
        return SettingsFile()
    documents = read_documents([str(path)])
    values = documents[0].value
    if len(documents) > 1 or not isinstance(values, dict):
        raise CommandError(f"{path}: settings are one YAML mapping")
    rest = {key: value for key, value in values.items() if key != SECTION}
    try:
        section = settings.load_section(ControllerSection, values.get(SECTION), SECTION, strict=False)
        return SettingsFile(settings.load(rest), section)
    except settings.BadSettings as problem:
        raise CommandError(f"{path}: " + "; ".join(str(problem).splitlines())) from problem


def read_groups(path: Path | None) -> settings.Groups:
    """What concerns pod groups. Raises CommandError as `read` does."""
    return settings.Groups() if path is None else read(path).admission.groups
