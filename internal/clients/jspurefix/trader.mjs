// An independent FIX 4.4 client: npm's jspurefix with its stock dictionary and
// validation on. It trades through sessions of a gateway, breaks them, and exits
// 0 only when every expectation held. It prints each step.
//
//   node trader.mjs HOST PORT DICTIONARY FOLDER TARGET MAKER COPY TAKER PASSWORD SYMBOL LIFE
//
// MAKER and TAKER are SenderCompIDs and Usernames of two participants, COPY is
// another session of the maker's, whose DICTIONARY has our fields; FOLDER is where
// jspurefix keeps its stores. The gateway must be fresh: the book of SYMBOL, which
// has six decimals of price and of quantity, is empty. LIFE is what becomes of a
// claim: "settled" has the caller pay it, who reads the line "pay " and the
// transaction, and answers with the payment's signature in a line; with
// "unavailable" there is no chain.

import { createInterface } from 'node:readline'

import { Failure, Line, entries, expect, field } from './line.mjs'

const [host, port, dictionary, folder, target, makerName, copyName, takerName, password, symbol, life] = process.argv.slice(2)
if (life === undefined) {
  console.error('usage: node trader.mjs HOST PORT DICTIONARY FOLDER TARGET MAKER COPY TAKER PASSWORD SYMBOL LIFE')
  process.exit(2)
}
const settings = { host, port: Number(port), folder, target, password, dictionary: 'qf44' }
const maker = new Line({ ...settings, name: makerName, username: makerName })
const taker = new Line({ ...settings, name: takerName, username: takerName })
const copy = new Line({ ...settings, name: copyName, username: makerName, dictionary, logon: { DropCopy: true, CustomFields: true } })

let steps = 0
const step = (text) => console.log(`step ${++steps}: ${text}`)

let ids = 0
const newID = () => `js-${process.pid}-${++ids}`
const Instrument = { Symbol: symbol }
const now = () => ({ TransactTime: new Date() })

// order sends a limit order and returns its ClOrdID.
function order (line, side, qty, price, more = {}) {
  const id = newID()
  line.send('D', {
    ClOrdID: id, Instrument, Side: side, OrderQtyData: { OrderQty: qty }, OrdType: '2', Price: price, TimeInForce: '1', ...now(), ...more
  })
  return id
}

// rest sends an order that does not trade and waits for its acknowledgement.
async function rest (line, side, qty, price) {
  const id = order(line, side, qty, price)
  await line.report('8', {
    11: id, 150: '0', 39: '0', 37: '*', 17: '*', 55: symbol, 54: side, 38: qty, 44: price, 59: '1', 151: qty, 14: '0.000000', 6: '0'
  })
  return id
}

async function cancel (line, id, side) {
  const f = newID()
  line.send('F', { ClOrdID: f, OrigClOrdID: id, Instrument, Side: side, ...now() })
  await line.report('8', { 11: f, 41: id, 150: '4', 39: '4', 151: '0.000000' })
}

async function logOn () {
  step('a wrong password is answered by a Logout with a text; then both log on')
  const text = await taker.refusedWith('not the password')
  if (!text.startsWith('LOGON_REFUSED')) throw new Failure(`the Logout's text is '${text}'`)
  await maker.connect()
  await taker.connect()
}

async function instruments () {
  step('the instruments (x) have the symbol, and it trades (e)')
  maker.send('x', { SecurityReqID: 'list', SecurityListRequestType: 4 })
  const list = await maker.report('y', { 320: 'list', 560: '0', 146: '*' })
  const found = entries(list, 'SecListGrp.NoRelatedSym').find((entry) => field(entry, 55) === symbol)
  if (!found) throw new Failure(`the list has no ${symbol}: ${list.toString()}`)
  expect(found, { 561: '0.000001', 15: '*', 58: '*' })
  maker.send('e', { SecurityStatusReqID: 'status', Instrument, SubscriptionRequestType: '0' })
  await maker.report('f', { 324: 'status', 55: symbol, 325: 'N', 326: '17' })
}

// ask sends an R for a fill of so many dollars, paid in USDC.
function ask (line, id, dollars) {
  const NoRelatedSym = [{ Instrument, Side: '1', OrderQtyData: { CashOrderQty: dollars }, Currency: 'USDC' }]
  // jspurefix's dictionary has the group in a component, QuickFIX's and ours not.
  line.send('R', { QuoteReqID: id, ...(line === copy ? { NoRelatedSym } : { QuotReqGrp: { NoRelatedSym } }) })
}

