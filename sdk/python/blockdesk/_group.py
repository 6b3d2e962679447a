"""The nodes of a group: which one is asked, and where an answer may send a request or
a stream.

One node of a group leads; the others send to it. What goes out may bear a token and
says what somebody trades, so it goes to hosts that the program has named alone, and
never from TLS to plain text.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Optional
from urllib.parse import urlsplit

from ._http import Origin

#: Other nodes that one attempt is sent on to at most.
MAX_HOPS = 3
#: What a node that does not lead says, as a code and in a WebSocket's close.
LEADER_CHANGED = "LEADER_CHANGED"


def parse_groups(groups: Sequence[Sequence[str]]) -> list[list[Origin]]:
    """The addresses of other groups. ValueError where one is none."""
    if isinstance(groups, str) or any(isinstance(group, str) for group in groups):
        raise ValueError("other_groups: a list with the list of addresses of each group")
    return [list(map(Origin.parse, group)) for group in groups]


class Group:
    """Addresses that serve the same. Safe for concurrent use."""

    def __init__(self, named: Sequence[Origin], trusted: Sequence[Origin] = ()) -> None:
        self._named = tuple(named)
        self._hosts = {o.host for o in (*named, *trusted)}
        self._lock = threading.Lock()
        self._at = 0

    @property
    def now(self) -> Origin:
        """The one to ask."""
        return self._named[self._at]

    def after(self, failed: Origin) -> Origin:
        """The one to ask after this one has failed, for other requests too."""
        with self._lock:
            if failed == self._named[self._at]:
                self._at = (self._at + 1) % len(self._named)
            return self._named[self._at]

    def moved(self, url: str, by: Origin) -> Optional[tuple[Origin, str]]:
        """The origin and the path of a URL that a node has named; None: not to be followed."""
        try:
            parts = urlsplit(url)
            origin = Origin.parse(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}")
        except ValueError:
            return None
        if origin.host not in self._hosts or by.tls and not origin.tls:
            return None
        return origin, (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
