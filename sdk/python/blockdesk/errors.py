"""What can go wrong, as exceptions.

Every exception of this package is a :class:`BlockdeskError`. What the service
answers is an :class:`ApiError` with its machine words; what happens on the way is a
:class:`TransportError`; a transaction that is not what was asked for is a
:class:`VerificationError`, and nothing has been signed then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional


class BlockdeskError(Exception):
    """The root of this package's exceptions."""


class TransportError(BlockdeskError):
    """The service was not reached, or the connection broke.

    Whether a request was carried out is not known then. A request with an
    idempotency key may be sent again with that key.
    """


class TimedOut(TransportError):
    """Something took longer than its time limit."""


class ProtocolError(BlockdeskError):
    """The other side said what its protocol, or its documentation, does not allow."""


class LimitExceeded(ProtocolError):
    """The other side sent more than a limit of this package lets in."""


class ConnectionClosed(TransportError):
    """A WebSocket, or a FIX session, has ended.

    ``code`` is the close code of RFC 6455 where there was one: 1006 means that the
    connection broke without one.
    """

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"connection closed: {code} {reason}".rstrip())
        self.code = code
        self.reason = reason


class VerificationError(BlockdeskError):
    """A transaction, or an answer, is not what was asked for. Nothing was signed."""


class PaymentFailed(BlockdeskError):
    """A payment was sent and did not become final on the chain.

    ``signature`` names it. ``landed`` is True where it is on the chain and failed
    there; else it is not known to have landed, and may still do so.
    """

    def __init__(self, signature: str, landed: bool, why: str) -> None:
        super().__init__(f"{signature}: {why}")
        self.signature = signature
        self.landed = landed


class RpcError(BlockdeskError):
    """A Solana node answered a JSON-RPC call with an error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.data = data


class ApiError(BlockdeskError):
    """An error answer of the service.

    Attributes are those of its body: ``code`` and ``reason`` are machine words,
    ``field`` names the member or parameter at fault, ``request_id`` names the request
    in the service's log. ``retry_after`` is in seconds where the answer says so.
    ``leader`` is the address of the node that leads, of ``LEADER_CHANGED``. ``location``
    is where a redirect goes.
    """

    def __init__(
        self, status: int, body: Mapping[str, Any], *, request_id: str = "", retry_after: Optional[float] = None, location: Optional[str] = None,
    ) -> None:  # fmt: skip
        self.status = status
        self.code = _text(body, "code") or f"HTTP_{status}"
        self.reason = _text(body, "reason") or None
        self.field = _text(body, "field") or None
        self.message = _text(body, "error") or f"the service answers {status}"
        self.request_id = _text(body, "request_id") or request_id
        self.retry_after = retry_after
        self.location = location
        leader = body.get("leader")
        self.leader = _text(leader, "url") or None if isinstance(leader, dict) else None
        words = " ".join(w for w in (self.code, self.reason, self.field) if w)
        super().__init__(f"{status} {words}: {self.message} (request {self.request_id or 'unknown'})")


class InvalidRequest(ApiError):
    """The request is wrong as it is: 400, 405, 413, 415, 431."""


class NotAdmitted(ApiError):
    """The Bearer token is absent, unknown, expired, revoked or another key's (403)."""


class NotFound(ApiError):
    """There is no such thing (404)."""


class Conflict(ApiError):
    """The state of things forbids it (409): sold out, expired, paid already."""


class Refused(Conflict):
    """A safety guard of the desk has tripped (409 ``REFUS_DVP``); see ``reason``."""


class PaymentMismatch(ApiError):
    """The payment was found on the chain and is not acceptable (422)."""


class RateLimited(ApiError):
    """Too many requests (429). ``retry_after`` says when to come back."""


class Unavailable(ApiError):
    """The service, or this node of it, cannot do it now (307, 503). Nothing was changed,
    but where ``reason`` is ``outcome_unknown``: ask again with the same key then."""


def api_error(status: int, body: Any, request_id: str, retry_after: Optional[float], location: Optional[str] = None) -> ApiError:
    """The exception of an error answer; body is its decoded JSON, or anything else."""
    members: Mapping[str, Any] = body if isinstance(body, dict) else {}
    kind = _BY_STATUS.get(status, ApiError)
    if members.get("code") == "REFUS_DVP":
        kind = Refused
    return kind(status, members, request_id=request_id, retry_after=retry_after, location=location)


_BY_STATUS: Mapping[int, type[ApiError]] = {
    400: InvalidRequest, 405: InvalidRequest, 413: InvalidRequest, 415: InvalidRequest, 431: InvalidRequest,
    401: NotAdmitted, 403: NotAdmitted, 404: NotFound, 409: Conflict, 422: PaymentMismatch, 429: RateLimited,
    307: Unavailable, 503: Unavailable,
}  # fmt: skip


def _text(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    return value if isinstance(value, str) else ""
