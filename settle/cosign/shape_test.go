package cosign

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
	"blockdesk/settle/binding"
)

// edit is a message that is being spoilt.
type edit struct {
	t testing.TB
	*tx.Message
}

// at returns an instruction of the message.
func (e *edit) at(i int) *tx.Instruction { return &e.Instructions[i] }

// key returns the number of an account that is read, which is entered if it is not
// there.
func (e *edit) key(a solana.Address) uint8 {
	if i := slices.Index(e.Keys, a); i >= 0 {
		return uint8(i)
	}
	e.Keys = append(e.Keys, a)
	e.Header.ReadonlyUnsigned++
	return uint8(len(e.Keys) - 1)
}

// written enters an account that is written, and returns its number.
func (e *edit) written(a solana.Address) uint8 {
	at := len(e.Keys) - int(e.Header.ReadonlyUnsigned)
	e.insert(at, a)
	return uint8(at)
}

// insert enters a key, and renumbers.
func (e *edit) insert(at int, a solana.Address) {
	e.Keys = slices.Insert(e.Keys, at, a)
	move := func(n *uint8) {
		if int(*n) >= at {
			*n++
		}
	}
	for i := range e.Instructions {
		move(&e.at(i).Program)
		for j := range e.at(i).Accounts {
			move(&e.at(i).Accounts[j])
		}
	}
}

// drop takes out an account that nothing uses any more.
func (e *edit) drop(a solana.Address) {
	at := slices.Index(e.Keys, a)
	if at < 0 {
		e.t.Fatalf("no key %s", solana.Base58(a))
	}
	if !e.Writable(at) {
		e.Header.ReadonlyUnsigned--
	}
	e.Keys = slices.Delete(e.Keys, at, at+1)
	move := func(n *uint8) {
		switch {
		case int(*n) == at:
			e.t.Fatalf("key %s is used", solana.Base58(a))
		case int(*n) > at:
			*n--
		}
	}
	for i := range e.Instructions {
		move(&e.at(i).Program)
		for j := range e.at(i).Accounts {
			move(&e.at(i).Accounts[j])
		}
	}
}

// replace puts another key in a key's place.
func (e *edit) replace(old, by solana.Address) {
	i := slices.Index(e.Keys, old)
	if i < 0 {
		e.t.Fatalf("no key %s", solana.Base58(old))
	}
	e.Keys[i] = by
}

// call appends an instruction.
func (e *edit) call(program solana.Address, data []byte, accounts ...uint8) {
	e.Instructions = append(e.Instructions, tx.Instruction{Program: e.key(program), Accounts: accounts, Data: data})
}

func (e *edit) setAmount(i, at int, amount uint64) {
	binary.LittleEndian.PutUint64(e.at(i).Data[at:], amount)
}

// cloneMessage copies what the edits change.
func cloneMessage(m *tx.Message) *tx.Message {
	c := *m
	c.Keys = slices.Clone(m.Keys)
	c.Instructions = slices.Clone(m.Instructions)
	for i := range c.Instructions {
		c.Instructions[i].Accounts = slices.Clone(m.Instructions[i].Accounts)
		c.Instructions[i].Data = slices.Clone(m.Instructions[i].Data)
	}
	return &c
}

