package status

import (
	"time"

	"corpus-git/project"
)

// Sink is where notifications go, as people may see it: nothing that lets one send there.
type Sink struct {
	Name         string   `json:"name"`
	Kind         string   `json:"kind"`
	Projects     []string `json:"projects,omitempty"`
	Environments []string `json:"environments,omitempty"`
	Events       []string `json:"events,omitempty"`
	Verdicts     []string `json:"verdicts,omitempty"`
}

// Delivery is the delivery of one notification to one sink.
type Delivery struct {
	// ID is that of the notification.
	ID      string       `json:"id"`
	Sink    string       `json:"sink"`
	Event   string       `json:"event"`
	Project project.Name `json:"project,omitempty"`
	// At is when it happened.
	At       time.Time `json:"at"`
	State    string    `json:"state" doc:"waiting, delivered or given up"`
	Attempts int       `json:"attempts"`
	// Next is when the next attempt is due, for those that wait; Last is when the last one ended.
	Next *time.Time `json:"next,omitempty"`
	Last *time.Time `json:"last,omitempty"`
	// Error is why the last attempt failed.
	Error string `json:"error,omitempty"`
}

// Notifications are the sinks and the newest deliveries.
type Notifications struct {
	Version    int        `json:"version"`
	Sinks      []Sink     `json:"sinks"`
	Deliveries []Delivery `json:"deliveries"`
}

// NotificationTest is what became of a notification that tests a sink.
type NotificationTest struct {
	Version  int      `json:"version"`
	Delivery Delivery `json:"delivery"`
}
