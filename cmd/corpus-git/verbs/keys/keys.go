// Package keys is the verbs about keys and their values.
//
// It owns their words, flags and output, and who may read and write which key. It keeps nothing, and decides nothing about what follows from a change.
package keys

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"corpus-git/cmd/corpus-git/verbs/nodes"
	"corpus-git/internal/audit"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/internal/quantity"
	"corpus-git/kv"
	"corpus-git/kv/register"
	"corpus-git/project"
)

// KV is the table of keys.
type KV interface {
	Set(ctx context.Context, p kv.Put) (revision int64, err error)
	Delete(ctx context.Context, key string, want *int64) error
	Get(ctx context.Context, key string) (e kv.Entry, ok bool, err error)
	List(ctx context.Context, prefix string) ([]kv.Entry, error)
	// Since returns what changed after a revision, Changed is closed at the next change.
	Since(ctx context.Context, after int64) (out []kv.Entry, newest int64, err error)
	Revision(ctx context.Context) (int64, error)
	Changed() <-chan struct{}
	// Register says which services run on an instance, under a lease.
	Register(ctx context.Context, instance string, services map[string]string, lease time.Duration) error
}

// Session is one run of a verb.
type Session struct {
	nodes.Session
	KV KV
}

// Command returns the verb kv.
func Command(s Session) *cobra.Command {
	c := s.Group("kv", "Manage keys that steps can read and projects can watch", get(s), set(s), del(s), list(s), watch(s), registers(s))
	c.Long = "Keys below projects/NAME/ belong to a project and require configure permission. Keys below shared/ and services/ are visible to all projects and require an administrator.\n" +
		"Keys below nodes/ are the facts that nodes report; they are read-only.\n" +
		"Steps read keys with cfg.kv and salt['kv.get'] (docs/guide/kv.md). Do not store secrets in keys; use the pillar."
	return c
}

// may refuses who may not use a key, or a prefix of keys.
func (s Session) may(verb, key string) error {
	if name := kv.Owner(key); name != "" {
		_, err := s.Project(verb, string(name), project.Configure)
		return err
	}
	return s.Admin(verb, key)
}

// Document is what kv get and kv list print with --json.
type Document struct {
	Version int        `json:"version"`
	Keys    []kv.Entry `json:"keys"`
}

func get(s Session) *cobra.Command {
	return s.JSONFlag(&cobra.Command{
		Use: "get KEY", Short: "Print the value of a key", Args: s.Exactly("KEY"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := s.may("kv get", args[0]); err != nil {
				return err
			}
			e, ok, err := s.KV.Get(s.Context, args[0])
			if err == nil && !ok {
				err = fault.New(fault.Refused, "kv", "no key %s", args[0])
			}
			if err != nil {
				return err
			}
			if s.JSON() {
				return s.Document(Document{Version: 1, Keys: []kv.Entry{e}})
			}
			p := s.Printer()
			p.Line("%s", e.Value)
			return p.Err()
		},
	})
}

// want returns the flag --if-revision.
func want(c *cobra.Command, to *int64) func() *int64 {
	c.Flags().Int64Var(to, "if-revision", 0, "set only if the key has this revision; 0: only if it does not exist")
	return func() *int64 {
		if c.Flags().Changed("if-revision") {
			return to
		}
		return nil
	}
}

func set(s Session) *cobra.Command {
	var lease string
	var revision int64
	var only func() *int64
	c := &cobra.Command{
		Use: "set KEY VALUE", Short: "Set a key", Args: s.Exactly("KEY", "VALUE"),
		Long: "Prints the revision of the key, which increases with each change of any key. Setting the current value again only renews the lease.",
		RunE: func(_ *cobra.Command, args []string) error {
			put := kv.Put{Key: args[0], Value: args[1], If: only(), By: s.Caller.Name}
			if lease != "" {
				var err error
				if put.Lease, err = quantity.ParseDuration(lease); err != nil || put.Lease <= 0 {
					return fault.New(fault.Usage, "", "--lease %q: a duration such as 30s", lease)
				}
			}
			err := kv.CheckKey(args[0])
			if err == nil {
				err = s.may("kv set", args[0])
			}
			if err == nil {
				err = kv.CheckWritable("kv set", args[0])
			}
			if err != nil {
				return err
			}
			n, err := s.KV.Set(s.Context, put)
			if err := s.Audited(audit.Entry{Action: "kv set", Project: string(kv.Owner(args[0])), Object: args[0]}, err); err != nil {
				return err
			}
			p := s.Printer()
			p.Line("%d", n)
			return p.Err()
		},
	}
	only = want(c, &revision)
	c.Flags().StringVar(&lease, "lease", "", "delete the key if it is not set again within this time, such as 30s")
	return c
}

