"""What somebody is told who gets nothing to see: which right is missing, and who could give it."""

from collections.abc import Sequence

from aiohttp import web

from controllers.statuspage import html
from controllers.statuspage.auth import AuthenticatedViewer
from controllers.statuspage.middleware import html_response
from controllers.statuspage.rows import ListRight


def forbidden_page(
    guest: AuthenticatedViewer, rights: Sequence[ListRight], namespace: str, list_path: str, *, limited: bool = False
) -> web.Response:
    """403."""
    kinds = " and ".join(it.name for it in rights)
    where = f"in namespace {namespace}" if namespace else "in all namespaces"
    told = [f"You are signed in as {guest.viewer.name}, who may not list {kinds} {where}."]
    if limited:
        told.append("There are too many namespaces to find out in which of them you may: name one.")
    elif not namespace:
        told.append("Nor may you in any namespace of which there is something to show. If you may in another, name it.")
    told.append("Whoever manages the cluster can give you that right by a RoleBinding; this shows whether you have it:")
    flag = f"-n {namespace}" if namespace else "-A"
    commands = [f"kubectl auth can-i list {it.name} {flag}" for it in rights]
    text = html.problem_page(
        f"You may not list {kinds} {where}",
        told,
        commands=commands,
        session=bool(guest.session),
        ask_namespace=list_path,
        again=list_path,
    )
    return html_response(text, 403)


def not_found_page(what: str, list_path: str) -> web.Response:
    """404."""
    told = ["It was deleted, or never there, or asks for no gate; names are those of now, so an old one shows nothing."]
    return html_response(html.problem_page(f"There is no {what}", told, again=list_path), 404)


def not_synced_page(why: str, path: str) -> web.Response:
    """503: an empty page would be a lie."""
    told = [f"This replica has not read the cluster yet: {why}.", "It goes on trying by itself."]
    return html_response(html.problem_page("Nothing can be shown yet", told, again=path), 503, **{"Retry-After": "2"})


def too_many_streams_page(path: str) -> web.Response:
    """503 for a stream."""
    told = ["Too many pages are open; this one is not kept up to date by itself."]
    return html_response(html.problem_page("Too many open pages", told, again=path), 503, **{"Retry-After": "30"})
