package ws

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"

	"blockdesk/bench/clients"
)

// rawWriter is the yardstick of a fan-out: one loop of write(2) over as many
// sockets, with the same buffers.
type rawWriter struct {
	conns []*net.TCPConn
	fds   []int
	frame []byte
}

// joinRaw connects clients to a raw writer of so many sockets.
func joinRaw(c *clients.Process, name string, conns, sendBuffer int) (_ *rawWriter, err error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, listener.Close()) }()
	if err := c.Join(clients.Group{Name: name, Addr: listener.Addr().String(), Conns: conns, Form: clients.Frames}); err != nil {
		return nil, err
	}
	w := &rawWriter{}
	for range conns {
		if err := w.accept(listener, sendBuffer); err != nil {
			return nil, errors.Join(err, w.close())
		}
	}
	_, err = c.Answer()
	return w, err
}

func (w *rawWriter) accept(listener net.Listener, sendBuffer int) error {
	conn, err := listener.Accept()
	if err != nil {
		return err
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return fmt.Errorf("%T is no TCP connection", conn)
	}
	w.conns = append(w.conns, tcp)
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	return errors.Join(tcp.SetWriteBuffer(sendBuffer), raw.Control(func(fd uintptr) { w.fds = append(w.fds, int(fd)) }))
}

func (w *rawWriter) close() error {
	var all error
	for _, c := range w.conns {
		all = errors.Join(all, c.Close())
	}
	return all
}

// load sets what is written: n messages of size bytes together, as WebSocket
// frames, so that the clients do for them what they do for the feed's.
func (w *rawWriter) load(n, size int) {
	const head = 4
	w.frame = nil
	for range n {
		payload := size - head
		w.frame = append(w.frame, 0x81, 126, byte(payload>>8), byte(payload))
		w.frame = append(w.frame, make([]byte, payload)...)
	}
}

// tick writes once to each socket, in that many loops at once.
func (w *rawWriter) tick(loops int) error {
	if loops == 1 {
		return w.write(w.fds)
	}
	var all sync.WaitGroup
	failed := make([]error, loops)
	for i := range loops {
		part := w.fds[i*len(w.fds)/loops : (i+1)*len(w.fds)/loops]
		all.Go(func() { failed[i] = w.write(part) })
	}
	all.Wait()
	return errors.Join(failed...)
}

func (w *rawWriter) write(fds []int) error {
	for _, fd := range fds {
		if n, err := syscall.Write(fd, w.frame); err != nil || n != len(w.frame) {
			return fmt.Errorf("%d of %d bytes written: %w", n, len(w.frame), err)
		}
	}
	return nil
}
