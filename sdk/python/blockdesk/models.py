"""What the service answers, as types.

Written by tools/generate.py from the service's OpenAPI document: not to be edited.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple, Optional

from ._behaviour import ClaimMethods, DepthMethods, Model, TicketMethods


@dataclass(frozen=True)
class ServiceDescriptionQualification(Model):
    """See the service's specification: ``ServiceDescriptionQualification``."""

    libelle: str
    nature: str


@dataclass(frozen=True)
class ServiceDescription(Model):
    """See the service's specification: ``ServiceDescription``."""

    service: str
    version: str
    #: Date of the last update.
    mise_a_jour: str
    operateur: str
    contacts: dict[str, str]
    encodage: str
    #: Path of this document.
    specification_openapi: str
    sdk_public: str
    #: URL, or empty.
    github: str
    #: By group.
    endpoints: dict[str, list[str]]
    qualification: ServiceDescriptionQualification
    erreur_route_inconnue: str


@dataclass(frozen=True)
class Instrument(Model):
    """See the service's specification: ``Instrument``."""

    symbol: str
    base: str
    quote: str
    price_decimals: int
    qty_decimals: int
    tick_size: Decimal
    lot_size: Decimal
    min_qty: Decimal
    max_qty: Decimal
    max_price: Decimal
    #: Source of the book.
    book_source: str
    #: `unknown` (our choice): the group that has the instrument is unreachable.
    status: str


@dataclass(frozen=True)
class Symbols(Model):
    """See the service's specification: ``Symbols``."""

    symbols: list[Instrument]


class Level(NamedTuple):
    """A price of an order book, and how much there is at it."""

    price: Decimal
    quantity: Decimal


@dataclass(frozen=True)
class Depth(DepthMethods, Model):
    """See the service's specification: ``Depth``."""

    symbol: str
    epoch: str
    #: Of this channel: the same as on the WebSocket.
    seq: int
    #: Sequence number of the last command that the answer reflects.
    engine_seq: int
    ts: Optional[datetime]
    #: Best first.
    bids: list[Level]
    #: Best first.
    asks: list[Level]
    #: Source of the book.
    source: str
    #: The slot of a mirrored book. If the chain cannot be read, the last book stays and its slot does not change;
    #: `ts` is the last change of anything in this answer. `oracle/heartbeat` has the book's age, and
    #: `degradation_state` of `status` the reason.
    slot: Optional[int]


@dataclass(frozen=True)
class Trade(Model):
    """See the service's specification: ``Trade``."""

    trade_id: int
    price: Decimal
    qty: Decimal
    #: Side of the aggressor.
    side: str
    ts: datetime
    signature: Optional[str]
    #: Source of the book.
    source: str


@dataclass(frozen=True)
class Trades(Model):
    """See the service's specification: ``Trades``."""

    symbol: str
    epoch: str
    #: Of this channel: the same as on the WebSocket.
    seq: int
    #: Sequence number of the last command that the answer reflects.
    engine_seq: int
    ts: Optional[datetime]
    #: Value of `before` for the page of older trades; null if there is none.
    next_before: Optional[int]
    #: Newest first.
    trades: list[Trade]


@dataclass(frozen=True)
class RfqTrade(Model):
    """A settled claim, without what names its client. Its form is our choice."""

    #: Number of the sale among those of the pair, without gaps.
    trade_id: int
    price_usd: Decimal
    fill_usd: str
    base_amount: Decimal
    base_amount_atoms: int
    rail: str
    payment_amount: Decimal
    payment_amount_atoms: int
    way: str
    discount_bps: int
    fee_bps: int
    ts: datetime
    #: Transaction that delivered; null if this node does not know it.
    l1_signature: Optional[str]


@dataclass(frozen=True)
class RfqTotals(Model):
    """Totals of the desk's sales of a pair. No other total has them."""

    #: Sales since the desk's first one.
    trades_total: int
    volume_usd: Decimal
    fees_usd: Decimal
    #: Sales of the last 24 hours.
    trades_24h: int
    volume_24h_usd: Decimal


@dataclass(frozen=True)
class RfqTrades(Model):
    """See the service's specification: ``RfqTrades``."""

    symbol: str
    totals: RfqTotals
    #: Value of `before` for the page of older sales; null if there is none.
    next_before: Optional[int]
    #: Newest first.
    rfq_trades: list[RfqTrade]


@dataclass(frozen=True)
class CallAuction(Model):
    """Our choice: a call auction. Orders gather, and trade at one price when it ends: of the prices at which
    the most is executable, one with the least imbalance, and of those the nearest to the last trade. `bid`,
    `ask` and the book have only what rested before the call, so a book never crosses.
    """

    #: Price at which the orders would trade now; null: nothing would.
    indicative_price: Optional[Decimal]
    indicative_volume: Decimal
    imbalance: Decimal
    #: Side of what would be left at the indicative price; null: nothing.
    imbalance_side: Optional[str]
    #: When orders stop to gather; null: an operator ends it.
    ends_at: Optional[datetime]
    #: The orders trade at the indicative price now.
    uncrossing: bool


@dataclass(frozen=True)
class Ticker(Model):
    """See the service's specification: ``Ticker``."""

    symbol: str
    epoch: str
    #: Of this channel: the same as on the WebSocket.
    seq: int
    #: Sequence number of the last command that the answer reflects.
    engine_seq: int
    ts: Optional[datetime]
    last: Optional[Decimal]
    last_qty: Optional[Decimal]
    last_ts: Optional[datetime]
    bid: Optional[Decimal]
    bid_qty: Optional[Decimal]
    ask: Optional[Decimal]
    ask_qty: Optional[Decimal]
    mid: Optional[Decimal]
    spread: Optional[Decimal]
    open_24h: Optional[Decimal]
    high_24h: Optional[Decimal]
    low_24h: Optional[Decimal]
    volume_24h: Decimal
    quote_volume_24h: Decimal
    trades_24h: int
    #: Source of the book.
    source: str
    status: str
    auction: Optional[CallAuction] = None


@dataclass(frozen=True)
class Tranche(Model):
    """capacity = available + reserved + filled, always."""

    tranche_id: str
    capacity_usd: Decimal
    available_usd: Decimal
    #: Reserved by claims that are not paid yet.
    reserved_usd: Decimal
    #: Sold and paid.
    filled_usd: Decimal
    #: Our choice. exhausted: less than the smallest fill is left. withdrawn and expired: as its ticket.
    state: str


@dataclass(frozen=True)
class TicketGuarantee(Model):
    """What the operator declares; the amount is not independently verified."""

    libelle: str
    montant_verifie_independamment: bool


@dataclass(frozen=True)
class Ticket(TicketMethods, Model):
    """See the service's specification: ``Ticket``."""

    order_id: str
    ticket_label: str
    pair: str
    side: str
    #: Our choice.
    state: str
    base_mint: str
    base_symbol: str
    rails: list[str]
    tranches: list[Tranche]
    #: Price before the discount, in USD per base unit; null if there is no price or the ticket has ended.
    reference_price_usd: Optional[Decimal]
    #: What the operator declares; the amount is not independently verified.
    guarantee: TicketGuarantee
    created_at: datetime
    updated_at: datetime
    #: null: never.
    expires_at: Optional[datetime]
    #: Sequence number of the ticket's last change.
    seq: int


@dataclass(frozen=True)
class MarketTickets(Model):
    """See the service's specification: ``MarketTickets``."""

    #: Grows with every change of the document.
    seq: int
    ts: datetime
    tickets: list[Ticket]
    #: A claim of the smallest fill would be reserved now: the chain can be reached, and a ticket sells. Our choice;
    #: services before 0.2.0 do not have it.
    accepting: Optional[bool] = None
    #: Why `accepting` is false, as in the RFQ status. Our choice; services before 0.2.0 do not have it.
    accepting_reason: Optional[str] = None


@dataclass(frozen=True)
class CurrentSellableTicket(Model):
    """The first open ticket, by priority and then by age, with capacity for the smallest fill."""

    #: Grows with every change of the document.
    seq: int
    #: The ticket that sells now: open, not locked, priced, with capacity and inventory for the smallest fill. null:
    #: none.
    ticket: Optional[Ticket]
    #: A claim of the smallest fill would be reserved now: the chain can be reached, and a ticket sells. Our choice;
    #: services before 0.2.0 do not have it.
    accepting: Optional[bool] = None
    #: Why `accepting` is false, as in the RFQ status. Our choice; services before 0.2.0 do not have it.
    accepting_reason: Optional[str] = None


@dataclass(frozen=True)
class DeskPriceSource(Model):
    """One source of a price, as it was last read."""

    name: str
    price_usd: Optional[Decimal]
    published_at: Optional[datetime]
    #: Seconds, at `ts`.
    age_s: Optional[int]
    #: Why this source is not used: `price_missing`, `price_too_old`, `price_from_the_future`, `price_too_uncertain`,
    #: `price_without_quorum` (the nodes have no majority for a price); null: it is usable.
    fault: Optional[str]


@dataclass(frozen=True)
class DeskPrice(Model):
    """A price that quotes need. Our choice; services before 0.2.0 do not have it."""

    #: Symbol of the pair whose base asset has this price, or the rail.
    of: str
    #: Null: there is no usable price, and nothing is quoted or sold at it. It is never an old price.
    price_usd: Optional[Decimal]
    #: Where the price is from; null without a price.
    source: Optional[str]
    #: By the source; null without a price and of a book.
    published_at: Optional[datetime]
    #: Seconds since `published_at`, at `ts`.
    age_s: Optional[int]
    #: An older price is not used; 0: any age.
    max_age_s: int
    #: Half the width of the interval around the price; null: unknown.
    confidence_usd: Optional[Decimal]
    #: Why there is no price: a fault of the sources (as in `sources`, or `price_sources_disagree`), or the reason
    #: with which a quote is refused (`price_unavailable`, `price_stale`, `price_corridor`); null: there is one.
    fault: Optional[str]
    #: The sources of an asset with a rule in `prices`, in the order of preference; empty without a rule.
    sources: list[DeskPriceSource]


class CompactRow(NamedTuple):
    """A tranche in the book for bots. best_price_usd is None where it is not priced now, expires_unix_ms where
    it never expires.
    """

    order_id: str
    tranche_id: str
    pair: str
    available_usd: Decimal
    best_price_usd: Optional[Decimal]
    expires_unix_ms: Optional[int]


@dataclass(frozen=True)
class CompactBook(Model):
    """Columns of a row: order_id, tranche_id, pair, available_usd, best_price_usd (null: there is no price
    now), expires_unix_ms (null: never).
    """

    #: Grows with every change of the document.
    seq: int
    t: list[CompactRow]
    #: A claim of the smallest fill would be reserved now: the chain can be reached, and a ticket sells. Our choice;
    #: services before 0.2.0 do not have it.
    accepting: Optional[bool] = None
    #: Why `accepting` is false, as in the RFQ status. Our choice; services before 0.2.0 do not have it.
    accepting_reason: Optional[str] = None


@dataclass(frozen=True)
class LevelsLevel(Model):
    """See the service's specification: ``LevelsLevel``."""

    fill_usd: str
    discount_bps: int


@dataclass(frozen=True)
class Levels(Model):
    """See the service's specification: ``Levels``."""

    levels: list[LevelsLevel]


@dataclass(frozen=True)
class PairsPair(Model):
    """See the service's specification: ``PairsPair``."""

    pair: str
    base_symbol: str
    base_mint: str
    base_decimals: int
    quote_symbol: str
    rails: list[str]
    reference_price_usd: Optional[Decimal]
    #: Our choice. closed: no rail can pay for it.
    status: str
    #: The `reason` that a quote would be refused with; null while the pair is active.
    reason: Optional[str]


@dataclass(frozen=True)
class Pairs(Model):
    """See the service's specification: ``Pairs``."""

    pairs: list[PairsPair]


@dataclass(frozen=True)
class TokensToken(Model):
    """See the service's specification: ``TokensToken``."""

    symbol: str
    #: null: native SOL, or not known to the desk.
    mint: Optional[str]
    #: null: not known to the desk.
    decimals: Optional[int]
    #: The last entry of `roles`.
    role: str
    roles: list[str]
    #: Rails with which this token can be bought; for a payment token, its own rail.
    rails: list[str]


