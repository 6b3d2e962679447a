// The messages and answers that the pages read. docs/websocket.md and the OpenAPI
// document describe them completely.

export type Side = 'buy' | 'sell';
export type LevelText = [price: string, qty: string];

interface Streamed {
  symbol: string;
  epoch: string;
  seq: number;
  prev_seq?: number;
  engine_seq: number;
  ts: string;
  type: 'snapshot' | 'update';
}

export interface BookMessage extends Streamed {
  channel: 'l2';
  bids: LevelText[];
  asks: LevelText[];
  checksum: number;
}

export interface Trade {
  trade_id: number;
  price: string;
  qty: string;
  side: Side;
  ts: string;
}

export interface TradesMessage extends Streamed {
  channel: 'trades';
  trades: Trade[];
}

export interface Ticker {
  symbol: string;
  epoch: string;
  seq: number;
  last: string | null;
  bid: string | null;
  ask: string | null;
  mid: string | null;
  spread: string | null;
  open_24h: string | null;
  high_24h: string | null;
  low_24h: string | null;
  volume_24h: string;
  quote_volume_24h: string;
  trades_24h: number;
  source: string;
  status: string;
}

export type TickerMessage = Streamed & Ticker & { channel: 'ticker' };

export interface Tranche {
  tranche_id: string;
  capacity_usd: string;
  available_usd: string;
  reserved_usd: string;
  filled_usd: string;
  state: string;
}

export interface Ticket {
  order_id: string;
  ticket_label: string;
  pair: string;
  state: string;
  base_symbol: string;
  rails: string[];
  tranches: Tranche[];
  reference_price_usd: string | null;
  guarantee: { libelle: string; montant_verifie_independamment: boolean };
  expires_at: string | null;
}

export interface TicketsMessage extends Streamed {
  channel: 'tickets';
  tickets: Ticket[];
  gone?: string[];
}

export type MarketMessage = BookMessage | TradesMessage | TickerMessage | TicketsMessage;

export interface Heartbeat {
  channel: 'heartbeat';
  ts: string;
  seqs: Record<string, number>;
}

export interface Control {
  channel: 'control' | 'status';
  type: string;
  code?: string;
}

export type Message = MarketMessage | Heartbeat | Control;

/** Offer is one of GET /api/v1/exchange/board. */
export interface Offer {
  order_id: string;
  available_usd: string;
  best_price_usd: string | null;
  guaranteed_by: { libelle: string };
  operator_declared: { operateur: string; nature: string; capacity_usd: string; reference_price_usd: string | null };
  independently_verified: boolean;
  montant_verifie_independamment: boolean;
}

export interface Board {
  seq: number;
  ts: string;
  offers: Offer[];
}

export interface Symbol {
  symbol: string;
  base: string;
  quote: string;
  price_decimals: number;
  qty_decimals: number;
  book_source: string;
}

export interface Level {
  fill_usd: string;
  discount_bps: number;
}

export interface Pair {
  pair: string;
  base_mint: string;
  base_decimals: number;
  base_symbol: string;
}

export interface Lock {
  name: string;
  locked: boolean;
  reason: string | null;
}

/** DeskPrice is a price that quotes need; null: there is none, and fault says why. */
export interface DeskPrice {
  of: string;
  price_usd: string | null;
  source: string | null;
  age_s: number | null;
  confidence_usd: string | null;
  fault: string | null;
}

export interface DeskStatus {
  locks: Lock[];
  prices: DeskPrice[];
  chain: { available: boolean; reason: string | null; desk_address: string | null };
}

export interface MarketStatus {
  execution_network: string;
  degradation_state: { degraded: boolean; reasons: string[]; rpc_failover_active: boolean; price_source: string };
  freshness: { data_freshness_seconds: number };
}

export type Kline = [open_ms: number, open: string, high: string, low: string, close: string, volume: string, quote: string, trades: number];

export interface Payment {
  rail: string;
  mint: string | null;
  amount: string;
  amount_atoms: string;
  pay_to: string;
}

export interface Quote {
  quote_id: string | null;
  order_id: string;
  tranche_id: string;
  ticket_label: string;
  pair: string;
  fill_usd: string;
  rail: string;
  reference_price_usd: string;
  discount_bps: number;
  price_usd: string;
  base_amount: string;
  base_amount_atoms: string;
  fee_bps: number;
  fee: { included: boolean; amount: string };
  payment: Payment;
  issued_at: string;
  valid_until: string;
  /** False: nothing could be settled when the quote was made. */
  firm: boolean;
}

/** Group is another shard, with its own feed and board. */
export interface Group {
  name: string;
  base_url: string;
  ws_url: string;
  symbols: string[];
}

/** Config is /board/config.json: the service's URLs, and whether it is a demo. */
export interface Config {
  service: string;
  operator: string;
  network: string;
  base_url: string;
  api_url: string;
  ws_url: string;
  refresh_s: number;
  /** The fee in basis points, included in every payment; 0 without a desk. */
  fee_bps: number;
  groups: Group[];
  demo_chain_url: string | null;
}
