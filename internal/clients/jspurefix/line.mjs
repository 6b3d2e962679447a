// A line is one FIX session of the trader: jspurefix's own initiator with its own
// file store, a dictionary and its checks of what comes turned on.

import 'reflect-metadata'
import jspurefix from 'jspurefix'
import tcp from 'jspurefix/dist/transport/tcp/index.js'

const { AsciiSession, DITokens, EmptyLogFactory, SessionContainer } = jspurefix
const { TcpInitiator } = tcp

// patience is how long an answer may take, quietTime how long nothing may come
// where nothing is expected; milliseconds.
const patience = 240_000
const quietTime = 150
const tapeLines = 60

// Failure is an expectation that did not hold; its text is for a person.
export class Failure extends Error {}

const readable = (text) => text.replaceAll('\x01', '|')

// field returns a field's value, or '' where it is absent.
export const field = (view, tag) => view.getString(tag) ?? ''

// expect holds a message to fields by tag; a value of '*' only has to be there.
export function expect (view, fields) {
  for (const [tag, want] of Object.entries(fields)) {
    const got = field(view, Number(tag))
    if (want === '*' ? got === '' : got !== want) {
      throw new Failure(`tag ${tag} is '${got}', want '${want}': ${view.toString()}`)
    }
  }
}

// entries returns the instances of a repeating group, named by its path.
export function entries (view, path) {
  const all = view.getView(path)
  return all ? Array.from({ length: all.groupCount() }, (_, i) => all.getGroupInstance(i)) : []
}

// inOrder has a file store write its sequence numbers one pair after the other, and
// returns what waits for the last. The library starts a write with each message and
// waits for none, so that an older pair may be what stays in the file.
function inOrder (store) {
  const files = store.getStreamProvider?.()
  if (!files) return async () => {} // in memory
  const write = files.writeSeqNums.bind(files)
  let last = Promise.resolve()
  files.writeSeqNums = (pair) => { last = last.then(() => write(pair)); return last }
  return () => last
}

// Wire is jspurefix's session of one connection; it hands all to the line.
class Wire extends AsciiSession {
  constructor (config, line) {
    super(config)
    this.line = line
    this.written = inOrder(this.sessionStore)
    this.checkMsgIntegrity = true // the library's default is on for acceptors only
    this.on('error', () => {}) // a broken connection is told by onStopped
  }

  onApplicationMsg (type, view) { this.line.application(type, view.clone()) }
  onSessionMsg (type, view) {
    this.line.sessionMessage(type, view.clone())
    super.onSessionMsg(type, view)
  }

  onDecoded (type, text) { this.line.note(`< ${readable(text)}`) }
  onEncoded (type, text) {
    this.line.note(`> ${readable(text)}`)
    if (type === '3') this.line.broke(`the client had to reject: ${readable(text)}`)
  }

  onLogon () { return true }
  onReady () { this.line.changed(() => { this.line.loggedOn = true }) }
  onStopped () { this.line.changed(() => { this.line.loggedOn = false }) }
}

export class Line {
  // settings: {host, port, dictionary, folder, target, name, username, password};
  // logon has further fields of the Logon by name, or is absent.
  constructor (settings) {
    this.settings = settings
    this.loggedOn = false
    this.broken = ''
    this.reports = []
    this.markets = []
    this.sessions = []
    this.tape = []
    this.executions = new Map() // content by ExecID
    this.waiters = new Set()
  }

  get name () { return this.settings.name }

  // open connects a new session object on a store.
  async open (password, store) {
    await this.wire?.written()
    const { host, port, dictionary, target, name, username, logon } = this.settings
    const description = {
      application: { type: 'initiator', name, protocol: 'ascii', dictionary, reconnectSeconds: 1, tcp: { host, port } },
      Username: username,
      Password: password,
      ResetSeqNumFlag: false,
      HeartBtInt: 10,
      SenderCompId: name,
      TargetCompID: target,
      BeginString: 'FIX.4.4',
      Logon: logon,
      store
    }
    const container = new SessionContainer()
    container.registerGlobal(new EmptyLogFactory())
    const system = await container.makeSystem(description)
    const config = system.resolve(DITokens.IJsFixConfig)
    this.wire = new Wire(config, this)
    const initiator = system.resolve(TcpInitiator)
    const transport = await initiator.connect(patience / 1000)
    initiator.clearTimer()
    this.wire.run(transport).catch(() => {}) // its end is told by onStopped
  }