async function quote () {
  step('the desk quotes (R, S), refuses a size off its ladder (AG), and is told that we pass (AJ, AI)')
  ask(maker, 'off-ladder', '1001')
  const no = await maker.report('AG', { 131: 'off-ladder', 658: '99' })
  if (!field(no, 58).startsWith('INVALID_FIELD')) throw new Failure(`text is ${field(no, 58)}`)
  ask(maker, 'passed', '1000')
  const offer = await maker.report('S', { 131: 'passed', 117: '*', 537: '1', 133: '*', 135: '*', 62: '*' })
  maker.send('AJ', { QuoteRespID: 'pass', QuoteID: field(offer, 117), QuoteRespType: 6, Instrument })
  await maker.report('AI', { 117: field(offer, 117), 297: '11' })
}

async function claim () {
  step(`a quote is taken (AJ, 694=1): ${life}`)
  ask(maker, 'taken', '1000')
  const offer = await maker.report('S', { 131: 'taken', 117: '*' })
  maker.send('AJ', { QuoteRespID: 'hit', QuoteID: field(offer, 117), QuoteRespType: 1, Instrument, ...now() })
  if (life !== 'settled') {
    const no = await maker.report('8', { 693: 'hit', 37: 'NONE', 150: '8', 39: '8', 103: '*' })
    if (!field(no, 58).startsWith('CHAIN_UNAVAILABLE')) throw new Failure(`text is ${field(no, 58)}`)
    return
  }
  const taken = await maker.report('8', { 693: 'hit', 37: '*', 150: 'A', 39: 'A', 126: '*', 58: 'AWAIT_PAYMENT' })
  await pay(taken, await maker.report('B', { 148: `CLAIM ${field(taken, 37)}`, 95: '*', 96: '*' }))
}

// paymentOf has the caller pay, and returns the payment's signature.
async function paymentOf (transaction) {
  const lines = createInterface({ input: process.stdin })
  console.log(`pay ${transaction}`)
  for await (const line of lines) {
    lines.close()
    return line
  }
  throw new Failure('nobody pays')
}

// pay reports the payment of a claim and sees it settled. The answer to the report
// may come before or after what the desk says of the claim.
async function pay (taken, offer) {
  const id = field(taken, 37)
  maker.send('AE', {
    TradeReportID: 'paid',
    TradeReportRefID: id,
    SecondaryTradeReportID: await paymentOf(field(offer, 96)),
    PreviouslyReported: false,
    Instrument,
    LastQty: field(taken, 38),
    LastPx: field(taken, 44),
    TradeDate: '20260101',
    ...now(),
    TrdCapRptSideGrp: { NoSides: [{ Side: '1', OrderID: id }] }
  })
  const wants = { AR: { 571: 'paid', 939: '0' }, 80: { 37: id, 39: '0', 58: 'PAID' }, '8F': { 37: id, 39: '2', 151: '0.000000', 32: field(taken, 38) }, AEF: { 37: id, 39: '2' } }
  for (const _ of Object.keys(wants)) {
    const view = await maker.next()
    const kind = field(view, 35) === 'AR' ? 'AR' : field(view, 35) + field(view, 150)
    if (!wants[kind]) throw new Failure(`of the payment came ${view.toString()}`)
    expect(view, wants[kind])
    delete wants[kind]
  }
}

async function refuse () {
  step('an order on no instrument is refused with its code')
  const id = newID()
  maker.send('D', { ClOrdID: id, Instrument: { Symbol: 'NO/SUCH' }, Side: '1', OrderQtyData: { OrderQty: '1' }, OrdType: '2', Price: '1', ...now() })
  const view = await maker.report('8', { 11: id, 37: 'NONE', 150: '8', 39: '8', 103: '1' })
  if (!field(view, 58).startsWith('UNKNOWN_SYMBOL')) throw new Failure(`text is ${field(view, 58)}`)
}

async function trade () {
  step('a limit order rests, is filled in part, then wholly; both sides hear of it')
  const sell = await rest(maker, '2', '100.000000', '1.010000')
  const first = order(taker, '1', '40', '1.01')
  await taker.report('8', { 11: first, 150: '0', 39: '0', 151: '40.000000' })
  await taker.report('8', { 11: first, 150: 'F', 39: '2', 32: '40.000000', 31: '1.010000', 151: '0.000000', 14: '40.000000', 6: '1.010000' })
  await maker.report('8', { 11: sell, 150: 'F', 39: '1', 32: '40.000000', 31: '1.010000', 151: '60.000000', 14: '40.000000' })
  const second = order(taker, '1', '90', '1.05', { TimeInForce: '3' })
  await taker.report('8', { 11: second, 150: '0', 39: '0', 59: '3' })
  await taker.report('8', { 11: second, 150: 'F', 39: '1', 32: '60.000000', 31: '1.010000', 151: '30.000000' })
  await taker.report('8', { 11: second, 150: '4', 39: '4', 151: '0.000000', 14: '60.000000', 58: '*' })
  await maker.report('8', { 11: sell, 150: 'F', 39: '2', 151: '0.000000', 14: '100.000000' })
}

