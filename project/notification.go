package project

import (
	"strings"
	"time"

	"corpus-git/project/demands"
)

// The events of notifications, besides those of CheckPeriod.Event, which are about checks that run periodically.
const (
	EventCreated       = "created"
	EventQueuedTooLong = "queued-too-long"
	EventLive          = "live"
	EventFailed        = "failed"
	EventRolledBack    = "rolled-back"
	EventRefused       = "refused"
	EventRecovered     = "recovered"
	// EventApprovalWanted is that of a deployment that waits for approval, EventBreakGlass of one that an administrator let go without others.
	EventApprovalWanted = "approval-wanted"
	EventBreakGlass     = "break-glass"
	EventLowSpace       = "low-space"
	EventAccessChanged  = "access-changed"
	// EventTest is that of notify test.
	EventTest = "test"
)

// NotificationEvents returns all events that somebody can ask for. "checks" stands for both of CheckFailed and CheckSucceeded, "converge" for
// all three of EventDrifted, EventConvergeFailed and EventConverged.
func NotificationEvents() []string {
	return []string{
		EventCreated, EventQueuedTooLong, EventLive, EventFailed, EventRolledBack, Incomplete, EventRefused, EventApprovalWanted, EventBreakGlass, EventRecovered, EventLowSpace,
		EventAccessChanged, EventChecks, CheckFailed, CheckSucceeded, EventConverge, EventDrifted, EventConvergeFailed, EventConverged,
	}
}

// EventChecks is CheckFailed or CheckSucceeded, where events are chosen.
const EventChecks = "checks"

// EventConverge is each of EventDrifted, EventConvergeFailed and EventConverged, where events are chosen.
const EventConverge = "converge"

// Notification reports something that has happened. Its texts are already redacted.
type Notification struct {
	Version int `json:"version"`
	// ID is the same however often the notification is sent.
	ID    string    `json:"id"`
	Event string    `json:"event"`
	At    time.Time `json:"at"`
	// Project is "" if it is about none.
	Project Name `json:"project,omitempty"`
	// Environment is that of the project, "" if it is not known.
	Environment string `json:"environment,omitempty"`
	// Deployment is the one that it is about; with Check the one that brought what is live.
	Deployment *Deployment `json:"deployment,omitempty"`
	// Result is set where the deployment has ended.
	Result *Result `json:"result,omitempty"`
	// Check is a check that runs periodically, and fails now or succeeds again.
	Check *CheckPeriod `json:"check,omitempty"`
	// Converge is what was found when the live release was applied again.
	Converge *ConvergeState `json:"converge,omitempty"`
	Space    *Shortage      `json:"space,omitempty"`
	// Access is what was changed, for access-changed.
	Access *AccessChange `json:"access,omitempty"`
	// By is who did it, or had it done.
	By *Pusher `json:"by,omitempty"`
}

// Shortage is what a deployment takes, and what there is for it, in bytes.
type Shortage struct {
	NeedBytes int64 `json:"need_bytes"`
	FreeBytes int64 `json:"free_bytes"`
}

// AccessChange is one change of keys or rights, as the audit log has it.
type AccessChange struct {
	// Action is such as "key add" or "access grant", Object what it was done to.
	Action string `json:"action"`
	Object string `json:"object,omitempty"`
}

// Verdict returns the result in one word, with hyphens, "" if there is none.
func (n Notification) Verdict() string {
	if n.Result == nil {
		return ""
	}
	return hyphens(n.Result.Event())
}

// EventOf returns the event of a deployment that ended, "" if nobody is told: plans and checks, tasks that succeeded, and converging, which reports changes itself.
func EventOf(rec Record) string {
	if rec.Trigger == TriggerPlan || rec.Trigger == TriggerCheck || rec.Trigger == TriggerConverge || rec.Result == nil || rec.Result.Event() == string(Done) {
		return ""
	}
	if strings.HasPrefix(rec.Result.Reason, demands.Waiting) {
		return EventApprovalWanted
	}
	return hyphens(rec.Result.Event())
}

func hyphens(s string) string { return strings.ReplaceAll(s, " ", "-") }
