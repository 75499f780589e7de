"""`version`: of this program, of the API server, and of the controllers that it knows."""

from typing import Annotated, Any

import typer

from jobset_gate.cli.app import client_version
from jobset_gate.cli.cluster import ClusterOptions
from jobset_gate.cli.doctor.check import ClusterReader, NotReadable, controllers
from jobset_gate.cli.options import TextFormat, TextOutput, new_app
from jobset_gate.cli.printers import output as out
from jobset_gate.cli.printers.documents import document_text
from jobset_gate.objects.unstructured import Json, nested

app = new_app()


@app.command("version", epilog="Example: {program} version --client -o json")
async def version(
    *,
    client: Annotated[bool, typer.Option("--client", help="Only that of this program; asks no cluster.")] = False,
    output: TextOutput = TextFormat.TEXT,
    cluster: ClusterOptions,
) -> None:
    """Print the versions of this program, of the API server, and of the controllers in the cluster.

    A controller is found by its Deployment, which needs the right to list Deployments.
    """
    found: Json = {
        "kind": "Version", "clientVersion": client_version(), "serverVersion": None, "controllers": []
    }  # fmt: skip
    try:
        if not client:
            found |= await _of_cluster(cluster)
    finally:  # what is known is printed, also where no cluster is reached
        if output is TextFormat.TEXT:
            out.out("".join(f"{line}\n" for line in _lines(found)))
        else:
            out.document(document_text(output, found))


async def _of_cluster(cluster: ClusterOptions) -> Json:
    async with cluster.connect() as client:
        reader = ClusterReader(client, None, client.access.namespace)
        server = await reader.server_version()
        try:
            known = await controllers(reader)
        except NotReadable as no:
            out.err(f"warning: {no}: the controller's version is not known")
            known = []
    return {"serverVersion": server or None, "controllers": [_controller(it) for it in known]}


def _controller(deployment: Json) -> dict[str, Any]:
    labels = nested(deployment, "metadata", "labels")
    return {
        "namespace": nested(deployment, "metadata", "namespace"),
        "name": nested(deployment, "metadata", "name"),
        "version": nested(labels, "app.kubernetes.io/version"),
    }


def _lines(found: Json) -> list[str]:
    lines = [f"Client: {found['clientVersion']}"]
    if found["serverVersion"]:
        lines.append(f"Server: {found['serverVersion']}")
        shown = [f"{it['version'] or '<unknown>'} ({it['namespace']}/{it['name']})" for it in found["controllers"]]
        lines += [f"Controller: {it}" for it in shown or ["none found"]]
    return lines
