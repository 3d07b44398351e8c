// Package nodes is the verbs about nodes and rollouts.
//
// It owns their words, flags and output. What a verb needs of who types it, and of the server, is in Session; it decides nothing about nodes itself, and keeps nothing.
package nodes

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"corpus-git/access"
	"corpus-git/fleet"
	"corpus-git/fleet/agent"
	"corpus-git/internal/audit"
	"corpus-git/project"
)

// Fleet is the nodes that the operator knows, and the rollouts to them.
type Fleet interface {
	Add(ctx context.Context, n fleet.Node) error
	List(ctx context.Context) ([]fleet.Node, error)
	Get(ctx context.Context, name string) (fleet.Node, error)
	Remove(ctx context.Context, name string) error
	// Drain leaves a node out of rollouts, or takes it in again.
	Drain(ctx context.Context, name string, drained bool) (changed bool, err error)
	SetSlots(ctx context.Context, name string, slots int) (changed bool, err error)
	// Assign makes a node that on which a project without a nodes.yaml runs; "" is none.
	Assign(ctx context.Context, of project.Name, node string) (changed bool, err error)
	// History returns the rollouts of a project, of all for "", the newest first.
	History(ctx context.Context, name project.Name) ([]*fleet.Progress, error)
	// Uses returns the projects of a node, of each for "", by the names of the nodes.
	Uses(ctx context.Context, node string) (map[string][]fleet.Use, error)
	// Behind returns the nodes of a project, of all for "", that have another release than the live one.
	Behind(ctx context.Context, of project.Name) (map[project.Name][]fleet.Behind, error)
	// Connected reports whether a node's agent is connected.
	Connected(name string) bool
	// Announce says which process of a node's agent is at the other end of a connection: see machines.Fleet.
	Announce(name, connection, process string)
	// Attach offers a stream of a node's agent whose key valid finds good, and returns when it is not needed any more. from is its connection.
	Attach(ctx context.Context, name, from string, valid func() error, in io.Reader, out io.Writer) error
	// Accept takes the connection from, that of in, over which the hub opens streams of a node's agent by itself; ok is false if in has none that outlives the verb.
	Accept(ctx context.Context, name, from string, valid func() error, in io.Reader) (ok bool, err error)
	// RecordReport records what a node reports of itself.
	RecordReport(ctx context.Context, name string, said fleet.NodeReport) error
	// Upgrade replaces the program of a node's agent by the one that in holds, nil for the server's, and gives the release that came back.
	Upgrade(ctx context.Context, name string, in io.Reader) (release string, err error)
	// Drop ends the streams that a node's agent has offered.
	Drop(name string)
	// Pause begins no further node of the project's rollout until Pause(false).
	Pause(ctx context.Context, name project.Name, paused bool) (changed bool, err error)
}

// Access is the principals and their keys.
type Access interface {
	AddPrincipal(ctx context.Context, by access.Identity, p access.Principal) (access.Principal, error)
	RemovePrincipal(ctx context.Context, by access.Identity, name string) error
	FindPrincipal(ctx context.Context, name string) (access.Principal, error)
	AddKeyTo(ctx context.Context, by access.Identity, k access.NewKey) (access.Key, error)
	RemoveKey(ctx context.Context, by access.Identity, name string) error
	// FindByName returns one key; an unknown name is fault.Refused.
	FindByName(ctx context.Context, name string) (access.Key, error)
}

// Printer prints lines: format is ours, args may be anybody's texts. It keeps the first error.
type Printer interface {
	Line(format string, args ...any)
	Err() error
}

// Session is one run of a verb.
type Session struct {
	Context context.Context //nolint:containedctx // it lives as long as the one call that it belongs to
	Fleet   Fleet
	Access  Access
	// Caller is who types; In and Out are the streams of what is not a text.
	Caller access.Identity
	In     io.Reader
	Out    io.Writer
	// HostKey is the server's key, Address HOST:PORT at which it is reached.
	HostKey func() (string, error)
	Address func() string
	// NATS is where agents connect over NATS; nil if they connect by ssh.
	NATS *agent.NATS
	// Hubs returns the addresses of the ssh servers of the hubs that share this one's state, with its own; none if it has no others.
	Hubs func() ([]string, error)
	Now  func() time.Time
	// Admin refuses who is not an administrator, Local who is not on the machine, too; Project who lacks a right on a project, and gives its name.
	Admin, Local func(verb, object string) error
	Project      func(verb, arg string, want project.Right) (project.Name, error)
	// Audited records what a verb did.
	Audited func(e audit.Entry, err error) error
	// JSON reports whether a document is wanted; JSONFlag adds the flag, Document writes one.
	JSON     func() bool
	JSONFlag func(c *cobra.Command) *cobra.Command
	Document func(v any) error
	Printer  func() Printer
	Exactly  func(names ...string) cobra.PositionalArgs
	// Group is a command that only holds others.
	Group func(use, short string, subs ...*cobra.Command) *cobra.Command
	// RunFlags are those of commands that deploy. Deploy starts a deployment, follows it and ends with its verdict; Cancel ends one.
	RunFlags func(c *cobra.Command, verbose *bool) *cobra.Command
	Deploy   func(verb string, d project.Deployment, verbose bool) error
	Cancel   func(verb string, name project.Name, id project.ID) error
}
