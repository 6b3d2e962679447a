import { isDecimal } from './decimal.js';
import { ProtocolError } from './errors.js';
const maxLevels = 1_000; // a side; the desk has 100 at most
const maxOrders = 10_000; // a side
const maxItems = 100_000; // trades, tickets or streams of a message
const isFields = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
const isCount = (value) => Number.isSafeInteger(value) && value >= 0;
const isText = (value) => typeof value === 'string' && value.length > 0;
const isList = (value, most) => Array.isArray(value) && value.length <= most;
const isTexts = (value) => isList(value, maxItems) && value.every(isText);
const isLevel = (value) => isList(value, 2) && value.length === 2 && isDecimal(value[0]) && isDecimal(value[1]);
const isSide = (value) => isList(value, maxLevels) && value.every(isLevel);
const isOrder = (value) => isList(value, 3) && value.length === 3 && isText(value[0]) && isDecimal(value[1]) && isDecimal(value[2]);
const isOrders = (value) => isList(value, maxOrders) && value.every(isOrder);
const isTrade = (t) => isFields(t) && isCount(t['trade_id']) && isDecimal(t['price']) && isDecimal(t['qty'])
    && (t['side'] === 'buy' || t['side'] === 'sell') && isText(t['ts']);
const isSale = (t) => isFields(t) && isCount(t['trade_id']) && isDecimal(t['price_usd']) && isDecimal(t['fill_usd'])
    && isDecimal(t['base_amount']) && isText(t['rail']) && isText(t['ts']) && (t['l1_signature'] === null || isText(t['l1_signature']));
const isStream = (s) => isFields(s) && isText(s['channel']) && isText(s['symbol']);
const optionalDecimals = ['last', 'last_qty', 'bid', 'bid_qty', 'ask', 'ask_qty', 'mid', 'spread', 'open_24h', 'high_24h', 'low_24h'];
// checks say of each channel whether its members are what we use them as.
const checks = {
    l2: (m) => isPlace(m) && isCount(m['prev_seq']) && isSide(m['bids']) && isSide(m['asks']) && isCount(m['checksum']),
    l3: (m) => isPlace(m) && isCount(m['prev_seq']) && isOrders(m['bids']) && isOrders(m['asks']) && isCount(m['checksum']),
    trades: (m) => isPlace(m) && isCount(m['prev_seq']) && isList(m['trades'], maxItems) && m['trades'].every(isTrade),
    ticker: (m) => isPlace(m) && optionalDecimals.every((name) => m[name] === null || isDecimal(m[name]))
        && isDecimal(m['volume_24h']) && isDecimal(m['quote_volume_24h']) && isCount(m['trades_24h'])
        && (m['auction'] === undefined || isAuction(m['auction'])),
    tickets: (m) => isPlace(m) && isCount(m['prev_seq']) && isList(m['tickets'], maxItems)
        && m['tickets'].every((t) => isFields(t) && isText(t['order_id']) && isList(t['tranches'], maxItems))
        && (m['gone'] === undefined || isTexts(m['gone'])),
    rfq_trades: (m) => isPlace(m) && isCount(m['prev_seq']) && isList(m['rfq_trades'], maxItems) && m['rfq_trades'].every(isSale),
    heartbeat: (m) => isFields(m['seqs']) && Object.values(m['seqs']).every(isCount),
    mark: (m) => isText(m['epoch']) && isCount(m['engine_seq']),
    status: (m) => m['type'] === 'restart' || (m['type'] === 'welcome' && isText(m['epoch'])),
    control: (m) => m['type'] === 'pong' || (m['type'] === 'error' && isText(m['code']))
        || (m['type'] === 'ack' && lists(m, 'subscribed', isStream) && lists(m, 'rejected', (r) => isFields(r) && isText(r['code']))),
};
const isAuction = (a) => isFields(a) && (a['indicative_price'] === null || isDecimal(a['indicative_price']))
    && isDecimal(a['indicative_volume']) && isDecimal(a['imbalance']);
const lists = (m, name, of) => m[name] === undefined || (isList(m[name], maxItems) && m[name].every(of));
const isPlace = (m) => (m['type'] === 'snapshot' || m['type'] === 'update')
    && isText(m['symbol']) && isText(m['epoch']) && isCount(m['seq']) && isCount(m['engine_seq']);
/**
 * decodeMessage reads one message. What it returns has the members that its type
 * says; a channel that is not known, which a later service may have, is null. It
 * throws ProtocolError.
 */
export function decodeMessage(text) {
    let m;
    try {
        m = JSON.parse(text);
    }
    catch (error) {
        throw new ProtocolError(`a message that is no JSON: ${text.slice(0, 200)}`, { cause: error });
    }
    if (!isFields(m) || !isText(m['channel']))
        throw new ProtocolError(`a message without a channel: ${text.slice(0, 200)}`);
    if (!Object.hasOwn(checks, m['channel']))
        return null;
    if (!checks[m['channel']](m))
        throw new ProtocolError(`no message of ${m['channel']}: ${text.slice(0, 200)}`);
    return m;
}
