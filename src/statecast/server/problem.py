"""HTTP errors as `application/problem+json` (RFC 9457)."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ..state import encode_json

__all__ = ["Problem"]


class Problem(Exception):
    """A request is refused before a stream opens (W3).

    What it says reaches the client: it names places in the input, never its values.

    Args:
        status: the HTTP status.
        detail: one sentence for whoever debugs the client.
        title: the name of the status, unless given.
        errors: for 422, the faults: `{"pointer", "message", "type"}`, `pointer` an RFC 6901 JSON pointer into the body.
        headers: sent with the answer.
    """

    def __init__(
        self,
        status: int,
        detail: str | None = None,
        *,
        title: str | None = None,
        errors: list[dict[str, str]] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status = status
        self.title = _phrase(status) if title is None else title
        self.detail = detail
        self.errors = errors
        self.headers = dict(headers or {})
        super().__init__(f"{status} {self.title}" + (f": {detail}" if detail else ""))

    @classmethod
    def from_exception(cls, exc: HTTPException) -> Problem:
        """The problem that an `HTTPException` of Starlette or FastAPI means; its headers are kept."""
        detail = exc.detail if isinstance(exc.detail, str) else to_json(exc.detail, fallback=str).decode()
        return cls(exc.status_code, detail if detail != _phrase(exc.status_code) else None, headers=exc.headers)

    def response(self) -> Response:
        """The answer. It must not be cached, and says so."""
        body: dict[str, Any] = {"type": "about:blank", "title": self.title, "status": self.status}
        if self.detail is not None:
            body["detail"] = self.detail
        if self.errors is not None:
            body["errors"] = self.errors
        return Response(
            encode_json(body),
            self.status,
            {"Cache-Control": "no-store", **self.headers},
            media_type="application/problem+json",
        )


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"