@dataclass(frozen=True)
class TokensRail(Model):
    """See the service's specification: ``TokensRail``."""

    rail: str
    #: null: native SOL.
    mint: Optional[str]
    decimals: int
    #: 1 = first.
    priority: int
    #: null: the rail is not configured.
    pay_to: Optional[str]
    price_usd: Optional[Decimal]
    priced_at: Optional[datetime]
    #: Not locked.
    active: bool
    #: The `reason` why the rail has no quotes; null if it has.
    reason: Optional[str]
    #: Where the price was read; null: there is none, or it is USDC, which counts as a dollar. Our choice; services
    #: before 0.2.0 do not have it.
    price_source: Optional[str] = None
    #: Half the width of its confidence interval; null: unknown. Our choice; services before 0.2.0 do not have it.
    confidence_usd: Optional[Decimal] = None


@dataclass(frozen=True)
class Tokens(Model):
    """See the service's specification: ``Tokens``."""

    tokens: list[TokensToken]
    rails: list[TokensRail]


@dataclass(frozen=True)
class RailList(Model):
    """See the service's specification: ``RailList``."""

    active_rails: list[str]
    rail_priority: list[str]


@dataclass(frozen=True)
class Lock(Model):
    """See the service's specification: ``Lock``."""

    #: global, pair:SYMBOL, rail:RAIL or deliveries: while it is locked nothing goes out, and claims are taken and
    #: paid as before.
    name: str
    locked: bool
    #: Of the last change; null: never locked.
    since: Optional[datetime]
    #: The operator's reason, free text.
    reason: Optional[str]


@dataclass(frozen=True)
class Chain(Model):
    """Whether claims can be settled now."""

    available: bool
    #: Reason why the chain is not available.
    reason: Optional[str]
    execution_network: str


@dataclass(frozen=True)
class SurfacesPublicMirror(Model):
    """See the service's specification: ``SurfacesPublicMirror``."""

    role: str
    #: URL.
    base_url: str


@dataclass(frozen=True)
class SurfacesRegistryBackend(Model):
    """See the service's specification: ``SurfacesRegistryBackend``."""

    role: str
    #: URL.
    base_url: str


@dataclass(frozen=True)
class SurfacesNativeBackend(Model):
    """See the service's specification: ``SurfacesNativeBackend``."""

    role: str
    #: URL.
    base_url: str


@dataclass(frozen=True)
class SurfacesPublicFrontend(Model):
    """See the service's specification: ``SurfacesPublicFrontend``."""

    role: str
    #: URL.
    base_url: str


@dataclass(frozen=True)
class Surfaces(Model):
    """See the service's specification: ``Surfaces``."""

    public_mirror: SurfacesPublicMirror
    registry_backend: SurfacesRegistryBackend
    native_backend: SurfacesNativeBackend
    public_frontend: SurfacesPublicFrontend


@dataclass(frozen=True)
class RFQStatusTickets(Model):
    """See the service's specification: ``RFQStatusTickets``."""

    total: int
    open: int
    exhausted: int
    withdrawn: int
    expired: int


@dataclass(frozen=True)
class RFQStatusOpenTickets(Model):
    """Sums over all tranches of open tickets."""

    tranches: int
    capacity_usd: Decimal
    available_usd: Decimal
    reserved_usd: Decimal
    filled_usd: Decimal


@dataclass(frozen=True)
class RFQStatusRecommendedRead(Model):
    """See the service's specification: ``RFQStatusRecommendedRead``."""

    surface: str
    method: str
    #: URL.
    url: str


@dataclass(frozen=True)
class RFQStatusRecommendedConfirm(Model):
    """See the service's specification: ``RFQStatusRecommendedConfirm``."""

    surface: str
    method: str
    #: URL.
    url: str


@dataclass(frozen=True)
class RFQStatusRecommendedClaim(Model):
    """See the service's specification: ``RFQStatusRecommendedClaim``."""

    surface: str
    method: str
    #: URL.
    url: str


@dataclass(frozen=True)
class RFQStatusRecommendedSubmit(Model):
    """See the service's specification: ``RFQStatusRecommendedSubmit``."""

    surface: str
    method: str
    #: URL.
    url: str


@dataclass(frozen=True)
class RFQStatusRecommended(Model):
    """The truth rule as URLs."""

    read: RFQStatusRecommendedRead
    confirm: RFQStatusRecommendedConfirm
    claim: RFQStatusRecommendedClaim
    submit: RFQStatusRecommendedSubmit


@dataclass(frozen=True)
class RFQStatus(Model):
    """See the service's specification: ``RFQStatus``."""

    version: str
    api_version: str
    #: Grows with every change of the document.
    seq: int
    ts: datetime
    #: The book's last change, or the service's start.
    updated_at: datetime
    #: Length in seconds of the cycle in which ts and prices change; a change of the book is visible at once.
    refresh_s: int
    #: A claim of the smallest fill would be reserved now: the chain can be reached, and a ticket sells.
    accepting: bool
    tickets: RFQStatusTickets
    #: Sums over all tranches of open tickets.
    open_tickets: RFQStatusOpenTickets
    #: The ticket that sells now: open, not locked, priced, with capacity and inventory for the smallest fill. null:
    #: none.
    current_sellable_ticket: Optional[str]
    active_rails: list[str]
    rail_priority: list[str]
    partial_fill_sizes_usd: list[str]
    locks: list[Lock]
    chain: Chain
    surfaces: Surfaces
    #: The truth rule as URLs.
    recommended: RFQStatusRecommended
    truth_rule: str
    execution_network: str
    control_chain_id: int
    control_chain_role: str
    control_chain_rpc_compatible: bool
    #: Why `accepting` is false: `not_configured` or `not_ready` of the chain, `no_open_ticket`, or the reason with
    #: which a quote for the first open ticket would be refused. Our choice; services before 0.2.0 do not have it.
    accepting_reason: Optional[str] = None
    #: The prices of all pairs, then of the rails but USDC, which counts as a dollar. Services before 0.2.0 do not
    #: have it.
    prices: Optional[list[DeskPrice]] = None


@dataclass(frozen=True)
class RobotManifestReadEndpointsPublicMirror8012(Model):
    """See the service's specification: ``RobotManifestReadEndpointsPublicMirror8012``."""

    #: URL.
    market_tickets: str
    #: URL.
    current_sellable_ticket: str
    #: URL.
    compact_book: str
    #: URL.
    levels: str
    #: URL.
    pairs: str
    #: URL.
    rails: str


@dataclass(frozen=True)
class RobotManifestReadEndpointsRegistryBackend8000(Model):
    """See the service's specification: ``RobotManifestReadEndpointsRegistryBackend8000``."""

    #: URL.
    market_tickets: str
    #: URL.
    current_sellable_ticket: str


@dataclass(frozen=True)
class RobotManifestReadEndpointsNativeBackend1492(Model):
    """See the service's specification: ``RobotManifestReadEndpointsNativeBackend1492``."""

    #: URL.
    market_tickets: str
    #: URL.
    current_sellable_ticket: str


@dataclass(frozen=True)
class RobotManifestReadEndpoints(Model):
    """See the service's specification: ``RobotManifestReadEndpoints``."""

    public_mirror_8012: RobotManifestReadEndpointsPublicMirror8012
    registry_backend_8000: RobotManifestReadEndpointsRegistryBackend8000
    native_backend_1492: RobotManifestReadEndpointsNativeBackend1492


@dataclass(frozen=True)
class RobotManifestClaimEndpoints(Model):
    """See the service's specification: ``RobotManifestClaimEndpoints``."""

    #: URL.
    preferred_modular_claim: str
    #: URL.
    preferred_atomic_claim: str
    #: URL.
    public_alias_modular_claim: str
    #: URL.
    public_alias_atomic_claim: str


@dataclass(frozen=True)
class RobotManifestSignatureSubmission(Model):
    """See the service's specification: ``RobotManifestSignatureSubmission``."""

    #: URL.
    primary_1492: str
    #: URL.
    public_alias_1492: str
    #: URL.
    fallback_8000: str


@dataclass(frozen=True)
class RobotManifestExamples(Model):
    """See the service's specification: ``RobotManifestExamples``."""

    #: A command line.
    read_book: str
    #: A command line.
    read_levels: str
    #: A command line.
    build_claim: str
    #: A command line.
    verify_signature: str


@dataclass(frozen=True)
class RobotManifest(Model):
    """See the service's specification: ``RobotManifest``."""

    schema: str
    name: str
    updated_at: datetime
    truth_rule: str
    active_rails: list[str]
    rail_priority: list[str]
    partial_fill_sizes_usd: list[str]
    read_endpoints: RobotManifestReadEndpoints
    claim_endpoints: RobotManifestClaimEndpoints
    signature_submission: RobotManifestSignatureSubmission
    required_fields: list[str]
    examples: RobotManifestExamples


@dataclass(frozen=True)
class DiscoveryReadEndpointsPublicMirror8012(Model):
    """See the service's specification: ``DiscoveryReadEndpointsPublicMirror8012``."""

    #: URL.
    market_tickets: str
    #: URL.
    current_sellable_ticket: str
    #: URL.
    compact_book: str
    #: URL.
    levels: str
    #: URL.
    pairs: str
    #: URL.
    rails: str


@dataclass(frozen=True)
class DiscoveryReadEndpointsRegistryBackend8000(Model):
    """See the service's specification: ``DiscoveryReadEndpointsRegistryBackend8000``."""

    #: URL.
    market_tickets: str
    #: URL.
    current_sellable_ticket: str


@dataclass(frozen=True)
class DiscoveryReadEndpointsNativeBackend1492(Model):
    """See the service's specification: ``DiscoveryReadEndpointsNativeBackend1492``."""

    #: URL.
    market_tickets: str
    #: URL.
    current_sellable_ticket: str


@dataclass(frozen=True)
class DiscoveryReadEndpoints(Model):
    """See the service's specification: ``DiscoveryReadEndpoints``."""

    public_mirror_8012: DiscoveryReadEndpointsPublicMirror8012
    registry_backend_8000: DiscoveryReadEndpointsRegistryBackend8000
    native_backend_1492: DiscoveryReadEndpointsNativeBackend1492


@dataclass(frozen=True)
class DiscoveryClaimEndpoints(Model):
    """See the service's specification: ``DiscoveryClaimEndpoints``."""

    #: URL.
    preferred_modular_claim: str
    #: URL.
    preferred_atomic_claim: str
    #: URL.
    public_alias_modular_claim: str
    #: URL.
    public_alias_atomic_claim: str


@dataclass(frozen=True)
class DiscoverySignatureSubmission(Model):
    """See the service's specification: ``DiscoverySignatureSubmission``."""

    priority: list[str]
    #: URL.
    primary_1492: str
    #: URL.
    public_alias_1492: str
    #: URL.
    fallback_8000: str


@dataclass(frozen=True)
class DiscoveryDvp(Model):
    """See the service's specification: ``DiscoveryDvp``."""

    #: URL.
    handshake: str
    #: URL.
    build: str
    #: URL.
    submit: str
    #: URL.
    build_state: str


@dataclass(frozen=True)
class Discovery(Model):
    """See the service's specification: ``Discovery``."""

    schema: str
    name: str
    version: str
    updated_at: datetime
    #: URL.
    service: str
    #: URL.
    specification: str
    #: URL.
    robot_manifest: str
    #: URL.
    status: str
    #: URL.
    board: str
    #: URL.
    desk_status: str
    truth_rule: str
    surfaces: Surfaces
    read_endpoints: DiscoveryReadEndpoints
    claim_endpoints: DiscoveryClaimEndpoints
    signature_submission: DiscoverySignatureSubmission
    dvp: DiscoveryDvp
    rail_priority: list[str]
    partial_fill_sizes_usd: list[str]
    execution_network: str
    control_chain_id: int
    control_chain_role: str
    control_chain_rpc_compatible: bool


@dataclass(frozen=True)
class BoardQualification(Model):
    """See the service's specification: ``BoardQualification``."""

    libelle: str
    nature: str


@dataclass(frozen=True)
class BoardOfferGuaranteedBy(Model):
    """See the service's specification: ``BoardOfferGuaranteedBy``."""

    libelle: str


@dataclass(frozen=True)
class BoardOfferOperatorDeclared(Model):
    """See the service's specification: ``BoardOfferOperatorDeclared``."""

    operateur: str
    nature: str
    capacity_usd: Decimal
    reference_price_usd: Optional[Decimal]


