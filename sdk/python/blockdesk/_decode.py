"""JSON into typed values, exactly.

Decimal text becomes :class:`decimal.Decimal`, atoms become int, times become aware
datetimes. A number with a point in JSON becomes Decimal too: there is no float
anywhere. A member that is missing or of another type is a ProtocolError that names
its place; a member that is not known is left out, so that a service may add some.
"""

from __future__ import annotations

import dataclasses
import json
import re
import typing
from datetime import datetime, timezone
from decimal import Decimal
from functools import lru_cache
from typing import Any, Callable, Union

from .errors import ProtocolError

Decoder = Callable[[Any, str], Any]

#: Longest decimal that is read: more digits than any amount of the service has.
MAX_DIGITS = 64

_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?\Z")
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]*)\Z")
_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?Z\Z", re.ASCII)


def loads(text: Union[str, bytes]) -> Any:
    """JSON, with Decimal in the place of float. NaN and Infinity are refused."""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        return json.loads(text, parse_float=_number, parse_constant=_no_constant, parse_int=_integer)
    except RecursionError:
        raise ProtocolError("JSON that is nested too deep") from None
    except ValueError as e:
        raise ProtocolError(f"not JSON: {e}") from None


def _number(text: str) -> Decimal:
    try:
        number = Decimal(text)
    except ArithmeticError:  # of an exponent beyond all bounds
        raise ValueError("a number of too many digits") from None
    if len(text) > MAX_DIGITS or abs(number.adjusted()) > MAX_DIGITS:
        raise ValueError("a number of too many digits")
    return number


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError("a number of too many digits")
    return int(text)


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def decimal(value: Any, where: str = "value") -> Decimal:
    """A Decimal of decimal text, or of a JSON number."""
    if isinstance(value, str) and len(value) <= MAX_DIGITS and _DECIMAL.match(value):
        return Decimal(value)
    if isinstance(value, Decimal):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)
    raise ProtocolError(f"{where}: no decimal: {value!r:.80}")


def timestamp(value: Any, where: str = "value") -> datetime:
    """An aware UTC datetime of RFC 3339 text. Below a microsecond it is cut off."""
    match = _TIME.match(value) if isinstance(value, str) else None
    if not match:
        raise ProtocolError(f"{where}: no time: {value!r:.80}")
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    fraction = (match[7] or "").ljust(6, "0")[:6]
    try:
        return datetime(year, month, day, hour, minute, second, int(fraction), timezone.utc)
    except ValueError:
        raise ProtocolError(f"{where}: no time: {value!r:.80}") from None


def decode(kind: Any, value: Any, where: str = "answer") -> Any:
    """value as a kind: a dataclass, a NamedTuple, list[T], dict[str, T], Optional[T],
    Decimal, datetime, int, str, bool or Any."""
    return _decoder(kind)(value, where)


def _wrong(where: str, want: str, value: Any) -> ProtocolError:
    return ProtocolError(f"{where}: no {want}: {value!r:.80}")


def _int(value: Any, where: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and len(value) <= MAX_DIGITS and _WHOLE.match(value):
        return int(value)
    raise _wrong(where, "whole number", value)


def _str(value: Any, where: str) -> str:
    if isinstance(value, str):
        return value
    raise _wrong(where, "text", value)


def _bool(value: Any, where: str) -> bool:
    if isinstance(value, bool):
        return value
    raise _wrong(where, "true or false", value)


_SCALARS: dict[Any, Decoder] = {
    Decimal: decimal, datetime: timestamp, int: _int, str: _str, bool: _bool, Any: lambda value, _: value,
}  # fmt: skip


@lru_cache(maxsize=None)
def _decoder(kind: Any) -> Decoder:
    if kind in _SCALARS:
        return _SCALARS[kind]
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Union:
        (inner,) = [a for a in arguments if a is not type(None)]
        return _optional(_decoder(inner))
    if origin is list:
        return _list(_decoder(arguments[0]))
    if origin is dict:
        return _dict(_decoder(arguments[1]))
    if dataclasses.is_dataclass(kind):
        return _record(kind)
    if isinstance(kind, type) and issubclass(kind, tuple):
        return _row(kind)
    raise TypeError(f"nothing is decoded as {kind}")


def _optional(inner: Decoder) -> Decoder:
    return lambda value, where: None if value is None else inner(value, where)


def _list(inner: Decoder) -> Decoder:
    def read(value: Any, where: str) -> Any:
        if not isinstance(value, list):
            raise _wrong(where, "list", value)
        return [inner(item, f"{where}[{i}]") for i, item in enumerate(value)]

    return read


def _dict(inner: Decoder) -> Decoder:
    def read(value: Any, where: str) -> Any:
        if not isinstance(value, dict):
            raise _wrong(where, "object", value)
        return {name: inner(item, f"{where}.{name}") for name, item in value.items()}

    return read


def _row(kind: Any) -> Decoder:
    hints = typing.get_type_hints(kind)
    columns = [(name, _decoder(hints[name])) for name in kind._fields]

    def read(value: Any, where: str) -> Any:
        if not isinstance(value, list) or len(value) < len(columns):
            raise _wrong(where, f"list of {len(columns)}", value)
        return kind(*(inner(item, f"{where}.{name}") for (name, inner), item in zip(columns, value)))

    return read


def _record(kind: Any) -> Decoder:
    hints = typing.get_type_hints(kind)
    members = []
    for f in dataclasses.fields(kind):
        required = f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
        members.append((f.name, f.metadata.get("name", f.name), _decoder(hints[f.name]), required))

    def read(value: Any, where: str) -> Any:
        if not isinstance(value, dict):
            raise _wrong(where, "object", value)
        found = {}
        for attribute, name, inner, required in members:
            if name in value:
                found[attribute] = inner(value[name], f"{where}.{name}")
            elif required:
                raise ProtocolError(f"{where}.{name} is missing")
        return kind(**found)

    return read