async function change () {
  step('an order is amended (G), asked for (H), cancelled (F), and cannot be cancelled again (9)')
  const id = await rest(maker, '1', '50.000000', '0.990000')
  const g = newID()
  maker.send('G', {
    ClOrdID: g, OrigClOrdID: id, Instrument, Side: '1', OrderQtyData: { OrderQty: '30' }, OrdType: '2', Price: '0.98', TimeInForce: '1', ...now()
  })
  await maker.report('8', { 11: g, 41: id, 150: '5', 39: '0', 38: '30.000000', 44: '0.980000', 151: '30.000000' })
  maker.send('H', { ClOrdID: g, Instrument, Side: '1' })
  await maker.report('8', { 11: g, 150: 'I', 39: '0', 38: '30.000000', 44: '0.980000' })
  await cancel(maker, g, '1')
  const f = newID()
  maker.send('F', { ClOrdID: f, OrigClOrdID: g, Instrument, Side: '1', ...now() })
  await maker.report('9', { 11: f, 41: g, 39: '4', 434: '1', 102: '0', 58: '*' })
}

async function massCancel () {
  step('a mass cancel (q) ends all orders of a participant on the symbol')
  const mine = [await rest(maker, '1', '10.000000', '0.970000'), await rest(maker, '2', '10.000000', '1.030000')]
  const other = await rest(taker, '1', '10.000000', '0.960000')
  const q = newID()
  maker.send('q', { ClOrdID: q, MassCancelRequestType: '1', Instrument, ...now() })
  const ended = []
  for (const _ of mine) ended.push(field(await maker.report('8', { 150: '4', 39: '4', 58: '*' }), 11))
  if (ended.sort().join() !== mine.sort().join()) throw new Failure(`ended were ${ended}`)
  await maker.report('r', { 11: q, 37: '*', 530: '1', 531: '1', 533: '2', 55: symbol })
  await taker.quiet('the other participant keeps its orders')
  await cancel(taker, other, '1')
}

const request = (type, id) => ({
  MDReqID: id,
  SubscriptionRequestType: type,
  MarketDepth: 0,
  MDUpdateType: 1,
  MDReqGrp: { NoMDEntryTypes: ['0', '1', '2'].map((kind) => ({ MDEntryType: kind })) },
  InstrmtMDReqGrp: { NoRelatedSym: [{ Instrument }] }
})

async function followMarket () {
  step('market data (V): a snapshot (W), then increments (X) that rebuild the book')
  const first = await rest(maker, '1', '10.000000', '0.990000')
  taker.send('V', request('1', 'md-1'))
  const book = [new Map(), new Map()]
  let trades = 0
  const snapshot = await taker.market()
  expect(snapshot, { 35: 'W', 262: 'md-1', 55: symbol })
  for (const level of entries(snapshot, 'MDFullGrp.NoMDEntries')) {
    if (field(level, 269) !== '2') book[Number(field(level, 269))].set(field(level, 270), field(level, 271))
  }
  const second = await rest(maker, '1', '10.000000', '0.980000')
  const sell = order(taker, '2', '12', '0.98', { TimeInForce: '3' })
  await taker.report('8', { 11: sell, 150: '0' })
  await taker.report('8', { 11: sell, 150: 'F', 31: '0.990000', 32: '10.000000' })
  await taker.report('8', { 11: sell, 150: 'F', 31: '0.980000', 32: '2.000000', 39: '2', 6: '0.988333333333' })
  await maker.report('8', { 11: first, 150: 'F', 39: '2' })
  await maker.report('8', { 11: second, 150: 'F', 39: '1', 151: '8.000000' })
  while (trades < 2 || book[0].size !== 1 || book[0].get('0.980000') !== '8.000000') {
    const increment = await taker.market() // fails when no more come
    expect(increment, { 35: 'X', 262: 'md-1' })
    for (const entry of entries(increment, 'MDIncGrp.NoMDEntries')) {
      const [action, kind, price] = [279, 269, 270].map((tag) => field(entry, tag))
      if (kind === '2') { trades++; continue }
      const side = book[Number(kind)]
      if (side.has(price) === (action === '0')) throw new Failure(`MDUpdateAction ${action} does not fit the level ${price}`)
      if (action === '2') side.delete(price)
      else side.set(price, field(entry, 271))
    }
  }
  taker.send('V', request('2', 'md-1'))
  await cancel(maker, second, '1')
}

async function repeat () {
  step('the same order again gets its first report again and is not entered twice')
  const id = await rest(maker, '1', '7.000000', '0.940000')
  const before = maker.executions.size
  maker.send('D', { ClOrdID: id, Instrument, Side: '1', OrderQtyData: { OrderQty: '7' }, OrdType: '2', Price: '0.94', TimeInForce: '1', ...now() })
  await maker.report('8', { 97: 'Y', 11: id, 150: '0', 39: '0' })
  if (maker.executions.size !== before) throw new Failure('a repeated order made a new ExecID')
  await cancel(maker, id, '1')
}

