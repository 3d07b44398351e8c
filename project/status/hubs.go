package status

import "time"

// The states of a hub that runs.
const (
	HubLeads   = "leads"
	HubFollows = "follows"
	HubCopies  = "copies"
)

// Hub is one of several hubs.
type Hub struct {
	Name string `json:"name"`
	// SSH and NATS are where the others reach it; HTTP likewise, "" if it has no web listener.
	SSH  string `json:"ssh"`
	HTTP string `json:"http,omitempty"`
	NATS string `json:"nats"`
	// State is leads, follows, copies, unreachable or unknown; before the hubs are formed joined or not joined.
	State string `json:"state"`
	// Applied is the number of the last message of the log that it has applied, Behind how many there are after it, Seen when it was last heard.
	Applied uint64    `json:"applied,omitempty"`
	Behind  uint64    `json:"behind,omitempty"`
	Seen    time.Time `json:"seen,omitzero"`
	// Copied is how many files and folders it has looked at of those that it copies.
	Copied int64 `json:"copied,omitempty"`
	// Release is that of its program, Trouble what keeps it from following, Barred why it must not lead; ClockAhead is how many seconds its clock is ahead of that of the hub that answers.
	Release    string  `json:"release,omitempty"`
	Trouble    string  `json:"trouble,omitempty"`
	Barred     string  `json:"barred,omitempty"`
	ClockAhead float64 `json:"clock_ahead,omitempty"`
	// LogSpace is how much space is left for the log on its machine, in bytes; absent if that is not known.
	LogSpace *int64 `json:"log_space,omitempty"`
}

// HubProblem is something that is wrong with the hubs.
type HubProblem struct {
	// Hub is the hub that it is about, "" for all of them.
	Hub     string `json:"hub,omitempty"`
	Problem string `json:"problem"`
	// Hint says what to do.
	Hint string `json:"hint,omitempty"`
}

// Hubs is what hub list --json and hub status --json print.
type Hubs struct {
	Version int `json:"version"`
	// Self is the name of the hub that answers, "" if there are no others.
	Self string `json:"self,omitempty"`
	// Formed reports that the hubs share their state.
	Formed bool `json:"formed"`
	// Leader and Epoch are who leads, and the number of this leadership; "" and 0 if none is heard.
	Leader string `json:"leader,omitempty"`
	Epoch  uint64 `json:"epoch,omitempty"`
	Hubs   []Hub  `json:"hubs"`
	// LogBytes is the size of the log, LogLimit that from which a hub that is away has to copy.
	LogBytes uint64       `json:"log_bytes,omitempty"`
	LogLimit uint64       `json:"log_limit,omitempty"`
	Problems []HubProblem `json:"problems"`
}
