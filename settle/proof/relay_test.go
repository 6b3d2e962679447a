package proof

import (
	"bytes"

	"blockdesk/internal/solana"
)

// The chain's bundled programs call no other with a client's money, but foreign
// ones do. So tests bring two of their own, written in the virtual machine's
// instructions:
//
//	relay  calls its first account as a program, with all its other accounts as
//	       they were given to it, and with its own data
//	yes    does nothing, successfully
//
// insn is an instruction: opcode, registers (source high, destination low),
// offset, immediate.
func insn(op byte, dst, src byte, off int16, imm int32) []byte {
	b := []byte{op, src<<4 | dst}
	b = le.AppendUint16(b, uint16(off))
	return le.AppendUint32(b, uint32(imm))
}

// The machine's instructions that are used here.
func movImm(dst byte, imm int32) []byte             { return insn(0xb7, dst, 0, 0, imm) }
func mov(dst, src byte) []byte                      { return insn(0xbf, dst, src, 0, 0) }
func addImm(dst byte, imm int32) []byte             { return insn(0x07, dst, 0, 0, imm) }
func add(dst, src byte) []byte                      { return insn(0x0f, dst, src, 0, 0) }
func mulImm(dst byte, imm int32) []byte             { return insn(0x27, dst, 0, 0, imm) }
func andImm(dst byte, imm int32) []byte             { return insn(0x57, dst, 0, 0, imm) }
func loadByte(dst, src byte, off int16) []byte      { return insn(0x71, dst, src, off, 0) }
func loadWord(dst, src byte, off int16) []byte      { return insn(0x79, dst, src, off, 0) }
func storeByte(dst, src byte, off int16) []byte     { return insn(0x73, dst, src, off, 0) }
func storeWord(dst, src byte, off int16) []byte     { return insn(0x7b, dst, src, off, 0) }
func jump(off int16) []byte                         { return insn(0x05, 0, 0, off, 0) }
func jumpIf(dst byte, imm int32, off int16) []byte  { return insn(0x15, dst, 0, off, imm) }
func jumpNot(dst byte, imm int32, off int16) []byte { return insn(0x55, dst, 0, off, imm) }
func syscall() []byte                               { return insn(0x85, 0, 0, 0, -1) }
func exit() []byte                                  { return insn(0x95, 0, 0, 0, 0) }

// heap is a pointer into the program's heap, which begins as zeros.
func heap(dst byte, at int32) []byte {
	return append(insn(0x18, dst, 0, 0, at), insn(0, 0, 0, 0, 3)...)
}

// Where the relay keeps its call: account infos of 56 bytes, account metas of 16,
// the instruction.
const (
	infosAt, metasAt, callAt = 0, 0x1000, 0x2000
	infoSize, metaSize       = 56, 16
)

func relayCode() []byte {
	first := bytes.Join([][]byte{ // an account that is here for the first time
		loadByte(4, 6, 1), storeByte(8, 4, 48), storeByte(9, 4, 9), // signer
		loadByte(4, 6, 2), storeByte(8, 4, 49), storeByte(9, 4, 8), // writable
		loadByte(4, 6, 3), storeByte(8, 4, 50), // executable
		mov(4, 6), addImm(4, 8), storeWord(8, 4, 0), storeWord(9, 4, 0), // key
		addImm(4, 32), storeWord(8, 4, 32), // owner
		addImm(4, 32), storeWord(8, 4, 8), // lamports
		loadWord(5, 6, 80), storeWord(8, 5, 16), // length of data
		addImm(4, 16), storeWord(8, 4, 24), // data
		addImm(6, 88+10240+7), add(6, 5), andImm(6, -8),
		loadWord(4, 6, 0), storeWord(8, 4, 40), addImm(6, 8), // rent epoch
	}, nil)
	again := [][]byte{mulImm(3, infoSize), heap(4, infosAt), add(4, 3)} // number in 3
	for off := int16(0); off < infoSize; off += 8 {
		again = append(again, loadWord(5, 4, off), storeWord(8, 5, off))
	}
	again = append(again, loadByte(3, 6, 0), mulImm(3, metaSize), heap(4, metasAt), add(4, 3))
	for off := int16(0); off < metaSize; off += 8 {
		again = append(again, loadWord(5, 4, off), storeWord(9, 5, off))
	}
	twice := bytes.Join(append(again, addImm(6, 8)), nil)
	slots := func(code []byte) int16 { return int16(len(code) / 8) }
	step := bytes.Join([][]byte{addImm(8, infoSize), addImm(9, metaSize), addImm(2, -1)}, nil)
	body := bytes.Join([][]byte{
		loadByte(3, 6, 0), jumpNot(3, 0xff, slots(first)+1), first, jump(slots(twice)), twice, step,
	}, nil)
	loop := bytes.Join([][]byte{jumpIf(2, 0, slots(body)+1), body, jump(-slots(body) - 2)}, nil)
	return bytes.Join([][]byte{
		mov(6, 1), loadWord(7, 6, 0), addImm(6, 8), mov(2, 7), heap(8, infosAt), heap(9, metasAt),
		loop,
		loadWord(4, 6, 0), mov(5, 6), addImm(5, 8), // the data
		heap(1, callAt), heap(2, infosAt), loadWord(3, 2, 0), storeWord(1, 3, 0), // program
		heap(3, metasAt+metaSize), storeWord(1, 3, 8), mov(3, 7), addImm(3, -1), storeWord(1, 3, 16), // accounts
		storeWord(1, 5, 24), storeWord(1, 4, 32),
		mov(3, 7), movImm(4, 0), movImm(5, 0), syscall(), exit(),
	}, nil)
}

