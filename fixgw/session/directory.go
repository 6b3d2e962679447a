package session

// Directory finds what a package keeps of each session: a T, which is part of the session's
// Handler. Any goroutine may use it.
type Directory[T any] struct {
	server *Server
	part   func(Handler) *T
}

// NewDirectory returns the directory of v's sessions; part returns the T of a handler.
func NewDirectory[T any](v *Server, part func(Handler) *T) Directory[T] {
	return Directory[T]{v, part}
}

// Numbered returns the T of a session number; nil = there is no such session.
func (d Directory[T]) Numbered(number uint16) *T {
	if s := d.server.Numbered(number); s != nil {
		return d.part(s.Handler)
	}
	return nil
}

// Of returns the T of a session.
func (d Directory[T]) Of(s *Session) *T { return d.part(s.Handler) }

// All returns the T of every session, by session number.
func (d Directory[T]) All() []*T {
	sessions := d.server.All()
	list := make([]*T, 0, len(sessions))
	for _, s := range sessions {
		list = append(list, d.part(s.Handler))
	}
	return list
}
