package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
)

// GzipMin is the body size, in bytes, from which compression pays: a smaller answer
// fits into one packet anyway.
const GzipMin = 1200

// Page is a rendered body. It is immutable, except that its compressed form is made on
// the first request for it.
type Page struct {
	Body   []byte
	ETag   []byte // strong, with quotes; nil = none
	Media  string // Content-Type; "" = JSON
	Policy []byte // Content-Security-Policy of an HTML page; nil = none

	compressed atomic.Pointer[compressedPage]
	indented   atomic.Pointer[Page]
}

// compressedPage is the compressed form of a page, another representation with an ETag
// of its own.
type compressedPage struct{ body, etag []byte }

// NewPage returns a JSON page whose ETag is a hash of its body.
func NewPage(body []byte) *Page {
	sum := sha256.Sum256(body)
	etag := make([]byte, 0, 2+24)
	etag = append(etag, '"')
	etag = hex.AppendEncode(etag, sum[:12])
	return &Page{Body: body, ETag: append(etag, '"')}
}

// Serve is a [Reader] that always returns p.
func (p *Page) Serve([]byte) (*Page, *Problem) { return p, nil }

// MaxIndent is the longest body, in bytes, that is indented for people.
const MaxIndent = 256 << 10

// Indented returns the page indented for people to read, with an ETag of its own. It
// returns p if p is not JSON or longer than MaxIndent. The result is made once.
func (p *Page) Indented() *Page {
	if p.Media != "" || len(p.Body) > MaxIndent {
		return p
	}
	if made := p.indented.Load(); made != nil {
		return made
	}
	made := NewPage(indent(p.Body))
	if p.ETag == nil {
		made.ETag = nil
	}
	p.indented.Store(made)
	return made
}

// indent returns a JSON text with a line for each member. A text that is not JSON is
// returned as it is.
func indent(body []byte) []byte {
	var out bytes.Buffer
	if json.Indent(&out, body, "", "  ") != nil {
		return body
	}
	out.WriteByte('\n')
	return out.Bytes()
}

// PageCache keeps the page of the newest source, so that an unchanged source keeps its
// ETag and its compressed form. Any goroutine may use it; the zero value is empty.
type PageCache[S comparable] struct{ newest atomic.Pointer[sourcePage[S]] }

// sourcePage is a page and the source that it was rendered from.
type sourcePage[S comparable] struct {
	source S
	page   *Page
}

// Get returns the page of a source, or nil if another source is the newest.
func (k *PageCache[S]) Get(source S) *Page {
	if cached := k.newest.Load(); cached != nil && cached.source == source {
		return cached.page
	}
	return nil
}

// Put makes fresh the page of a source and returns it, or the page before it if
// that one has the same body.
func (k *PageCache[S]) Put(source S, fresh *Page) *Page {
	if old := k.newest.Load(); old != nil && bytes.Equal(old.page.Body, fresh.Body) {
		fresh = old.page
	}
	k.newest.Store(&sourcePage[S]{source, fresh})
	return fresh
}

// gzipped returns the compressed form. Two concurrent callers may both make it; the
// bytes are the same.
func (p *Page) gzipped(pool *GzipPool) *compressedPage {
	if z := p.compressed.Load(); z != nil {
		return z
	}
	z := &compressedPage{body: pool.compress(p.Body)}
	if n := len(p.ETag); n > 0 {
		z.etag = append(append(z.etag, p.ETag[:n-1]...), `-gz"`...)
	}
	p.compressed.Store(z)
	return z
}

// GzipPool reuses compressors, because each takes some hundred KB.
type GzipPool struct{ pool sync.Pool }

func (g *GzipPool) compress(body []byte) []byte {
	z, ok := g.pool.Get().(*gzip.Writer)
	if !ok {
		z, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // fails only for an unknown level
	}
	var out bytes.Buffer
	out.Grow(len(body) / 2)
	z.Reset(&out)
	// A write to a bytes.Buffer never fails.
	_, _ = z.Write(body)
	_ = z.Close()
	g.pool.Put(z)
	return out.Bytes()
}

// acceptsGzip reports whether an Accept-Encoding header names gzip, in any case, with a
// quality above zero.
func acceptsGzip(header []byte) bool {
	for len(header) > 0 {
		var item []byte
		item, header, _ = bytes.Cut(header, []byte{','})
		coding, params, _ := bytes.Cut(item, []byte{';'})
		if !bytes.EqualFold(bytes.TrimSpace(coding), []byte("gzip")) {
			continue
		}
		params = bytes.TrimSpace(params)
		weighed := len(params) > 1 && params[0]|0x20 == 'q' && params[1] == '='
		return !weighed || len(bytes.Trim(params[2:], "0.")) > 0
	}
	return false
}

// etagMatches reports whether an If-None-Match header names etag, by the weak
// comparison that RFC 9110 requires.
func etagMatches(header, etag []byte) bool {
	if string(bytes.TrimSpace(header)) == "*" {
		return len(etag) > 0
	}
	for len(header) > 0 && len(etag) > 0 {
		var item []byte
		item, header, _ = bytes.Cut(header, []byte{','})
		item = bytes.TrimPrefix(bytes.TrimSpace(item), []byte("W/"))
		if bytes.Equal(item, etag) {
			return true
		}
	}
	return false
}