func yesCode() []byte { return append(movImm(0, 0), exit()...) }

// elf wraps code in the file that the loader takes; each syscall in it is the one
// that calls another program.
func elf(code []byte) []byte {
	const header = 64
	var relocations []byte
	for at := 0; at < len(code); at += 8 {
		if bytes.Equal(code[at:at+8], syscall()) {
			relocations = u64(u64(relocations, uint64(header+at)), 1<<32|10)
		}
	}
	names := []byte("\x00.text\x00.dynamic\x00.dynsym\x00.dynstr\x00.rel.dyn\x00.shstrtab\x00")
	dynstr := []byte("\x00sol_invoke_signed_c\x00\x00\x00\x00")
	dynsym := append(make([]byte, 24), 1, 0, 0, 0, 0x10, 0, 0, 0)
	dynsym = append(dynsym, make([]byte, 16)...)
	type section struct {
		name  string
		kind  uint32
		flags uint64
		body  []byte
		link  uint32
		entry uint64
		at    uint64
	}
	dynamic := &section{name: ".dynamic", kind: 6, flags: 2, link: 4, entry: 16, body: make([]byte, 5*16)}
	list := []*section{
		{},
		{name: ".text", kind: 1, flags: 6, body: code},
		dynamic,
		{name: ".dynsym", kind: 11, flags: 2, body: dynsym, link: 4, entry: 24},
		{name: ".dynstr", kind: 3, flags: 2, body: dynstr},
		{name: ".rel.dyn", kind: 9, flags: 2, body: relocations, link: 3, entry: 16},
		{name: ".shstrtab", kind: 3, body: append(names, make([]byte, 8-len(names)%8)...)},
	}
	at := uint64(header)
	for _, s := range list[1:] {
		s.at = at
		at += uint64(len(s.body))
	}
	dynamic.body = dynamic.body[:0]
	entries := [5][2]uint64{{17, list[5].at}, {18, uint64(len(relocations))}, {19, 16}, {6, list[3].at}}
	if len(relocations) == 0 {
		entries = [5][2]uint64{}
	}
	for _, e := range entries {
		dynamic.body = u64(u64(dynamic.body, e[0]), e[1])
	}
	out := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9)...)
	out = append(out, 3, 0, 247, 0, 1, 0, 0, 0)
	out = u64(u64(u64(out, header), 0), at) // entry, program headers, section headers
	out = append(out, 0, 0, 0, 0, 64, 0, 56, 0, 0, 0, 64, 0, byte(len(list)), 0, byte(len(list)-1), 0)
	for _, s := range list {
		out = append(out, s.body...)
	}
	for _, s := range list {
		out = u32(u32(out, uint32(max(0, bytes.Index(names, append([]byte("\x00"+s.name), 0))+1))), s.kind)
		out = u64(u64(u64(u64(out, s.flags), s.at), s.at), uint64(len(s.body)))
		out = u32(u32(out, s.link), 0)
		out = u64(u64(out, 8), s.entry)
	}
	return out
}

// deploy puts a program on the chain and returns its address.
func (c *chain) deploy(code []byte) solana.Address {
	c.t.Helper()
	file := elf(code)
	at, buffer, owner := c.somebody().addr, c.somebody().addr, c.payer.addr
	data, _, err := solana.FindProgramAddress(loaderProgram, at[:])
	c.must(err)
	c.does(createAccount(owner, buffer, 1e9, uint64(37+len(file)), loaderProgram), call{loaderProgram, []use{wr(buffer), rd(owner)}, u32(nil, 0)})
	for from := 0; from < len(file); from += 900 {
		part := file[from:min(from+900, len(file))]
		c.does(call{loaderProgram, []use{wr(buffer), sg(owner)}, append(u64(u32(u32(nil, 1), uint32(from)), uint64(len(part))), part...)})
	}
	c.does(createAccount(owner, at, 1e9, 36, loaderProgram), call{
		loaderProgram,
		[]use{sgwr(owner), wr(data), wr(at), wr(buffer), rd(rentSysvar), rd(clockSysvar), rd(solana.SystemProgram), sg(owner)},
		u64(u32(nil, 2), uint64(len(file))),
	})
	return at
}

// through has the relay make a call.
func through(relay solana.Address, c call) call {
	return call{relay, append([]use{rd(c.program)}, c.accounts...), c.data}
}
