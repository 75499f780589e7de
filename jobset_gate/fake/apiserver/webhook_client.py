"""The HTTPS calls to admission webhooks: reviews out, responses in."""

from __future__ import annotations

import asyncio
import base64
import io
import ssl
from collections.abc import Mapping
from typing import Any

import aiohttp
import msgspec

from jobset_gate.fake.apiserver.encoding import Obj, decode, encode

_DEFAULT_TIMEOUT = 10
_LARGE = 1024 * 1024


class WebhookCallFailed(Exception):
    """No usable answer, for which a failurePolicy of Ignore forgives; the text says why."""


class WebhookClient:
    """services: where a clientConfig's service really listens: (namespace, name) -> "https://127.0.0.1:1234"."""

    def __init__(self) -> None:
        self.services: dict[tuple[str, str], str] = {}
        self._session: aiohttp.ClientSession | None = None
        self._contexts: dict[str, ssl.SSLContext] = {}

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def call(self, hook: Obj, review: Obj, uid: str) -> Obj:
        """The `response` of an AdmissionReview. Errors: CallFailed."""
        config = hook["clientConfig"]
        url, server_name = self._address(config)
        timeout = hook.get("timeoutSeconds") or _DEFAULT_TIMEOUT
        try:
            async with asyncio.timeout(timeout):
                status, body = await self._sent(url, server_name, config, encode(review))
        except TimeoutError as error:
            raise WebhookCallFailed(
                f'failed to call webhook: Post "{url}?timeout={timeout}s": context deadline exceeded'
            ) from error
        except (aiohttp.ClientError, OSError, ssl.SSLError) as error:
            raise WebhookCallFailed(f'failed to call webhook: Post "{url}?timeout={timeout}s": {error}') from error
        if status != 200:
            raise WebhookCallFailed(f"failed to call webhook: the server responded with the status code {status}")
        return _response(body, uid)

    def _address(self, config: Obj) -> tuple[str, str | None]:
        """The URL, and the name that the certificate must carry (None: the URL's)."""
        if "url" in config:
            return config["url"], None
        service = config["service"]
        at = self.services.get((service["namespace"], service["name"]))
        if at is None:
            raise WebhookCallFailed(f'failed to call webhook: service "{service["name"]}" not found')
        return f"{at}{service.get('path', '/')}", f"{service['name']}.{service['namespace']}.svc"

    async def _sent(self, url: str, server_name: str | None, config: Obj, body: bytes) -> tuple[int, bytes]:
        """Once more when an idle connection turns out to have been closed, as Go's client does."""
        try:
            return await self._post(url, server_name, config, body)
        except (aiohttp.ServerDisconnectedError, ConnectionResetError):
            return await self._post(url, server_name, config, body)

    async def _post(self, url: str, server_name: str | None, config: Obj, body: bytes) -> tuple[int, bytes]:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None))
        headers: Mapping[str, str] = {"Content-Type": "application/json", "Accept": "application/json"}
        context = self._context(config.get("caBundle", ""))
        kwargs: dict[str, Any] = {"server_hostname": server_name} if server_name else {}
        # aiohttp warns of a megabyte of bare bytes, of which it copies every piece.
        data = io.BytesIO(body) if len(body) >= _LARGE else body
        async with self._session.post(
            url, data=data, headers=headers, ssl=context, allow_redirects=False, **kwargs
        ) as got:
            return got.status, await got.read()

    def _context(self, bundle: str) -> ssl.SSLContext:
        context = self._contexts.get(bundle)
        if context is None:
            pem = base64.b64decode(bundle).decode() if bundle else None
            try:
                context = ssl.create_default_context(cadata=pem)
            except ssl.SSLError as error:
                raise WebhookCallFailed(f"failed to call webhook: unable to load root certificates: {error}") from error
            self._contexts[bundle] = context
        return context


def _response(body: bytes, uid: str) -> Obj:
    try:
        review = decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise WebhookCallFailed(f"failed to call webhook: {error}") from error
    response = review.get("response") if isinstance(review, dict) else None
    if not isinstance(response, dict):
        raise WebhookCallFailed("invalid webhook response: Webhook response was absent")
    if response.get("uid") != uid:
        raise WebhookCallFailed(f'invalid webhook response: expected response.uid="{uid}", got "{response.get("uid")}"')
    return response