@dataclass(frozen=True)
class BoardOffer(Model):
    """See the service's specification: ``BoardOffer``."""

    order_id: str
    ticket_label: str
    pair: str
    side: str
    rails: list[str]
    available_usd: Decimal
    best_price_usd: Optional[Decimal]
    guaranteed_by: BoardOfferGuaranteedBy
    operator_declared: BoardOfferOperatorDeclared
    independently_verified: bool
    montant_verifie_independamment: bool
    expires_at: Optional[datetime]


@dataclass(frozen=True)
class Board(Model):
    """See the service's specification: ``Board``."""

    #: Grows with every change of the document.
    seq: int
    ts: datetime
    qualification: BoardQualification
    layers: list[str]
    offers: list[BoardOffer]
    #: A claim of the smallest fill would be reserved now: the chain can be reached, and a ticket sells. Our choice;
    #: services before 0.2.0 do not have it.
    accepting: Optional[bool] = None
    #: Why `accepting` is false, as in the RFQ status. Our choice; services before 0.2.0 do not have it.
    accepting_reason: Optional[str] = None


@dataclass(frozen=True)
class DeskStatusPricePolicyUnproven(Model):
    """Limits of claims without proof of the wallet's key, see `wallet_signature`. Our choice; services before
    0.2.0 do not have it.
    """

    #: Life of such a claim until its payment is seen on the chain; then `claim_ttl_s`.
    ttl_s: int
    #: Most that those of one client address (IPv6: its /64) may reserve at once.
    usd_per_client: Decimal
    #: Share of what claims with proof leave of a tranche and of the pair's inventory, that all claims without proof
    #: together may reserve.
    share_bps: int


@dataclass(frozen=True)
class DeskStatusPricePolicyDust(Model):
    """The largest surplus of a payment that is kept; a larger one is refunded. Our choice; services before
    0.2.0 do not have it.
    """

    USDC: Decimal
    SOL: Decimal


@dataclass(frozen=True)
class DeskStatusPricePolicyPairFirmBps(Model):
    """How far the market may move against the desk after a claim, by the rail of its payment. Beyond it a
    delivery becomes a refund, and a countersignature is refused, with `price_corridor`. Our choice; services
    before 0.2.0 do not have it.
    """

    USDC: int
    SOL: int


@dataclass(frozen=True)
class DeskStatusPricePolicyPair(Model):
    """See the service's specification: ``DeskStatusPricePolicyPair``."""

    pair: str
    #: The reference is the operator's price, or the middle of our own book.
    source: str
    #: The pair that converts the book's quote asset into dollars; null: the quote asset counts as dollars.
    via: Optional[str]
    corridor_bps: int
    #: 0: any age.
    max_age_s: int
    #: The operator's last price; the corridor is centred on it.
    anchor_price_usd: Optional[Decimal]
    anchored_at: Optional[datetime]
    min_reference_usd: Optional[Decimal]
    max_reference_usd: Optional[Decimal]
    reference_price_usd: Optional[Decimal]
    #: Reason why there is no reference price; null if there is one.
    reason: Optional[str]
    #: Where the anchor was read; null: there is none. Our choice; services before 0.2.0 do not have it.
    anchor_source: Optional[str] = None
    #: When its source published it. Our choice; services before 0.2.0 do not have it.
    published_at: Optional[datetime] = None
    #: Its age at `ts`, which `max_age_s` bounds. Our choice; services before 0.2.0 do not have it.
    anchor_age_s: Optional[int] = None
    #: Half the width of its confidence interval; null: unknown. Our choice; services before 0.2.0 do not have it.
    confidence_usd: Optional[Decimal] = None
    #: How far the market may move against the desk after a claim, by the rail of its payment. Beyond it a delivery
    #: becomes a refund, and a countersignature is refused, with `price_corridor`. Our choice; services before 0.2.0
    #: do not have it.
    firm_bps: Optional[DeskStatusPricePolicyPairFirmBps] = None


@dataclass(frozen=True)
class DeskStatusPricePolicy(Model):
    """See the service's specification: ``DeskStatusPricePolicy``."""

    rounding: str
    fee_bps: int
    #: The fee is part of the payment, not added to it.
    fee_included: bool
    quote_ttl_s: int
    claim_ttl_s: int
    pairs: list[DeskStatusPricePolicyPair]
    #: How long capacity stays reserved after a claim's deadline, until a payment in an earlier block is final. Our
    #: choice; services before 0.2.0 do not have it.
    grace_s: Optional[int] = None
    #: Limits of claims without proof of the wallet's key, see `wallet_signature`. Our choice; services before 0.2.0
    #: do not have it.
    unproven: Optional[DeskStatusPricePolicyUnproven] = None
    #: The largest surplus of a payment that is kept; a larger one is refunded. Our choice; services before 0.2.0 do
    #: not have it.
    dust: Optional[DeskStatusPricePolicyDust] = None


@dataclass(frozen=True)
class DeskStatusDiscountCorridor(Model):
    """See the service's specification: ``DeskStatusDiscountCorridor``."""

    pair: str
    fill_usd: str
    discount_bps: int
    min_price_usd: Optional[Decimal]
    max_price_usd: Optional[Decimal]


@dataclass(frozen=True)
class DeskStatusInventoryPair(Model):
    """See the service's specification: ``DeskStatusInventoryPair``."""

    pair: str
    symbol: str
    mint: str
    #: Total inventory of the desk, in base units.
    total: Decimal
    #: total minus reserved minus sold.
    free: Decimal
    #: Reserved by claims that are not settled.
    reserved: Decimal
    #: Settled.
    sold: Decimal
    #: What the desk held on the chain at `on_chain_at`, less what was sold since; it bounds `free`. null: not read.
    #: Our choice; services before 0.2.0 do not have it.
    on_chain: Optional[Decimal] = None
    on_chain_at: Optional[datetime] = None


@dataclass(frozen=True)
class DeskStatusInventory(Model):
    """See the service's specification: ``DeskStatusInventory``."""

    pairs: list[DeskStatusInventoryPair]


@dataclass(frozen=True)
class DeskChainNode(Model):
    """See the service's specification: ``DeskChainNode``."""

    name: str
    available: bool
    #: Newest slot that the node has reported.
    slot: Optional[int]
    #: Slots behind `slot` of the chain.
    lag_slots: Optional[int]


@dataclass(frozen=True)
class DeskChain(Model):
    """Whether claims can be settled, and the state of the chain, at most 10 s old. All but the first three
    members are our choice.
    """

    available: bool
    #: Reason why the chain is not available.
    reason: Optional[str]
    execution_network: str
    #: Address of the desk, which delivers, co-signs and pays fees; null: not configured.
    desk_address: Optional[str]
    #: Newest slot that any node has reported.
    slot: Optional[int]
    #: Age of the blockhash of the next package; null: there is none.
    blockhash_age_ms: Optional[int]
    #: Signed transactions whose outcome is not known yet.
    tracked: int
    #: In the order of preference.
    nodes: list[DeskChainNode]


@dataclass(frozen=True)
class DeskStatus(Model):
    """See the service's specification: ``DeskStatus``."""

    #: Grows with every change of the document.
    seq: int
    ts: datetime
    locks: list[Lock]
    price_policy: DeskStatusPricePolicy
    #: The range of prices of each fill of each pair within the corridor.
    discount_corridor: list[DeskStatusDiscountCorridor]
    inventory: DeskStatusInventory
    chain: DeskChain
    #: The prices of all pairs, then of the rails but USDC, which counts as a dollar. Services before 0.2.0 do not
    #: have it.
    prices: Optional[list[DeskPrice]] = None


@dataclass(frozen=True)
class Fee(Model):
    """The fee, which is part of the payment, rounded down (our choice)."""

    included: bool
    amount: Decimal
    amount_atoms: int


@dataclass(frozen=True)
class QuotePayment(Model):
    """See the service's specification: ``QuotePayment``."""

    rail: str
    mint: Optional[str]
    amount: Decimal
    amount_atoms: int
    pay_to: str


@dataclass(frozen=True)
class Quote(Model):
    """See the service's specification: ``Quote``."""

    quote_id: str
    order_id: str
    tranche_id: str
    ticket_label: str
    pair: str
    fill_usd: str
    rail: str
    reference_price_usd: Decimal
    discount_bps: int
    price_usd: Decimal
    base_amount: Decimal
    base_amount_atoms: int
    payment: QuotePayment
    fee_bps: int
    fee: Fee
    issued_at: datetime
    valid_until: datetime
    #: True: a claim that names the quote before `valid_until` gets its price. False: the chain could not be reached
    #: when the quote was issued, and no claim is taken then.
    firm: bool


@dataclass(frozen=True)
class ClaimTerms(Model):
    """See the service's specification: ``ClaimTerms``."""

    way: str
    bot_wallet: str
    quote_id: Optional[str]
    order_id: str
    tranche_id: str
    #: Empty if the ticket has been removed.
    ticket_label: str
    pair: str
    fill_usd: str
    rail: str
    reference_price_usd: Decimal
    discount_bps: int
    price_usd: Decimal
    base_amount: Decimal
    base_amount_atoms: int
    fee_bps: int
    fee: Fee
    reserved_at: datetime
    #: The request was proved with the key of `bot_wallet`: by `wallet_signature` or by a DvP token. Our choice;
    #: services before 0.2.0 do not have it.
    proven: Optional[bool] = None


@dataclass(frozen=True)
class BoundPayment(Model):
    """The payment that is due, with the reference (a read-only account) and memo that bind it to its claim."""

    rail: str
    mint: Optional[str]
    amount: Decimal
    amount_atoms: int
    pay_to: str
    reference: str
    memo: str


@dataclass(frozen=True)
class ClaimPackageVerify(Model):
    """See the service's specification: ``ClaimPackageVerify``."""

    #: URL.
    url: str
    fields: list[str]


@dataclass(frozen=True)
class SolanaPay(Model):
    """The payment as URLs of Solana Pay 1.1, to be opened or shown as a QR code. Our choice; services before
    0.2.0 do not have it.
    """

    #: Everything of the payment in a URL: the wallet builds the transaction.
    transfer_request: str
    #: A link from which the wallet gets the transaction; null unless the service's address is https, as the
    #: specification demands.
    transaction_request: Optional[str]


@dataclass(frozen=True)
class ClaimPackage(Model):
    """See the service's specification: ``ClaimPackage``."""

    claim_id: str
    state: str
    claim: ClaimTerms
    payment: BoundPayment
    #: Unsigned v0 transaction, base64.
    transaction: str
    expires_at: datetime
    verify: ClaimPackageVerify
    recent_blockhash: Optional[str] = None
    last_valid_block_height: Optional[int] = None
    #: Commitment of the blockhash in the transaction: a node with default settings, whose `preflightCommitment` is
    #: the same, accepts it at once. Our choice; services before 0.2.0 do not have it.
    preflight_commitment: Optional[str] = None
    solana_pay: Optional[SolanaPay] = None


@dataclass(frozen=True)
class Payment(Model):
    """See the service's specification: ``Payment``."""

    l1_signature: Optional[str]
    #: Our choice. `refunding`: a signed refund of it may land on the chain.
    state: str
    #: Why a refund is due: `payment_mismatch`, `late_payment`, `claim_state`, `surplus`, `price_corridor` or
    #: `undeliverable`; null: none is.
    reason: Optional[str]
    rail: str
    amount: Decimal
    amount_atoms: int
    payer: Optional[str]
    slot: int
    at: datetime
    #: What pays the claim. Our choice; services before 0.2.0 do not have it.
    applied_amount: Optional[Decimal] = None
    applied_amount_atoms: Optional[int] = None
    #: What is to be paid back, is being paid back, or was paid back: all of a payment that pays nothing, the surplus
    #: of one that was too large. Our choice; services before 0.2.0 do not have it.
    refund_amount: Optional[Decimal] = None
    refund_amount_atoms: Optional[int] = None
    #: Time of its block, by which a payment is judged: before the claim's `expires_at` the claim's terms hold. null:
    #: unknown. Our choice; services before 0.2.0 do not have it.
    block_time: Optional[datetime] = None


@dataclass(frozen=True)
class ClaimPayment(Model):
    """See the service's specification: ``ClaimPayment``."""

    rail: str
    mint: Optional[str]
    amount: Decimal
    amount_atoms: int
    pay_to: str


@dataclass(frozen=True)
class Delivery(Model):
    """What the wallet of the claim gets, and the desk's newest delivery transaction; null: the desk has signed
    none.
    """

    to: str
    mint: str
    amount: Decimal
    amount_atoms: int
    l1_signature: Optional[str]


