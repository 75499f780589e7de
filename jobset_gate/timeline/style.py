"""How pictures look: one style sheet for light and dark, colours that the colour-blind can tell apart."""

from jobset_gate.timeline.model import Activity

CSS_CLASS = {
    Activity.WAITING: "waiting",
    Activity.PREPARING: "preparing",
    Activity.HELD: "held",
    Activity.STARTING: "starting",
    Activity.RUNNING: "running",
    Activity.UNKNOWN: "unknown",
}
"""Of the boxes."""

_LIGHT = {
    "paper": "#ffffff", "ink": "#1f2328", "faint": "#59636e", "grid": "#d9dee3", "waiting": "#a3abb4",
    "preparing": "#56a3d9", "held": "#d97706", "starting": "#a78bda", "running": "#0f9d76", "failed": "#c9252d",
}  # fmt: skip
_DARK = {
    "paper": "#0d1117", "ink": "#e6edf3", "faint": "#9aa4af", "grid": "#30363d", "waiting": "#6b747e",
    "preparing": "#4793c9", "held": "#f0a030", "starting": "#b79cf0", "running": "#2fbf91", "failed": "#ff6b6b",
}  # fmt: skip


def _colours(values: dict[str, str]) -> str:
    return "svg{" + "".join(f"--{name}:{value};" for name, value in values.items()) + "}"


STYLE = (
    _colours(_LIGHT)
    + "@media (prefers-color-scheme:dark){"
    + _colours(_DARK)
    + "}"
    + ".paper{fill:var(--paper)}"
    + "text{font-family:system-ui,sans-serif;font-size:12px;fill:var(--ink)}"
    + ".head{font-size:16px;font-weight:600}"
    + ".faint{fill:var(--faint)}"
    + ".part{font-weight:600;paint-order:stroke;stroke:var(--paper);stroke-width:5px}"
    + ".grid{stroke:var(--grid);stroke-width:1}"
    + ".opened{stroke:var(--ink);stroke-width:1.5}"
    + ".now{stroke:var(--faint);stroke-width:1;stroke-dasharray:4 3}"
    + ".range{stroke:var(--ink);stroke-width:1}"
    + ".pulled{stroke:var(--paper);stroke-width:1.5}"
    + ".failed{stroke:var(--failed);stroke-width:2.5}"
    + "".join(f".{it}{{fill:var(--{it})}}" for doing, it in CSS_CLASS.items() if doing is not Activity.UNKNOWN)
    + ".unknown{fill:none;stroke:var(--faint);stroke-dasharray:3 2}"
)