func encoded(t testing.TB, m *tx.Message) []byte {
	t.Helper()
	b, err := m.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func messageOf(t testing.TB, b builder) *tx.Message {
	t.Helper()
	m, err := tx.DecodeMessage(built(t, b).Message())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func accountOf(t testing.TB, wallet solana.Address, m solana.Address) solana.Address {
	t.Helper()
	a, err := solana.TokenAccount(wallet, m, solana.TokenProgram)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Where the instructions of the plain messages are.
const (
	limitAt, priceAt                                    = 0, 1
	payAt, createAt, deliverAt, memoAt                  = 2, 3, 4, 5
	deliveryCreateAt, deliveryDeliverAt, deliveryMemoAt = 2, 3, 4
)

var usdcMint, baseMint = solana.Address{6, 6}, solana.Address{7, 7}

// spoils are edits that make either message one that the desk does not sign.
// Another message stands for each.
func spoils(t testing.TB) map[string]func(e *edit) {
	other := solana.Address{99, 9}
	return map[string]func(e *edit){
		"legacy":            func(e *edit) { e.Version = tx.Legacy },
		"version 1":         func(e *edit) { e.Version = tx.V1 },
		"no blockhash":      func(e *edit) { e.Blockhash = solana.Hash{} },
		"an address table":  func(e *edit) { e.Lookups = []tx.Lookup{{Table: other, Readonly: []uint8{1}}} },
		"a table of writes": func(e *edit) { e.Lookups = []tx.Lookup{{Table: other, Writable: []uint8{1}}} },
		"no instructions":   func(e *edit) { e.Instructions = nil },
		"no limit":          func(e *edit) { e.Instructions = e.Instructions[1:] },
		"no price":          func(e *edit) { e.Instructions = slices.Delete(e.Instructions, priceAt, priceAt+1) },
		"price first":       func(e *edit) { e.Instructions[0], e.Instructions[1] = e.Instructions[1], e.Instructions[0] },
		"no memo":           func(e *edit) { e.Instructions = e.Instructions[:len(e.Instructions)-1] },
		"memo first": func(e *edit) {
			n := len(e.Instructions) - 1
			e.Instructions = slices.Insert(e.Instructions[:n:n], 0, e.Instructions[n])
		},
		"two limits":         func(e *edit) { e.Instructions = slices.Insert(e.Instructions, 0, e.Instructions[0]) },
		"two memos":          func(e *edit) { e.Instructions = append(e.Instructions, e.Instructions[len(e.Instructions)-1]) },
		"unit limit 0":       func(e *edit) { binary.LittleEndian.PutUint32(e.at(limitAt).Data[1:], 0) },
		"unit limit too big": func(e *edit) { binary.LittleEndian.PutUint32(e.at(limitAt).Data[1:], build.MaxUnits+1) },
		"price too dear":     func(e *edit) { e.setAmount(priceAt, 1, 1<<40) },
		"price overflows":    func(e *edit) { e.setAmount(priceAt, 1, 1<<63) },
		"heap, not limit":    func(e *edit) { e.at(limitAt).Data[0] = 1 },
		"limit, not price":   func(e *edit) { e.at(priceAt).Data[0] = setUnitLimit },
		"limit of 4 bytes":   func(e *edit) { e.at(limitAt).Data = e.at(limitAt).Data[:4] },
		"limit of 6 bytes":   func(e *edit) { e.at(limitAt).Data = append(e.at(limitAt).Data, 0) },
		"limit with account": func(e *edit) { e.at(limitAt).Accounts = []uint8{0} },
		"a loaded-data limit": func(e *edit) {
			e.call(solana.ComputeBudgetProgram, []byte{4, 0, 0, 1, 0})
		},
		"a durable nonce": func(e *edit) {
			nonce := e.written(other)
			e.call(solana.SystemProgram, []byte{4, 0, 0, 0}, nonce, e.key(solana.Address{98}), 0)
			n := len(e.Instructions) - 1
			e.Instructions = slices.Insert(e.Instructions[:n:n], 0, e.Instructions[n])
		},
		"an unknown program": func(e *edit) { e.call(other, []byte{1}) },
		"an unknown program with the desk": func(e *edit) {
			e.call(other, []byte{1}, uint8(slices.Index(e.Keys, deskAddress)))
		},
		"an unknown program at the end of the keys": func(e *edit) { e.key(other) },
		"an account that is only written":           func(e *edit) { e.written(other) },
		"a third signer": func(e *edit) {
			at := int(e.Header.Required)
			e.insert(at, other)
			e.Header.Required++
		},
		"one account read that is written": func(e *edit) { e.Header.ReadonlyUnsigned++ },
		"one account written that is read": func(e *edit) { e.Header.ReadonlyUnsigned-- },
		"all accounts written":             func(e *edit) { e.Header.ReadonlyUnsigned = 0 },
		"lamports of the desk": func(e *edit) {
			e.call(solana.SystemProgram, lamportsData(1), uint8(slices.Index(e.Keys, deskAddress)), e.written(other))
		},
		"the desk's account assigned": func(e *edit) {
			e.call(solana.SystemProgram, append([]byte{1, 0, 0, 0}, other[:]...), uint8(slices.Index(e.Keys, deskAddress)))
		},
		"memo of another program":           func(e *edit) { e.replace(solana.MemoProgram, solana.MemoV1Program) },
		"memo of another claim":             func(e *edit) { e.memo().Data = []byte(binding.Memo(testClaim + 1)) },
		"memo of no claim":                  func(e *edit) { e.memo().Data = []byte("C0000000000000") },
		"memo of a build":                   func(e *edit) { e.memo().Data = market.AppendBuildID(nil, testClaim) },
		"memo in small letters":             func(e *edit) { e.memo().Data[0] = 'c' },
		"memo with more":                    func(e *edit) { e.memo().Data = append(e.memo().Data, ' ') },
		"memo with less":                    func(e *edit) { e.memo().Data = e.memo().Data[:13] },
		"memo that the desk signs":          func(e *edit) { e.memo().Accounts = []uint8{uint8(slices.Index(e.Keys, deskAddress))} },
		"reference of another claim":        func(e *edit) { e.replace(binding.Reference(testClaim), binding.Reference(testClaim+1)) },
		"reference that is none":            func(e *edit) { e.replace(binding.Reference(testClaim), other) },
		"another token program":             func(e *edit) { e.replace(solana.TokenProgram, other) },
		"token 2022 under classic accounts": func(e *edit) { e.replace(solana.TokenProgram, solana.Token2022Program) },
		"another associated program":        func(e *edit) { e.replace(solana.AssociatedTokenProgram, other) },
		"another budget program":            func(e *edit) { e.replace(solana.ComputeBudgetProgram, other) },
		"another base mint":                 func(e *edit) { e.replace(baseMint, other) },
		"from another account of the desk":  func(e *edit) { e.replace(accountOf(e.t, deskAddress, baseMint), other) },
		"to another account":                func(e *edit) { e.replace(accountOf(e.t, takerAddress, baseMint), other) },
		"another key for the desk":          func(e *edit) { e.replace(deskAddress, other) },
	}
}

func lamportsData(amount uint64) []byte {
	return binary.LittleEndian.AppendUint64([]byte{systemTransfer, 0, 0, 0}, amount)
}

func (e *edit) memo() *tx.Instruction { return e.at(len(e.Instructions) - 1) }

// legSpoils are the edits of a desk's leg whose instructions are at these places.
func legSpoils(create, deliver int) map[string]func(e *edit) {
	other := solana.Address{99, 9}
	return map[string]func(e *edit){
		"no creation":    func(e *edit) { e.Instructions = slices.Delete(e.Instructions, create, create+1) },
		"no delivery":    func(e *edit) { e.Instructions = slices.Delete(e.Instructions, deliver, deliver+1) },
		"delivery twice": func(e *edit) { e.Instructions = slices.Insert(e.Instructions, deliver, e.Instructions[deliver]) },
		"creation after": func(e *edit) {
			e.Instructions[create], e.Instructions[deliver] = e.Instructions[deliver], e.Instructions[create]
		},
		"nothing delivered":           func(e *edit) { e.setAmount(deliver, 1, 0) },
		"plain transfer":              func(e *edit) { e.at(deliver).Data[0] = 3 },
		"approval":                    func(e *edit) { e.at(deliver).Data[0] = 13 },
		"burn":                        func(e *edit) { e.at(deliver).Data[0] = 15 },
		"mint":                        func(e *edit) { e.at(deliver).Data[0] = 14 },
		"batch":                       func(e *edit) { e.at(deliver).Data[0] = 0xff },
		"transfer with more":          func(e *edit) { e.at(deliver).Data = append(e.at(deliver).Data, 0) },
		"transfer with less":          func(e *edit) { e.at(deliver).Data = e.at(deliver).Data[:9] },
		"transfer without data":       func(e *edit) { e.at(deliver).Data = nil },
		"a signer more":               func(e *edit) { e.at(deliver).Accounts = append(e.at(deliver).Accounts, 0) },
		"an account more":             func(e *edit) { e.at(deliver).Accounts = append(e.at(deliver).Accounts, e.key(other)) },
		"an account less":             func(e *edit) { e.at(deliver).Accounts = e.at(deliver).Accounts[:3] },
		"back to the desk":            func(e *edit) { e.at(deliver).Accounts[2] = e.at(deliver).Accounts[0] },
		"sender and receiver swapped": func(e *edit) { a := e.at(deliver).Accounts; a[0], a[2] = a[2], a[0] },
		"authority is the mint":       func(e *edit) { a := e.at(deliver).Accounts; a[3] = a[1] },
		"plain creation":              func(e *edit) { e.at(create).Data[0] = 0 },
		"recovery, not creation":      func(e *edit) { e.at(create).Data[0] = 2 },
		"creation without data":       func(e *edit) { e.at(create).Data = nil },
		"creation with more":          func(e *edit) { e.at(create).Data = []byte{1, 0} },
		"creation of a mint":          func(e *edit) { a := e.at(create).Accounts; a[1], a[3] = a[3], a[1] },
		"creation for the desk":       func(e *edit) { e.at(create).Accounts[2] = uint8(slices.Index(e.Keys, deskAddress)) },
		"creation for another":        func(e *edit) { e.at(create).Accounts[2] = e.key(other) },
		"creation by nobody":          func(e *edit) { e.at(create).Accounts[0] = e.key(other) },
		"no system program":           func(e *edit) { e.at(create).Accounts[4] = e.key(solana.MemoProgram) },
		"closing after":               func(e *edit) { a := e.at(deliver).Accounts; e.call(solana.TokenProgram, []byte{9}, a[0], a[2], a[3]) },
		"new owner after": func(e *edit) {
			a := e.at(deliver).Accounts
			e.call(solana.TokenProgram, append([]byte{6, 2, 1}, other[:]...), a[0], a[3])
		},
	}
}

// paySpoils are the edits of the taker's leg.
func paySpoils() map[string]func(e *edit) {
	other := solana.Address{99, 9}
	return map[string]func(e *edit){
		"no payment": func(e *edit) { e.Instructions = slices.Delete(e.Instructions, payAt, payAt+1) },
		"payment last": func(e *edit) {
			p := e.Instructions[payAt]
			e.Instructions = append(slices.Delete(e.Instructions, payAt, payAt+1), p)
		},
		"paid twice":             func(e *edit) { e.Instructions = slices.Insert(e.Instructions, payAt, e.Instructions[payAt]) },
		"nothing paid":           func(e *edit) { e.setAmount(payAt, 1, 0) },
		"the desk pays":          func(e *edit) { e.at(payAt).Accounts[3] = uint8(slices.Index(e.Keys, deskAddress)) },
		"paid to oneself":        func(e *edit) { a := e.at(payAt).Accounts; a[2] = a[0] },
		"paid backwards":         func(e *edit) { a := e.at(payAt).Accounts; a[0], a[2] = a[2], a[0] },
		"paid from another":      func(e *edit) { e.at(payAt).Accounts[0] = e.written(other) },
		"paid in what is bought": func(e *edit) { a, b := e.at(payAt).Accounts, e.at(deliverAt).Accounts; a[0], a[1] = b[2], b[1] },
		"payment approved":       func(e *edit) { e.at(payAt).Data[0] = 13 },
		"no reference":           func(e *edit) { e.at(payAt).Accounts = e.at(payAt).Accounts[:4] },
		"two references":         func(e *edit) { e.at(payAt).Accounts = append(e.at(payAt).Accounts, e.at(payAt).Accounts[4]) },
		"reference in the other leg": func(e *edit) {
			p, d := e.at(payAt), e.at(deliverAt)
			d.Accounts = append(d.Accounts, p.Accounts[4])
			p.Accounts = p.Accounts[:4]
		},
		"the rent is the treasury's": func(e *edit) { e.at(createAt).Accounts[0] = e.at(payAt).Accounts[2] },
		"legs change places": func(e *edit) {
			i := e.Instructions
			e.Instructions = []tx.Instruction{i[0], i[1], i[3], i[4], i[2], i[5]}
		},
		"the taker alone":  func(e *edit) { e.Header.Required, e.Header.ReadonlySigned = 1, 0 },
		"the desk is read": func(e *edit) { e.Keys[0], e.Keys[1] = e.Keys[1], e.Keys[0] },
	}
}

// TestShapeRefuses: whatever is done to a message makes it another one, which is
// refused; each is one that decodes.
func TestShapeRefuses(t *testing.T) {
	atomic, delivery := atomicOf(t, testClaim), deliveryOf(t, testClaim)
	for name, c := range map[string]struct {
		b      builder
		check  func([]byte, solana.Address) (Summary, error)
		spoils []map[string]func(e *edit)
	}{
		"atomic":   {&atomic, CheckAtomic, []map[string]func(e *edit){spoils(t), legSpoils(createAt, deliverAt), paySpoils()}},
		"delivery": {&delivery, CheckDelivery, []map[string]func(e *edit){spoils(t), legSpoils(deliveryCreateAt, deliveryDeliverAt), deliverySpoils()}},
	} {
		m := messageOf(t, c.b)
		if _, err := c.check(encoded(t, m), deskAddress); err != nil {
			t.Fatal(err)
		}
		for _, list := range c.spoils {
			for what, spoil := range list {
				e := edit{t, cloneMessage(m)}
				spoil(&e)
				if err := e.Check(); err != nil {
					t.Errorf("%s: %s: the edit makes no message: %v", name, what, err)
				}
				if s, err := c.check(encoded(t, e.Message), deskAddress); !errors.Is(err, ErrShape) || s != (Summary{}) {
					t.Errorf("%s: %s: %v", name, what, err)
				}
			}
		}
	}
}

func deliverySpoils() map[string]func(e *edit) {
	return map[string]func(e *edit){
		"the wallet pays the rent": func(e *edit) { e.at(deliveryCreateAt).Accounts[0] = e.at(deliveryCreateAt).Accounts[2] },
		"no reference":             func(e *edit) { e.at(deliveryDeliverAt).Accounts = e.at(deliveryDeliverAt).Accounts[:4] },
		"two references": func(e *edit) {
			e.at(deliveryDeliverAt).Accounts = append(e.at(deliveryDeliverAt).Accounts, e.at(deliveryDeliverAt).Accounts[4])
		},
	}
}

// TestShapeRefusesNearly: messages that are spoilt in one thing only: every account
// is used, has the privileges that it needs, and is derived as it should be.
func TestShapeRefusesNearly(t *testing.T) {
	plain, sol, modern, delivery := atomicOf(t, testClaim), atomicOf(t, testClaim), atomicOf(t, testClaim), deliveryOf(t, testClaim)
	sol.Payment = build.Leg{Rail: market.RailSOL, Amount: 7, To: treasury}
	modern.Base = checkedMint(t, 8, solana.Token2022Program, 9)
	number := func(e *edit, a solana.Address) uint8 { return uint8(slices.Index(e.Keys, a)) }
	for name, c := range map[string]struct {
		b     builder
		spoil func(e *edit)
	}{
		"creation by no system program": {&sol, func(e *edit) { e.at(createAt).Accounts[4] = number(e, solana.MemoProgram) }},
		"space is allocated":            {&sol, func(e *edit) { e.at(payAt).Data[0] = 8 }},
		"lamports to oneself":           {&sol, func(e *edit) { e.at(payAt).Accounts[1] = e.at(payAt).Accounts[0]; e.drop(treasury) }},
		"lamports of the desk":          {&sol, func(e *edit) { e.at(payAt).Accounts[0] = number(e, deskAddress) }},
		"the account that is paid is created": {&plain, func(e *edit) {
			pay := e.at(payAt).Accounts
			e.Keys = append(e.Keys, treasury)
			e.Header.ReadonlyUnsigned++
			create := tx.Instruction{Program: e.at(createAt).Program, Data: []byte{createIdempotent}, Accounts: []uint8{
				number(e, takerAddress), pay[2], number(e, treasury), pay[1], number(e, solana.SystemProgram), e.at(payAt).Program,
			}}
			e.Instructions = slices.Insert(e.Instructions, payAt, create)
		}},
		"delivered elsewhere than created":  {&modern, func(e *edit) { e.at(createAt).Accounts[1] = e.at(deliverAt).Accounts[0] }},
		"delivered of another mint":         {&modern, func(e *edit) { e.at(createAt).Accounts[3] = e.at(payAt).Accounts[1] }},
		"delivered under another program":   {&modern, func(e *edit) { e.at(createAt).Accounts[5] = e.at(payAt).Program }},
		"the taker delivers for the desk":   {&plain, func(e *edit) { e.at(deliverAt).Accounts[3] = number(e, takerAddress) }},
		"the reference is asked for a mint": {&plain, func(e *edit) { e.at(payAt).Accounts[4] = e.at(payAt).Accounts[1]; e.drop(binding.Reference(testClaim)) }},
		"paid in what is delivered": {&plain, func(e *edit) {
			pay, deliver := e.at(payAt).Accounts, e.at(deliverAt).Accounts
			from := e.Keys[pay[0]]
			pay[0], pay[1] = deliver[2], deliver[1]
			e.drop(from)
			e.drop(usdcMint)
		}},
		"a token program of nobody": {&delivery, func(e *edit) {
			program := solana.Address{99, 9}
			for _, wallet := range []solana.Address{deskAddress, takerAddress} {
				a, err := solana.TokenAccount(wallet, baseMint, program)
				if err != nil {
					t.Fatal(err)
				}
				e.replace(accountOf(t, wallet, baseMint), a)
			}
			e.replace(solana.TokenProgram, program)
		}},
		"the desk delivers to itself": {&delivery, func(e *edit) {
			to := e.Keys[e.at(deliveryDeliverAt).Accounts[2]]
			from := e.at(deliveryDeliverAt).Accounts[0]
			e.at(deliveryDeliverAt).Accounts[2], e.at(deliveryCreateAt).Accounts[1] = from, from
			e.at(deliveryCreateAt).Accounts[2] = number(e, deskAddress)
			e.drop(to)
			e.drop(takerAddress)
		}},
		"delivered to the zero address": {&delivery, func(e *edit) {
			e.replace(accountOf(t, takerAddress, baseMint), accountOf(t, solana.Address{}, baseMint))
			e.at(deliveryCreateAt).Accounts[2] = number(e, solana.SystemProgram)
			e.drop(takerAddress)
		}},
	} {
		check := CheckAtomic
		if c.b == &delivery {
			check = CheckDelivery
		}
		e := edit{t, cloneMessage(messageOf(t, c.b))}
		c.spoil(&e)
		if err := e.Check(); err != nil {
			t.Errorf("%s: the edit makes no message: %v", name, err)
		}
		if s, err := check(encoded(t, e.Message), deskAddress); !errors.Is(err, ErrShape) || s != (Summary{}) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestShapeOf: each check refuses what is the other's, and what is another desk's.
func TestShapeOf(t *testing.T) {
	for name, b := range variants(t) {
		message := built(t, b).Message()
		check, other := CheckAtomic, CheckDelivery
		if _, ok := b.(*build.Delivery); ok {
			check, other = other, check
		}
		if _, err := check(message, deskAddress); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if s, err := other(message, deskAddress); !errors.Is(err, ErrShape) || s != (Summary{}) {
			t.Errorf("%s: the other check: %v", name, err)
		}
		for _, a := range []solana.Address{{}, takerAddress, otherAddress, treasury} {
			if s, err := check(message, a); !errors.Is(err, ErrShape) || s != (Summary{}) {
				t.Errorf("%s: for %s: %v", name, solana.Base58(a), err)
			}
		}
	}
	pay := build.Payment{Common: commonOf(testClaim), Wallet: deskAddress, Leg: atomicOf(t, testClaim).Payment}
	for _, check := range []func([]byte, solana.Address) (Summary, error){CheckAtomic, CheckDelivery} {
		for _, message := range [][]byte{nil, {}, {0x80}, built(t, &pay).Message()} {
			if s, err := check(message, deskAddress); !errors.Is(err, ErrShape) || s != (Summary{}) {
				t.Errorf("%x: %v", message, err)
			}
		}
	}
}

// TestAnyTerms: what is built from any values has the shape of those values.
func TestAnyTerms(t *testing.T) {
	var accounts solana.AccountCache
	classic, token2022 := checkedMint(t, 7, solana.TokenProgram, 9), checkedMint(t, 8, solana.Token2022Program, 9)
	usdc := checkedMint(t, 6, solana.TokenProgram, 6)
	rapid.Check(t, func(t *rapid.T) {
		claim := market.ClaimID(rapid.Uint64Min(1).Draw(t, "claim"))
		amount, paid := market.Amount(rapid.Uint64Min(1).Draw(t, "amount")), market.Amount(rapid.Uint64Min(1).Draw(t, "paid"))
		wallet := solana.Address(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "wallet"))
		base := rapid.SampledFrom([]solana.Address{classic.Address(), token2022.Address()}).Draw(t, "base")
		mint := classic
		if base == token2022.Address() {
			mint = token2022
		}
		common := commonOf(claim)
		common.Budget.Units = rapid.Uint32Range(1, build.MaxUnits).Draw(t, "units")
		common.Budget.MicroLamports = rapid.Uint64Range(0, 2_500_000).Draw(t, "price")
		want := Summary{Kind: Deliver, Claim: claim, Desk: deskAddress, Wallet: wallet, Base: base, BaseAmount: amount}
		delivery := build.Delivery{Common: common, Desk: deskAddress, Wallet: wallet, Base: mint, Amount: amount}
		u, err := delivery.Build(&accounts)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := CheckDelivery(u.Message(), deskAddress); err != nil || got != want {
			t.Fatalf("%+v, %v; want %+v", got, err, want)
		}
		leg := build.Leg{Rail: market.RailSOL, Amount: paid, To: treasury}
		want.PayTo = treasury
		if rapid.Bool().Draw(t, "usdc") {
			leg = build.Leg{Rail: market.RailUSDC, Mint: usdc, Amount: paid, To: treasury}
			want.PayMint = usdc.Address()
			if want.PayTo, err = accounts.TokenAccount(treasury, usdc.Address(), usdc.Program()); err != nil {
				t.Fatal(err)
			}
		}
		want.Kind, want.PayAmount = Cosign, paid
		parties := []build.Party{build.Desk, build.Taker}
		both := build.Atomic{
			Common: common, Taker: wallet, Desk: deskAddress, Payment: leg, Base: mint, BaseAmount: amount,
			FeePayer: rapid.SampledFrom(parties).Draw(t, "fee"), RentPayer: rapid.SampledFrom(parties).Draw(t, "rent"),
		}
		if u, err = both.Build(&accounts); err != nil {
			t.Fatal(err)
		}
		if got, err := CheckAtomic(u.Message(), deskAddress); err != nil || got != want {
			t.Fatalf("%+v, %v; want %+v", got, err, want)
		}
	})
}
