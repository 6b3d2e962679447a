package flow

import (
	"archive/zip"
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"blockdesk/market"
)

// LobsterLevel is one level of a recorded book; Size 0 means that the side has
// no such level.
type LobsterLevel struct {
	Price int64 // $ × 10,000
	Size  int64 // shares
}

// LobsterMessage is one recorded event. Side is that of the resting order.
type LobsterMessage struct {
	At    time.Duration // since midnight
	Type  uint8         // 1 submission, 2 partial cancel, 3 deletion, 4 visible execution, 5 hidden execution, 7 halt
	Side  market.Side
	ID    int64
	Size  int64
	Price int64 // $ × 10,000
}

// LobsterRow is a message and the true book after it, best level first.
type LobsterRow struct {
	Message LobsterMessage
	Asks    []LobsterLevel
	Bids    []LobsterLevel
}

// Types of LobsterMessage.
const (
	LobsterSubmit  = 1
	LobsterReduce  = 2
	LobsterDelete  = 3
	LobsterExecute = 4
)

// maxLobsterRows bounds a recorded day.
const maxLobsterRows = 10_000_000

var errLobster = errors.New("not a LOBSTER file")

// OpenLobsterZip reads the message and order book files of a LOBSTER sample
// archive: levels is the number of levels that its order book file has.
func OpenLobsterZip(path string, levels int) ([]LobsterRow, error) {
	archive, err := zip.OpenReader(path)
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	var messages, books io.ReadCloser
	for _, f := range archive.File {
		var into *io.ReadCloser
		switch {
		case strings.Contains(f.Name, "_message_"):
			into = &messages
		case strings.Contains(f.Name, "_orderbook_"):
			into = &books
		default:
			continue
		}
		if *into, err = f.Open(); err != nil {
			return nil, err
		}
		defer (*into).Close()
	}
	if messages == nil || books == nil {
		return nil, fmt.Errorf("%s: no message or order book file in it", path)
	}
	return ReadLobster(messages, books, levels)
}

// OpenLobsterCSV reads a message file and its order book file.
func OpenLobsterCSV(messagePath, bookPath string, levels int) ([]LobsterRow, error) {
	messages, err := os.Open(messagePath)
	if err != nil {
		return nil, err
	}
	defer messages.Close()
	books, err := os.Open(bookPath)
	if err != nil {
		return nil, err
	}
	defer books.Close()
	return ReadLobster(messages, books, levels)
}

// ReadLobster reads both files line by line. Errors name the line.
func ReadLobster(messages, books io.Reader, levels int) ([]LobsterRow, error) {
	m, b := bufio.NewScanner(messages), bufio.NewScanner(books)
	b.Buffer(make([]byte, 64<<10), 64<<10)
	var rows []LobsterRow
	fields := make([]int64, 4*levels)
	for line := 1; m.Scan(); line++ {
		if line > maxLobsterRows {
			return nil, fmt.Errorf("%w: more than %d rows", errLobster, maxLobsterRows)
		}
		if !b.Scan() {
			return nil, fmt.Errorf("%w: order book ends before line %d", errLobster, line)
		}
		msg, err := parseLobsterMessage(m.Bytes())
		if err != nil {
			return nil, fmt.Errorf("message line %d: %w", line, err)
		}
		if err := parseInts(b.Bytes(), fields); err != nil {
			return nil, fmt.Errorf("order book line %d: %w", line, err)
		}
		row := LobsterRow{Message: msg}
		all := make([]LobsterLevel, 0, 2*levels)
		for side := range 2 {
			from := len(all)
			for i := range levels {
				if l := (LobsterLevel{fields[4*i+2*side], fields[4*i+2*side+1]}); l.Size > 0 {
					all = append(all, l)
				}
			}
			if side == 0 {
				row.Asks = all[from:len(all):len(all)]
			} else {
				row.Bids = all[from:]
			}
		}
		rows = append(rows, row)
	}
	return rows, errors.Join(m.Err(), b.Err())
}

func parseLobsterMessage(line []byte) (LobsterMessage, error) {
	seconds, rest, ok := bytes.Cut(line, []byte{','})
	if point := bytes.IndexByte(seconds, '.'); point >= 0 { // a few have digits below the nanosecond
		seconds = seconds[:min(len(seconds), point+1+9)]
	}
	at, err := market.ParseDecimal(seconds, 9)
	if !ok || err != nil || at > uint64(24*time.Hour) {
		return LobsterMessage{}, errLobster
	}
	var f [5]int64
	if err := parseInts(rest, f[:]); err != nil {
		return LobsterMessage{}, err
	}
	m := LobsterMessage{At: time.Duration(at), Type: uint8(f[0]), ID: f[1], Size: f[2], Price: f[3], Side: market.Buy}
	if f[0] < 1 || f[0] > 7 || m.Type != LobsterSubmit && f[4] == 0 {
		return m, errLobster
	}
	if f[4] < 0 {
		m.Side = market.Sell
	}
	return m, nil
}

// parseInts reads exactly len(into) comma-separated signed integers; further
// columns are ignored.
func parseInts(line []byte, into []int64) error {
	for i := range into {
		var word []byte
		word, line, _ = bytes.Cut(line, []byte{','})
		word = bytes.TrimSpace(word)
		negative := len(word) > 0 && word[0] == '-'
		if negative {
			word = word[1:]
		}
		n, err := market.ParseDecimal(word, 0)
		if err != nil || n > 1<<62 {
			return fmt.Errorf("%w: column %d", errLobster, i+1)
		}
		into[i] = int64(n)
		if negative {
			into[i] = -into[i]
		}
	}
	return nil
}