@dataclass(frozen=True)
class ClaimHistory(Model):
    """See the service's specification: ``ClaimHistory``."""

    state: str
    at: datetime


@dataclass(frozen=True)
class Claim(ClaimMethods, Model):
    """See the service's specification: ``Claim``."""

    claim_id: str
    state: str
    claim: ClaimTerms
    payment: ClaimPayment
    paid_atoms: int
    expires_at: datetime
    changed_at: datetime
    delivery: Delivery
    #: Oldest first.
    history: list[ClaimHistory]
    payments: list[Payment]


@dataclass(frozen=True)
class Pending(Model):
    """See the service's specification: ``Pending``."""

    state: str
    retry_after_ms: int


@dataclass(frozen=True)
class Verification(Model):
    """See the service's specification: ``Verification``."""

    claim_id: str
    state: str
    verified: bool
    payment: Payment
    delivery: Delivery


@dataclass(frozen=True)
class WebSocketHealth(Model):
    """See the service's specification: ``WebSocketHealth``."""

    #: True while the feed runs.
    ok: bool
    status: str
    #: Number of WebSockets and event streams.
    connections: int
    #: Number of event streams.
    streams: int
    #: Number of WebSockets with compression.
    compressed: int
    #: Maximum number of connections.
    max_connections: int
    #: Maximum per client address.
    connections_per_ip: int
    #: Subscriptions to a channel of a symbol, over all connections.
    subscriptions: int
    #: Messages written since the start.
    messages_out: int
    #: Bytes written since the start.
    bytes_out: int
    #: Ticker updates that a full socket skipped for a later one.
    conflated: int
    #: Times that the updates waiting for a full socket were replaced by snapshots.
    collapsed: int
    #: Connections closed because the client did not read.
    slow_consumers: int
    #: Connections refused because of a limit.
    refused: int
    #: Number of writers, each with its own connections.
    shards: int
    #: Times that a writer fell so far behind that it restarted from snapshots.
    overruns: int
    epoch: str
    #: Sequence number of the last command that the answer reflects.
    engine_seq: int
    #: Time from the engine's timestamp of a batch to its publication.
    lag_us: int


@dataclass(frozen=True)
class Token(Model):
    """See the service's specification: ``Token``."""

    #: Send it as `Authorization: Bearer TOKEN`. It is returned once, and stored as a hash.
    access_token: str
    token_type: str
    #: Seconds.
    expires_in: int
    expires_at: datetime
    pubkey: str


@dataclass(frozen=True)
class Challenge(Model):
    """See the service's specification: ``Challenge``."""

    pubkey: str
    nonce: str
    expires_at: datetime


@dataclass(frozen=True)
class HandshakeTermsStep(Model):
    """`method`, `url` and `status` are null for the signing, which needs no request. The shape is our choice."""

    step: int
    action: str
    method: Optional[str]
    url: Optional[str]
    sends: list[str]
    status: Optional[int]
    returns: list[str]


@dataclass(frozen=True)
class HandshakeTermsEncodings(Model):
    """See the service's specification: ``HandshakeTermsEncodings``."""

    pubkey: str
    nonce: str
    signature: str


@dataclass(frozen=True)
class HandshakeTermsTokenIssuance(Model):
    """See the service's specification: ``HandshakeTermsTokenIssuance``."""

    per_ip: int
    #: Seconds between two tokens of a client address: 3600, unless the operator allows more
    #: (`http.tokens_per_hour`).
    window_s: int


@dataclass(frozen=True)
class HandshakeTermsToken(Model):
    """See the service's specification: ``HandshakeTermsToken``."""

    type: str
    lifetime_s: int
    issuance: HandshakeTermsTokenIssuance


@dataclass(frozen=True)
class HandshakeTermsLimitsHandshake(Model):
    """See the service's specification: ``HandshakeTermsLimitsHandshake``."""

    per_ip: int
    window_s: int
    burst: int


@dataclass(frozen=True)
class HandshakeTermsLimitsBuildSubmit(Model):
    """See the service's specification: ``HandshakeTermsLimitsBuildSubmit``."""

    per_ip: int
    window_s: int
    burst: Any


@dataclass(frozen=True)
class HandshakeTermsLimits(Model):
    """Requests per client IP; null: no limit. `handshake` is a token bucket of `burst`; `build_submit` applies
    to any window. The shape is our choice.
    """

    handshake: Optional[HandshakeTermsLimitsHandshake]
    build_submit: Optional[HandshakeTermsLimitsBuildSubmit]


@dataclass(frozen=True)
class HandshakeTerms(Model):
    """See the service's specification: ``HandshakeTerms``."""

    protocol: str
    steps: list[HandshakeTermsStep]
    algorithm: str
    encodings: HandshakeTermsEncodings
    #: What the client signs.
    signs: str
    nonce_ttl_s: int
    token: HandshakeTermsToken
    #: Requests per client IP; null: no limit. `handshake` is a token bucket of `burst`; `build_submit` applies to
    #: any window. The shape is our choice.
    limits: HandshakeTermsLimits


@dataclass(frozen=True)
class BuildDelivery(Model):
    """What the taker gets."""

    to: str
    mint: str
    amount: Decimal
    amount_atoms: int


@dataclass(frozen=True)
class BuildQuote(Model):
    """The terms. `quote_id` is null if the request named none."""

    quote_id: Optional[str]
    order_id: str
    tranche_id: str
    #: Empty if the ticket has been removed.
    ticket_label: str
    pair: str
    fill_usd: str
    rail: str
    reference_price_usd: Decimal
    discount_bps: int
    price_usd: Decimal
    base_amount: Decimal
    base_amount_atoms: int
    fee_bps: int
    fee: Fee


@dataclass(frozen=True)
class Build(Model):
    """See the service's specification: ``Build``."""

    build_id: str
    claim_id: str
    #: Both transfers, unsigned: every signature is zero. No address lookup tables, no durable nonce. Sign it
    #: unchanged.
    transaction: str
    #: Hash of the transaction's message, which is what signatures cover.
    message_sha256: str
    #: In the order of their signatures; the first one pays the network fee.
    required_signers: list[str]
    payment: BoundPayment
    #: What the taker gets.
    delivery: BuildDelivery
    recent_blockhash: str
    last_valid_block_height: int
    #: End of the reservation. The blockhash may expire sooner, after 60 to 90 s.
    expires_at: datetime
    #: The terms. `quote_id` is null if the request named none.
    quote: BuildQuote
    #: Commitment of the blockhash in the transaction: a node with default settings, whose `preflightCommitment` is
    #: the same, accepts it at once. Our choice; services before 0.2.0 do not have it.
    preflight_commitment: Optional[str] = None


@dataclass(frozen=True)
class Submitted(Model):
    """See the service's specification: ``Submitted``."""

    claim_id: str
    #: The transaction's first signature, which identifies it on the chain.
    signature: str
    state: str
    slot: Optional[int]
    #: The transaction with all signatures.
    transaction: str


@dataclass(frozen=True)
class BuildState(Model):
    """Our choice."""

    build_id: str
    claim_id: str
    state: str
    claim_state: str
    taker: str
    message_sha256: str
    recent_blockhash: str
    last_valid_block_height: int
    #: Null: the desk has not signed.
    signature: Optional[str]
    slot: Optional[int]
    built_at: datetime
    #: End of the reservation.
    expires_at: datetime
    #: Of the claim.
    changed_at: datetime


@dataclass(frozen=True)
class AtomicClaimPackageVerify(Model):
    """See the service's specification: ``AtomicClaimPackageVerify``."""

    #: URL.
    url: str
    fields: list[str]


@dataclass(frozen=True)
class AtomicClaimPackageSubmit(Model):
    """Where to submit the transaction after the taker has signed it, with a Bearer token. Our choice."""

    #: URL.
    url: str
    build_id: str
    fields: list[str]


@dataclass(frozen=True)
class AtomicClaimPackage(Model):
    """See the service's specification: ``AtomicClaimPackage``."""

    claim_id: str
    state: str
    claim: ClaimTerms
    payment: BoundPayment
    #: Both transfers in one unsigned v0 transaction, base64; the desk pays the network fee.
    transaction: str
    expires_at: datetime
    verify: AtomicClaimPackageVerify
    #: Where to submit the transaction after the taker has signed it, with a Bearer token. Our choice.
    submit: AtomicClaimPackageSubmit
    recent_blockhash: Optional[str] = None
    last_valid_block_height: Optional[int] = None
    #: Commitment of the blockhash in the transaction: a node with default settings, whose `preflightCommitment` is
    #: the same, accepts it at once. Our choice; services before 0.2.0 do not have it.
    preflight_commitment: Optional[str] = None


class Candle(NamedTuple):
    """An interval with trades: volume is in the base asset, quote_volume in the quote asset."""

    open_ms: int
    open: Decimal
    high: Decimal
    low: Decimal
    close: Decimal
    volume: Decimal
    quote_volume: Decimal
    trades: int


@dataclass(frozen=True)
class Klines(Model):
    """See the service's specification: ``Klines``."""

    symbol: str
    interval: str
    #: Source of the book.
    source: str
    #: Value of `before` for the previous page; null if there is none.
    next_before: Optional[int]
    #: Oldest first, from real trades only: an interval without trades is absent.
    klines: list[Candle]


@dataclass(frozen=True)
class Candles(Model):
    """See the service's specification: ``Candles``."""

    symbol: str
    interval: str
    #: Source of the book.
    source: str
    #: Value of `before` for the previous page; null if there is none.
    next_before: Optional[int]
    #: Oldest first, from real trades only: an interval without trades is absent.
    candles: list[Candle]


@dataclass(frozen=True)
class OraclePairDegradationState(Model):
    """See the service's specification: ``OraclePairDegradationState``."""

    degraded: bool
    #: The reasons of the status record for this pair, and those of its present state: `not_mainnet`,
    #: `network_unknown`, `chain_not_configured`, `chain_not_synced`, `trading_halted`, `no_trade_yet`, `no_price`,
    #: `live_price_using_verified_vault_snapshot` and those of the mirror.
    reasons: list[str]


@dataclass(frozen=True)
class OraclePair(Model):
    """See the service's specification: ``OraclePair``."""

    symbol: str
    #: Source of the book.
    source: str
    status: str
    epoch: str
    #: Of the ticker: the same as on the WebSocket.
    seq: int
    #: Sequence number of the last command that the answer reflects.
    engine_seq: int
    ts: Optional[datetime]
    price: Optional[Decimal]
    price_source: str
    #: Price of one base unit in dollars, as in /api/v1/market/price. Our choice.
    price_usd: Optional[Decimal]
    price_usd_source: str
    last: Optional[Decimal]
    mid: Optional[Decimal]
    spread: Optional[Decimal]
    last_trade_ts: Optional[datetime]
    #: Whole seconds since the pair's market data last changed (`ts`); for a mirrored pair, since it was last read
    #: from the chain, or null if it was not read since the start. The data of a quiet market grows old; the answer's
    #: own `ts` shows that the service is alive.
    data_freshness_seconds: Optional[int]
    degradation_state: OraclePairDegradationState


@dataclass(frozen=True)
class OracleHeartbeat(Model):
    """See the service's specification: ``OracleHeartbeat``."""

    service: str
    api_version: str
    ts: datetime
    #: Newest value of all pairs.
    engine_seq: int
    pairs: list[OraclePair]


@dataclass(frozen=True)
class CoinGeckoTicker(Model):
    """See the service's specification: ``CoinGeckoTicker``."""

    ticker_id: str
    base_currency: str
    target_currency: str
    pool_id: str
    last_price: Optional[Decimal]
    base_volume: Decimal
    target_volume: Decimal
    bid: Optional[Decimal]
    ask: Optional[Decimal]
    high: Optional[Decimal]
    low: Optional[Decimal]
    liquidity_in_usd: Optional[Decimal]


@dataclass(frozen=True)
class CoinMarketCapAsset(Model):
    """See the service's specification: ``CoinMarketCapAsset``."""

    name: str
    unified_cryptoasset_id: Optional[int]
    can_withdraw: bool
    can_deposit: bool
    maker_fee: Decimal
    taker_fee: Decimal
    contractAddress: str


