package status

import (
	"time"

	"corpus-git/project"
)

// Sink is a receiver of notifications, as it may be shown: without anything that would allow
// sending to it.
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
	// ID is the ID of the notification.
	ID      string       `json:"id"`
	Sink    string       `json:"sink"`
	Event   string       `json:"event"`
	Project project.Name `json:"project,omitempty"`
	// At is the time of the event.
	At       time.Time `json:"at"`
	State    string    `json:"state" doc:"waiting, delivered or given up"`
	Attempts int       `json:"attempts"`
	// Next is when the next attempt is due, for deliveries that are waiting; Last is when the last
	// attempt ended.
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

// NotificationTest is the result of a notification that tests a sink.
type NotificationTest struct {
	Version  int      `json:"version"`
	Delivery Delivery `json:"delivery"`
}
