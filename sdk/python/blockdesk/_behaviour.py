"""What some of the answers' types can do, besides holding what they hold."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from .models import Level, Tranche


class Model:
    """The root of the answers' types. They are values: equal if their members are."""


class DepthMethods:
    """Derived values of an order book."""

    if TYPE_CHECKING:
        bids: list[Level]
        asks: list[Level]

    @property
    def best_bid(self) -> Optional[Decimal]:
        """The highest price that somebody buys at; None where nobody does."""
        return self.bids[0].price if self.bids else None

    @property
    def best_ask(self) -> Optional[Decimal]:
        """The lowest price that somebody sells at; None where nobody does."""
        return self.asks[0].price if self.asks else None


class TicketMethods:
    """What a ticket has to sell."""

    if TYPE_CHECKING:
        tranches: list[Tranche]

    def tranche_for(self, fill_usd: Decimal) -> Optional[Tranche]:
        """The first open tranche that has so many dollars left."""
        for tranche in self.tranches:
            if tranche.state == "open" and tranche.available_usd >= fill_usd:
                return tranche
        return None


class ClaimMethods:
    """Where a claim stands."""

    if TYPE_CHECKING:
        state: str

    @property
    def ended(self) -> bool:
        """Nothing more happens to it by itself."""
        return self.state in ("settled", "expired", "released", "refund_due")

    @property
    def settled(self) -> bool:
        """It was paid for and delivered, and both are final."""
        return self.state == "settled"
