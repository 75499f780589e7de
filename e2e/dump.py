"""All that is known of a failed scenario: objects, events and logs into a folder, the gist of it to the terminal."""

from pathlib import Path
from typing import Final

from e2e import commands, gate
from e2e.environment import Environment

KINDS: Final = "jobsets,jobs,pods,configmaps,services,events"
ENOUGH: Final = 40
"""Lines of each part that the terminal gets."""


def dump(environment: Environment, namespace: str, since: float) -> str:
    """Writes the folder `<reports>/<namespace>` and returns the gist. `since`: how many seconds of our own logs."""
    folder = Path(environment.reports) / namespace
    folder.mkdir(parents=True, exist_ok=True)

    def keep(file: str, *args: str) -> str:
        command = ("kubectl", "--kubeconfig", environment.kubeconfig, *args)
        try:
            _, out, err = commands.outcome(*command, seconds=60)
        except commands.CommandFailed as problem:
            out, err = "", str(problem)
        (folder / file).write_text(out + err)
        return out + err

    here = ("--namespace", namespace)
    keep("objects.yaml", "get", KINDS, *here, "--output=yaml", "--show-managed-fields")
    keep("pods.txt", "describe", "pods", *here)
    keep("nodes.txt", "describe", "nodes")
    all_lines = ("--all-containers", "--prefix", "--timestamps", "--tail=-1", "--ignore-errors")
    logs = keep("logs.txt", "logs", *here, "--selector=!nobody", "--max-log-requests=200", *all_lines)
    ours = keep(
        "jobset-gate.txt",
        "logs",
        f"--namespace={gate.NAMESPACE}",
        f"--selector=app.kubernetes.io/instance={gate.RELEASE}",
        f"--since={since:.0f}s",
        *all_lines,
    )
    parts = {
        "pods": keep("pods-wide.txt", "get", "jobsets,jobs,pods", *here, "--output=wide"),
        "events": keep("events.txt", "get", "events", *here, "--sort-by=.lastTimestamp"),
        "logs": logs,
        "jobset-gate": ours,
    }
    gist = [f"{namespace}: everything is in {folder}"]
    for title, text in parts.items():
        gist += [f"--- {title}", *text.splitlines()[-ENOUGH:]]
    return "\n".join(gist)
