package service

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	"blockdesk/engine"
	"blockdesk/market"
)

// errLacksInstruments: the leader has instruments that this process cannot show.
var errLacksInstruments = errors.New("a follower needs its leader's instruments")

// agree holds the instruments that a leader has defined so far against a follower's
// own. It may have more: they come as the leader defines them. Errors wrap
// errLacksInstruments where it has fewer, which leaves the others as they are; any
// other says that one is not what it is called here.
func agree(leader, own []market.Instrument) error {
	for i := range min(len(leader), len(own)) {
		if err := engine.CheckRedefinition(&leader[i], &own[i]); err != nil {
			return fmt.Errorf("instrument %s: the leader has another: %w", own[i].Symbol, err)
		}
	}
	if len(leader) <= len(own) {
		return nil
	}
	var more []string
	for _, in := range leader[len(own):] {
		more = append(more, in.Symbol)
	}
	return fmt.Errorf("the leader has %s, the configuration does not: %w", strings.Join(more, ", "), errLacksInstruments)
}

// followedEngine gives the engine what its leader's frames have, and looks what
// instruments they define. A leader may come to have one after this process has
// joined; then the books of the others go on, and it is not ready.
type followedEngine struct {
	eng   *engine.Engine
	own   []market.Instrument
	log   *slog.Logger
	lacks atomic.Pointer[error] // wraps errLacksInstruments; nil: it has all
}

// Apply implements fanout.Applier. Errors: those of the engine, and where the leader
// has defined an instrument that is another one here: its book must not be shown.
func (f *followedEngine) Apply(prior uint64, commands []engine.Command) error {
	if err := f.eng.Apply(prior, commands); err != nil {
		return err
	}
	defines := false
	for i := range commands {
		defines = defines || commands[i].Kind == engine.DefineInstrument
	}
	if !defines {
		return nil
	}
	err := agree(f.eng.Instruments(), f.own)
	if !errors.Is(err, errLacksInstruments) {
		return err
	}
	if was := f.lacks.Swap(&err); was == nil || (*was).Error() != err.Error() {
		f.log.Error("not ready until a restart with the leader's instruments", "error", err)
	}
	return nil
}

// agrees is why this process cannot show all that its leader has; nil: it can. Any
// goroutine.
func (f *followedEngine) agrees() error {
	if err := f.lacks.Load(); err != nil {
		return *err
	}
	return nil
}
