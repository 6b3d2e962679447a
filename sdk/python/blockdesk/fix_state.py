"""What a session that has lost its state asks for: open orders, fills, positions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Callable, Optional

from .errors import ProtocolError
from .fix_message import Execution, Field, FixMessage, FixRefused, fix_time, new_ident

if TYPE_CHECKING:
    from .fix import FixClient

#: Most reports of one answer.
MAX_REPORTS = 100_000
#: Seconds until a request that came too soon is sent again.
AGAIN_AFTER = 1.0


@dataclass(frozen=True)
class FixFill:
    """A fill of an own order, by a TradeCaptureReport (AE)."""

    trade_id: str
    exec_id: str
    order_id: str
    cl_ord_id: str
    symbol: str
    side: str
    quantity: Decimal
    price: Decimal
    at: datetime
    message: FixMessage


@dataclass(frozen=True)
class FixPosition:
    """What the participant has bought and sold of a symbol, by a PositionReport (AP)."""

    symbol: str
    bought: Decimal
    sold: Decimal
    last_price: Decimal

    @property
    def net(self) -> Decimal:
        """Bought less sold."""
        return self.bought - self.sold


def order_status(fix: FixClient, symbol: str, side: str, *, order_id: str = "", cl_ord_id: str = "") -> Execution:
    """See :meth:`FixClient.order_status`."""
    ident = cl_ord_id or new_ident()  # OrderID (37) wins over ClOrdID (11), which has to be there
    fields: list[Field] = [(11, ident), (55, symbol), (54, "1" if side == "buy" else "2")]
    if order_id:
        fields.insert(1, (37, order_id))

    def answers(m: FixMessage) -> bool:
        return m.type == "8" and m.get(150) in ("I", "8") and (m.get(37) == order_id if order_id and m.get(37) != "NONE" else m.get(11) == ident)

    m = fix._ask("H", fields, answers)
    if m.get(39) == "8" and m.get(37) == "NONE":
        raise FixRefused(m.get(58) or "there is no such order")
    return Execution.of(m)


def open_orders(fix: FixClient, symbol: Optional[str]) -> list[Execution]:
    """See :meth:`FixClient.open_orders`."""
    ident = new_ident()
    fields: list[Field] = [(584, ident), (585, 1 if symbol else 7)]
    if symbol:
        fields.append((55, symbol))
    reports = _reports(fix, "AF", fields, lambda m: m.type == "8" and m.get(584) == ident, 911)
    return [Execution.of(m) for m in reports if m.get(40) != "D" and m.get(37) != "NONE"]


def fills(fix: FixClient, symbol: Optional[str], since: Optional[datetime]) -> list[FixFill]:
    """See :meth:`FixClient.fills`."""
    ident = new_ident()
    fields: list[Field] = [(568, ident), (569, 1 if symbol or since else 0)]
    if symbol:
        fields.append((55, symbol))
    if since is not None:
        now = datetime.now(timezone.utc)
        fields += [(580, 2), (75, since.astimezone(timezone.utc).strftime("%Y%m%d")), (60, fix_time(since))]
        fields += [(75, now.strftime("%Y%m%d")), (60, fix_time(now))]
    reports = _reports(fix, "AD", fields, lambda m: m.type in ("AQ", "AE") and m.get(568) == ident, 748)
    return [_fill(m) for m in reports if m.type == "AE"]


def positions(fix: FixClient, symbol: Optional[str]) -> list[FixPosition]:
    """See :meth:`FixClient.positions`."""
    ident, now = new_ident(), datetime.now(timezone.utc)
    fields: list[Field] = [(710, ident), (724, 0), (1, "-"), (581, 1), (715, now.strftime("%Y%m%d")), (60, fix_time(now))]
    if symbol:
        fields.append((55, symbol))
    reports = _reports(fix, "AN", fields, lambda m: m.type in ("AO", "AP") and m.get(710) == ident, 727)
    return [FixPosition(m.get(55), m.number(704), m.number(705), m.number(730)) for m in reports if m.type == "AP"]


def _fill(m: FixMessage) -> FixFill:
    try:
        at = datetime.strptime(m.get(60), "%Y%m%d-%H:%M:%S.%f" if "." in m.get(60) else "%Y%m%d-%H:%M:%S")
    except ValueError:
        raise ProtocolError(f"no time: {m.get(60)!r:.40}") from None
    return FixFill(
        m.get(880), m.get(17), m.get(37), m.get(11), m.get(55), "buy" if m.get(54) == "1" else "sell", m.number(32), m.number(31),
        at.replace(tzinfo=timezone.utc), m,
    )  # fmt: skip


def _reports(fix: FixClient, kind: str, fields: Sequence[Field], matches: Callable[[FixMessage], bool], count: int) -> list[FixMessage]:
    """All reports of an answer, whose first message has their number in the tag count. A
    session may ask for some at once and then for one a second: a request that came too soon
    is sent again."""
    deadline = time.monotonic() + fix._timeout
    while True:
        try:
            return _gathered(fix, kind, fields, matches, count)
        except FixRefused as e:
            if e.code != "RATE_LIMITED" or time.monotonic() + AGAIN_AFTER > deadline:
                raise
            time.sleep(AGAIN_AFTER)


def _gathered(fix: FixClient, kind: str, fields: Sequence[Field], matches: Callable[[FixMessage], bool], count: int) -> list[FixMessage]:
    with fix._expect(matches) as answers:
        answers.ask(kind, fields)
        first = answers.get(fix._timeout)
        if first.get(750) == "2" or first.get(729) == "2":
            raise FixRefused(first.get(58) or f"refused: {first}")
        due = int(first.number(count))
        if due > MAX_REPORTS:
            raise ProtocolError(f"{due} reports")
        out = [first] if due and first.type == "8" else []  # the others begin with an acknowledgement
        while len(out) < due:
            out.append(answers.get(fix._timeout))
        return out
