"""blockdesk: an RFQ and atomic-settlement desk, from Python.

    from blockdesk import Client

    client = Client("http://127.0.0.1:8080")
    print(client.market.depth("SLUSD/USDC", limit=5).best_bid)

:class:`Client` blocks, :class:`AsyncClient` is the same in asyncio. Amounts are exact:
Decimal, and int for atoms. Only the standard library is needed.
"""

from ._decode import decimal
from ._flows import VerifiedBuild, VerifiedClaim
from ._rest import VERSION as __version__
from ._rest import Retry
from .aio import AsyncClient
from .book import BookOrder, OrderBook, OrdersBook
from .client import Client
from .errors import (
    ApiError,
    BlockdeskError,
    Conflict,
    ConnectionClosed,
    InvalidRequest,
    LimitExceeded,
    NotAdmitted,
    NotFound,
    PaymentFailed,
    PaymentMismatch,
    ProtocolError,
    RateLimited,
    Refused,
    RpcError,
    TimedOut,
    TransportError,
    Unavailable,
    VerificationError,
)
from .feed import (
    BookEvent,
    Connected,
    Interruption,
    OrdersEvent,
    StreamEvent,
    SubscriptionRefused,
    RfqTradesEvent,
    TickerEvent,
    TicketsEvent,
    TradesEvent,
)
from .fix import FixClient, FixMessage, FixRefused
from .fix_aio import AsyncFixClient
from .models import Level
from .stream import AsyncStream, Stream
from .verify import Cost, Leg, verify_atomic, verify_payment
from .wallet import Keypair, Signer

__all__ = [
    "__version__",
    "ApiError",
    "AsyncClient",
    "AsyncFixClient",
    "AsyncStream",
    "BlockdeskError",
    "BookEvent",
    "BookOrder",
    "Client",
    "Conflict",
    "Connected",
    "ConnectionClosed",
    "Cost",
    "FixClient",
    "FixMessage",
    "FixRefused",
    "Interruption",
    "InvalidRequest",
    "Keypair",
    "Leg",
    "Level",
    "LimitExceeded",
    "NotAdmitted",
    "NotFound",
    "OrderBook",
    "OrdersBook",
    "OrdersEvent",
    "PaymentFailed",
    "PaymentMismatch",
    "ProtocolError",
    "RateLimited",
    "Refused",
    "Retry",
    "RfqTradesEvent",
    "RpcError",
    "Signer",
    "Stream",
    "StreamEvent",
    "SubscriptionRefused",
    "TickerEvent",
    "TicketsEvent",
    "TimedOut",
    "TradesEvent",
    "TransportError",
    "Unavailable",
    "VerificationError",
    "VerifiedBuild",
    "VerifiedClaim",
    "decimal",
    "verify_atomic",
    "verify_payment",
]
