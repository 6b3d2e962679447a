package admin

import (
	"log/slog"
	"maps"
	"time"

	"blockdesk/httpgw/wire"
)

func newEndpoints(o Operations, ids *wire.RequestIDs, log *slog.Logger) *endpoints {
	start := time.Now()
	p := &endpoints{
		operators: o.Operators, backupTo: o.Backup, backup: make(chan struct{}, 1), ids: ids, log: commandLog{log},
		limit: operatorLimit(func() int64 { return int64(time.Since(start)) }), routes: operatorRoutes{},
	}
	now := o.Now
	if now == nil {
		now = func() int64 { return time.Now().UnixNano() }
	}
	if o.Backup != nil {
		p.routes["/desk/backup"] = map[string]endpointFunc{"POST": bodied(p.makeBackup)}
	}
	var rest map[string]endpointFunc
	if o.Cluster != nil {
		cluster := &clusterEndpoints{o.Cluster, p.log}
		maps.Copy(p.routes, cluster.routes())
		if o.standsBy() {
			rest = map[string]endpointFunc{"GET": cluster.refuseOnStandby, "POST": cluster.refuseOnStandby}
		}
	}
	p.routes["/desk/"] = rest
	if o.Desk != nil {
		sales := &deskEndpoints{desk: o.Desk, sources: o.Prices, instruments: o.Instruments, log: p.log, now: now, status: o.Status, money: o.Money}
		maps.Copy(p.routes, sales.routes())
	}
	if o.Money != nil {
		maps.Copy(p.routes, (&moneyEndpoints{o.Money, p.log}).routes())
	}
	if o.Tokens != nil {
		maps.Copy(p.routes, (&tokenEndpoints{o.Tokens, p.log, now}).routes())
	}
	if o.FIX != nil {
		maps.Copy(p.routes, newFIXEndpoints(o.FIX, p.log, now).routes())
	}
	if o.Markets != nil {
		maps.Copy(p.routes, (&marketEndpoints{o.Markets, o.Instruments, p.log}).routes())
	}
	return p
}

func (e *deskEndpoints) routes() operatorRoutes {
	return operatorRoutes{
		"/desk/tickets":                     {"GET": e.listTickets, "POST": bodied(e.postTicket)},
		"/desk/tickets/{order_id}/amend":    {"POST": bodied(e.amendTicket)},
		"/desk/tickets/{order_id}/tranches": {"POST": bodied(e.setTranche)},
		"/desk/tickets/{order_id}/withdraw": {"POST": bodied(e.withdrawTicket)},
		"/desk/locks":                       {"GET": e.listLocks, "POST": bodied(e.setLock)},
		"/desk/prices":                      {"GET": e.listPrices, "POST": bodied(e.setPrice)},
		"/desk/status":                      {"GET": e.showStatus},
		"/desk/inventory":                   {"GET": e.listInventory, "POST": bodied(e.setInventory)},
	}
}

func (e *moneyEndpoints) routes() operatorRoutes {
	return operatorRoutes{
		"/desk/money":          {"GET": e.listMoney},
		"/desk/money/refunded": {"POST": bodied(e.markRefunded)},
		"/desk/money/abandon":  {"POST": bodied(e.abandonClaim)},
		"/desk/money/release":  {"POST": bodied(e.releaseClaim)},
		"/desk/money/resolve":  {"POST": bodied(e.resolveUnmatched)},
		"/desk/money/refund":   {"POST": bodied(e.orderRefunds)},
	}
}