@dataclass(frozen=True)
class CoinMarketCapSummary(Model):
    """See the service's specification: ``CoinMarketCapSummary``."""

    trading_pairs: str
    base_currency: str
    quote_currency: str
    last_price: Optional[Decimal]
    lowest_ask: Optional[Decimal]
    highest_bid: Optional[Decimal]
    base_volume: Decimal
    quote_volume: Decimal
    price_change_percent_24h: Optional[Decimal]
    highest_price_24h: Optional[Decimal]
    lowest_price_24h: Optional[Decimal]


@dataclass(frozen=True)
class CoinMarketCapTicker(Model):
    """See the service's specification: ``CoinMarketCapTicker``."""

    base_id: Optional[int]
    quote_id: Optional[int]
    last_price: Optional[Decimal]
    base_volume: Decimal
    quote_volume: Decimal
    isFrozen: int


@dataclass(frozen=True)
class DiscoveryFileToken(Model):
    """See the service's specification: ``DiscoveryFileToken``."""

    symbol: str
    mint: str
    decimals: int


@dataclass(frozen=True)
class DiscoveryFileProgram(Model):
    """See the service's specification: ``DiscoveryFileProgram``."""

    program_id: str
    execution_network: str
    control_chain_id: int
    control_chain_role: str
    control_chain_rpc_compatible: bool
    pools: list[str]


@dataclass(frozen=True)
class DiscoveryFile(Model):
    """See the service's specification: ``DiscoveryFile``."""

    ok: bool
    schema: str
    api_version: str
    timestamp_exact: Optional[datetime]
    execution_network: str
    name: str
    operateur: str
    subject: str
    links: dict[str, str]
    tokens: Optional[list[DiscoveryFileToken]] = None
    program: Optional[DiscoveryFileProgram] = None
    families: Optional[list[str]] = None


@dataclass(frozen=True)
class MarketAdaptersAdapter(Model):
    """See the service's specification: ``MarketAdaptersAdapter``."""

    consumers: list[str]
    expected_input_format: list[str]
    already_provided: list[str]
    auto_consumable: Any
    needs_external_onboarding: bool
    public_files: list[str]
    endpoint_mapping: dict[str, str]
    example_request: str
    notes: Optional[str] = None
    blocker: Optional[str] = None


@dataclass(frozen=True)
class MarketAdapters(Model):
    """See the service's specification: ``MarketAdapters``."""

    ok: bool
    api_version: str
    schema: str
    timestamp_exact: Optional[datetime]
    count: int
    families: list[str]
    adapters: dict[str, MarketAdaptersAdapter]


@dataclass(frozen=True)
class MarketClaims(Model):
    """See the service's specification: ``MarketClaims``."""

    ok: bool
    schema: str
    api_version: str
    timestamp_exact: Optional[datetime]
    execution_network: str
    rfq_enabled: bool
    open_tickets: int
    capacity_usd: Decimal
    available_usd: Decimal
    claims_open_usd: Decimal
    claims_settled_usd: Decimal
    transactions_under_way: int


@dataclass(frozen=True)
class MarketDebt(Model):
    """See the service's specification: ``MarketDebt``."""

    ok: bool
    schema: str
    api_version: str
    timestamp_exact: Optional[datetime]
    execution_network: str
    promised_usd: Decimal
    transactions_under_way: int
    refunds_due: int
    refunds_due_usdc: Decimal
    refunds_due_sol: Decimal
    unmatched_payments: int
    unmatched_usdc: Decimal
    unmatched_sol: Decimal


@dataclass(frozen=True)
class MarketExamplesExample(Model):
    """See the service's specification: ``MarketExamplesExample``."""

    name: str
    description: str
    command: str


@dataclass(frozen=True)
class MarketExamples(Model):
    """See the service's specification: ``MarketExamples``."""

    ok: bool
    schema: str
    api_version: str
    timestamp_exact: Optional[datetime]
    execution_network: str
    count: int
    examples: list[MarketExamplesExample]


@dataclass(frozen=True)
class MarketFeesPairFeeCoherence(Model):
    """See the service's specification: ``MarketFeesPairFeeCoherence``."""

    status: str
    expected_fees_usd: Decimal
    reported_fees_usd: Decimal
    difference_usd: Decimal


@dataclass(frozen=True)
class MarketFeesPair(Model):
    """See the service's specification: ``MarketFeesPair``."""

    symbol: str
    volume_cumulative_onchain: Decimal
    fees_cumulative_onchain_raw: Decimal
    fees_base_cumulative_ui: Decimal
    fees_quote_cumulative_ui: Decimal
    fees_unknown_cumulative_ui: Decimal
    fee_coherence: MarketFeesPairFeeCoherence


@dataclass(frozen=True)
class MarketFees(Model):
    """See the service's specification: ``MarketFees``."""

    ok: bool
    schema: str
    api_version: str
    timestamp_exact: Optional[datetime]
    execution_network: str
    fee_bps: int
    fee_rate: Decimal
    fee_model: str
    fees_of_settled_claims_usd: Decimal
    pairs: list[MarketFeesPair]


@dataclass(frozen=True)
class MarketIntegrationManifestServiceRole(Model):
    """See the service's specification: ``MarketIntegrationManifestServiceRole``."""

    role: str
    base_url: str
    public_read_model: bool
    rpc_compatible: bool
    health_checks: list[str]


@dataclass(frozen=True)
class MarketIntegrationManifestDocument(Model):
    """See the service's specification: ``MarketIntegrationManifestDocument``."""

    name: str
    url: str
    files: list[str]
    schema: str


@dataclass(frozen=True)
class MarketIntegrationManifestRead(Model):
    """See the service's specification: ``MarketIntegrationManifestRead``."""

    name: str
    url: str
    files: list[str]


@dataclass(frozen=True)
class MarketIntegrationManifest(Model):
    """See the service's specification: ``MarketIntegrationManifest``."""

    ok: bool
    schema: str
    api_version: str
    timestamp_exact: Optional[datetime]
    execution_network: str
    name: str
    operateur: str
    market_name: str
    canonical_pair_id: str
    specification_openapi: str
    sdk_public: str
    endpoint_sets: dict[str, dict[str, str]]
    service_roles: dict[str, MarketIntegrationManifestServiceRole]
    documents: list[MarketIntegrationManifestDocument]
    #: Endpoints that are not documents; most take a query.
    reads: list[MarketIntegrationManifestRead]
    fix_documents: str
    limits: dict[str, str]


@dataclass(frozen=True)
class MarketLiteLatestCandleCandle(Model):
    """See the service's specification: ``MarketLiteLatestCandleCandle``."""

    open_ts: Optional[datetime]
    open: Decimal
    high: Decimal
    low: Decimal
    close: Decimal
    volume: Decimal
    quote_volume: Decimal
    trades: int


@dataclass(frozen=True)
class MarketLiteLatestCandle(Model):
    """See the service's specification: ``MarketLiteLatestCandle``."""

    ok: bool
    schema: str
    api_version: str
    timestamp_exact: Optional[datetime]
    execution_network: str
    symbol: str
    timeframe: str
    candle: Optional[MarketLiteLatestCandleCandle]


@dataclass(frozen=True)
class MarketLiteLatestFees(Model):
    """See the service's specification: ``MarketLiteLatestFees``."""

    ok: bool
    schema: str
    api_version: str
    timestamp_exact: Optional[datetime]
    execution_network: str
    fee_bps: int
    fee_rate: Decimal
    fee_model: str
    fees_cumulative_usd: Decimal


@dataclass(frozen=True)
class MarketLiteLatestPrice(Model):
    """See the service's specification: ``MarketLiteLatestPrice``."""

    ok: bool
    schema: str
    api_version: str
    timestamp_exact: Optional[datetime]
    execution_network: str
    symbol: str
    price_usd: Optional[Decimal]
    price_net_usd: Optional[Decimal]
    last: Optional[Decimal]
    bid: Optional[Decimal]
    ask: Optional[Decimal]
    price_source: str
    last_trade_ts: Optional[datetime]
    epoch: str
    seq: int
    delta_24h_percent: Optional[Decimal]
    degraded: bool


@dataclass(frozen=True)
class MarketLiteLatestTradeTrade(Model):
    """See the service's specification: ``MarketLiteLatestTradeTrade``."""

    trade_id: int
    price: Optional[Decimal]
    qty: Optional[Decimal]
    side: str
    ts: Optional[datetime]
    signature: Optional[str]
    source: str


@dataclass(frozen=True)
class MarketLiteLatestTrade(Model):
    """See the service's specification: ``MarketLiteLatestTrade``."""

    ok: bool
    schema: str
    api_version: str
    timestamp_exact: Optional[datetime]
    execution_network: str
    symbol: str
    trade: Optional[MarketLiteLatestTradeTrade]


@dataclass(frozen=True)
class MarketLitePairMetadataPair(Model):
    """See the service's specification: ``MarketLitePairMetadataPair``."""

    symbol: str
    base_mint: str
    quote_mint: str
    book_source: str


@dataclass(frozen=True)
class MarketLitePairMetadata(Model):
    """See the service's specification: ``MarketLitePairMetadata``."""

    ok: bool
    schema: str
    api_version: str
    timestamp_exact: Optional[datetime]
    execution_network: str
    pairs: list[MarketLitePairMetadataPair]


@dataclass(frozen=True)
class MarketLitePoolRegistryPool(Model):
    """See the service's specification: ``MarketLitePoolRegistryPool``."""

    pool_id: str
    symbol: str


@dataclass(frozen=True)
class MarketLitePoolRegistry(Model):
    """See the service's specification: ``MarketLitePoolRegistry``."""

    ok: bool
    schema: str
    api_version: str
    timestamp_exact: Optional[datetime]
    execution_network: str
    pools: list[MarketLitePoolRegistryPool]


@dataclass(frozen=True)
class MarketLiteSummaryPair(Model):
    """See the service's specification: ``MarketLiteSummaryPair``."""

    symbol: str
    price_usd: Optional[Decimal]
    last: Optional[Decimal]
    volume_24h: Decimal
    quote_volume_24h: Decimal
    trades_24h: int
    delta_24h_percent: Optional[Decimal]


@dataclass(frozen=True)
class MarketLiteSummary(Model):
    """See the service's specification: ``MarketLiteSummary``."""

    ok: bool
    schema: str
    api_version: str
    timestamp_exact: Optional[datetime]
    execution_network: str
    pairs: list[MarketLiteSummaryPair]


@dataclass(frozen=True)
class MarketLiteTokenlistToken(Model):
    """See the service's specification: ``MarketLiteTokenlistToken``."""

    symbol: str
    mint: str
    decimals: int


@dataclass(frozen=True)
class MarketLiteTokenlist(Model):
    """See the service's specification: ``MarketLiteTokenlist``."""

    ok: bool
    schema: str
    api_version: str
    timestamp_exact: Optional[datetime]
    execution_network: str
    tokens: list[MarketLiteTokenlistToken]


@dataclass(frozen=True)
class MarketMarketcapToken(Model):
    """See the service's specification: ``MarketMarketcapToken``."""

    symbol: str
    mint: str
    total_supply: Optional[Decimal]
    price_usd: Optional[Decimal]
    market_cap_usd: Optional[Decimal]
    status: str


@dataclass(frozen=True)
class MarketMarketcap(Model):
    """See the service's specification: ``MarketMarketcap``."""

    ok: bool
    schema: str
    api_version: str
    timestamp_exact: Optional[datetime]
    execution_network: str
    tokens: list[MarketMarketcapToken]


@dataclass(frozen=True)
class MarketMetadataTokenAttribute(Model):
    """See the service's specification: ``MarketMetadataTokenAttribute``."""

    trait_type: str
    value: str


@dataclass(frozen=True)
class MarketMetadataTokenPropertiesFile(Model):
    """See the service's specification: ``MarketMetadataTokenPropertiesFile``."""

    uri: str
    type: str


@dataclass(frozen=True)
class MarketMetadataTokenProperties(Model):
    """See the service's specification: ``MarketMetadataTokenProperties``."""

    category: str
    files: list[MarketMetadataTokenPropertiesFile]


@dataclass(frozen=True)
class MarketMetadataToken(Model):
    """See the service's specification: ``MarketMetadataToken``."""

    mint: str
    name: str
    symbol: str
    description: str
    image: str
    external_url: str
    decimals: int
    metadata_uri: str
    attributes: list[MarketMetadataTokenAttribute]
    properties: MarketMetadataTokenProperties
    #: Symbol on the chain, if it differs; otherwise absent.
    onchain_symbol: Optional[str] = None


