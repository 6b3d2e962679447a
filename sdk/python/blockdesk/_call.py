"""A request of the service before it is sent: the same for both clients."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Generic, Optional, TypeVar, Union
from urllib.parse import quote, urlencode

from ._decode import decode
from .errors import ProtocolError

if TYPE_CHECKING:
    from .aio import AsyncClient
    from .client import Client

T = TypeVar("T")

#: An exact number: floats are refused, since they are not.
Number = Union[int, str, Decimal]


@dataclass(frozen=True)
class Call(Generic[T]):
    """One request: what is asked, and what the answer is.

    ``kinds`` has the type of the answer's body by status. ``key`` goes as
    Idempotency-Key. ``api``: only the api address serves it. ``auth``: it needs the
    token. ``once``: it must not be sent a second time where its fate is unknown.
    """

    method: str
    path: str
    kinds: Mapping[int, Any]
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Optional[Mapping[str, Any]] = None
    key: Optional[str] = None
    api: bool = False
    auth: bool = False
    once: bool = False

    @property
    def target(self) -> str:
        """Path and query as they go into the request line."""
        query = {n: plain(v) for n, v in self.query.items() if v is not None}
        return self.path + ("?" + urlencode(query, safe="/,") if query else "")

    @property
    def content(self) -> Optional[bytes]:
        """The body's bytes; None: there is no body."""
        if self.body is None:
            return None
        return json.dumps({n: plain(v) for n, v in self.body.items() if v is not None}).encode()

    def read(self, status: int, body: Any) -> T:
        """The typed answer of a decoded body."""
        if status not in self.kinds:
            raise ProtocolError(f"{self.method} {self.path} answers {status}")
        answer: T = decode(self.kinds[status], body, f"{self.method} {self.path}")
        return answer


def plain(value: Any) -> Any:
    """A value as it goes into a query or a body."""
    if isinstance(value, float):
        raise TypeError(f"{value!r} is a float, which is not exact: use Decimal, int or str")
    return format(value, "f") if isinstance(value, Decimal) else value


def exact(value: Number) -> Decimal:
    """A Decimal of an exact number. TypeError for a float, ValueError for no number."""
    if isinstance(value, (float, bool)):
        raise TypeError(f"{value!r} is not an exact number: use Decimal, int or str")
    try:
        number = Decimal(value)
    except ArithmeticError:
        raise ValueError(f"{value!r:.80} is no number") from None
    if not number.is_finite():
        raise ValueError(f"{value!r:.80} is no number")
    return number


def new_key() -> str:
    """A fresh idempotency key."""
    return str(uuid.uuid4())


def path_of(template: str, **parts: str) -> str:
    """A path with its parts filled in."""
    return template.format(**{name: quote(part, safe="") for name, part in parts.items()})


class Namespace:
    """A group of the blocking client's methods."""

    def __init__(self, client: Client) -> None:
        self._client = client


class AsyncNamespace:
    """A group of the asyncio client's methods."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
