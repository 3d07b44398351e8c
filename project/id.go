package project

import (
	"github.com/google/uuid"

	"corpus-git/internal/fault"
)

// ID is a deployment's UUID (RFC 9562, version 4: its first eight digits distinguish deployments that
// started in the same second, so people can use them).
type ID string

// NewID returns a new ID.
func NewID() ID { return ID(uuid.NewString()) }

// Short returns the first eight digits, which commands accept instead of the whole ID.
func (id ID) Short() string {
	if len(id) < 8 {
		return string(id)
	}
	return string(id[:8])
}

// ParseIDPrefix validates the prefix of an ID that a person typed: hexadecimal digits and dashes, at
// least four.
func ParseIDPrefix(s string) (string, error) {
	if len(s) < 4 || len(s) > 36 {
		return "", badID(s)
	}
	for _, c := range s {
		if c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return "", badID(s)
		}
	}
	return s, nil
}

func badID(s string) error {
	return fault.New(fault.Usage, "deployment", "%q is not a deployment ID", s).
		WithHint("use the full ID or its first 4 or more digits, as printed by  corpus-git deployments PROJECT")
}