func del(s Session) *cobra.Command {
	var revision int64
	var only func() *int64
	c := &cobra.Command{
		Use: "delete KEY", Short: "Delete a key", Args: s.Exactly("KEY"),
		RunE: func(_ *cobra.Command, args []string) error {
			err := s.may("kv delete", args[0])
			if err == nil {
				err = kv.CheckWritable("kv delete", args[0])
			}
			if err != nil {
				return err
			}
			err = s.KV.Delete(s.Context, args[0], only())
			return s.Audited(audit.Entry{Action: "kv delete", Project: string(kv.Owner(args[0])), Object: args[0]}, err)
		},
	}
	only = want(c, &revision)
	return c
}

func list(s Session) *cobra.Command {
	return s.JSONFlag(&cobra.Command{
		Use: "list [PREFIX]", Short: "List keys with a prefix, and their values", Args: s.Exactly("[PREFIX]"),
		RunE: func(_ *cobra.Command, args []string) error {
			prefix := strings.Join(args, "")
			if err := s.may("kv list", prefix); err != nil {
				return err
			}
			all, err := s.KV.List(s.Context, prefix)
			if err != nil {
				return err
			}
			if s.JSON() {
				return s.Document(Document{Version: 1, Keys: append([]kv.Entry{}, all...)})
			}
			p := s.Printer()
			for _, e := range all {
				p.Line("%-40s %s", e.Key, printable.Text(printable.Shorten(e.Value, 200)))
			}
			return p.Err()
		},
	})
}

// maxRegistered bounds what an agent says of its services, in bytes.
const maxRegistered = 1 << 20

func registers(s Session) *cobra.Command {
	return &cobra.Command{
		Use: "register NODE", Short: "Register the services of an agent's machine, as JSON on standard input", Hidden: true, Args: s.Exactly("NODE"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := nodes.OfAgent(s.Session, args[0]); err != nil {
				return s.Audited(audit.Entry{Action: "kv register", Object: args[0]}, err)
			}
			text, err := io.ReadAll(io.LimitReader(s.In, maxRegistered+1))
			if err != nil {
				return err
			}
			var services map[string]string
			if err := json.Unmarshal(text, &services); err != nil || len(text) > maxRegistered {
				return fault.New(fault.Refused, "", "the services of %s are not a JSON object of at most %d bytes", args[0], maxRegistered)
			}
			return s.KV.Register(s.Context, args[0], services, register.Lease)
		},
	}
}

func watch(s Session) *cobra.Command {
	var after int64
	c := &cobra.Command{
		Use: "watch PREFIX", Short: "Print changes of keys with a prefix, until interrupted", Args: s.Exactly("PREFIX"),
		Long: "Prints a line for each change, or with --json a document: revision, key and value, or - for a deleted key. Rapid changes of a key may be combined.\n" +
			"--after N starts after revision N, so that no change is lost between two runs.",
	}
	c.RunE = func(_ *cobra.Command, args []string) error {
		if err := s.may("kv watch", args[0]); err != nil {
			return err
		}
		if !c.Flags().Changed("after") {
			var err error
			if after, err = s.KV.Revision(s.Context); err != nil {
				return err
			}
		}
		p := s.Printer()
		for {
			changed := s.KV.Changed()
			all, newest, err := s.KV.Since(s.Context, after)
			if s.Context.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			for _, e := range all {
				if !strings.HasPrefix(e.Key, args[0]) {
					continue
				}
				if s.JSON() {
					if err := s.Document(Document{Version: 1, Keys: []kv.Entry{e}}); err != nil {
						return err
					}
					continue
				}
				if value := printable.Text(printable.Shorten(e.Value, 200)); e.Deleted {
					p.Line("%d %s -", e.Revision, e.Key)
				} else {
					p.Line("%d %s %s", e.Revision, e.Key, value)
				}
			}
			if err := p.Err(); err != nil {
				return err
			}
			after = newest
			select {
			case <-changed:
			case <-s.Context.Done():
				return nil
			case <-time.After(time.Minute):
			}
			// Who follows may have lost the right, also where something changes all the time.
			if err := s.may("kv watch", args[0]); err != nil {
				return err
			}
		}
	}
	c.Flags().Int64Var(&after, "after", 0, "start after this revision; default: now")
	return s.JSONFlag(c)
}
