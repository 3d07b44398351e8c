// Package room says what follows from a lack of space for an archive: what may be removed for it, and what a person can do.
//
// It removes nothing, and runs nothing.
package room

import (
	"context"
	"errors"
	"fmt"

	"corpus-git/archive"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/project"
)

// Droppable reports whether removing what policy does not keep would be enough.
func Droppable(s *archive.Store, policy archive.Policy, short *archive.SpaceError) (bool, error) {
	could, err := s.Preview(policy)
	return len(could.Removed) > 0 && uint64(could.Freed) >= short.Missing(), err
}

// Refused adds to an error about a lack of space, which names step, what could be done about it; another error is returned as it is. least is the policy that keeps the least.
func Refused(s *archive.Store, name project.Name, step string, least archive.Policy, err error) error {
	var short *archive.SpaceError
	if !errors.As(err, &short) {
		return err
	}
	missing := humanize.Bytes(int64(min(short.Missing(), 1<<62)))
	var could int64
	if r, perr := s.Preview(least); perr == nil {
		could = r.Freed
	}
	hint := fmt.Sprintf("free %s on the disk; no archive of %s can be removed", missing, name)
	switch {
	case short.Missing() == 0:
		hint = "free inodes on the disk: remove directories with many small files"
	case could > 0:
		hint = fmt.Sprintf("free %s on the disk; about %s of it with  corpus-git archives prune %s --keep 1", missing, humanize.Bytes(could), name)
	}
	return fault.New(fault.Busy, step, "%w", short).WithHint("%s", hint)
}

// Question asks whether a deployment would have enough space.
type Question struct {
	Archives *archive.Store
	Project  project.Name
	// Step is the name of the procedure that would refuse it.
	Step string
	// Policy is what may be removed early, Least what keeps the least.
	Policy, Least archive.Policy
	// Later is what the checkout would write.
	Later archive.Later
	// Hooks reports whether there are low-space hooks.
	Hooks func() (bool, error)
}

// Ask returns the error with which the deployment would be refused, or what it would do first to have enough space, "" for nothing. It runs no low-space hook: what these would free is unknown.
func (q Question) Ask(ctx context.Context) (first string, err error) {
	err = q.Archives.Room(ctx, q.Later)
	var short *archive.SpaceError
	if !errors.As(err, &short) {
		return "", err
	}
	if could, err := Droppable(q.Archives, q.Policy, short); err != nil || could {
		return "too little space: archives of failed deployments would be removed first", err
	}
	if any, err := q.Hooks(); err != nil || any {
		return fmt.Sprintf("too little space, unless its low-space hooks free %s", humanize.Bytes(int64(min(short.Missing(), 1<<62)))), err
	}
	return "", Refused(q.Archives, q.Project, q.Step, q.Least, err)
}
