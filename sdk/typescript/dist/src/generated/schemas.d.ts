/** An exact decimal number. Never a float. */
export type Decimal = string;
/** A whole number of the asset's smallest units (atoms). */
export type Atoms = string;
/** RFC 3339, UTC, milliseconds or better. */
export type Timestamp = string;
/** An instrument that /api/v1/market/symbols lists. */
export type PairSymbol = string;
/** One run of the engine; sequences start again in the next. */
export type Epoch = string;
/** A payment rail. */
export type Rail = 'USDC' | 'SOL';
/** Network on which trades execute: that of the nodes, by the hash of its first block. Off mainnet the tokens have no value, and `degradation_state.reasons` of the market status has `not_mainnet`; before enough nodes have answered it has `network_unknown`. The values but the first are our choice. */
export type ExecutionNetwork = 'solana-mainnet-beta' | 'solana-devnet' | 'solana-testnet' | 'solana-local';
/** A fill size of the public ladder, in whole dollars. */
export type FillUSD = '250' | '1000' | '25000' | '250000' | '1000000' | '2500000';
/** A Solana account, base58 of 32 bytes. */
export type Address = string;
/** A transaction's signature, base58 of 64 bytes. */
export type Signature = string;
/** A ticket. Its form is our choice. */
export type OrderID = string;
/** A tranche of a ticket. Its form is our choice. */
export type TrancheID = string;
/** A quote. Its form is our choice. */
export type QuoteID = string;
/** A claim. Its form is our choice. */
export type ClaimID = string;
/** Basis points. */
export type Bps = number;
/** The shape of every error. */
export interface Problem {
    ok: false;
    /**
     * Code:
     *
     * | code | status | when |
     * |---|---|---|
     * | `INVALID_JSON` | 400 | the body is not a flat JSON object |
     * | `MISSING_FIELD` | 400 | a member or parameter is missing |
     * | `INVALID_FIELD` | 400 | a member, parameter or header is invalid |
     * | `INVALID_LIMIT` | 400 | `limit` is not a whole number from its minimum to its maximum; it is not clamped |
     * | `UNKNOWN_SYMBOL` | 400 | unknown instrument |
     * | `MALFORMED_REQUEST` | 400 | the request is not valid HTTP; our choice |
     * | `TAKER_NON_ADMIS_JETON` | 403 | the Bearer token is absent, unknown, expired or revoked, or another taker's |
     * | `ROUTE_INCONNUE` | 404 | unknown route |
     * | `UNKNOWN_TICKET` | 404 | unknown ticket or tranche |
     * | `UNKNOWN_CLAIM` | 404 | unknown claim or build |
     * | `UNKNOWN_POOL` | 404 | unknown pool |
     * | `METHOD_NOT_ALLOWED` | 405 | `Allow` lists the supported methods |
     * | `REQUEST_TIMEOUT` | 408 | the request did not arrive in time; our choice |
     * | `REFUS_DVP` | 409 | a guard of the desk tripped |
     * | `CAPACITY_EXHAUSTED` | 409 | the tranche does not have enough left |
     * | `CLAIM_EXPIRED` | 409 | the quote or the claim has ended |
     * | `PAYMENT_ALREADY_USED` | 409 | another claim has the payment |
     * | `IDEMPOTENCY_CONFLICT` | 409 | the key was used with another body |
     * | `BODY_TOO_LARGE` | 413 | over 64 KiB |
     * | `UNSUPPORTED_MEDIA_TYPE` | 415 | not JSON in UTF-8 |
     * | `PAYMENT_MISMATCH` | 422 | the payment does not fit the claim |
     * | `UPGRADE_REQUIRED` | 426 | the route is a WebSocket; our choice |
     * | `RATE_LIMITED` | 429 | too many requests or connections |
     * | `EMISSION_PAR_IP_TROP_RECENTE` | 429 | this client address (IP) got a token less than an hour ago |
     * | `HEADERS_TOO_LARGE` | 431 | over 16 KiB, 4 KiB on the ws address |
     * | `INTERNAL` | 500 | internal error; the log has details under `request_id`; our choice |
     * | `CHAIN_UNAVAILABLE` | 503 | nothing can be settled now |
     * | `OVERLOADED` | 503 | a queue is full |
     * | `READ_ONLY` | 503 | the service accepts no changes now |
     * | `LEADER_CHANGED` | 307, 503 | another node of the group leads, or the leader is unknown; our choice |
     * | `OTHER_GROUP` | 307, 400, 421 | another group of nodes serves the symbol; see `Location` or `error`; our choice |
     * | `GROUP_UNREACHABLE` | 502, 503 | the group that owns the request cannot be reached; our choice |
     */
    code: 'INVALID_JSON' | 'MISSING_FIELD' | 'INVALID_FIELD' | 'INVALID_LIMIT' | 'UNKNOWN_SYMBOL' | 'MALFORMED_REQUEST' | 'TAKER_NON_ADMIS_JETON' | 'ROUTE_INCONNUE' | 'UNKNOWN_TICKET' | 'UNKNOWN_CLAIM' | 'UNKNOWN_POOL' | 'METHOD_NOT_ALLOWED' | 'REQUEST_TIMEOUT' | 'REFUS_DVP' | 'CAPACITY_EXHAUSTED' | 'CLAIM_EXPIRED' | 'PAYMENT_ALREADY_USED' | 'IDEMPOTENCY_CONFLICT' | 'BODY_TOO_LARGE' | 'UNSUPPORTED_MEDIA_TYPE' | 'PAYMENT_MISMATCH' | 'UPGRADE_REQUIRED' | 'RATE_LIMITED' | 'EMISSION_PAR_IP_TROP_RECENTE' | 'HEADERS_TOO_LARGE' | 'INTERNAL' | 'CHAIN_UNAVAILABLE' | 'OVERLOADED' | 'READ_ONLY' | 'LEADER_CHANGED' | 'OTHER_GROUP' | 'GROUP_UNREACHABLE';
    /** One sentence for a person. */
    error: string;
    /**
     * More exact reason. More may be added; at present:
     *
     * | code | reasons |
     * |---|---|
     * | `INVALID_JSON` | `empty_body`, `byte_order_mark`, `not_an_object`, `syntax`, `too_deep`, `invalid_utf8`, `lone_surrogate`, `trailing_data` |
     * | `INVALID_FIELD` | `wrong_type`, `empty`, `too_long`, `repeated`, `not_whole`, `unknown_field`, `not_on_ladder`, `unknown_rail`, `rail_not_accepted`, `not_an_address`, `not_a_wallet`, `account_of_the_desk`, `not_an_id`, `not_a_signature`, `quote_mismatch`, `mismatch`, `not_visible_ascii`, `invalid_command`, `websocket_upgrade`, `not_a_key`, `bad_nonce`, `bad_signature`, `not_base64`, `one_of_two`, `unknown_fee_payer`, `unknown_channel`, `unknown_depth`, `too_many`, `before_from`, `too_many_events`, `too_far_back`, `unknown_side`, `unknown_interval`, `not_a_cursor`, `not_signed` |
     * | `MISSING_FIELD` | `empty` |
     * | `UNKNOWN_SYMBOL` | `unknown_symbol` |
     * | `INVALID_LIMIT` | `repeated` |
     * | `UNKNOWN_TICKET` | `unknown_ticket`, `unknown_tranche` |
     * | `UNKNOWN_CLAIM` | `unknown_claim`, `unknown_payment`, `unknown_build` |
     * | `REFUS_DVP` | `locked`, `inventory`, `price_corridor`, `price_stale`, `price_unavailable`, `wallet_claims`, `unproven_limit`, `unknown_pair`, `unknown_operator`, `empty_counterparty`, `message_mismatch`, `bad_signature`, `expired`, `already_settled`, `taker_funds`, `unbuildable`, `simulation_failed`, `refused` |
     * | `CAPACITY_EXHAUSTED` | `capacity_exhausted`, `unproven_share`, `ticket_withdrawn`, `ticket_expired` |
     * | `CLAIM_EXPIRED` | `quote_expired`, `claim_state`, `late_payment`, `undeliverable` |
     * | `PAYMENT_ALREADY_USED` | `payment_used`, `surplus` |
     * | `PAYMENT_MISMATCH` | `payment_mismatch`, `wrong_mint`, `wrong_destination`, `amount_short`, `wrong_payer`, `missing_reference`, `failed_on_chain`, `too_old`, `ambiguous_reference`, `terms_mismatch` |
     * | `UNSUPPORTED_MEDIA_TYPE` | `content_type`, `content_encoding` |
     * | `RATE_LIMITED` | `rate`, `connections`, `connections_per_ip` |
     * | `OVERLOADED` | `busy`, `stopping`, `outcome_unknown`, `desk_full`, `connections`, `not_running`, `tokens_full`, `history_behind`, `group` |
     * | `TAKER_NON_ADMIS_JETON` | `token_missing`, `token_malformed`, `token_unknown`, `taker_mismatch` |
     * | `EMISSION_PAR_IP_TROP_RECENTE` | `issuance` |
     * | `READ_ONLY` | `upgrade_not_finalized` |
     * | `CHAIN_UNAVAILABLE` | `pool_not_read` |
     * | `LEADER_CHANGED` | `outcome_unknown` |
     * | `OTHER_GROUP` | `other_group`, `misrouted` |
     * | `GROUP_UNREACHABLE` | `no_answer`, `bad_answer`, `outcome_unknown` |
     */
    reason?: string;
    /** The member of the body, query parameter or header that is wrong. Never a name that only the client knows. */
    field?: string;
    /** With `ROUTE_INCONNUE`: the path, or a constant if the path has other characters or is too long. */
    path?: string;
    /** With `LEADER_CHANGED`, if it is known: the leading node, and its address of the requested kind. */
    leader?: {
        id: string;
        url: string;
    };
    /** `X-Request-Id`. It identifies the request in the service's log. */
    request_id: string;
    service: '/';
    specification: '/public-sdk/openapi/svc_public_api_v1.json';
}
export interface ServiceDescription {
    ok: true;
    service: string;
    version: '1.1.0';
    /** Date of the last update. */
    mise_a_jour: string;
    operateur: string;
    contacts: Record<string, string>;
    encodage: 'UTF-8';
    /** Path of this document. */
    specification_openapi: '/public-sdk/openapi/svc_public_api_v1.json';
    sdk_public: '/public-sdk/';
    /** URL, or empty. */
    github: string;
    /** By group. */
    endpoints: Record<string, string[]>;
    qualification: {
        libelle: string;
        nature: string;
    };
    erreur_route_inconnue: string;
}
export interface Instrument {
    symbol: PairSymbol;
    base: string;
    quote: string;
    price_decimals: number;
    qty_decimals: number;
    tick_size: Decimal;
    lot_size: Decimal;
    min_qty: Decimal;
    max_qty: Decimal;
    max_price: Decimal;
    /** Source of the book. */
    book_source: 'matched' | 'mirrored';
    /** `unknown` (our choice): the group that has the instrument is unreachable. */
    status: 'trading' | 'halted' | 'auction' | 'unknown';
}
export interface Symbols {
    ok: true;
    symbols: Instrument[];
}
export interface Depth {
    ok: true;
    symbol: PairSymbol;
    epoch: Epoch;
    /** Of this channel: the same as on the WebSocket. */
    seq: number;
    /** Sequence number of the last command that the answer reflects. */
    engine_seq: number;
    ts: Timestamp | null;
    /** Best first. */
    bids: Array<[Decimal, Decimal]>;
    /** Best first. */
    asks: Array<[Decimal, Decimal]>;
    /** Source of the book. */
    source: 'matched' | 'mirrored';
    /** The slot of a mirrored book. If the chain cannot be read, the last book stays and its slot does not change; `ts` is the last change of anything in this answer. `oracle/heartbeat` has the book's age, and `degradation_state` of `status` the reason. */
    slot: number | null;
}
export interface Trade {
    trade_id: number;
    price: Decimal;
    qty: Decimal;
    /** Side of the aggressor. */
    side: 'buy' | 'sell';
    ts: Timestamp;
    signature: string | null;
    /** Source of the book. */
    source: 'matched' | 'mirrored';
}
export interface Trades {
    ok: true;
    symbol: PairSymbol;
    epoch: Epoch;
    /** Of this channel: the same as on the WebSocket. */
    seq: number;
    /** Sequence number of the last command that the answer reflects. */
    engine_seq: number;
    ts: Timestamp | null;
    /** Value of `before` for the page of older trades; null if there is none. */
    next_before: number | null;
    /** Newest first. */
    trades: Trade[];
}
/** A settled claim, without what names its client. Its form is our choice. */
export interface RfqTrade {
    /** Number of the sale among those of the pair, without gaps. */
    trade_id: number;
    price_usd: Decimal;
    fill_usd: '250' | '1000' | '25000' | '250000' | '1000000' | '2500000';
    base_amount: Decimal;
    base_amount_atoms: string;
    rail: Rail;
    payment_amount: Decimal;
    payment_amount_atoms: string;
    way: 'modular' | 'atomic';
    discount_bps: number;
    fee_bps: number;
    ts: Timestamp;
    /** Transaction that delivered; null if this node does not know it. */
    l1_signature: string | null;
}
/** Totals of the desk's sales of a pair. No other total has them. */
export interface RfqTotals {
    /** Sales since the desk's first one. */
    trades_total: number;
    volume_usd: Decimal;
    fees_usd: Decimal;
    /** Sales of the last 24 hours. */
    trades_24h: number;
    volume_24h_usd: Decimal;
}
export interface RfqTrades {
    ok: true;
    symbol: PairSymbol;
    totals: RfqTotals;
    /** Value of `before` for the page of older sales; null if there is none. */
    next_before: number | null;
    /** Newest first. */
    rfq_trades: RfqTrade[];
}
export interface Ticker {
    ok: true;
    symbol: PairSymbol;
    epoch: Epoch;
    /** Of this channel: the same as on the WebSocket. */
    seq: number;
    /** Sequence number of the last command that the answer reflects. */
    engine_seq: number;
    ts: Timestamp | null;
    last: Decimal | null;
    last_qty: Decimal | null;
    last_ts: Timestamp | null;
    bid: Decimal | null;
    bid_qty: Decimal | null;
    ask: Decimal | null;
    ask_qty: Decimal | null;
    mid: Decimal | null;
    spread: Decimal | null;
    open_24h: Decimal | null;
    high_24h: Decimal | null;
    low_24h: Decimal | null;
    volume_24h: Decimal;
    quote_volume_24h: Decimal;
    trades_24h: number;
    /** Source of the book. */
    source: 'matched' | 'mirrored';
    status: 'trading' | 'halted' | 'auction';
    auction?: CallAuction;
}
/** capacity = available + reserved + filled, always. */
export interface Tranche {
    tranche_id: TrancheID;
    capacity_usd: Decimal;
    available_usd: Decimal;
    /** Reserved by claims that are not paid yet. */
    reserved_usd: Decimal;
    /** Sold and paid. */
    filled_usd: Decimal;
    /** Our choice. exhausted: less than the smallest fill is left. withdrawn and expired: as its ticket. */
    state: 'open' | 'exhausted' | 'withdrawn' | 'expired';
}
export interface Ticket {
    order_id: OrderID;
    ticket_label: string;
    pair: PairSymbol;
    side: 'sell';
    /** Our choice. */
    state: 'open' | 'exhausted' | 'withdrawn' | 'expired';
    base_mint: Address;
    base_symbol: string;
    rails: Rail[];
    tranches: Tranche[];
    /** Price before the discount, in USD per base unit; null if there is no price or the ticket has ended. */
    reference_price_usd: Decimal | null;
    /** What the operator declares; the amount is not independently verified. */
    guarantee: {
        libelle: string;
        montant_verifie_independamment: false;
    };
    created_at: Timestamp;
    updated_at: Timestamp;
    /** null: never. */
    expires_at: Timestamp | null;
    /** Sequence number of the ticket's last change. */
    seq: number;
}
export interface MarketTickets {
    ok: true;
    /** Grows with every change of the document. */
    seq: number;
    ts: Timestamp;
    /** A claim of the smallest fill would be reserved now: the chain can be reached, and a ticket sells. Our choice; services before 0.2.0 do not have it. */
    accepting?: boolean;
    /** Why `accepting` is false, as in the RFQ status. Our choice; services before 0.2.0 do not have it. */
    accepting_reason?: string | null;
    tickets: Ticket[];
}
/** The first open ticket, by priority and then by age, with capacity for the smallest fill. */
export interface CurrentSellableTicket {
    ok: true;
    /** Grows with every change of the document. */
    seq: number;
    /** A claim of the smallest fill would be reserved now: the chain can be reached, and a ticket sells. Our choice; services before 0.2.0 do not have it. */
    accepting?: boolean;
    /** Why `accepting` is false, as in the RFQ status. Our choice; services before 0.2.0 do not have it. */
    accepting_reason?: string | null;
    /** The ticket that sells now: open, not locked, priced, with capacity and inventory for the smallest fill. null: none. */
    ticket: Ticket | null;
}
/** One source of a price, as it was last read. */
export interface DeskPriceSource {
    name: 'pyth' | 'pool' | 'operator';
    price_usd: Decimal | null;
    published_at: Timestamp | null;
    /** Seconds, at `ts`. */
    age_s: number | null;
    /** Why this source is not used: `price_missing`, `price_too_old`, `price_from_the_future`, `price_too_uncertain`, `price_without_quorum` (the nodes have no majority for a price); null: it is usable. */
    fault: string | null;
}
/** A price that quotes need. Our choice; services before 0.2.0 do not have it. */
export interface DeskPrice {
    /** Symbol of the pair whose base asset has this price, or the rail. */
    of: string;
    /** Null: there is no usable price, and nothing is quoted or sold at it. It is never an old price. */
    price_usd: Decimal | null;
    /** Where the price is from; null without a price. */
    source: 'book' | 'pyth' | 'pool' | 'operator' | 'unknown' | null;
    /** By the source; null without a price and of a book. */
    published_at: Timestamp | null;
    /** Seconds since `published_at`, at `ts`. */
    age_s: number | null;
    /** An older price is not used; 0: any age. */
    max_age_s: number;
    /** Half the width of the interval around the price; null: unknown. */
    confidence_usd: Decimal | null;
    /** Why there is no price: a fault of the sources (as in `sources`, or `price_sources_disagree`), or the reason with which a quote is refused (`price_unavailable`, `price_stale`, `price_corridor`); null: there is one. */
    fault: string | null;
    /** The sources of an asset with a rule in `prices`, in the order of preference; empty without a rule. */
    sources: DeskPriceSource[];
}
/** Columns of a row: order_id, tranche_id, pair, available_usd, best_price_usd (null: there is no price now), expires_unix_ms (null: never). */
export interface CompactBook {
    ok: true;
    /** Grows with every change of the document. */
    seq: number;
    /** A claim of the smallest fill would be reserved now: the chain can be reached, and a ticket sells. Our choice; services before 0.2.0 do not have it. */
    accepting?: boolean;
    /** Why `accepting` is false, as in the RFQ status. Our choice; services before 0.2.0 do not have it. */
    accepting_reason?: string | null;
    t: Array<[OrderID, TrancheID, PairSymbol, Decimal, Decimal | null, number | null]>;
}
export interface Levels {
    ok: true;
    levels: Array<{
        fill_usd: FillUSD;
        discount_bps: Bps;
    }>;
}
export interface Pairs {
    ok: true;
    pairs: Array<{
        pair: PairSymbol;
        base_symbol: string;
        base_mint: Address;
        base_decimals: number;
        quote_symbol: string;
        rails: Rail[];
        reference_price_usd: Decimal | null;
        /** Our choice. closed: no rail can pay for it. */
        status: 'active' | 'locked' | 'unpriced' | 'closed';
        /** The `reason` that a quote would be refused with; null while the pair is active. */
        reason: string | null;
    }>;
}
export interface Tokens {
    ok: true;
    tokens: Array<{
        symbol: string;
        /** null: native SOL, or not known to the desk. */
        mint: Address | null;
        /** null: not known to the desk. */
        decimals: number | null;
        /** The last entry of `roles`. */
        role: 'base' | 'quote' | 'settlement';
        roles: Array<'base' | 'quote' | 'settlement'>;
        /** Rails with which this token can be bought; for a payment token, its own rail. */
        rails: Rail[];
    }>;
    rails: Array<{
        rail: Rail;
        /** null: native SOL. */
        mint: Address | null;
        decimals: number;
        /** 1 = first. */
        priority: number;
        /** null: the rail is not configured. */
        pay_to: Address | null;
        price_usd: Decimal | null;
        priced_at: Timestamp | null;
        /** Where the price was read; null: there is none, or it is USDC, which counts as a dollar. Our choice; services before 0.2.0 do not have it. */
        price_source?: 'pyth' | 'pool' | 'operator' | 'unknown' | null;
        /** Half the width of its confidence interval; null: unknown. Our choice; services before 0.2.0 do not have it. */
        confidence_usd?: Decimal | null;
        /** Not locked. */
        active: boolean;
        /** The `reason` why the rail has no quotes; null if it has. */
        reason: string | null;
    }>;
}
export interface RailList {
    ok: true;
    active_rails: Rail[];
    rail_priority: Rail[];
}
export interface Lock {
    /** global, pair:SYMBOL, rail:RAIL or deliveries: while it is locked nothing goes out, and claims are taken and paid as before. */
    name: string;
    locked: boolean;
    /** Of the last change; null: never locked. */
    since: Timestamp | null;
    /** The operator's reason, free text. */
    reason: string | null;
}
/** Whether claims can be settled now. */
export interface Chain {
    available: boolean;
    /** Reason why the chain is not available. */
    reason: 'not_configured' | 'not_ready' | null;
    execution_network: ExecutionNetwork;
}
export interface Surfaces {
    public_mirror: {
        role: string;
        /** URL. */
        base_url: string;
    };
    registry_backend: {
        role: string;
        /** URL. */
        base_url: string;
    };
    native_backend: {
        role: string;
        /** URL. */
        base_url: string;
    };
    public_frontend: {
        role: string;
        /** URL. */
        base_url: string;
    };
}
export interface RFQStatus {
    ok: true;
    version: '1.0.0';
    api_version: '1.1.0';
    /** Grows with every change of the document. */
    seq: number;
    ts: Timestamp;
    /** The book's last change, or the service's start. */
    updated_at: Timestamp;
    /** Length in seconds of the cycle in which ts and prices change; a change of the book is visible at once. */
    refresh_s: number;
    /** A claim of the smallest fill would be reserved now: the chain can be reached, and a ticket sells. */
    accepting: boolean;
    /** Why `accepting` is false: `not_configured` or `not_ready` of the chain, `no_open_ticket`, or the reason with which a quote for the first open ticket would be refused. Our choice; services before 0.2.0 do not have it. */
    accepting_reason?: string | null;
    tickets: {
        total: number;
        open: number;
        exhausted: number;
        withdrawn: number;
        expired: number;
    };
    /** Sums over all tranches of open tickets. */
    open_tickets: {
        tranches: number;
        capacity_usd: Decimal;
        available_usd: Decimal;
        reserved_usd: Decimal;
        filled_usd: Decimal;
    };
    /** The ticket that sells now: open, not locked, priced, with capacity and inventory for the smallest fill. null: none. */
    current_sellable_ticket: OrderID | null;
    active_rails: Rail[];
    rail_priority: Rail[];
    partial_fill_sizes_usd: FillUSD[];
    locks: Lock[];
    /** The prices of all pairs, then of the rails but USDC, which counts as a dollar. Services before 0.2.0 do not have it. */
    prices?: DeskPrice[];
    chain: Chain;
    surfaces: Surfaces;
    /** The truth rule as URLs. */
    recommended: {
        read: {
            surface: string;
            method: 'GET' | 'POST';
            /** URL. */
            url: string;
        };
        confirm: {
            surface: string;
            method: 'GET' | 'POST';
            /** URL. */
            url: string;
        };
        claim: {
            surface: string;
            method: 'GET' | 'POST';
            /** URL. */
            url: string;
        };
        submit: {
            surface: string;
            method: 'GET' | 'POST';
            /** URL. */
            url: string;
        };
    };
    truth_rule: string;
    execution_network: ExecutionNetwork;
    control_chain_id: 1492;
    control_chain_role: string;
    control_chain_rpc_compatible: false;
}
export interface RobotManifest {
    ok: true;
    schema: 'svc_rfq_robot_manifest_v1';
    name: string;
    updated_at: Timestamp;
    truth_rule: string;
    active_rails: Rail[];
    rail_priority: Rail[];
    partial_fill_sizes_usd: FillUSD[];
    read_endpoints: {
        public_mirror_8012: {
            /** URL. */
            market_tickets: string;
            /** URL. */
            current_sellable_ticket: string;
            /** URL. */
            compact_book: string;
            /** URL. */
            levels: string;
            /** URL. */
            pairs: string;
            /** URL. */
            rails: string;
        };
        registry_backend_8000: {
            /** URL. */
            market_tickets: string;
            /** URL. */
            current_sellable_ticket: string;
        };
        native_backend_1492: {
            /** URL. */
            market_tickets: string;
            /** URL. */
            current_sellable_ticket: string;
        };
    };
    claim_endpoints: {
        /** URL. */
        preferred_modular_claim: string;
        /** URL. */
        preferred_atomic_claim: string;
        /** URL. */
        public_alias_modular_claim: string;
        /** URL. */
        public_alias_atomic_claim: string;
    };
    signature_submission: {
        /** URL. */
        primary_1492: string;
        /** URL. */
        public_alias_1492: string;
        /** URL. */
        fallback_8000: string;
    };
    required_fields: Array<'order_id' | 'tranche_id' | 'ticket_label' | 'fill_usd' | 'payment_rail' | 'l1_signature'>;
    examples: {
        /** A command line. */
        read_book: string;
        /** A command line. */
        read_levels: string;
        /** A command line. */
        build_claim: string;
        /** A command line. */
        verify_signature: string;
    };
}
export interface Discovery {
    ok: true;
    schema: 'svc_rfq_discovery_v1';
    name: string;
    version: '1.0.0';
    updated_at: Timestamp;
    /** URL. */
    service: string;
    /** URL. */
    specification: string;
    /** URL. */
    robot_manifest: string;
    /** URL. */
    status: string;
    /** URL. */
    board: string;
    /** URL. */
    desk_status: string;
    truth_rule: string;
    surfaces: Surfaces;
    read_endpoints: {
        public_mirror_8012: {
            /** URL. */
            market_tickets: string;
            /** URL. */
            current_sellable_ticket: string;
            /** URL. */
            compact_book: string;
            /** URL. */
            levels: string;
            /** URL. */
            pairs: string;
            /** URL. */
            rails: string;
        };
        registry_backend_8000: {
            /** URL. */
            market_tickets: string;
            /** URL. */
            current_sellable_ticket: string;
        };
        native_backend_1492: {
            /** URL. */
            market_tickets: string;
            /** URL. */
            current_sellable_ticket: string;
        };
    };
    claim_endpoints: {
        /** URL. */
        preferred_modular_claim: string;
        /** URL. */
        preferred_atomic_claim: string;
        /** URL. */
        public_alias_modular_claim: string;
        /** URL. */
        public_alias_atomic_claim: string;
    };
    signature_submission: {
        priority: string[];
        /** URL. */
        primary_1492: string;
        /** URL. */
        public_alias_1492: string;
        /** URL. */
        fallback_8000: string;
    };
    dvp: {
        /** URL. */
        handshake: string;
        /** URL. */
        build: string;
        /** URL. */
        submit: string;
        /** URL. */
        build_state: string;
    };
    rail_priority: Rail[];
    partial_fill_sizes_usd: FillUSD[];
    execution_network: ExecutionNetwork;
    control_chain_id: 1492;
    control_chain_role: string;
    control_chain_rpc_compatible: false;
}
export interface Board {
    ok: true;
    /** Grows with every change of the document. */
    seq: number;
    ts: Timestamp;
    /** A claim of the smallest fill would be reserved now: the chain can be reached, and a ticket sells. Our choice; services before 0.2.0 do not have it. */
    accepting?: boolean;
    /** Why `accepting` is false, as in the RFQ status. Our choice; services before 0.2.0 do not have it. */
    accepting_reason?: string | null;
    qualification: {
        libelle: string;
        nature: string;
    };
    layers: Array<'guaranteed_by' | 'operator_declared' | 'independently_verified'>;
    offers: Array<{
        order_id: OrderID;
        ticket_label: string;
        pair: PairSymbol;
        side: 'sell';
        rails: Rail[];
        available_usd: Decimal;
        best_price_usd: Decimal | null;
        guaranteed_by: {
            libelle: string;
        };
        operator_declared: {
            operateur: string;
            nature: string;
            capacity_usd: Decimal;
            reference_price_usd: Decimal | null;
        };
        independently_verified: false;
        montant_verifie_independamment: false;
        expires_at: Timestamp | null;
    }>;
}
export interface DeskStatus {
    ok: true;
    /** Grows with every change of the document. */
    seq: number;
    ts: Timestamp;
    locks: Lock[];
    price_policy: {
        rounding: string;
        fee_bps: Bps;
        /** The fee is part of the payment, not added to it. */
        fee_included: true;
        quote_ttl_s: number;
        claim_ttl_s: number;
        /** How long capacity stays reserved after a claim's deadline, until a payment in an earlier block is final. Our choice; services before 0.2.0 do not have it. */
        grace_s?: number;
        /** Limits of claims without proof of the wallet's key, see `wallet_signature`. Our choice; services before 0.2.0 do not have it. */
        unproven?: {
            /** Life of such a claim until its payment is seen on the chain; then `claim_ttl_s`. */
            ttl_s: number;
            /** Most that those of one client address (IPv6: its /64) may reserve at once. */
            usd_per_client: Decimal;
            /** Share of what claims with proof leave of a tranche and of the pair's inventory, that all claims without proof together may reserve. */
            share_bps: Bps;
        };
        /** The largest surplus of a payment that is kept; a larger one is refunded. Our choice; services before 0.2.0 do not have it. */
        dust?: {
            USDC: Decimal;
            SOL: Decimal;
        };
        pairs: Array<{
            pair: PairSymbol;
            /** The reference is the operator's price, or the middle of our own book. */
            source: 'book' | 'operator';
            /** The pair that converts the book's quote asset into dollars; null: the quote asset counts as dollars. */
            via: PairSymbol | null;
            corridor_bps: Bps;
            /** 0: any age. */
            max_age_s: number;
            /** The operator's last price; the corridor is centred on it. */
            anchor_price_usd: Decimal | null;
            anchored_at: Timestamp | null;
            /** Where the anchor was read; null: there is none. Our choice; services before 0.2.0 do not have it. */
            anchor_source?: 'pyth' | 'pool' | 'operator' | 'unknown' | null;
            /** When its source published it. Our choice; services before 0.2.0 do not have it. */
            published_at?: Timestamp | null;
            /** Its age at `ts`, which `max_age_s` bounds. Our choice; services before 0.2.0 do not have it. */
            anchor_age_s?: number | null;
            /** Half the width of its confidence interval; null: unknown. Our choice; services before 0.2.0 do not have it. */
            confidence_usd?: Decimal | null;
            /** How far the market may move against the desk after a claim, by the rail of its payment. Beyond it a delivery becomes a refund, and a countersignature is refused, with `price_corridor`. Our choice; services before 0.2.0 do not have it. */
            firm_bps?: {
                USDC: Bps;
                SOL: Bps;
            };
            min_reference_usd: Decimal | null;
            max_reference_usd: Decimal | null;
            reference_price_usd: Decimal | null;
            /** Reason why there is no reference price; null if there is one. */
            reason: string | null;
        }>;
    };
    /** The prices of all pairs, then of the rails but USDC, which counts as a dollar. Services before 0.2.0 do not have it. */
    prices?: DeskPrice[];
    /** The range of prices of each fill of each pair within the corridor. */
    discount_corridor: Array<{
        pair: PairSymbol;
        fill_usd: FillUSD;
        discount_bps: Bps;
        min_price_usd: Decimal | null;
        max_price_usd: Decimal | null;
    }>;
    inventory: {
        pairs: Array<{
            pair: PairSymbol;
            symbol: string;
            mint: Address;
            /** Total inventory of the desk, in base units. */
            total: Decimal;
            /** total minus reserved minus sold. */
            free: Decimal;
            /** Reserved by claims that are not settled. */
            reserved: Decimal;
            /** Settled. */
            sold: Decimal;
            /** What the desk held on the chain at `on_chain_at`, less what was sold since; it bounds `free`. null: not read. Our choice; services before 0.2.0 do not have it. */
            on_chain?: Decimal | null;
            on_chain_at?: Timestamp | null;
        }>;
    };
    chain: DeskChain;
}
export interface QuoteRequest {
    order_id: OrderID;
    tranche_id: TrancheID;
    /** A fill size of the ladder, as a string or a whole number. */
    fill_usd: FillUSD | 250 | 1000 | 25000 | 250000 | 1000000 | 2500000;
    rail: Rail;
}
/** The fee, which is part of the payment, rounded down (our choice). */
export interface Fee {
    included: true;
    amount: Decimal;
    amount_atoms: Atoms;
}
export interface Quote {
    ok: true;
    quote_id: QuoteID;
    order_id: OrderID;
    tranche_id: TrancheID;
    ticket_label: string;
    pair: PairSymbol;
    fill_usd: FillUSD;
    rail: Rail;
    reference_price_usd: Decimal;
    discount_bps: Bps;
    price_usd: Decimal;
    base_amount: Decimal;
    base_amount_atoms: Atoms;
    payment: {
        rail: Rail;
        mint: Address | null;
        amount: Decimal;
        amount_atoms: Atoms;
        pay_to: Address;
    };
    fee_bps: Bps;
    fee: Fee;
    issued_at: Timestamp;
    valid_until: Timestamp;
    /** True: a claim that names the quote before `valid_until` gets its price. False: the chain could not be reached when the quote was issued, and no claim is taken then. */
    firm: boolean;
}
export interface ClaimRequest {
    bot_wallet: Address;
    order_id: OrderID;
    tranche_id: TrancheID;
    /** A fill size of the ladder, as a string or a whole number. */
    fill_usd: FillUSD | 250 | 1000 | 25000 | 250000 | 1000000 | 2500000;
    payment_rail?: Rail;
    quote_id?: QuoteID;
    /** Our choice. Proves that the claim comes from the owner of `bot_wallet`: its ed25519 signature, in base58 or base64, of the UTF-8 bytes of `blockdesk-claim-v1|order_id|tranche_id|fill_usd|rail|unix_minute`, with the rail of the payment and the present Unix time in whole minutes, or the minute before. A wrong signature refuses the claim. Without it, and without a DvP token of `bot_wallet`, the claim counts against the limits in `price_policy.unproven` of `/api/v1/dvp/status`. */
    wallet_signature?: AnySignature;
}
/** The states are our choice. */
export type ClaimState = 'reserved' | 'paid' | 'delivering' | 'settled' | 'expired' | 'cosigned' | 'released' | 'refund_due';
export interface ClaimTerms {
    way: 'modular' | 'atomic';
    bot_wallet: Address;
    quote_id: QuoteID | null;
    order_id: OrderID;
    tranche_id: TrancheID;
    /** Empty if the ticket has been removed. */
    ticket_label: string;
    pair: PairSymbol;
    fill_usd: FillUSD;
    rail: Rail;
    reference_price_usd: Decimal;
    discount_bps: Bps;
    price_usd: Decimal;
    base_amount: Decimal;
    base_amount_atoms: Atoms;
    fee_bps: Bps;
    fee: Fee;
    reserved_at: Timestamp;
    /** The request was proved with the key of `bot_wallet`: by `wallet_signature` or by a DvP token. Our choice; services before 0.2.0 do not have it. */
    proven?: boolean;
}
export interface ClaimPackage {
    ok: true;
    claim_id: ClaimID;
    state: ClaimState;
    claim: ClaimTerms;
    payment: BoundPayment;
    /** Unsigned v0 transaction, base64. */
    transaction: string;
    recent_blockhash?: Blockhash;
    last_valid_block_height?: BlockHeight;
    /** Commitment of the blockhash in the transaction: a node with default settings, whose `preflightCommitment` is the same, accepts it at once. Our choice; services before 0.2.0 do not have it. */
    preflight_commitment?: 'finalized';
    expires_at: Timestamp;
    verify: {
        /** URL. */
        url: string;
        fields: string[];
    };
    solana_pay?: SolanaPay;
}
export interface Payment {
    l1_signature: Signature | null;
    /** Our choice. `refunding`: a signed refund of it may land on the chain. */
    state: 'applied' | 'refund_due' | 'refunding' | 'refunded';
    /** Why a refund is due: `payment_mismatch`, `late_payment`, `claim_state`, `surplus`, `price_corridor` or `undeliverable`; null: none is. */
    reason: string | null;
    rail: Rail;
    amount: Decimal;
    amount_atoms: Atoms;
    /** What pays the claim. Our choice; services before 0.2.0 do not have it. */
    applied_amount?: Decimal;
    applied_amount_atoms?: Atoms;
    /** What is to be paid back, is being paid back, or was paid back: all of a payment that pays nothing, the surplus of one that was too large. Our choice; services before 0.2.0 do not have it. */
    refund_amount?: Decimal;
    refund_amount_atoms?: Atoms;
    payer: Address | null;
    slot: number;
    /** Time of its block, by which a payment is judged: before the claim's `expires_at` the claim's terms hold. null: unknown. Our choice; services before 0.2.0 do not have it. */
    block_time?: Timestamp | null;
    at: Timestamp;
}
export interface Claim {
    ok: true;
    claim_id: ClaimID;
    state: ClaimState;
    claim: ClaimTerms;
    payment: {
        rail: Rail;
        mint: Address | null;
        amount: Decimal;
        amount_atoms: Atoms;
        pay_to: Address;
    };
    paid_atoms: Atoms;
    expires_at: Timestamp;
    changed_at: Timestamp;
    delivery: Delivery;
    /** Oldest first. */
    history: Array<{
        state: ClaimState;
        at: Timestamp;
    }>;
    payments: Payment[];
}
/** Three members are required; the others must agree if they are sent. */
export interface PaymentProof {
    order_id: OrderID;
    tranche_id: TrancheID;
    l1_signature: Signature;
    claim_id?: ClaimID;
    ticket_label?: string;
    /** A fill size of the ladder, as a string or a whole number. */
    fill_usd?: FillUSD | 250 | 1000 | 25000 | 250000 | 1000000 | 2500000;
    payment_rail?: Rail;
}
export interface Pending {
    ok: true;
    state: 'pending';
    retry_after_ms: number;
}
export interface Verification {
    ok: true;
    claim_id: ClaimID;
    state: ClaimState;
    verified: true;
    payment: Payment;
    delivery: Delivery;
}
export interface WebSocketHealth {
    /** True while the feed runs. */
    ok: boolean;
    status: 'up' | 'down';
    /** Number of WebSockets and event streams. */
    connections: number;
    /** Number of event streams. */
    streams: number;
    /** Number of WebSockets with compression. */
    compressed: number;
    /** Maximum number of connections. */
    max_connections: number;
    /** Maximum per client address. */
    connections_per_ip: number;
    /** Subscriptions to a channel of a symbol, over all connections. */
    subscriptions: number;
    /** Messages written since the start. */
    messages_out: number;
    /** Bytes written since the start. */
    bytes_out: number;
    /** Ticker updates that a full socket skipped for a later one. */
    conflated: number;
    /** Times that the updates waiting for a full socket were replaced by snapshots. */
    collapsed: number;
    /** Connections closed because the client did not read. */
    slow_consumers: number;
    /** Connections refused because of a limit. */
    refused: number;
    /** Number of writers, each with its own connections. */
    shards: number;
    /** Times that a writer fell so far behind that it restarted from snapshots. */
    overruns: number;
    epoch: Epoch;
    /** Sequence number of the last command that the answer reflects. */
    engine_seq: number;
    /** Time from the engine's timestamp of a batch to its publication. */
    lag_us: number;
}
/** Id of a build, with the number of its claim. Its form is our choice. */
export type BuildID = string;
/** SHA-256, hexadecimal: our choice. */
export type Hash = string;
/** A blockhash of Solana, base58 of 32 bytes. */
export type Blockhash = string;
/** Height of the last block that the transaction can land in. */
export type BlockHeight = number;
/** Slot that the transaction landed in; null: not known. */
export type Slot = number | null;
/** An ed25519 public key, base58. Small-order and non-canonical keys are refused. */
export type PublicKey = string;
/** Sign the UTF-8 bytes of exactly this text. Valid once, for one key, for 60 s. */
export type Nonce = string;
/** An ed25519 signature: base58, or base64 with its padding. */
export type AnySignature = Signature | string;
/** A v0 transaction, base64 with its padding; at most 1,232 bytes. */
export type Transaction = string;
export interface Token {
    ok: true;
    /** Send it as `Authorization: Bearer TOKEN`. It is returned once, and stored as a hash. */
    access_token: string;
    token_type: 'Bearer';
    /** Seconds. */
    expires_in: 604800;
    expires_at: Timestamp;
    pubkey: PublicKey;
}
export interface Challenge {
    ok: true;
    pubkey: PublicKey;
    nonce: Nonce;
    expires_at: Timestamp;
}
/** The key alone requests a nonce, all three members a token. */
export interface HandshakeRequest {
    pubkey: PublicKey;
    nonce?: Nonce;
    signature?: AnySignature;
}
export interface HandshakeTerms {
    ok: true;
    protocol: 'svc_dvp_handshake_v1';
    steps: Array<{
        step: number;
        action: string;
        method: 'GET' | 'POST' | null;
        url: string | null;
        sends: string[];
        status: 200 | 201 | null;
        returns: string[];
    }>;
    algorithm: 'ed25519';
    encodings: {
        pubkey: 'base58';
        nonce: 'base64';
        signature: 'base58 or base64';
    };
    /** What the client signs. */
    signs: string;
    nonce_ttl_s: 60;
    token: {
        type: 'Bearer';
        lifetime_s: 604800;
        issuance: {
            per_ip: 1;
            /** Seconds between two tokens of a client address: 3600, unless the operator allows more (`http.tokens_per_hour`). */
            window_s: number;
        };
    };
    /** Requests per client IP; null: no limit. `handshake` is a token bucket of `burst`; `build_submit` applies to any window. The shape is our choice. */
    limits: {
        handshake: {
            per_ip: number;
            window_s: number;
            burst: number;
        } | null;
        build_submit: {
            per_ip: number;
            window_s: number;
            burst: null;
        } | null;
    };
}
export interface BuildRequest {
    order_id: OrderID;
    tranche_id: TrancheID;
    /** A fill size of the ladder, as a string or a whole number. */
    fill_usd: FillUSD | 250 | 1000 | 25000 | 250000 | 1000000 | 2500000;
    rail: Rail;
    /** The counterparty: the key that the token belongs to. If it is empty or missing, the answer is 409 `REFUS_DVP`, `empty_counterparty`. */
    taker: Address;
    /** A live quote, whose price the build gets. Without one the build is priced now. */
    quote_id?: QuoteID;
    /** Payer of the network fee. The taker always pays for the creation of its own token account. */
    fee_payer?: 'desk' | 'taker';
}
/** The payment that is due, with the reference (a read-only account) and memo that bind it to its claim. */
export interface BoundPayment {
    rail: Rail;
    mint: Address | null;
    amount: Decimal;
    amount_atoms: Atoms;
    pay_to: Address;
    reference: Address;
    memo: string;
}
/** What the wallet of the claim gets, and the desk's newest delivery transaction; null: the desk has signed none. */
export interface Delivery {
    to: Address;
    mint: Address;
    amount: Decimal;
    amount_atoms: Atoms;
    l1_signature: Signature | null;
}
export interface Build {
    ok: true;
    build_id: BuildID;
    claim_id: ClaimID;
    /** Both transfers, unsigned: every signature is zero. No address lookup tables, no durable nonce. Sign it unchanged. */
    transaction: Transaction;
    /** Hash of the transaction's message, which is what signatures cover. */
    message_sha256: Hash;
    /** In the order of their signatures; the first one pays the network fee. */
    required_signers: Address[];
    payment: BoundPayment;
    /** What the taker gets. */
    delivery: {
        to: Address;
        mint: Address;
        amount: Decimal;
        amount_atoms: Atoms;
    };
    recent_blockhash: Blockhash;
    last_valid_block_height: BlockHeight;
    /** Commitment of the blockhash in the transaction: a node with default settings, whose `preflightCommitment` is the same, accepts it at once. Our choice; services before 0.2.0 do not have it. */
    preflight_commitment?: 'finalized';
    /** End of the reservation. The blockhash may expire sooner, after 60 to 90 s. */
    expires_at: Timestamp;
    /** The terms. `quote_id` is null if the request named none. */
    quote: {
        quote_id: QuoteID | null;
        order_id: OrderID;
        tranche_id: TrancheID;
        /** Empty if the ticket has been removed. */
        ticket_label: string;
        pair: PairSymbol;
        fill_usd: FillUSD;
        rail: Rail;
        reference_price_usd: Decimal;
        discount_bps: Bps;
        price_usd: Decimal;
        base_amount: Decimal;
        base_amount_atoms: Atoms;
        fee_bps: Bps;
        fee: Fee;
    };
}
/** `open`: waits for its taker's signature. `broadcast`: signed by the desk and sent to the chain. `finalized`: both transfers have happened. `failed`: it landed and failed, so nothing was transferred. `expired`: it can never land. All but `broadcast` and `finalized` are our choice. */
export type BuildStage = 'open' | 'broadcast' | 'finalized' | 'failed' | 'expired';
/** The transaction or the signature. If both are missing or the signature is zero, the answer is 409 `REFUS_DVP`, `empty_counterparty`. */
export interface Submission {
    build_id: BuildID;
    /** The bytes of the build with the taker's signature in its slot. */
    transaction?: Transaction;
    /** Only the taker's signature. */
    signature?: AnySignature;
}
export interface Submitted {
    ok: true;
    claim_id: ClaimID;
    /** The transaction's first signature, which identifies it on the chain. */
    signature: Signature;
    state: BuildStage;
    slot: Slot;
    /** The transaction with all signatures. */
    transaction: Transaction;
}
/** Our choice. */
export interface BuildState {
    ok: true;
    build_id: BuildID;
    claim_id: ClaimID;
    state: BuildStage;
    claim_state: ClaimState;
    taker: Address;
    message_sha256: Hash;
    recent_blockhash: Blockhash;
    last_valid_block_height: BlockHeight;
    /** Null: the desk has not signed. */
    signature: Signature | null;
    slot: Slot;
    built_at: Timestamp;
    /** End of the reservation. */
    expires_at: Timestamp;
    /** Of the claim. */
    changed_at: Timestamp;
}
export interface AtomicClaimPackage {
    ok: true;
    claim_id: ClaimID;
    state: ClaimState;
    claim: ClaimTerms;
    payment: BoundPayment;
    /** Both transfers in one unsigned v0 transaction, base64; the desk pays the network fee. */
    transaction: string;
    recent_blockhash?: Blockhash;
    last_valid_block_height?: BlockHeight;
    /** Commitment of the blockhash in the transaction: a node with default settings, whose `preflightCommitment` is the same, accepts it at once. Our choice; services before 0.2.0 do not have it. */
    preflight_commitment?: 'finalized';
    expires_at: Timestamp;
    verify: {
        /** URL. */
        url: string;
        fields: string[];
    };
    /** Where to submit the transaction after the taker has signed it, with a Bearer token. Our choice. */
    submit: {
        /** URL. */
        url: string;
        build_id: BuildID;
        fields: string[];
    };
}
/** Whether claims can be settled, and the state of the chain, at most 10 s old. All but the first three members are our choice. */
export interface DeskChain {
    available: boolean;
    /** Reason why the chain is not available. */
    reason: 'not_configured' | 'not_ready' | null;
    execution_network: ExecutionNetwork;
    /** Address of the desk, which delivers, co-signs and pays fees; null: not configured. */
    desk_address: Address | null;
    /** Newest slot that any node has reported. */
    slot: number | null;
    /** Age of the blockhash of the next package; null: there is none. */
    blockhash_age_ms: number | null;
    /** Signed transactions whose outcome is not known yet. */
    tracked: number;
    /** In the order of preference. */
    nodes: Array<{
        name: string;
        available: boolean;
        /** Newest slot that the node has reported. */
        slot: number | null;
        /** Slots behind `slot` of the chain. */
        lag_slots: number | null;
    }>;
}
/** Intervals start at multiples of their length, in UTC. */
export type Interval = '1m' | '5m' | '15m' | '1h' | '4h' | '1d';
/** open_ms, open, high, low, close, volume, quote_volume, trades. Volume is in units of the base asset, quote_volume in those of the quote asset. */
export type Candle = [number, Decimal, Decimal, Decimal, Decimal, Decimal, Decimal, number];
export interface Klines {
    ok: true;
    symbol: PairSymbol;
    interval: Interval;
    /** Source of the book. */
    source: 'matched' | 'mirrored';
    /** Value of `before` for the previous page; null if there is none. */
    next_before: number | null;
    /** Oldest first, from real trades only: an interval without trades is absent. */
    klines: Candle[];
}
export interface Candles {
    ok: true;
    symbol: PairSymbol;
    interval: Interval;
    /** Source of the book. */
    source: 'matched' | 'mirrored';
    /** Value of `before` for the previous page; null if there is none. */
    next_before: number | null;
    /** Oldest first, from real trades only: an interval without trades is absent. */
    candles: Candle[];
}
export interface OraclePair {
    symbol: PairSymbol;
    /** Source of the book. */
    source: 'matched' | 'mirrored';
    status: 'trading' | 'halted' | 'auction';
    epoch: Epoch;
    /** Of the ticker: the same as on the WebSocket. */
    seq: number;
    /** Sequence number of the last command that the answer reflects. */
    engine_seq: number;
    ts: Timestamp | null;
    price: Decimal | null;
    price_source: 'last_trade' | 'book_mid' | 'none';
    /** Price of one base unit in dollars, as in /api/v1/market/price. Our choice. */
    price_usd: Decimal | null;
    price_usd_source: 'matched_book' | 'operator_anchor' | 'onchain_book' | 'verified_vault_snapshot' | 'unavailable';
    last: Decimal | null;
    mid: Decimal | null;
    spread: Decimal | null;
    last_trade_ts: Timestamp | null;
    /** Whole seconds since the pair's market data last changed (`ts`); for a mirrored pair, since it was last read from the chain, or null if it was not read since the start. The data of a quiet market grows old; the answer's own `ts` shows that the service is alive. */
    data_freshness_seconds: number | null;
    degradation_state: {
        degraded: boolean;
        /** The reasons of the status record for this pair, and those of its present state: `not_mainnet`, `network_unknown`, `chain_not_configured`, `chain_not_synced`, `trading_halted`, `no_trade_yet`, `no_price`, `live_price_using_verified_vault_snapshot` and those of the mirror. */
        reasons: string[];
    };
}
export interface OracleHeartbeat {
    ok: true;
    service: string;
    api_version: string;
    ts: Timestamp;
    /** Newest value of all pairs. */
    engine_seq: number;
    pairs: OraclePair[];
}
export type CoinGeckoTickers = Array<{
    ticker_id: string;
    base_currency: string;
    target_currency: string;
    pool_id: string;
    last_price: Decimal | null;
    base_volume: Decimal;
    target_volume: Decimal;
    bid: Decimal | null;
    ask: Decimal | null;
    high: Decimal | null;
    low: Decimal | null;
    liquidity_in_usd: Decimal | null;
}>;
export type CoinMarketCapAssets = Record<string, {
    name: string;
    unified_cryptoasset_id: null | number;
    can_withdraw: boolean;
    can_deposit: boolean;
    maker_fee: number;
    taker_fee: number;
    contractAddress: string;
}>;
export type CoinMarketCapSummary = Array<{
    trading_pairs: string;
    base_currency: string;
    quote_currency: string;
    last_price: Decimal | null;
    lowest_ask: Decimal | null;
    highest_bid: Decimal | null;
    base_volume: Decimal;
    quote_volume: Decimal;
    price_change_percent_24h: null | number;
    highest_price_24h: Decimal | null;
    lowest_price_24h: Decimal | null;
}>;
export type CoinMarketCapTicker = Record<string, {
    base_id: null | number;
    quote_id: null | number;
    last_price: Decimal | null;
    base_volume: Decimal;
    quote_volume: Decimal;
    isFrozen: number;
}>;
export interface DiscoveryFile {
    ok: boolean;
    schema: string;
    api_version: string;
    timestamp_exact: Timestamp | null;
    execution_network: ExecutionNetwork;
    name: string;
    operateur: string;
    subject: string;
    links: Record<string, string>;
    tokens?: Array<{
        symbol: string;
        mint: string;
        decimals: number;
    }>;
    program?: null | {
        program_id: string;
        execution_network: ExecutionNetwork;
        control_chain_id: number;
        control_chain_role: string;
        control_chain_rpc_compatible: boolean;
        pools: string[];
    };
    families?: string[];
}
export interface MarketAdapters {
    ok: boolean;
    api_version: string;
    schema: string;
    timestamp_exact: Timestamp | null;
    count: number;
    families: string[];
    adapters: Record<string, {
        consumers: string[];
        expected_input_format: string[];
        already_provided: string[];
        auto_consumable: boolean | 'partially';
        needs_external_onboarding: boolean;
        public_files: string[];
        endpoint_mapping: Record<string, string>;
        example_request: string;
        notes?: string;
        blocker?: string;
    }>;
}
export interface MarketClaims {
    ok: boolean;
    schema: string;
    api_version: string;
    timestamp_exact: Timestamp | null;
    execution_network: ExecutionNetwork;
    rfq_enabled: boolean;
    open_tickets: number;
    capacity_usd: Decimal;
    available_usd: Decimal;
    claims_open_usd: Decimal;
    claims_settled_usd: Decimal;
    transactions_under_way: number;
}
export interface MarketDebt {
    ok: boolean;
    schema: string;
    api_version: string;
    timestamp_exact: Timestamp | null;
    execution_network: ExecutionNetwork;
    promised_usd: Decimal;
    transactions_under_way: number;
    refunds_due: number;
    refunds_due_usdc: Decimal;
    refunds_due_sol: Decimal;
    unmatched_payments: number;
    unmatched_usdc: Decimal;
    unmatched_sol: Decimal;
}
export interface MarketExamples {
    ok: boolean;
    schema: string;
    api_version: string;
    timestamp_exact: Timestamp | null;
    execution_network: ExecutionNetwork;
    count: number;
    examples: Array<{
        name: string;
        description: string;
        command: string;
    }>;
}
export interface MarketFees {
    ok: boolean;
    schema: string;
    api_version: string;
    timestamp_exact: Timestamp | null;
    execution_network: ExecutionNetwork;
    fee_bps: number;
    fee_rate: number;
    fee_model: string;
    fees_of_settled_claims_usd: Decimal;
    pairs: Array<{
        symbol: string;
        volume_cumulative_onchain: Decimal;
        fees_cumulative_onchain_raw: Decimal;
        fees_base_cumulative_ui: Decimal;
        fees_quote_cumulative_ui: Decimal;
        fees_unknown_cumulative_ui: Decimal;
        fee_coherence: {
            status: string;
            expected_fees_usd: Decimal;
            reported_fees_usd: Decimal;
            difference_usd: Decimal;
        };
    }>;
}
export interface MarketIntegrationManifest {
    ok: boolean;
    schema: string;
    api_version: string;
    timestamp_exact: Timestamp | null;
    execution_network: ExecutionNetwork;
    name: string;
    operateur: string;
    market_name: string;
    canonical_pair_id: string;
    specification_openapi: string;
    sdk_public: string;
    endpoint_sets: Record<string, Record<string, string>>;
    service_roles: Record<string, {
        role: string;
        base_url: string;
        public_read_model: boolean;
        rpc_compatible: boolean;
        health_checks: string[];
    }>;
    documents: Array<{
        name: string;
        url: string;
        files: string[];
        schema: string;
    }>;
    /** Endpoints that are not documents; most take a query. */
    reads: Array<{
        name: string;
        url: string;
        files: string[];
    }>;
    fix_documents: string;
    limits: Record<string, string>;
}
export interface MarketLiteLatestCandle {
    ok: boolean;
    schema: string;
    api_version: string;
    timestamp_exact: Timestamp | null;
    execution_network: ExecutionNetwork;
    symbol: string;
    timeframe: string;
    candle: null | {
        open_ts: Timestamp | null;
        open: Decimal;
        high: Decimal;
        low: Decimal;
        close: Decimal;
        volume: Decimal;
        quote_volume: Decimal;
        trades: number;
    };
}
export interface MarketLiteLatestFees {
    ok: boolean;
    schema: string;
    api_version: string;
    timestamp_exact: Timestamp | null;
    execution_network: ExecutionNetwork;
    fee_bps: number;
    fee_rate: number;
    fee_model: string;
    fees_cumulative_usd: Decimal;
}
export interface MarketLiteLatestPrice {
    ok: boolean;
    schema: string;
    api_version: string;
    timestamp_exact: Timestamp | null;
    execution_network: ExecutionNetwork;
    symbol: string;
    price_usd: Decimal | null;
    price_net_usd: Decimal | null;
    last: Decimal | null;
    bid: Decimal | null;
    ask: Decimal | null;
    price_source: string;
    last_trade_ts: Timestamp | null;
    epoch: Epoch;
    seq: number;
    delta_24h_percent: null | number;
    degraded: boolean;
}
export interface MarketLiteLatestTrade {
    ok: boolean;
    schema: string;
    api_version: string;
    timestamp_exact: Timestamp | null;
    execution_network: ExecutionNetwork;
    symbol: string;
    trade: null | {
        trade_id: number;
        price: Decimal | null;
        qty: Decimal | null;
        side: string;
        ts: Timestamp | null;
        signature: null | string;
        source: string;
    };
}
export interface MarketLitePairMetadata {
    ok: boolean;
    schema: string;
    api_version: string;
    timestamp_exact: Timestamp | null;
    execution_network: ExecutionNetwork;
    pairs: Array<{
        symbol: string;
        base_mint: string;
        quote_mint: string;
        book_source: string;
    }>;
}
export interface MarketLitePoolRegistry {
    ok: boolean;
    schema: string;
    api_version: string;
    timestamp_exact: Timestamp | null;
    execution_network: ExecutionNetwork;
    pools: Array<{
        pool_id: string;
        symbol: string;
    }>;
}
export interface MarketLiteSummary {
    ok: boolean;
    schema: string;
    api_version: string;
    timestamp_exact: Timestamp | null;
    execution_network: ExecutionNetwork;
    pairs: Array<{
        symbol: string;
        price_usd: Decimal | null;
        last: Decimal | null;
        volume_24h: Decimal;
        quote_volume_24h: Decimal;
        trades_24h: number;
        delta_24h_percent: null | number;
    }>;
}
export interface MarketLiteTokenlist {
    ok: boolean;
    schema: string;
    api_version: string;
    timestamp_exact: Timestamp | null;
    execution_network: ExecutionNetwork;
    tokens: Array<{
        symbol: string;
        mint: string;
        decimals: number;
    }>;
}
export interface MarketMarketcap {
    ok: boolean;
    schema: string;
    api_version: string;
    timestamp_exact: Timestamp | null;
    execution_network: ExecutionNetwork;
    tokens: Array<{
        symbol: string;
        mint: string;
        total_supply: Decimal | null;
        price_usd: Decimal | null;
        market_cap_usd: Decimal | null;
        status: string;
    }>;
}
export interface MarketMetadata {
    ok: boolean;
    schema: string;
    api_version: string;
    timestamp_exact: Timestamp | null;
    execution_network: ExecutionNetwork;
    count: number;
    tokens: Array<{
        mint: string;
        name: string;
        symbol: string;
        /** Symbol on the chain, if it differs; otherwise absent. */
        onchain_symbol?: string;
        description: string;
        image: string;
        external_url: string;
        decimals: number;
        metadata_uri: string;
        attributes: Array<{
            trait_type: string;
            value: string;
        }>;
        properties: {
            category: string;
            files: Array<{
                uri: string;
                type: string;
            }>;
        };
    }>;
}
export interface MarketPairMetadata {
    ok: boolean;
    schema: string;
    api_version: string;
    timestamp_exact: Timestamp | null;
    execution_network: ExecutionNetwork;
    count: number;
    pairs: Array<{
        pair_id: string;
        symbol: string;
        base_symbol: string;
        base_mint: string;
        quote_symbol: string;
        quote_mint: string;
        book_source: string;
        status: string;
        price_precision: number;
        qty_precision: number;
        tick_size: Decimal;
        lot_size: Decimal;
        min_qty: Decimal;
        price_usd: Decimal | null;
        volume_24h: Decimal;
        quote_volume_24h: Decimal;
        trades_24h: number;
        fee_bps: number;
        pool_id: null | string;
        base_token: {
            mint: string;
            name: string;
            symbol: string;
            /** Symbol on the chain, if it differs; otherwise absent. */
            onchain_symbol?: string;
            description: string;
            image: string;
            external_url: string;
            decimals: number;
            metadata_uri: string;
            attributes: Array<{
                trait_type: string;
                value: string;
            }>;
            properties: {
                category: string;
                files: Array<{
                    uri: string;
                    type: string;
                }>;
            };
        };
        quote_token: {
            mint: string;
            name: string;
            symbol: string;
            /** Symbol on the chain, if it differs; otherwise absent. */
            onchain_symbol?: string;
            description: string;
            image: string;
            external_url: string;
            decimals: number;
            metadata_uri: string;
            attributes: Array<{
                trait_type: string;
                value: string;
            }>;
            properties: {
                category: string;
                files: Array<{
                    uri: string;
                    type: string;
                }>;
            };
        };
        links: Record<string, string>;
    }>;
}
export interface MarketPairs {
    ok: boolean;
    schema: string;
    api_version: string;
    timestamp_exact: Timestamp | null;
    execution_network: ExecutionNetwork;
    canonical_pair_id: string;
    count: number;
    pairs: Array<{
        pair_id: string;
        symbol: string;
        base_symbol: string;
        base_mint: string;
        quote_symbol: string;
        quote_mint: string;
        book_source: string;
        status: string;
        price_precision: number;
        qty_precision: number;
        tick_size: Decimal;
        lot_size: Decimal;
        min_qty: Decimal;
        price_usd: Decimal | null;
        volume_24h: Decimal;
        quote_volume_24h: Decimal;
        trades_24h: number;
        fee_bps: number;
        pool_id: null | string;
    }>;
}
export interface MarketPoolRegistry {
    ok: boolean;
    schema: string;
    api_version: string;
    timestamp_exact: Timestamp | null;
    execution_network: ExecutionNetwork;
    count: number;
    pools: Array<{
        pool_id: string;
        program_id: string;
        symbol: string;
        base_mint: string;
        quote_mint: string;
        base_vault: string;
        quote_vault: string;
        lp_token_mint: null | string;
        pool_fee_bps: null | number;
        kind: string;
    }>;
}
export interface MarketPool {
    ok: boolean;
    schema: string;
    api_version: string;
    timestamp_exact: Timestamp | null;
    execution_network: ExecutionNetwork;
    symbol: string;
    program_id: string;
    lp_token_mint: null | string;
    pool_fee_bps: null | number;
    pool_id: string;
    base_mint: string;
    quote_mint: string;
    base_vault: string;
    quote_vault: string;
    base_vault_balance_atoms: string;
    base_vault_balance: Decimal;
    quote_vault_balance_atoms: string;
    quote_vault_balance: Decimal;
    spot_price_usd: Decimal | null;
    slot: number;
    ts: Timestamp | null;
    proof_hash: string;
    liquidity_usd: Decimal | null;
}
export interface MarketPools {
    ok: boolean;
    schema: string;
    api_version: string;
    timestamp_exact: Timestamp | null;
    execution_network: ExecutionNetwork;
    count: number;
    pools: Array<{
        symbol: string;
        program_id: string;
        lp_token_mint: null | string;
        pool_fee_bps: null | number;
        pool_id: string;
        base_mint: string;
        quote_mint: string;
        base_vault: string;
        quote_vault: string;
        base_vault_balance_atoms: string;
        base_vault_balance: Decimal;
        quote_vault_balance_atoms: string;
        quote_vault_balance: Decimal;
        spot_price_usd: Decimal | null;
        slot: number;
        ts: Timestamp | null;
        proof_hash: string;
        liquidity_usd: Decimal | null;
    }>;
}
export interface MarketPrice {
    ok: boolean;
    schema: string;
    api_version: string;
    timestamp_exact: Timestamp | null;
    execution_network: ExecutionNetwork;
    canonical_pair_id: string;
    prices: Array<{
        symbol: string;
        price_usd: Decimal | null;
        price_net_usd: Decimal | null;
        last: Decimal | null;
        bid: Decimal | null;
        ask: Decimal | null;
        price_source: string;
        last_trade_ts: Timestamp | null;
        epoch: Epoch;
        seq: number;
        delta_24h_percent: null | number;
        degraded: boolean;
    }>;
}
export interface MarketProof {
    ok: boolean;
    schema: string;
    api_version: string;
    timestamp_exact: Timestamp | null;
    execution_network: ExecutionNetwork;
    proof: {
        source_of_truth: string;
        verification_status: string;
        executable_hash: string;
        source_commit: string;
    };
    subject: {
        timestamp_exact: Timestamp | null;
        proof: {
            source_of_truth: string;
            verification_status: string;
            executable_hash: string;
            source_commit: string;
        };
        slot: number;
        pools: Array<{
            pool_id: string;
            base_mint: string;
            quote_mint: string;
            base_vault: string;
            quote_vault: string;
            base_vault_balance_atoms: string;
            base_vault_balance: Decimal;
            quote_vault_balance_atoms: string;
            quote_vault_balance: Decimal;
            spot_price_usd: Decimal | null;
            slot: number;
            ts: Timestamp | null;
            proof_hash: string;
        }>;
        prices: Array<{
            symbol: string;
            price_usd: Decimal | null;
            epoch: Epoch;
            seq: number;
        }>;
    };
    proof_hash: string;
    recompute: string;
}
export interface MarketProviderPacks {
    ok: boolean;
    schema: string;
    api_version: string;
    timestamp_exact: Timestamp | null;
    execution_network: ExecutionNetwork;
    count: number;
    packs: Array<{
        for: string;
        consumers: string[];
        facts: Record<string, string>;
        files: string[];
        auto_consumable: boolean | 'partially';
        needs_external_onboarding: boolean;
        blocker?: string;
    }>;
}
export interface MarketStatus {
    ok: boolean;
    data_mode: string;
    fallback_active: boolean;
    api_version: string;
    source: string;
    schema: string;
    proof_scope: string;
    execution_network: ExecutionNetwork;
    canonical_pair_id: string;
    pair_id: string;
    pair_label: string;
    market_name: string;
    control_chain_id: number;
    control_chain_role: string;
    control_chain_rpc_compatible: boolean;
    timestamp_exact: Timestamp | null;
    updated_at: Timestamp | null;
    program_id: string;
    pool_id: string;
    base_asset_symbol: string;
    quote_onchain_symbol: string;
    quote_public_symbol: string;
    quote_public_label: string;
    settlement_asset_symbol: string;
    settlement_asset_label: string;
    settlement_role: string;
    spot_price_usd: Decimal | null;
    current_live_price_usd: Decimal | null;
    current_live_price_gross_usd: Decimal | null;
    current_live_price_net_usd: Decimal | null;
    price_gross_usd: Decimal | null;
    price_net_usd: Decimal | null;
    locked_floor_price_usd: Decimal | null;
    current_live_floor_price_usd: Decimal | null;
    floor_locked: boolean;
    price_truth_mode: string;
    price_source_summary: string;
    market_scope: string;
    delta_24h_percent: null | number;
    delta_24h_status: string;
    swaps_total: number;
    swaps_total_onchain: number;
    swaps_total_reconstructed: number;
    volume_24h_usd: Decimal;
    volume_7d_usd: Decimal;
    volume_cumulative_usd: Decimal;
    volume_cumulative_onchain: Decimal;
    volume_cumulative_reconstructed: Decimal;
    fees_cumulative_usd: Decimal;
    fees_cumulative_onchain_raw: Decimal;
    fees_cumulative_reconstructed: Decimal;
    fees_paid_cumulative_usd: Decimal;
    fees_collected_cumulative_usd: Decimal;
    fees_base_cumulative_ui: Decimal;
    fees_quote_cumulative_ui: Decimal;
    fees_unknown_cumulative_ui: Decimal;
    fee_bps: number;
    fee_rate: number;
    fee_model: string;
    traders_estimated_total: number;
    estimated_traders_total: number;
    activity_totals: {
        swaps_total: number;
        swaps_total_onchain: number;
        swaps_total_reconstructed: number;
        volume_24h_usd: Decimal;
        volume_7d_usd: Decimal;
        volume_cumulative_usd: Decimal;
        volume_cumulative_onchain: Decimal;
        volume_cumulative_reconstructed: Decimal;
        fees_cumulative_usd: Decimal;
        fees_cumulative_onchain_raw: Decimal;
        fees_cumulative_reconstructed: Decimal;
        fees_paid_cumulative_usd: Decimal;
        fees_collected_cumulative_usd: Decimal;
        fees_base_cumulative_ui: Decimal;
        fees_quote_cumulative_ui: Decimal;
        fees_unknown_cumulative_ui: Decimal;
        fee_bps: number;
        fee_rate: number;
        fee_model: string;
        traders_estimated_total: number;
        estimated_traders_total: number;
        traders_estimated: number;
        traders_estimated_source: string;
        traders_total_estimated: number;
        onchain_exact: {
            swaps_total: number;
            volume_usd: Decimal;
            fees_usd: Decimal;
            fees_base_ui: Decimal;
            fees_quote_ui: Decimal;
            onchain_fee_volume_status: string;
        };
        historical_reconstructed: {
            swaps_total: number;
            volume_usd: Decimal;
            fees_usd: Decimal;
            fees_base_ui: Decimal;
            fees_quote_ui: Decimal;
            onchain_fee_volume_status: string;
        };
        /** Trades of the service's own order book, which have no fee (our choice). */
        matched_exact: {
            trades_total: number;
            volume_usd: Decimal;
        };
        rfq_settled: {
            trades_total: number;
            volume_usd: Decimal;
            fees_usd: Decimal;
            trades_24h: number;
            volume_24h_usd: Decimal;
        };
        fee_coherence: null | {
            status: string;
            expected_fees_usd: Decimal;
            reported_fees_usd: Decimal;
            difference_usd: Decimal;
        };
    };
    current_active_snapshot: null | {
        key: string;
        label: string;
        heading: string;
        time: Timestamp | null;
        current: boolean;
        pool_id: string;
        lp_token_mint: string;
        base_vault_ui: Decimal;
        quote_vault_ui: Decimal;
        swaps_total: number;
        traders_estimated: number;
        volume_usd: Decimal;
        fees_usd: Decimal;
        fee_rate: number;
        fee_bps: number;
        implied_pair_price: Decimal | null;
        snapshot_source: string;
        snapshot_reference: string;
        fee_coherence: {
            status: string;
            expected_fees_usd: Decimal;
            reported_fees_usd: Decimal;
            difference_usd: Decimal;
        };
        current_volume_usd: Decimal;
        current_swaps: number;
        current_traders_estimated: number;
        current_fees_usd: Decimal;
        current_fee_rate: number;
        current_pair_price: Decimal | null;
        current_timestamp: Timestamp | null;
    };
    historical_snapshots: Array<{
        key: string;
        label: string;
        heading: string;
        time: Timestamp | null;
        current: boolean;
        pool_id: string;
        lp_token_mint: string;
        base_vault_ui: Decimal;
        quote_vault_ui: Decimal;
        swaps_total: number;
        traders_estimated: number;
        volume_usd: Decimal;
        fees_usd: Decimal;
        fee_rate: number;
        fee_bps: number;
        implied_pair_price: Decimal | null;
        snapshot_source: string;
        snapshot_reference: string;
        fee_coherence: {
            status: string;
            expected_fees_usd: Decimal;
            reported_fees_usd: Decimal;
            difference_usd: Decimal;
        };
    }>;
    historicalSnapshots: Array<{
        key: string;
        label: string;
        heading: string;
        time: Timestamp | null;
        current: boolean;
        pool_id: string;
        lp_token_mint: string;
        base_vault_ui: Decimal;
        quote_vault_ui: Decimal;
        swaps_total: number;
        traders_estimated: number;
        volume_usd: Decimal;
        fees_usd: Decimal;
        fee_rate: number;
        fee_bps: number;
        implied_pair_price: Decimal | null;
        snapshot_source: string;
        snapshot_reference: string;
        fee_coherence: {
            status: string;
            expected_fees_usd: Decimal;
            reported_fees_usd: Decimal;
            difference_usd: Decimal;
        };
    }>;
    historicalSnapshotFeeds: Array<{
        key: string;
        BASE_VAULT: Decimal;
        QUOTE_VAULT: Decimal;
        USER_BASE_ATA: Decimal;
        USER_QUOTE_ATA: Decimal;
        TOTAL_BASE: Decimal;
        TOTAL_QUOTE: Decimal;
        last_updated: Timestamp | null;
        swaps_total: number;
        volume_tokens_total: Decimal;
        volume_usd_est_total: Decimal;
        fees_tokens_est_total: Decimal;
        fees_usd_est_total: Decimal;
        negociants_est_total: number;
        swaps_per_negociant_estimate: Decimal | null;
        negociants_label: string;
    }>;
    snapshot_hierarchy: {
        selection_rule: string;
        selected_current_snapshot_key: null | string;
        selected_current_snapshot_time: Timestamp | null;
        latest_available_snapshot_key: null | string;
        latest_available_snapshot_time: Timestamp | null;
        latest_historical_snapshot_key: null | string;
        latest_historical_snapshot_time: Timestamp | null;
        historical_count: number;
        historical_sorted_desc: boolean;
        current_is_latest: boolean;
    };
    metrics_layers: {
        onchain_exact: string;
        historical_reconstructed: string;
        matched_exact: string;
        public_totals: string;
    };
    estimated_public: {
        swaps_total: number;
        volume_usd: Decimal;
        fees_usd: Decimal;
        traders_estimated: number;
    };
    reconstructed_public_metrics: {
        swaps_total: number;
        volume_usd: Decimal;
        fees_usd: Decimal;
        traders_estimated: number;
    };
    coherence_check: {
        coherence_status: string;
        onchain_fee_volume_status: string;
        fee_coherence: {
            status: string;
            expected_fees_usd: Decimal;
            reported_fees_usd: Decimal;
            difference_usd: Decimal;
        };
    };
    onchain_pool_state: null | {
        pool_id: string;
        base_mint: string;
        quote_mint: string;
        base_vault: string;
        quote_vault: string;
        base_vault_balance_atoms: string;
        base_vault_balance: Decimal;
        quote_vault_balance_atoms: string;
        quote_vault_balance: Decimal;
        spot_price_usd: Decimal | null;
        slot: number;
        ts: Timestamp | null;
        proof_hash: string;
    };
    rolling_windows: {
        exact_24h_volume_usd: Decimal;
        exact_7d_volume_usd: Decimal;
        exact_delta_24h_percent: null | number;
        exact_last_indexed_trade_ts: Timestamp | null;
        exact_last_indexed_trade_age_seconds: null | number;
        exact_window_reference_trade_ts: Timestamp | null;
        status_24h: string;
        status_7d: string;
        policy: string;
    };
    visible_liquidity_usd: Decimal;
    guarantee_liquidity_usd: Decimal;
    total_backing_estimate_usd: Decimal;
    last_trade_ts: Timestamp | null;
    last_trade_signature: string;
    slot: number;
    data_freshness_seconds: number;
    freshness: {
        data_freshness_seconds: number;
        last_chain_sync_at: Timestamp | null;
        last_indexed_trade_ts: Timestamp | null;
        last_indexed_trade_age_seconds: null | number;
        rolling_window_status: {
            h24: string;
            d7: string;
        };
    };
    degradation_state: {
        degraded: boolean;
        reasons: string[];
        rpc_failover_active: boolean;
        rpc_upstream_count: number;
        price_source: string;
    };
    proof_hash: string;
    last_chain_sync_at: Timestamp | null;
    active_rpc_url: string;
    rpc_policy: {
        selection_mode: string;
        configured_upstream_count: number;
        configured_upstreams: string[];
        preferred_primary: string;
        fallback_upstreams: string[];
        active_upstream: string;
    };
    rpc_health: {
        activeRpcUrl: string;
        rpcLatencyMs: null | number;
        latestSlotSeen: number;
        lastSignatureSeen: string;
        lastChainSyncAt: Timestamp | null;
        slotLag: null | number;
        primary: string;
        fallback: string;
        providers: Array<{
            url: string;
            available: boolean;
            latestSlot: number;
            latencyMs: null | number;
            lastOkAt: Timestamp | null;
            lastError: null | string;
        }>;
    };
    sources: Record<string, string>;
    endpoint_sets: Record<string, Record<string, string>>;
    service_roles: Record<string, {
        role: string;
        base_url: string;
        public_read_model: boolean;
        rpc_compatible: boolean;
        health_checks: string[];
    }>;
    proof: {
        source_of_truth: string;
        verification_status: string;
        executable_hash: string;
        source_commit: string;
    };
}
export interface MarketSubmissionPacks {
    ok: boolean;
    schema: string;
    api_version: string;
    timestamp_exact: Timestamp | null;
    execution_network: ExecutionNetwork;
    count: number;
    packs: Array<{
        for: string;
        consumers: string[];
        facts: Record<string, string>;
        files: string[];
        auto_consumable: boolean | 'partially';
        needs_external_onboarding: boolean;
        blocker?: string;
    }>;
}
export interface MarketTokens {
    ok: boolean;
    data_mode: string;
    fallback_active: boolean;
    api_version: string;
    source: string;
    execution_network: ExecutionNetwork;
    canonical_pair_id: string;
    control_chain_id: number;
    control_chain_role: string;
    control_chain_rpc_compatible: boolean;
    timestamp_exact: Timestamp | null;
    proof_scope: string;
    schema: string;
    count: number;
    tokens: Array<{
        mint: string;
        symbol: string;
        onchain_symbol?: string;
        name: string;
        decimals: number;
        role: string;
        logo_uri: string;
        metadata_uri: string;
        image_origin: string;
        image_ipfs_uri: string;
        image_gateway_url: string;
        local_fallback_logo_uri: string;
        observed_accounts: Array<{
            address: string;
            amountUi: Decimal;
            amountAtoms: string;
            amountFormatted: string;
            amountCompact: string;
            role: string;
            label: string;
            poolAddress: null | string;
            poolLabel: null | string;
        }>;
        observed_account_count: number;
        observed_inventory_mode: string;
        observed_inventory_ui: Decimal;
        observed_inventory_formatted: string;
        observed_inventory_compact: string;
        primary_observed_account: null | string;
        primary_fee_observed_account: null | string;
    }>;
}
export interface MarketWalletIndex {
    ok: boolean;
    schema: string;
    api_version: string;
    timestamp_exact: Timestamp | null;
    execution_network: ExecutionNetwork;
    wallet_page: string;
    note: string;
    wallets: Array<{
        address: string;
        amountUi: Decimal;
        amountAtoms: string;
        amountFormatted: string;
        amountCompact: string;
        role: string;
        label: string;
        poolAddress: null | string;
        poolLabel: null | string;
        symbol: string;
        mint: string;
        slot: number;
    }>;
}
export interface TokenList {
    name: string;
    timestamp: Timestamp | null;
    version: {
        major: number;
        minor: number;
        patch: number;
    };
    keywords: string[];
    logoURI?: string;
    tokens: Array<{
        chainId: number;
        address: string;
        decimals: number;
        name: string;
        symbol: string;
        logoURI?: string;
        extensions?: Record<string, string>;
    }>;
}
export interface CoinGeckoOrderBook {
    ticker_id: string;
    /** Unix milliseconds. */
    timestamp: number;
    /** Price and quantity, best first. */
    bids: Array<[Decimal, Decimal]>;
    /** Price and quantity, best first. */
    asks: Array<[Decimal, Decimal]>;
}
export interface CoinGeckoTrades {
    buy?: Array<{
        trade_id: number;
        price: Decimal;
        base_volume: Decimal;
        target_volume: Decimal;
        /** Unix milliseconds. */
        trade_timestamp: number;
        /** Side of the aggressor. */
        type: 'buy' | 'sell';
    }>;
    sell?: Array<{
        trade_id: number;
        price: Decimal;
        base_volume: Decimal;
        target_volume: Decimal;
        /** Unix milliseconds. */
        trade_timestamp: number;
        /** Side of the aggressor. */
        type: 'buy' | 'sell';
    }>;
}
export interface CoinMarketCapOrderBook {
    /** Unix milliseconds. */
    timestamp: number;
    /** Price and quantity, best first. */
    bids: Array<[Decimal, Decimal]>;
    /** Price and quantity, best first. */
    asks: Array<[Decimal, Decimal]>;
}
export type CoinMarketCapTrades = Array<{
    trade_id: number;
    price: Decimal;
    base_volume: Decimal;
    quote_volume: Decimal;
    /** Unix milliseconds. */
    timestamp: number;
    /** Side of the aggressor. */
    type: 'buy' | 'sell';
}>;
export interface ScreenerBlock {
    /** Sequence number of the engine's command; our choice. */
    blockNumber: number;
    /** Unix seconds. */
    blockTimestamp: number;
}
export interface ScreenerLatestBlock {
    block: ScreenerBlock;
}
export interface ScreenerAsset {
    asset: {
        /** The mint, or the symbol of a token without one. */
        id: string;
        name: string;
        symbol: string;
        totalSupply?: Decimal;
    };
}
export interface ScreenerPair {
    pair: {
        id: string;
        dexKey: string;
        /** The base token. */
        asset0Id: string;
        /** The quote token. */
        asset1Id: string;
        /** The block in which the pair was defined. Absent if that is unknown, as in data of an earlier version. */
        createdAtBlockNumber?: number;
        /** Its time, Unix seconds. */
        createdAtBlockTimestamp?: number;
        /** The command that defined it: the number of its block. */
        createdAtTxnId?: string;
        feeBps: number;
    };
}
export interface ScreenerEvents {
    events: Array<{
        block: ScreenerBlock;
        eventType: 'swap';
        txnId: string;
        txnIndex: number;
        eventIndex: number;
        maker: string;
        pairId: string;
        asset0In?: Decimal;
        asset0Out?: Decimal;
        asset1In?: Decimal;
        asset1Out?: Decimal;
        priceNative: Decimal;
        metadata?: {
            /** Slot of the transaction. */
            slot: string;
        };
    }>;
}
export interface UdfConfig {
    supports_search: boolean;
    supports_group_request: boolean;
    supports_marks: boolean;
    supports_timescale_marks: boolean;
    supports_time: boolean;
    exchanges: Array<{
        value: string;
        name: string;
        desc: string;
    }>;
    symbols_types: Array<{
        name: string;
        value: string;
    }>;
    supported_resolutions: string[];
    currency_codes: string[];
}
export interface UdfSymbol {
    name: string;
    ticker: string;
    description: string;
    type: string;
    session: string;
    exchange: string;
    listed_exchange: string;
    timezone: string;
    format: string;
    minmov: number;
    minmov2: number;
    /** A tick is minmov / pricescale. */
    pricescale: number;
    has_intraday: boolean;
    has_daily: boolean;
    has_weekly_and_monthly: boolean;
    intraday_multipliers: string[];
    supported_resolutions: string[];
    volume_precision: number;
    data_status: string;
    currency_code: string;
}
/** The answer to a request that cannot be served, with status 200. */
export interface UdfError {
    s: 'error';
    /** What was wrong. */
    errmsg: string;
}
export interface UdfFound {
    symbol: string;
    full_name: string;
    description: string;
    exchange: string;
    ticker: string;
    type: string;
}
/** Symbols that contain the text. */
export type UdfSearch = UdfFound[];
/** Bars by column. Prices are numbers, as UDF has them. */
export interface UdfBars {
    s: 'ok';
    /** Open times, Unix seconds, ascending. */
    t: number[];
    o: number[];
    h: number[];
    l: number[];
    c: number[];
    /** Volumes in the base asset. */
    v: number[];
}
export interface UdfNoData {
    s: 'no_data';
    /** Time of the newest bar before, Unix seconds; absent: there is none. */
    nextTime?: number;
}
export interface MarketSchemas {
    ok: true;
    schema: string;
    api_version: string;
    count: number;
    /** JSON Schemas (draft 2020-12), by the value of a document's member `schema`. */
    schemas: Record<string, Record<string, unknown>>;
}
/** Our choice. */
export interface ClaimTransaction {
    ok: true;
    claim_id: ClaimID;
    state: ClaimState;
    /** Unsigned v0 payment transaction, base64, with a blockhash of now. */
    transaction: string;
    recent_blockhash: Blockhash;
    last_valid_block_height: BlockHeight;
    /** Commitment of the blockhash in the transaction: a node with default settings, whose `preflightCommitment` is the same, accepts it at once. Our choice; services before 0.2.0 do not have it. */
    preflight_commitment: 'finalized';
    expires_at: Timestamp;
}
/** The payment as URLs of Solana Pay 1.1, to be opened or shown as a QR code. Our choice; services before 0.2.0 do not have it. */
export interface SolanaPay {
    /** Everything of the payment in a URL: the wallet builds the transaction. */
    transfer_request: string;
    /** A link from which the wallet gets the transaction; null unless the service's address is https, as the specification demands. */
    transaction_request: string | null;
}
export interface SolanaPayLabel {
    label: string;
    icon: string;
}
export interface SolanaPayAccount {
    account: Address;
}
export interface SolanaPayTransaction {
    /** Unsigned v0 transaction, base64. */
    transaction: string;
    message: string;
}
/** Our choice: a call auction. Orders gather, and trade at one price when it ends: of the prices at which the most is executable, one with the least imbalance, and of those the nearest to the last trade. `bid`, `ask` and the book have only what rested before the call, so a book never crosses. */
export interface CallAuction {
    /** Price at which the orders would trade now; null: nothing would. */
    indicative_price: Decimal | null;
    indicative_volume: Decimal;
    imbalance: Decimal;
    /** Side of what would be left at the indicative price; null: nothing. */
    imbalance_side: 'buy' | 'sell' | null;
    /** When orders stop to gather; null: an operator ends it. */
    ends_at: Timestamp | null;
    /** The orders trade at the indicative price now. */
    uncrossing: boolean;
}
