package cluster

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"time"
)

// A message of the log is either the beginning of an epoch, an 'e' with JSON, or a part of a batch: a 'p', flags, the epoch (8 bytes in network byte order), data.
const (
	epochMessage = 'e'
	partMessage  = 'p'
	firstPart    = 1
	lastPart     = 2
	partHeader   = 10
)

// epochBegin says who leads from this message on.
type epochBegin struct {
	Epoch uint64 `json:"epoch"`
	Hub   string `json:"hub"`
	// Copy means that the state of that hub is not what the log contains: all others have to copy it.
	Copy bool `json:"copy,omitempty"`
}

// message is one of the two.
type message struct {
	begin       *epochBegin
	epoch       uint64
	first, last bool
	data        []byte
}

var errMessage = errors.New("a message of the log of the hubs is of no known form")

func parseMessage(b []byte) (m message, err error) {
	switch {
	case len(b) > 0 && b[0] == epochMessage:
		m.begin = &epochBegin{}
		err = json.Unmarshal(b[1:], m.begin)
		m.epoch = m.begin.Epoch
	case len(b) >= partHeader && b[0] == partMessage:
		m = message{epoch: binary.BigEndian.Uint64(b[2:]), first: b[1]&firstPart != 0, last: b[1]&lastPart != 0, data: b[partHeader:]}
	default:
		err = errMessage
	}
	return m, err
}

// id returns an identifier for a message, never used before.
func id() string { return rand.Text() }

// beat is what the hub that leads says all the time.
type beat struct {
	Hub   Hub    `json:"hub"`
	Epoch uint64 `json:"epoch"`
	// Last is the number of the last message of the log.
	Last uint64 `json:"last"`
	// Release is that of its program, Free the space that is left for the log, At the time there.
	Release string    `json:"release,omitempty"`
	Free    *int64    `json:"free,omitempty"`
	At      time.Time `json:"at,omitzero"`
}

// resignation is what a hub says that has led, and has ended in order.
type resignation struct {
	Name  string `json:"name"`
	Epoch uint64 `json:"epoch"`
}

// report is what a hub that follows says all the time.
type report struct {
	Name    string `json:"name"`
	Does    string `json:"does"`
	Applied uint64 `json:"applied"`
	// Release is that of its program, Trouble what keeps it from following, Free the space that is left for the log, At the time there.
	Release string    `json:"release,omitempty"`
	Trouble string    `json:"trouble,omitempty"`
	Free    *int64    `json:"free,omitempty"`
	At      time.Time `json:"at,omitzero"`
	// Barred is why it must not lead, "" for nothing.
	Barred string `json:"barred,omitempty"`
	// Copied is how many files and folders it has looked at while it copies.
	Copied int64 `json:"copied,omitempty"`
}

const (
	// beatEvery and reportEvery are how often they are said.
	beatEvery   = 500 * time.Millisecond
	reportEvery = time.Second
	// quiet is how long nothing is heard of a leader before another hub leads, alone how long before a hub does whose state may be ahead of the log.
	quiet = 2500 * time.Millisecond
	alone = 15 * time.Second
	// unreachable is how long nothing is heard of a hub before Status says so.
	unreachable = 5 * time.Second
	// majority is how long the log may be without one before a leadership ends.
	majority = 15 * time.Second
)