async function gapFromGateway () {
  step('a gap in what we received: ResendRequest, the reports again with PossDup')
  const id = await rest(maker, '1', '3.000000', '0.930000')
  await cancel(maker, id, '1')
  const before = maker.executions.size
  maker.loseIncoming(2)
  const next = order(maker, '1', '3', '0.93')
  await maker.report('8', { 11: next, 150: '0' }) // jspurefix shows what came first
  await maker.report('8', { 43: 'Y', 11: id, 150: '0', 122: '*' })
  await maker.report('8', { 43: 'Y', 41: id, 150: '4' })
  await maker.report('8', { 43: 'Y', 11: next, 150: '0' })
  await cancel(maker, next, '1')
  if (maker.executions.size !== before + 2) throw new Failure('the resend made new ExecIDs')
}

async function gapFromUs () {
  step('a gap in what we send: the gateway asks for it, takes our gap fill, and takes the order once')
  maker.forget()
  maker.skipSender(5)
  const id = order(maker, '1', '3', '0.92')
  expect(await maker.session('2'), { 7: '*', 16: '*' })
  // The gateway has not taken the order: jspurefix fills the gap and leaves the
  // order out, so it comes again under the same ClOrdID.
  await maker.quiet('what came after the gap waits for it')
  maker.send('D', { ClOrdID: id, Instrument, Side: '1', OrderQtyData: { OrderQty: '3' }, OrdType: '2', Price: '0.92', TimeInForce: '1', ...now() })
  await maker.report('8', { 11: id, 150: '0' })
  await maker.quiet('the order is taken once')
  await cancel(maker, id, '1')
}

async function cancelOnDisconnect () {
  step("the maker's line breaks: its order is cancelled, and back with continued numbers it is told")
  const id = await rest(maker, '2', '20.000000', '1.020000')
  const sender = maker.nextSender
  await maker.cut()
  await maker.connect()
  await maker.report('8', { 11: id, 150: '4', 39: '4', 58: 'cancel_on_disconnect' })
  if (maker.nextSender <= sender) throw new Failure('our numbers began anew')
}

async function dropCopy () {
  step('another session of the maker, with our dictionary, gets a copy (AE) of each fill, also of one that it has missed')
  await copy.connect()
  const id = await rest(maker, '2', '6.000000', '1.040000')
  for (const away of [false, true]) {
    if (away) await copy.cut()
    const buy = order(taker, '1', '2', '1.04', { TimeInForce: '3' })
    await taker.report('8', { 11: buy, 150: '0' })
    await taker.report('8', { 11: buy, 150: 'F', 39: '2' })
    const fill = await maker.report('8', { 11: id, 150: 'F', 39: '1' })
    if (away) await copy.connect()
    const told = await copy.report('AE', { 571: '*', 570: 'N', 150: 'F', 17: field(fill, 17), 55: symbol, 32: '2.000000', 31: '1.040000', 11: id })
    if (away) expect(told, { 43: 'Y' })
  }
  await quoteWithOurFields()
  await copy.leave()
  await cancel(maker, id, '2')
}

// quoteWithOurFields: 5600=Y adds what standard fields have no place for.
async function quoteWithOurFields () {
  ask(copy, 'custom', '1000')
  await copy.report('S', { 131: 'custom', 5601: '1000', 5602: 'USDC', 5605: '1000.000000', 5607: '*', 5611: '*' })
}

async function logOut () {
  step('both log out and come back with continued numbers')
  const sender = maker.nextSender
  const received = maker.lastTarget
  await maker.leave()
  await taker.leave()
  await maker.connect()
  await taker.connect()
  if (maker.nextSender <= sender || maker.lastTarget <= received) throw new Failure('the numbers began anew')
  const id = await rest(maker, '1', '4.000000', '0.900000')
  await cancel(maker, id, '1')
  await maker.quiet('the day is over')
  await taker.quiet('the day is over')
  await maker.leave()
  await taker.leave()
}

try {
  for (const act of [logOn, instruments, quote, claim, refuse, trade, change, massCancel, followMarket, repeat, gapFromGateway, gapFromUs, dropCopy, cancelOnDisconnect, logOut]) await act()
  console.log(`all ${steps} steps held; ${maker.executions.size + taker.executions.size} execution reports`)
  process.exit(0)
} catch (failure) {
  console.log(`${[...maker.tape, ...copy.tape, ...taker.tape].join('\n')}\nFAILED in step ${steps}: ${failure.stack}`)
  process.exit(1)
}
