"""SVG as text: elements, escaping, and the few shapes that pictures are made of."""

from collections.abc import Iterable

from jobset_gate.objects import terminal_text

_ESCAPED = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}


def text(value: object) -> str:
    """Safe as the content of an element or the value of an attribute; controls are shown, and turn no text around."""
    legal = (it for it in terminal_text.lines(str(value)) if it not in "\ufffe\uffff")
    return "".join(_ESCAPED.get(it, it) for it in legal)


def element(name: str, content: str | Iterable[str] = "", /, **attributes: object) -> str:
    """`element("rect", x=1, class_="held")`; `content` is SVG already. Numbers keep one decimal."""
    given = "".join(f' {_name(key)}="{_value(value)}"' for key, value in attributes.items() if value is not None)
    inner = content if isinstance(content, str) else "".join(content)
    return f"<{name}{given}>{inner}</{name}>" if inner else f"<{name}{given}/>"


def rect(x: float, y: float, width: float, height: float, class_: str) -> str:
    """A box; one that would be too thin to be seen is given half a point."""
    return element("rect", x=x, y=y, width=max(0.5, width), height=height, class_=class_)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> str:
    """A straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def label(x: float, y: float, words: str, class_: str, anchor: str | None = None) -> str:
    """A line of text."""
    return element("text", text(words), x=x, y=y, class_=class_, text_anchor=anchor)


def shorten(words: str, most: int) -> str:
    """Cut in the middle: names differ at their ends."""
    if len(words) <= most:
        return words
    left = (most - 1) // 2
    return f"{words[:left]}\u2026{words[len(words) - (most - 1 - left) :]}"


def _name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _value(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else text(value)
