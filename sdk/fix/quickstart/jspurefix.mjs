// Logs on, buys 5 SLUSD at 1.01 or better, prints what comes of it, logs out.
//
//   npm install jspurefix@5.11.4
//   node jspurefix.mjs jspurefix.json

import 'reflect-metadata'
import { readFileSync } from 'node:fs'
import jspurefix from 'jspurefix'

const { AsciiSession, EmptyLogFactory, SessionLauncher } = jspurefix

class Quickstart extends AsciiSession {
  onReady () {
    this.send('D', {
      ClOrdID: `quickstart-${Date.now()}`,
      Instrument: { Symbol: 'SLUSD/USDC' },
      Side: '1',
      TransactTime: new Date(),
      OrderQtyData: { OrderQty: '5' },
      OrdType: '2',
      Price: '1.01',
      TimeInForce: '3' // immediate or cancel
    })
  }

  onApplicationMsg (type, view) {
    if (type !== '8') return
    const field = (tag) => view.getString(tag)
    console.log(`ExecType ${field(150)} OrdStatus ${field(39)} CumQty ${field(14)} AvgPx ${field(6)}`)
    if (!['0', '1'].includes(field(39))) this.done() // neither new nor partially filled
  }

  onLogon () { return true }
  onStopped () {}
  onDecoded () {}
  onEncoded () {}
}

class Launcher extends SessionLauncher {
  constructor (description) { super(description, null, new EmptyLogFactory()) }
  makeFactory () { return { makeSession: (config) => new Quickstart(config) } }
}

await new Launcher(JSON.parse(readFileSync(process.argv[2] ?? 'jspurefix.json', 'utf8'))).run()
process.exit(0)