@dataclass(frozen=True)
class MarketMetadata(Model):
    """See the service's specification: ``MarketMetadata``."""

    ok: bool
    schema: str
    api_version: str
    timestamp_exact: Optional[datetime]
    execution_network: str
    count: int
    tokens: list[MarketMetadataToken]


@dataclass(frozen=True)
class MarketPairMetadataPairBaseTokenAttribute(Model):
    """See the service's specification: ``MarketPairMetadataPairBaseTokenAttribute``."""

    trait_type: str
    value: str


@dataclass(frozen=True)
class MarketPairMetadataPairBaseTokenPropertiesFile(Model):
    """See the service's specification: ``MarketPairMetadataPairBaseTokenPropertiesFile``."""

    uri: str
    type: str


@dataclass(frozen=True)
class MarketPairMetadataPairBaseTokenProperties(Model):
    """See the service's specification: ``MarketPairMetadataPairBaseTokenProperties``."""

    category: str
    files: list[MarketPairMetadataPairBaseTokenPropertiesFile]


@dataclass(frozen=True)
class MarketPairMetadataPairBaseToken(Model):
    """See the service's specification: ``MarketPairMetadataPairBaseToken``."""

    mint: str
    name: str
    symbol: str
    description: str
    image: str
    external_url: str
    decimals: int
    metadata_uri: str
    attributes: list[MarketPairMetadataPairBaseTokenAttribute]
    properties: MarketPairMetadataPairBaseTokenProperties
    #: Symbol on the chain, if it differs; otherwise absent.
    onchain_symbol: Optional[str] = None


@dataclass(frozen=True)
class MarketPairMetadataPairQuoteTokenAttribute(Model):
    """See the service's specification: ``MarketPairMetadataPairQuoteTokenAttribute``."""

    trait_type: str
    value: str


@dataclass(frozen=True)
class MarketPairMetadataPairQuoteTokenPropertiesFile(Model):
    """See the service's specification: ``MarketPairMetadataPairQuoteTokenPropertiesFile``."""

    uri: str
    type: str


@dataclass(frozen=True)
class MarketPairMetadataPairQuoteTokenProperties(Model):
    """See the service's specification: ``MarketPairMetadataPairQuoteTokenProperties``."""

    category: str
    files: list[MarketPairMetadataPairQuoteTokenPropertiesFile]


@dataclass(frozen=True)
class MarketPairMetadataPairQuoteToken(Model):
    """See the service's specification: ``MarketPairMetadataPairQuoteToken``."""

    mint: str
    name: str
    symbol: str
    description: str
    image: str
    external_url: str
    decimals: int
    metadata_uri: str
    attributes: list[MarketPairMetadataPairQuoteTokenAttribute]
    properties: MarketPairMetadataPairQuoteTokenProperties
    #: Symbol on the chain, if it differs; otherwise absent.
    onchain_symbol: Optional[str] = None


@dataclass(frozen=True)
class MarketPairMetadataPair(Model):
    """See the service's specification: ``MarketPairMetadataPair``."""

    pair_id: str
    symbol: str
    base_symbol: str
    base_mint: str
    quote_symbol: str
    quote_mint: str
    book_source: str
    status: str
    price_precision: int
    qty_precision: int
    tick_size: Decimal
    lot_size: Decimal
    min_qty: Decimal
    price_usd: Optional[Decimal]
    volume_24h: Decimal
    quote_volume_24h: Decimal
    trades_24h: int
    fee_bps: int
    pool_id: Optional[str]
    base_token: MarketPairMetadataPairBaseToken
    quote_token: MarketPairMetadataPairQuoteToken
    links: dict[str, str]


@dataclass(frozen=True)
class MarketPairMetadata(Model):
    """See the service's specification: ``MarketPairMetadata``."""

    ok: bool
    schema: str
    api_version: str
    timestamp_exact: Optional[datetime]
    execution_network: str
    count: int
    pairs: list[MarketPairMetadataPair]


@dataclass(frozen=True)
class MarketPairsPair(Model):
    """See the service's specification: ``MarketPairsPair``."""

    pair_id: str
    symbol: str
    base_symbol: str
    base_mint: str
    quote_symbol: str
    quote_mint: str
    book_source: str
    status: str
    price_precision: int
    qty_precision: int
    tick_size: Decimal
    lot_size: Decimal
    min_qty: Decimal
    price_usd: Optional[Decimal]
    volume_24h: Decimal
    quote_volume_24h: Decimal
    trades_24h: int
    fee_bps: int
    pool_id: Optional[str]


@dataclass(frozen=True)
class MarketPairs(Model):
    """See the service's specification: ``MarketPairs``."""

    ok: bool
    schema: str
    api_version: str
    timestamp_exact: Optional[datetime]
    execution_network: str
    canonical_pair_id: str
    count: int
    pairs: list[MarketPairsPair]


@dataclass(frozen=True)
class MarketPoolRegistryPool(Model):
    """See the service's specification: ``MarketPoolRegistryPool``."""

    pool_id: str
    program_id: str
    symbol: str
    base_mint: str
    quote_mint: str
    base_vault: str
    quote_vault: str
    lp_token_mint: Optional[str]
    pool_fee_bps: Optional[int]
    kind: str


@dataclass(frozen=True)
class MarketPoolRegistry(Model):
    """See the service's specification: ``MarketPoolRegistry``."""

    ok: bool
    schema: str
    api_version: str
    timestamp_exact: Optional[datetime]
    execution_network: str
    count: int
    pools: list[MarketPoolRegistryPool]


@dataclass(frozen=True)
class MarketPool(Model):
    """See the service's specification: ``MarketPool``."""

    ok: bool
    schema: str
    api_version: str
    timestamp_exact: Optional[datetime]
    execution_network: str
    symbol: str
    program_id: str
    lp_token_mint: Optional[str]
    pool_fee_bps: Optional[int]
    pool_id: str
    base_mint: str
    quote_mint: str
    base_vault: str
    quote_vault: str
    base_vault_balance_atoms: int
    base_vault_balance: Decimal
    quote_vault_balance_atoms: int
    quote_vault_balance: Decimal
    spot_price_usd: Optional[Decimal]
    slot: int
    ts: Optional[datetime]
    proof_hash: str
    liquidity_usd: Optional[Decimal]


@dataclass(frozen=True)
class MarketPoolsPool(Model):
    """See the service's specification: ``MarketPoolsPool``."""

    symbol: str
    program_id: str
    lp_token_mint: Optional[str]
    pool_fee_bps: Optional[int]
    pool_id: str
    base_mint: str
    quote_mint: str
    base_vault: str
    quote_vault: str
    base_vault_balance_atoms: int
    base_vault_balance: Decimal
    quote_vault_balance_atoms: int
    quote_vault_balance: Decimal
    spot_price_usd: Optional[Decimal]
    slot: int
    ts: Optional[datetime]
    proof_hash: str
    liquidity_usd: Optional[Decimal]


@dataclass(frozen=True)
class MarketPools(Model):
    """See the service's specification: ``MarketPools``."""

    ok: bool
    schema: str
    api_version: str
    timestamp_exact: Optional[datetime]
    execution_network: str
    count: int
    pools: list[MarketPoolsPool]


@dataclass(frozen=True)
class MarketPricePrice(Model):
    """See the service's specification: ``MarketPricePrice``."""

    symbol: str
    price_usd: Optional[Decimal]
    price_net_usd: Optional[Decimal]
    last: Optional[Decimal]
    bid: Optional[Decimal]
    ask: Optional[Decimal]
    price_source: str
    last_trade_ts: Optional[datetime]
    epoch: str
    seq: int
    delta_24h_percent: Optional[Decimal]
    degraded: bool


@dataclass(frozen=True)
class MarketPrice(Model):
    """See the service's specification: ``MarketPrice``."""

    ok: bool
    schema: str
    api_version: str
    timestamp_exact: Optional[datetime]
    execution_network: str
    canonical_pair_id: str
    prices: list[MarketPricePrice]


@dataclass(frozen=True)
class MarketProofProof(Model):
    """See the service's specification: ``MarketProofProof``."""

    source_of_truth: str
    verification_status: str
    executable_hash: str
    source_commit: str


@dataclass(frozen=True)
class MarketProofSubjectProof(Model):
    """See the service's specification: ``MarketProofSubjectProof``."""

    source_of_truth: str
    verification_status: str
    executable_hash: str
    source_commit: str


@dataclass(frozen=True)
class MarketProofSubjectPool(Model):
    """See the service's specification: ``MarketProofSubjectPool``."""

    pool_id: str
    base_mint: str
    quote_mint: str
    base_vault: str
    quote_vault: str
    base_vault_balance_atoms: int
    base_vault_balance: Decimal
    quote_vault_balance_atoms: int
    quote_vault_balance: Decimal
    spot_price_usd: Optional[Decimal]
    slot: int
    ts: Optional[datetime]
    proof_hash: str


@dataclass(frozen=True)
class MarketProofSubjectPrice(Model):
    """See the service's specification: ``MarketProofSubjectPrice``."""

    symbol: str
    price_usd: Optional[Decimal]
    epoch: str
    seq: int


@dataclass(frozen=True)
class MarketProofSubject(Model):
    """See the service's specification: ``MarketProofSubject``."""

    timestamp_exact: Optional[datetime]
    proof: MarketProofSubjectProof
    slot: int
    pools: list[MarketProofSubjectPool]
    prices: list[MarketProofSubjectPrice]


@dataclass(frozen=True)
class MarketProof(Model):
    """See the service's specification: ``MarketProof``."""

    ok: bool
    schema: str
    api_version: str
    timestamp_exact: Optional[datetime]
    execution_network: str
    proof: MarketProofProof
    subject: MarketProofSubject
    proof_hash: str
    recompute: str


@dataclass(frozen=True)
class MarketProviderPacksPack(Model):
    """See the service's specification: ``MarketProviderPacksPack``."""

    for_: str = field(metadata={"name": "for"})
    consumers: list[str]
    facts: dict[str, str]
    files: list[str]
    auto_consumable: Any
    needs_external_onboarding: bool
    blocker: Optional[str] = None


@dataclass(frozen=True)
class MarketProviderPacks(Model):
    """See the service's specification: ``MarketProviderPacks``."""

    ok: bool
    schema: str
    api_version: str
    timestamp_exact: Optional[datetime]
    execution_network: str
    count: int
    packs: list[MarketProviderPacksPack]


@dataclass(frozen=True)
class MarketStatusActivityTotalsOnchainExact(Model):
    """See the service's specification: ``MarketStatusActivityTotalsOnchainExact``."""

    swaps_total: int
    volume_usd: Decimal
    fees_usd: Decimal
    fees_base_ui: Decimal
    fees_quote_ui: Decimal
    onchain_fee_volume_status: str


@dataclass(frozen=True)
class MarketStatusActivityTotalsHistoricalReconstructed(Model):
    """See the service's specification: ``MarketStatusActivityTotalsHistoricalReconstructed``."""

    swaps_total: int
    volume_usd: Decimal
    fees_usd: Decimal
    fees_base_ui: Decimal
    fees_quote_ui: Decimal
    onchain_fee_volume_status: str


@dataclass(frozen=True)
class MarketStatusActivityTotalsMatchedExact(Model):
    """Trades of the service's own order book, which have no fee (our choice)."""

    trades_total: int
    volume_usd: Decimal


@dataclass(frozen=True)
class MarketStatusActivityTotalsRfqSettled(Model):
    """See the service's specification: ``MarketStatusActivityTotalsRfqSettled``."""

    trades_total: int
    volume_usd: Decimal
    fees_usd: Decimal
    trades_24h: int
    volume_24h_usd: Decimal


@dataclass(frozen=True)
class MarketStatusActivityTotalsFeeCoherence(Model):
    """See the service's specification: ``MarketStatusActivityTotalsFeeCoherence``."""

    status: str
    expected_fees_usd: Decimal
    reported_fees_usd: Decimal
    difference_usd: Decimal


