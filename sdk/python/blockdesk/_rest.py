"""How requests are made over any transport: pace, retries, errors.

The steps are generators that yield what they need done, an Exchange or a Sleep, and
get its result. The blocking client and the asyncio client each have one small loop
that does it, so both behave alike.
"""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, Optional, TypeVar, Union

from ._call import Call
from ._decode import loads
from ._group import LEADER_CHANGED, MAX_HOPS, Group
from ._http import Origin, Response, request, retry_after
from .errors import ApiError, BlockdeskError, ProtocolError, TransportError, api_error

T = TypeVar("T")

VERSION = "1.1.0"

#: Seconds of the first wait before a retry without Retry-After; each is twice the last.
FIRST_BACKOFF = 0.1


@dataclass(frozen=True)
class Exchange:
    """Send these bytes to an origin and bring the answer."""

    origin: Origin
    content: bytes
    #: Not over a connection that may have been closed meanwhile.
    fresh: bool


@dataclass(frozen=True)
class Sleep:
    """Wait so many seconds."""

    seconds: float


Effect = Union[Exchange, Sleep]
Flow = Generator[Effect, Any, T]


@dataclass(frozen=True)
class Retry:
    """What is tried again, and for how long.

    ``attempts`` is how often a request is sent at most. ``longest`` is the longest
    single wait in seconds, between attempts and for the rate limit: where the service
    asks for a longer one, its RateLimited is raised instead.
    """

    attempts: int = 4
    longest: float = 10.0


class Pace:
    """Keeps to the service's rate limits before it has to refuse.

    Each answer says, in RateLimit and RateLimit-Policy, how many requests are left
    in its class. Once there are none, the next one of the class waits until one is
    back. Safe for concurrent use.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._classes: dict[str, _Bucket] = {}
        self._of: dict[tuple[str, str], str] = {}

    def wait(self, method: str, path: str) -> float:
        """Seconds to wait before a request, which is then counted."""
        with self._lock:
            bucket = self._classes.get(self._of.get(_route(method, path), ""))
            return bucket.take(time.monotonic()) if bucket else 0.0

    def note(self, method: str, path: str, headers: Mapping[str, str]) -> None:
        """Takes in what an answer says."""
        policy = _POLICY.match(headers.get("ratelimit-policy", ""))
        state = _STATE.match(headers.get("ratelimit", ""))
        if not policy or not state or policy["name"] != state["name"]:
            return
        quota, window = int(policy["q"]), int(policy["w"])
        if quota < 1 or window < 1:
            return
        burst = int(policy["burst"]) if policy["burst"] else None
        with self._lock:
            self._of[_route(method, path)] = policy["name"]
            self._classes[policy["name"]] = _Bucket(quota / window, burst, float(state["r"]), int(state["t"]), time.monotonic())


@dataclass
class _Bucket:
    rate: float  # requests a second
    burst: Optional[int]  # None: the quota holds in any window
    left: float
    reset: int  # seconds until all are back
    at: float

    def take(self, now: float) -> float:
        if self.burst is None:
            if now >= self.at + self.reset:
                return 0.0
            self.left -= 1
            return self.at + self.reset - now if self.left < 0 else 0.0
        self.left = min(float(self.burst), self.left + (now - self.at) * self.rate) - 1
        self.at = now
        return max(0.0, -self.left / self.rate)


_POLICY = re.compile(r'"(?P<name>[a-z-]{1,32})";q=(?P<q>\d{1,9});w=(?P<w>\d{1,9})(?:;burst=(?P<burst>\d{1,9}))?\Z', re.ASCII)
_STATE = re.compile(r'"(?P<name>[a-z-]{1,32})";r=(?P<r>\d{1,9});t=(?P<t>\d{1,9})\Z', re.ASCII)


def _route(method: str, path: str) -> tuple[str, str]:
    """What requests of one rate class have in common: no ids."""
    return method, "/".join(path.split("/")[:5])


@dataclass
class Service:
    """Where the service is, and how a client talks to it."""

    base: Group
    api: Optional[Group]
    retry: Retry
    pace: Pace
    token: Optional[str]

    def call(self, call: Call[T]) -> Flow[T]:
        """Sends a request until it is answered for good, and returns its typed answer.

        A refusal for the rate, 503, a 307 that leads nowhere and a broken connection
        are tried again, with the same idempotency key, so that nothing happens twice. A
        request that must not be sent twice is sent once. A node that does not lead its
        group is left for the leader, and one that does not answer for the next.
        """
        nodes = self._nodes(call)
        origin, target, hops = nodes.now, call.target, 0
        content = self._content(call, origin, target)
        attempt = 1
        while True:
            wait = self.pace.wait(call.method, call.path)
            if 0 < wait <= self.retry.longest:
                yield Sleep(wait)
            failure: BlockdeskError
            try:
                response: Response = yield Exchange(origin, content, call.once)
            except TransportError as e:
                failure, delay = e, None
            else:
                self.pace.note(call.method, call.path, response.headers)
                if response.status in call.kinds:
                    return call.read(response.status, loads(response.body))
                moved = nodes.moved(response.headers.get("location", ""), origin) if response.status == 307 and hops < MAX_HOPS else None
                if moved:
                    (origin, target), hops = moved, hops + 1
                    content = self._content(call, origin, target)
                    continue
                refused = _refusal(response)
                failure, delay = refused, refused.retry_after
            delay = self._again(call, failure, delay, attempt)
            if isinstance(failure, TransportError) or isinstance(failure, ApiError) and failure.code == LEADER_CHANGED:
                origin, target, hops = nodes.after(origin) if hops == 0 else nodes.now, call.target, 0
                content = self._content(call, origin, target)
            yield Sleep(delay)
            attempt += 1

    def _again(self, call: Call[T], failure: BlockdeskError, asked: Optional[float], attempt: int) -> float:
        """Seconds until the next attempt; raises the failure where there is none."""
        refused = isinstance(failure, ApiError) and failure.reason != "outcome_unknown"
        if isinstance(failure, ApiError) and failure.status not in (307, 429, 503):
            raise failure
        delay = asked if asked is not None else FIRST_BACKOFF * 2 ** (attempt - 1) * random.uniform(0.8, 1.2)
        if attempt >= self.retry.attempts or delay > self.retry.longest or call.once and not refused:
            raise failure
        return delay

    def _nodes(self, call: Call[T]) -> Group:
        if not call.api:
            return self.base
        if self.api is None:
            raise ValueError(f"{call.path} is served on the api address: name it, Client(url, api_url=...)")
        return self.api

    def _content(self, call: Call[T], origin: Origin, target: str) -> bytes:
        headers = {"User-Agent": f"blockdesk-python/{VERSION}", "Accept": "application/json"}
        body = call.content
        if body is not None:
            headers["Content-Type"] = "application/json"
        if call.key is not None:
            headers["Idempotency-Key"] = call.key
        if call.auth:
            if not self.token:
                raise ValueError(f"{call.path} needs a token: client.login(wallet), or Client(url, token=...)")
            headers["Authorization"] = f"Bearer {self.token}"
        return request(call.method, origin, target, headers, body)


def _refusal(response: Response) -> ApiError:
    try:
        body = loads(response.body)
    except ProtocolError:
        body = None  # no answer of the service: a proxy's
    return api_error(response.status, body, response.headers.get("x-request-id", ""), retry_after(response.headers), response.headers.get("location"))
