package project

import (
	"time"
)

// CheckKind is the kind of a check.
type CheckKind string

// The kinds of checks, as the keys of cfg spell them.
const (
	CheckHTTP        CheckKind = "http"
	CheckTCP         CheckKind = "tcp"
	CheckUnix        CheckKind = "unix"
	CheckCommand     CheckKind = "command"
	CheckUnit        CheckKind = "unit"
	CheckCertificate CheckKind = "certificate"
)

// CheckKinds returns all kinds.
func CheckKinds() []CheckKind {
	return []CheckKind{CheckHTTP, CheckTCP, CheckUnix, CheckCommand, CheckUnit, CheckCertificate}
}

// CheckOccasion is when a check runs, besides manual runs.
type CheckOccasion string

// The occasions of checks.
const (
	// OnDeploy is after the last fixperms of a deployment and before the branch moves.
	OnDeploy CheckOccasion = "deploy"
	// OnRollback is after the old release was restored.
	OnRollback CheckOccasion = "rollback"
	// OnConverge is after the live release was applied again.
	OnConverge CheckOccasion = "converge"
)

// Check is a test of what a deployment serves, with how often and for how long it is tried.
type Check struct {
	Name string
	Kind CheckKind
	// Target is an http or https URL, HOST:PORT, the path of a socket, a command line for /bin/sh, or a systemd unit.
	Target string
	HTTP   HTTPCheck
	// TLSName is the name that the certificate must contain, "" for the host of the target. For http it is also the Host
	// header.
	TLSName string
	// CA is a file of certificates in PEM that are trusted instead of the system's.
	CA string
	// MinValid is how long a certificate must still be valid.
	MinValid time.Duration
	// User is the user that a command runs as; "" is the project's.
	User string

	// StartAfter is the delay before the first attempt.
	StartAfter time.Duration
	// Attempts is how often it is tried at most, at least 1, at intervals of Every, until an attempt succeeds.
	Attempts int
	Every    time.Duration
	// Timeout limits one attempt.
	Timeout time.Duration
	// AlsoAfter is how long the check must keep succeeding after the first success; 0 does not repeat it.
	AlsoAfter time.Duration

	// On lists the occasions; Interval, if not 0, is the interval of periodic runs.
	On       []CheckOccasion
	Interval time.Duration
}

// HTTPCheck is what a check of kind http sends and expects.
type HTTPCheck struct {
	Method  string
	Headers []Header
	Body    string
	// Status are the accepted codes.
	Status []StatusRange
	// Contains must appear in the first MiB of the body; "" means no condition.
	Contains string
	// JSON lists values that the body must have.
	JSON []JSONValue
	// Resolve, HOST or HOST:PORT, is connected to instead of the host of the URL.
	Resolve string
	// Socket is a Unix socket that is connected to instead of the host of the URL.
	Socket string
	// Follow follows redirects, at most ten; otherwise the redirect is the answer.
	Follow bool
}

// Header is one line of a request's head.
type Header struct{ Name, Value string }

// StatusRange is a range of status codes, both ends included.
type StatusRange struct{ First, Last int }

// JSONValue is a path into a JSON document, such as db.state or items[0].name, and the value required there, as
// JSON text.
type JSONValue struct{ Path, Value string }

// Runs reports whether the check runs on an occasion.
func (c Check) Runs(on CheckOccasion) bool {
	for _, o := range c.On {
		if o == on {
			return true
		}
	}
	return false
}

// Longest returns the maximum duration of the check.
func (c Check) Longest() time.Duration {
	n := time.Duration(c.Attempts)
	return c.StartAfter + n*c.Timeout + (n-1)*c.Every + c.AlsoAfter + c.Timeout
}