@dataclass(frozen=True)
class MarketStatusActivityTotals(Model):
    """See the service's specification: ``MarketStatusActivityTotals``."""

    swaps_total: int
    swaps_total_onchain: int
    swaps_total_reconstructed: int
    volume_24h_usd: Decimal
    volume_7d_usd: Decimal
    volume_cumulative_usd: Decimal
    volume_cumulative_onchain: Decimal
    volume_cumulative_reconstructed: Decimal
    fees_cumulative_usd: Decimal
    fees_cumulative_onchain_raw: Decimal
    fees_cumulative_reconstructed: Decimal
    fees_paid_cumulative_usd: Decimal
    fees_collected_cumulative_usd: Decimal
    fees_base_cumulative_ui: Decimal
    fees_quote_cumulative_ui: Decimal
    fees_unknown_cumulative_ui: Decimal
    fee_bps: int
    fee_rate: Decimal
    fee_model: str
    traders_estimated_total: int
    estimated_traders_total: int
    traders_estimated: int
    traders_estimated_source: str
    traders_total_estimated: int
    onchain_exact: MarketStatusActivityTotalsOnchainExact
    historical_reconstructed: MarketStatusActivityTotalsHistoricalReconstructed
    #: Trades of the service's own order book, which have no fee (our choice).
    matched_exact: MarketStatusActivityTotalsMatchedExact
    rfq_settled: MarketStatusActivityTotalsRfqSettled
    fee_coherence: Optional[MarketStatusActivityTotalsFeeCoherence]


@dataclass(frozen=True)
class MarketStatusCurrentActiveSnapshotFeeCoherence(Model):
    """See the service's specification: ``MarketStatusCurrentActiveSnapshotFeeCoherence``."""

    status: str
    expected_fees_usd: Decimal
    reported_fees_usd: Decimal
    difference_usd: Decimal


@dataclass(frozen=True)
class MarketStatusCurrentActiveSnapshot(Model):
    """See the service's specification: ``MarketStatusCurrentActiveSnapshot``."""

    key: str
    label: str
    heading: str
    time: Optional[datetime]
    current: bool
    pool_id: str
    lp_token_mint: str
    base_vault_ui: Decimal
    quote_vault_ui: Decimal
    swaps_total: int
    traders_estimated: int
    volume_usd: Decimal
    fees_usd: Decimal
    fee_rate: Decimal
    fee_bps: int
    implied_pair_price: Optional[Decimal]
    snapshot_source: str
    snapshot_reference: str
    fee_coherence: MarketStatusCurrentActiveSnapshotFeeCoherence
    current_volume_usd: Decimal
    current_swaps: int
    current_traders_estimated: int
    current_fees_usd: Decimal
    current_fee_rate: Decimal
    current_pair_price: Optional[Decimal]
    current_timestamp: Optional[datetime]


@dataclass(frozen=True)
class MarketStatusHistoricalSnapshotFeeCoherence(Model):
    """See the service's specification: ``MarketStatusHistoricalSnapshotFeeCoherence``."""

    status: str
    expected_fees_usd: Decimal
    reported_fees_usd: Decimal
    difference_usd: Decimal


@dataclass(frozen=True)
class MarketStatusHistoricalSnapshot(Model):
    """See the service's specification: ``MarketStatusHistoricalSnapshot``."""

    key: str
    label: str
    heading: str
    time: Optional[datetime]
    current: bool
    pool_id: str
    lp_token_mint: str
    base_vault_ui: Decimal
    quote_vault_ui: Decimal
    swaps_total: int
    traders_estimated: int
    volume_usd: Decimal
    fees_usd: Decimal
    fee_rate: Decimal
    fee_bps: int
    implied_pair_price: Optional[Decimal]
    snapshot_source: str
    snapshot_reference: str
    fee_coherence: MarketStatusHistoricalSnapshotFeeCoherence


@dataclass(frozen=True)
class MarketStatusHistoricalSnapshotFeed(Model):
    """See the service's specification: ``MarketStatusHistoricalSnapshotFeed``."""

    key: str
    BASE_VAULT: Decimal
    QUOTE_VAULT: Decimal
    USER_BASE_ATA: Decimal
    USER_QUOTE_ATA: Decimal
    TOTAL_BASE: Decimal
    TOTAL_QUOTE: Decimal
    last_updated: Optional[datetime]
    swaps_total: int
    volume_tokens_total: Decimal
    volume_usd_est_total: Decimal
    fees_tokens_est_total: Decimal
    fees_usd_est_total: Decimal
    negociants_est_total: int
    swaps_per_negociant_estimate: Optional[Decimal]
    negociants_label: str


@dataclass(frozen=True)
class MarketStatusSnapshotHierarchy(Model):
    """See the service's specification: ``MarketStatusSnapshotHierarchy``."""

    selection_rule: str
    selected_current_snapshot_key: Optional[str]
    selected_current_snapshot_time: Optional[datetime]
    latest_available_snapshot_key: Optional[str]
    latest_available_snapshot_time: Optional[datetime]
    latest_historical_snapshot_key: Optional[str]
    latest_historical_snapshot_time: Optional[datetime]
    historical_count: int
    historical_sorted_desc: bool
    current_is_latest: bool


@dataclass(frozen=True)
class MarketStatusMetricsLayers(Model):
    """See the service's specification: ``MarketStatusMetricsLayers``."""

    onchain_exact: str
    historical_reconstructed: str
    matched_exact: str
    public_totals: str


@dataclass(frozen=True)
class MarketStatusEstimatedPublic(Model):
    """See the service's specification: ``MarketStatusEstimatedPublic``."""

    swaps_total: int
    volume_usd: Decimal
    fees_usd: Decimal
    traders_estimated: int


@dataclass(frozen=True)
class MarketStatusReconstructedPublicMetrics(Model):
    """See the service's specification: ``MarketStatusReconstructedPublicMetrics``."""

    swaps_total: int
    volume_usd: Decimal
    fees_usd: Decimal
    traders_estimated: int


@dataclass(frozen=True)
class MarketStatusCoherenceCheckFeeCoherence(Model):
    """See the service's specification: ``MarketStatusCoherenceCheckFeeCoherence``."""

    status: str
    expected_fees_usd: Decimal
    reported_fees_usd: Decimal
    difference_usd: Decimal


@dataclass(frozen=True)
class MarketStatusCoherenceCheck(Model):
    """See the service's specification: ``MarketStatusCoherenceCheck``."""

    coherence_status: str
    onchain_fee_volume_status: str
    fee_coherence: MarketStatusCoherenceCheckFeeCoherence


@dataclass(frozen=True)
class MarketStatusOnchainPoolState(Model):
    """See the service's specification: ``MarketStatusOnchainPoolState``."""

    pool_id: str
    base_mint: str
    quote_mint: str
    base_vault: str
    quote_vault: str
    base_vault_balance_atoms: int
    base_vault_balance: Decimal
    quote_vault_balance_atoms: int
    quote_vault_balance: Decimal
    spot_price_usd: Optional[Decimal]
    slot: int
    ts: Optional[datetime]
    proof_hash: str


@dataclass(frozen=True)
class MarketStatusRollingWindows(Model):
    """See the service's specification: ``MarketStatusRollingWindows``."""

    exact_24h_volume_usd: Decimal
    exact_7d_volume_usd: Decimal
    exact_delta_24h_percent: Optional[Decimal]
    exact_last_indexed_trade_ts: Optional[datetime]
    exact_last_indexed_trade_age_seconds: Optional[int]
    exact_window_reference_trade_ts: Optional[datetime]
    status_24h: str
    status_7d: str
    policy: str


@dataclass(frozen=True)
class MarketStatusFreshnessRollingWindowStatus(Model):
    """See the service's specification: ``MarketStatusFreshnessRollingWindowStatus``."""

    h24: str
    d7: str


@dataclass(frozen=True)
class MarketStatusFreshness(Model):
    """See the service's specification: ``MarketStatusFreshness``."""

    data_freshness_seconds: int
    last_chain_sync_at: Optional[datetime]
    last_indexed_trade_ts: Optional[datetime]
    last_indexed_trade_age_seconds: Optional[int]
    rolling_window_status: MarketStatusFreshnessRollingWindowStatus


@dataclass(frozen=True)
class MarketStatusDegradationState(Model):
    """See the service's specification: ``MarketStatusDegradationState``."""

    degraded: bool
    reasons: list[str]
    rpc_failover_active: bool
    rpc_upstream_count: int
    price_source: str


@dataclass(frozen=True)
class MarketStatusRpcPolicy(Model):
    """See the service's specification: ``MarketStatusRpcPolicy``."""

    selection_mode: str
    configured_upstream_count: int
    configured_upstreams: list[str]
    preferred_primary: str
    fallback_upstreams: list[str]
    active_upstream: str


@dataclass(frozen=True)
class MarketStatusRpcHealthProvider(Model):
    """See the service's specification: ``MarketStatusRpcHealthProvider``."""

    url: str
    available: bool
    latestSlot: int
    latencyMs: Optional[int]
    lastOkAt: Optional[datetime]
    lastError: Optional[str]


@dataclass(frozen=True)
class MarketStatusRpcHealth(Model):
    """See the service's specification: ``MarketStatusRpcHealth``."""

    activeRpcUrl: str
    rpcLatencyMs: Optional[int]
    latestSlotSeen: int
    lastSignatureSeen: str
    lastChainSyncAt: Optional[datetime]
    slotLag: Optional[int]
    primary: str
    fallback: str
    providers: list[MarketStatusRpcHealthProvider]


@dataclass(frozen=True)
class MarketStatusServiceRole(Model):
    """See the service's specification: ``MarketStatusServiceRole``."""

    role: str
    base_url: str
    public_read_model: bool
    rpc_compatible: bool
    health_checks: list[str]


@dataclass(frozen=True)
class MarketStatusProof(Model):
    """See the service's specification: ``MarketStatusProof``."""

    source_of_truth: str
    verification_status: str
    executable_hash: str
    source_commit: str


@dataclass(frozen=True)
class MarketStatus(Model):
    """See the service's specification: ``MarketStatus``."""

    ok: bool
    data_mode: str
    fallback_active: bool
    api_version: str
    source: str
    schema: str
    proof_scope: str
    execution_network: str
    canonical_pair_id: str
    pair_id: str
    pair_label: str
    market_name: str
    control_chain_id: int
    control_chain_role: str
    control_chain_rpc_compatible: bool
    timestamp_exact: Optional[datetime]
    updated_at: Optional[datetime]
    program_id: str
    pool_id: str
    base_asset_symbol: str
    quote_onchain_symbol: str
    quote_public_symbol: str
    quote_public_label: str
    settlement_asset_symbol: str
    settlement_asset_label: str
    settlement_role: str
    spot_price_usd: Optional[Decimal]
    current_live_price_usd: Optional[Decimal]
    current_live_price_gross_usd: Optional[Decimal]
    current_live_price_net_usd: Optional[Decimal]
    price_gross_usd: Optional[Decimal]
    price_net_usd: Optional[Decimal]
    locked_floor_price_usd: Optional[Decimal]
    current_live_floor_price_usd: Optional[Decimal]
    floor_locked: bool
    price_truth_mode: str
    price_source_summary: str
    market_scope: str
    delta_24h_percent: Optional[Decimal]
    delta_24h_status: str
    swaps_total: int
    swaps_total_onchain: int
    swaps_total_reconstructed: int
    volume_24h_usd: Decimal
    volume_7d_usd: Decimal
    volume_cumulative_usd: Decimal
    volume_cumulative_onchain: Decimal
    volume_cumulative_reconstructed: Decimal
    fees_cumulative_usd: Decimal
    fees_cumulative_onchain_raw: Decimal
    fees_cumulative_reconstructed: Decimal
    fees_paid_cumulative_usd: Decimal
    fees_collected_cumulative_usd: Decimal
    fees_base_cumulative_ui: Decimal
    fees_quote_cumulative_ui: Decimal
    fees_unknown_cumulative_ui: Decimal
    fee_bps: int
    fee_rate: Decimal
    fee_model: str
    traders_estimated_total: int
    estimated_traders_total: int
    activity_totals: MarketStatusActivityTotals
    current_active_snapshot: Optional[MarketStatusCurrentActiveSnapshot]
    historical_snapshots: list[MarketStatusHistoricalSnapshot]
    historicalSnapshots: list[MarketStatusHistoricalSnapshot]
    historicalSnapshotFeeds: list[MarketStatusHistoricalSnapshotFeed]
    snapshot_hierarchy: MarketStatusSnapshotHierarchy
    metrics_layers: MarketStatusMetricsLayers
    estimated_public: MarketStatusEstimatedPublic
    reconstructed_public_metrics: MarketStatusReconstructedPublicMetrics
    coherence_check: MarketStatusCoherenceCheck
    onchain_pool_state: Optional[MarketStatusOnchainPoolState]
    rolling_windows: MarketStatusRollingWindows
    visible_liquidity_usd: Decimal
    guarantee_liquidity_usd: Decimal
    total_backing_estimate_usd: Decimal
    last_trade_ts: Optional[datetime]
    last_trade_signature: str
    slot: int
    data_freshness_seconds: int
    freshness: MarketStatusFreshness
    degradation_state: MarketStatusDegradationState
    proof_hash: str
    last_chain_sync_at: Optional[datetime]
    active_rpc_url: str
    rpc_policy: MarketStatusRpcPolicy
    rpc_health: MarketStatusRpcHealth
    sources: dict[str, str]
    endpoint_sets: dict[str, dict[str, str]]
    service_roles: dict[str, MarketStatusServiceRole]
    proof: MarketStatusProof


