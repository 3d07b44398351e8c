package project

import (
	"strings"
	"time"

	"corpus-git/project/demands"
)

// The events of notifications, besides those of CheckPeriod.Event, which are for periodic checks.
const (
	EventCreated       = "created"
	EventQueuedTooLong = "queued-too-long"
	EventLive          = "live"
	EventFailed        = "failed"
	EventRolledBack    = "rolled-back"
	EventRefused       = "refused"
	EventRecovered     = "recovered"
	// EventApprovalWanted is the event of a deployment that waits for approval, EventBreakGlass that of one that an administrator deployed without approval.
	EventApprovalWanted = "approval-wanted"
	EventBreakGlass     = "break-glass"
	EventLowSpace       = "low-space"
	EventAccessChanged  = "access-changed"
	// EventTest is the event of notify test.
	EventTest = "test"
)

// NotificationEvents returns all events that can be selected. "checks" means both CheckFailed and CheckSucceeded, "converge" all of EventDrifted,
// EventConvergeFailed and EventConverged.
func NotificationEvents() []string {
	return []string{
		EventCreated, EventQueuedTooLong, EventLive, EventFailed, EventRolledBack, Incomplete, EventRefused, EventApprovalWanted, EventBreakGlass, EventRecovered, EventLowSpace,
		EventAccessChanged, EventChecks, CheckFailed, CheckSucceeded, EventConverge, EventDrifted, EventConvergeFailed, EventConverged,
	}
}

// EventChecks means CheckFailed or CheckSucceeded in a selection of events.
const EventChecks = "checks"

// EventConverge means each of EventDrifted, EventConvergeFailed and EventConverged in a selection of events.
const EventConverge = "converge"

// Notification reports something that has happened. Its texts are already redacted.
type Notification struct {
	Version int `json:"version"`
	// ID stays the same if the notification is sent again.
	ID    string    `json:"id"`
	Event string    `json:"event"`
	At    time.Time `json:"at"`
	// Project is "" if the notification is not about a project.
	Project Name `json:"project,omitempty"`
	// Environment is that of the project, "" if it is not known.
	Environment string `json:"environment,omitempty"`
	// Deployment is the one that it is about; with Check the one that made the live release live.
	Deployment *Deployment `json:"deployment,omitempty"`
	// Result is set if the deployment has ended.
	Result *Result `json:"result,omitempty"`
	// Check is a periodic check that has begun to fail or succeeds again.
	Check *CheckPeriod `json:"check,omitempty"`
	// Converge is what was found when the live release was applied again.
	Converge *ConvergeState `json:"converge,omitempty"`
	Space    *Shortage      `json:"space,omitempty"`
	// Access is what was changed, for access-changed.
	Access *AccessChange `json:"access,omitempty"`
	// By is who did it, or on whose behalf it was done.
	By *Pusher `json:"by,omitempty"`
}

// Shortage is what a deployment needs, and what is available, in bytes.
type Shortage struct {
	NeedBytes int64 `json:"need_bytes"`
	FreeBytes int64 `json:"free_bytes"`
}

// AccessChange is one change of keys or permissions, as recorded in the audit log.
type AccessChange struct {
	// Action is for example "key add" or "access grant", Object what it was applied to.
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

// EventOf returns the event of a deployment that ended, "" if nobody is notified: plans and checks, tasks that succeeded, and converges, which report changes
// themselves.
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
