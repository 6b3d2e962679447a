"""ccxt's exceptions: its own where ccxt is installed, else classes of the same names and
the same kinship."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    _installed = False
else:
    try:
        from ccxt.base.errors import (
            AuthenticationError,
            BadRequest,
            BadSymbol,
            DuplicateOrderId,
            ExchangeError,
            ExchangeNotAvailable,
            InvalidOrder,
            NetworkError,
            NotSupported,
            OrderNotFound,
            RateLimitExceeded,
            RequestTimeout,
        )

        _installed = True
    except ImportError:
        _installed = False

if not _installed:

    class BaseError(Exception):
        """The root of what can go wrong."""

    class ExchangeError(BaseError):
        """The exchange has refused."""

    class AuthenticationError(ExchangeError):
        """The logon was refused."""

    class BadRequest(ExchangeError):
        """A parameter is wrong."""

    class BadSymbol(BadRequest):
        """There is no such market."""

    class InvalidOrder(ExchangeError):
        """The order was refused."""

    class OrderNotFound(InvalidOrder):
        """There is no such order."""

    class DuplicateOrderId(InvalidOrder):
        """The client's id was used before."""

    class NotSupported(ExchangeError):
        """The exchange has no such thing."""

    class NetworkError(BaseError):
        """It may go through when tried again."""

    class RateLimitExceeded(NetworkError):
        """Too many requests."""

    class ExchangeNotAvailable(NetworkError):
        """The service refuses for now."""

    class RequestTimeout(NetworkError):
        """No answer came in time."""


__all__ = [
    "AuthenticationError",
    "BadRequest",
    "BadSymbol",
    "DuplicateOrderId",
    "ExchangeError",
    "ExchangeNotAvailable",
    "InvalidOrder",
    "NetworkError",
    "NotSupported",
    "OrderNotFound",
    "RateLimitExceeded",
    "RequestTimeout",
]