@dataclass(frozen=True)
class MarketSubmissionPacksPack(Model):
    """See the service's specification: ``MarketSubmissionPacksPack``."""

    for_: str = field(metadata={"name": "for"})
    consumers: list[str]
    facts: dict[str, str]
    files: list[str]
    auto_consumable: Any
    needs_external_onboarding: bool
    blocker: Optional[str] = None


@dataclass(frozen=True)
class MarketSubmissionPacks(Model):
    """See the service's specification: ``MarketSubmissionPacks``."""

    ok: bool
    schema: str
    api_version: str
    timestamp_exact: Optional[datetime]
    execution_network: str
    count: int
    packs: list[MarketSubmissionPacksPack]


@dataclass(frozen=True)
class MarketTokensTokenObservedAccount(Model):
    """See the service's specification: ``MarketTokensTokenObservedAccount``."""

    address: str
    amountUi: Decimal
    amountAtoms: int
    amountFormatted: str
    amountCompact: str
    role: str
    label: str
    poolAddress: Optional[str]
    poolLabel: Optional[str]


@dataclass(frozen=True)
class MarketTokensToken(Model):
    """See the service's specification: ``MarketTokensToken``."""

    mint: str
    symbol: str
    name: str
    decimals: int
    role: str
    logo_uri: str
    metadata_uri: str
    image_origin: str
    image_ipfs_uri: str
    image_gateway_url: str
    local_fallback_logo_uri: str
    observed_accounts: list[MarketTokensTokenObservedAccount]
    observed_account_count: int
    observed_inventory_mode: str
    observed_inventory_ui: Decimal
    observed_inventory_formatted: str
    observed_inventory_compact: str
    primary_observed_account: Optional[str]
    primary_fee_observed_account: Optional[str]
    onchain_symbol: Optional[str] = None


@dataclass(frozen=True)
class MarketTokens(Model):
    """See the service's specification: ``MarketTokens``."""

    ok: bool
    data_mode: str
    fallback_active: bool
    api_version: str
    source: str
    execution_network: str
    canonical_pair_id: str
    control_chain_id: int
    control_chain_role: str
    control_chain_rpc_compatible: bool
    timestamp_exact: Optional[datetime]
    proof_scope: str
    schema: str
    count: int
    tokens: list[MarketTokensToken]


@dataclass(frozen=True)
class MarketWalletIndexWallet(Model):
    """See the service's specification: ``MarketWalletIndexWallet``."""

    address: str
    amountUi: Decimal
    amountAtoms: int
    amountFormatted: str
    amountCompact: str
    role: str
    label: str
    poolAddress: Optional[str]
    poolLabel: Optional[str]
    symbol: str
    mint: str
    slot: int


@dataclass(frozen=True)
class MarketWalletIndex(Model):
    """See the service's specification: ``MarketWalletIndex``."""

    ok: bool
    schema: str
    api_version: str
    timestamp_exact: Optional[datetime]
    execution_network: str
    wallet_page: str
    note: str
    wallets: list[MarketWalletIndexWallet]


@dataclass(frozen=True)
class TokenListVersion(Model):
    """See the service's specification: ``TokenListVersion``."""

    major: int
    minor: int
    patch: int


@dataclass(frozen=True)
class TokenListToken(Model):
    """See the service's specification: ``TokenListToken``."""

    chainId: int
    address: str
    decimals: int
    name: str
    symbol: str
    logoURI: Optional[str] = None
    extensions: Optional[dict[str, str]] = None


@dataclass(frozen=True)
class TokenList(Model):
    """See the service's specification: ``TokenList``."""

    name: str
    timestamp: Optional[datetime]
    version: TokenListVersion
    keywords: list[str]
    tokens: list[TokenListToken]
    logoURI: Optional[str] = None


@dataclass(frozen=True)
class CoinGeckoOrderBook(Model):
    """See the service's specification: ``CoinGeckoOrderBook``."""

    ticker_id: str
    #: Unix milliseconds.
    timestamp: int
    #: Price and quantity, best first.
    bids: list[Level]
    #: Price and quantity, best first.
    asks: list[Level]


@dataclass(frozen=True)
class CoinGeckoTradesBuy(Model):
    """See the service's specification: ``CoinGeckoTradesBuy``."""

    trade_id: int
    price: Decimal
    base_volume: Decimal
    target_volume: Decimal
    #: Unix milliseconds.
    trade_timestamp: int
    #: Side of the aggressor.
    type: str


@dataclass(frozen=True)
class CoinGeckoTradesSell(Model):
    """See the service's specification: ``CoinGeckoTradesSell``."""

    trade_id: int
    price: Decimal
    base_volume: Decimal
    target_volume: Decimal
    #: Unix milliseconds.
    trade_timestamp: int
    #: Side of the aggressor.
    type: str


@dataclass(frozen=True)
class CoinGeckoTrades(Model):
    """See the service's specification: ``CoinGeckoTrades``."""

    buy: Optional[list[CoinGeckoTradesBuy]] = None
    sell: Optional[list[CoinGeckoTradesSell]] = None


@dataclass(frozen=True)
class CoinMarketCapOrderBook(Model):
    """See the service's specification: ``CoinMarketCapOrderBook``."""

    #: Unix milliseconds.
    timestamp: int
    #: Price and quantity, best first.
    bids: list[Level]
    #: Price and quantity, best first.
    asks: list[Level]


@dataclass(frozen=True)
class CoinMarketCapTrade(Model):
    """See the service's specification: ``CoinMarketCapTrade``."""

    trade_id: int
    price: Decimal
    base_volume: Decimal
    quote_volume: Decimal
    #: Unix milliseconds.
    timestamp: int
    #: Side of the aggressor.
    type: str


@dataclass(frozen=True)
class ScreenerBlock(Model):
    """See the service's specification: ``ScreenerBlock``."""

    #: Sequence number of the engine's command; our choice.
    blockNumber: int
    #: Unix seconds.
    blockTimestamp: int


@dataclass(frozen=True)
class ScreenerLatestBlock(Model):
    """See the service's specification: ``ScreenerLatestBlock``."""

    block: ScreenerBlock


@dataclass(frozen=True)
class ScreenerAssetAsset(Model):
    """See the service's specification: ``ScreenerAssetAsset``."""

    #: The mint, or the symbol of a token without one.
    id: str
    name: str
    symbol: str
    totalSupply: Optional[Decimal] = None


@dataclass(frozen=True)
class ScreenerAsset(Model):
    """See the service's specification: ``ScreenerAsset``."""

    asset: ScreenerAssetAsset


@dataclass(frozen=True)
class ScreenerPairPair(Model):
    """See the service's specification: ``ScreenerPairPair``."""

    id: str
    dexKey: str
    #: The base token.
    asset0Id: str
    #: The quote token.
    asset1Id: str
    feeBps: int
    #: The block in which the pair was defined. Absent if that is unknown, as in data of an earlier version.
    createdAtBlockNumber: Optional[int] = None
    #: Its time, Unix seconds.
    createdAtBlockTimestamp: Optional[int] = None
    #: The command that defined it: the number of its block.
    createdAtTxnId: Optional[str] = None


@dataclass(frozen=True)
class ScreenerPair(Model):
    """See the service's specification: ``ScreenerPair``."""

    pair: ScreenerPairPair


@dataclass(frozen=True)
class ScreenerEventsEventMetadata(Model):
    """See the service's specification: ``ScreenerEventsEventMetadata``."""

    #: Slot of the transaction.
    slot: str


@dataclass(frozen=True)
class ScreenerEventsEvent(Model):
    """See the service's specification: ``ScreenerEventsEvent``."""

    block: ScreenerBlock
    eventType: str
    txnId: str
    txnIndex: int
    eventIndex: int
    maker: str
    pairId: str
    priceNative: Decimal
    asset0In: Optional[Decimal] = None
    asset0Out: Optional[Decimal] = None
    asset1In: Optional[Decimal] = None
    asset1Out: Optional[Decimal] = None
    metadata: Optional[ScreenerEventsEventMetadata] = None


@dataclass(frozen=True)
class ScreenerEvents(Model):
    """See the service's specification: ``ScreenerEvents``."""

    events: list[ScreenerEventsEvent]


@dataclass(frozen=True)
class UdfConfigExchange(Model):
    """See the service's specification: ``UdfConfigExchange``."""

    value: str
    name: str
    desc: str


@dataclass(frozen=True)
class UdfConfigSymbolsType(Model):
    """See the service's specification: ``UdfConfigSymbolsType``."""

    name: str
    value: str


@dataclass(frozen=True)
class UdfConfig(Model):
    """See the service's specification: ``UdfConfig``."""

    supports_search: bool
    supports_group_request: bool
    supports_marks: bool
    supports_timescale_marks: bool
    supports_time: bool
    exchanges: list[UdfConfigExchange]
    symbols_types: list[UdfConfigSymbolsType]
    supported_resolutions: list[str]
    currency_codes: list[str]


@dataclass(frozen=True)
class UdfSymbol(Model):
    """See the service's specification: ``UdfSymbol``."""

    name: str
    ticker: str
    description: str
    type: str
    session: str
    exchange: str
    listed_exchange: str
    timezone: str
    format: str
    minmov: int
    minmov2: int
    #: A tick is minmov / pricescale.
    pricescale: int
    has_intraday: bool
    has_daily: bool
    has_weekly_and_monthly: bool
    intraday_multipliers: list[str]
    supported_resolutions: list[str]
    volume_precision: int
    data_status: str
    currency_code: str


@dataclass(frozen=True)
class UdfError(Model):
    """The answer to a request that cannot be served, with status 200."""

    s: str
    #: What was wrong.
    errmsg: str


@dataclass(frozen=True)
class UdfFound(Model):
    """See the service's specification: ``UdfFound``."""

    symbol: str
    full_name: str
    description: str
    exchange: str
    ticker: str
    type: str


@dataclass(frozen=True)
class UdfBars(Model):
    """Bars by column. Prices are numbers, as UDF has them."""

    s: str
    #: Open times, Unix seconds, ascending.
    t: list[int]
    o: list[Decimal]
    h: list[Decimal]
    l: list[Decimal]
    c: list[Decimal]
    #: Volumes in the base asset.
    v: list[Decimal]


@dataclass(frozen=True)
class UdfNoData(Model):
    """See the service's specification: ``UdfNoData``."""

    s: str
    #: Time of the newest bar before, Unix seconds; absent: there is none.
    nextTime: Optional[int] = None


@dataclass(frozen=True)
class MarketSchemas(Model):
    """See the service's specification: ``MarketSchemas``."""

    schema: str
    api_version: str
    count: int
    #: JSON Schemas (draft 2020-12), by the value of a document's member `schema`.
    schemas: dict[str, dict[str, Any]]


@dataclass(frozen=True)
class ClaimTransaction(Model):
    """Our choice."""

    claim_id: str
    state: str
    #: Unsigned v0 payment transaction, base64, with a blockhash of now.
    transaction: str
    recent_blockhash: str
    last_valid_block_height: int
    #: Commitment of the blockhash in the transaction: a node with default settings, whose `preflightCommitment` is
    #: the same, accepts it at once. Our choice; services before 0.2.0 do not have it.
    preflight_commitment: str
    expires_at: datetime


@dataclass(frozen=True)
class SolanaPayLabel(Model):
    """See the service's specification: ``SolanaPayLabel``."""

    label: str
    icon: str


@dataclass(frozen=True)
class SolanaPayAccount(Model):
    """See the service's specification: ``SolanaPayAccount``."""

    account: str


@dataclass(frozen=True)
class SolanaPayTransaction(Model):
    """See the service's specification: ``SolanaPayTransaction``."""

    #: Unsigned v0 transaction, base64.
    transaction: str
    message: str