  // connect opens the line and waits for the logon.
  async connect () {
    await this.open(this.settings.password, { type: 'file', directory: this.settings.folder })
    await this.until(() => this.loggedOn, 'logon')
  }

  // refusedWith logs on with a wrong password and returns the Logout's text. It has
  // a store of its own: jspurefix counts the Logout, which moves no number of ours.
  async refusedWith (password) {
    await this.open(password, { type: 'memory' })
    const logout = await this.session('5')
    this.wire.stop()
    return field(logout, 58)
  }

  // cut closes the socket without a Logout.
  async cut () {
    const wire = this.wire
    wire.transport.duplex.end()
    wire.stop()
    await this.until(() => !this.loggedOn, 'end of the line')
  }

  // leave logs out.
  async leave () {
    this.wire.done()
    await this.session('5')
    await this.until(() => !this.loggedOn, 'end of the line')
  }

  get nextSender () { return this.wire.transport.transmitter.msgSeqNum }
  get lastTarget () { return this.wire.lastPeerSeqNum() }
  // The next message of ours has a number that skips `count` numbers.
  skipSender (count) { this.wire.transport.transmitter.msgSeqNum += count }
  // Act as though the last `count` messages had never come.
  loseIncoming (count) { this.wire.sessionState.lastPeerMsgSeqNum -= count }

  send (type, message) { this.wire.send(type, message) }

  // report waits for the next message that is not market data and holds it to
  // its type and fields. Nothing else may come before it.
  async report (type, fields) {
    const view = await this.take(this.reports, `message of type ${type}`)
    expect(view, { 35: type, ...fields })
    return view
  }

  // next waits for the next message that is not market data, whatever it is.
  next () { return this.take(this.reports, 'message') }

  market () { return this.take(this.markets, 'market data') }

  // session waits for a session message of a type, and takes it.
  async session (type) {
    const at = () => this.sessions.findIndex((view) => field(view, 35) === type)
    await this.until(() => at() >= 0, `session message of type ${type}`)
    return this.sessions.splice(0, at() + 1).pop()
  }

  // forget drops the session messages that have come so far.
  forget () { this.sessions.length = 0 }

  // quiet fails if a report has come, or comes within a moment.
  async quiet (why) {
    await new Promise((resolve) => setTimeout(resolve, quietTime))
    if (this.broken) throw new Failure(`${this.name}: ${this.broken}`)
    if (this.reports.length > 0) throw new Failure(`${this.name}: ${why}, but this came: ${this.reports[0].toString()}`)
  }

  async take (from, what) {
    await this.until(() => from.length > 0, what)
    return from.shift()
  }

  // until waits for what is ready to say so; a line that has broken a rule ends it.
  async until (ready, what) {
    const end = Date.now() + patience
    while (!this.broken && !ready()) {
      if (Date.now() >= end) throw new Failure(`${this.name}: no ${what} came`)
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, end - Date.now())
        this.waiters.add(() => { clearTimeout(timer); resolve() })
      })
    }
    if (this.broken) throw new Failure(`${this.name}: ${this.broken}`)
  }

  changed (change) {
    change()
    const waiting = [...this.waiters]
    this.waiters.clear()
    for (const wake of waiting) wake()
  }

  broke (text) { this.changed(() => { this.broken ||= text }) }

  note (line) {
    this.tape.push(`${this.name} ${line}`)
    if (this.tape.length > tapeLines) this.tape.shift()
  }

  sessionMessage (type, view) { this.changed(() => this.sessions.push(view)) }

  application (type, view) {
    if (type === '8') this.execution(view)
    this.changed(() => ('WXY'.includes(type) ? this.markets : this.reports).push(view))
  }

  // execution holds every report to the rules of ExecID (17): a new one is used
  // once, and one that comes again says so and says the same.
  execution (view) {
    const content = [37, 11, 41, 150, 39, 55, 54, 38, 44, 32, 31, 151, 14, 6, 60, 58].map((tag) => `${tag}=${field(view, tag)}`).join('|')
    const id = field(view, 17)
    const known = this.executions.get(id)
    const again = field(view, 43) === 'Y' || field(view, 97) === 'Y'
    if (known !== undefined && known !== content) this.broke(`ExecID ${id} came with other content: ${known} and ${content}`)
    if (known !== undefined && !again) this.broke(`ExecID ${id} came twice, and neither PossDup nor PossResend says so`)
    this.executions.set(id, content)
  }
}
