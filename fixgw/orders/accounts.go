package orders

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"blockdesk/fixgw/session"
	"blockdesk/persist/kv"
)

// maxAccounts is how many different Accounts (1) the orders of a session may name.
const maxAccounts = 1000

// errAccounts refuses an order whose Account is one too many.
var errAccounts = fmt.Errorf("more than %d different accounts in the orders of this session", maxAccounts)

// accounts number the Accounts (1) that a session's orders name, because a command has no
// room for a text. A number is stored, synced, before the first command that has it, so
// the reports of an order repeat its Account also after a crash. Numbers begin at 1 and
// never change.
type accounts struct {
	session uint16
	store   kv.Store

	mu      sync.Mutex
	numbers map[string]uint64
	texts   []string // by number, less 1
}

func accountKey(session uint16, number uint64) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16([]byte{keyAccount}, session), uint32(number))
}

// load reads the session's accounts, once. It needs mu.
func (a *accounts) load() error {
	if a.numbers != nil {
		return nil
	}
	a.numbers = make(map[string]uint64)
	return kv.Each(a.store, accountKey(a.session, 0), accountKey(a.session, maxAccounts+1), func(key, value []byte) error {
		if number := binary.BigEndian.Uint32(key[3:]); int(number) != len(a.texts)+1 {
			return fmt.Errorf("%w: session %d: account %d comes after %d", session.ErrLayout, a.session, number, len(a.texts))
		}
		a.texts = append(a.texts, string(value))
		a.numbers[string(value)] = uint64(len(a.texts))
		return nil
	})
}

// number returns the number of an account, 0 for no account. It returns errAccounts, or an
// error of the store. It allocates only for a new account.
func (a *accounts) number(text []byte) (uint64, error) {
	if len(text) == 0 {
		return 0, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.load(); err != nil {
		return 0, err
	}
	if n, ok := a.numbers[string(text)]; ok {
		return n, nil
	}
	if len(a.texts) >= maxAccounts {
		return 0, errAccounts
	}
	n := uint64(len(a.texts) + 1)
	if err := a.store.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) {
		set(accountKey(a.session, n), slices.Clone(text))
	}, true); err != nil {
		return 0, errors.Join(errors.New("FIX account"), err)
	}
	a.texts = append(a.texts, string(text))
	a.numbers[string(text)] = n
	return n, nil
}

// text returns an account by its number; "" = there is none.
func (a *accounts) text(number uint64) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.load(); err != nil || number < 1 || number > uint64(len(a.texts)) {
		return "", err
	}
	return a.texts[number-1], nil
}
