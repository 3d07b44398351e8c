package submodule

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/fsck"
	"corpus-git/git/object"
	"corpus-git/git/pack"
	"corpus-git/git/store"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
)

// fetchFirst fetches a commit from the first of the addresses at which there is a repository.
func (w *walker) fetchFirst(at string, from []Address, h plumbing.Hash) (*repository, []Address, error) {
	var first error
	for _, a := range from {
		dial, bases, end, err := w.dialer(a)
		if err == nil {
			g, err := w.fetch("submodule "+printable.Clip(at, 200), a, h, dial)
			end()
			return g, bases, err
		}
		if first == nil || errors.Is(first, errNowhere) {
			first = err
		}
		if fault.KindOf(err) != fault.Refused {
			return nil, nil, err
		}
	}
	return nil, nil, first
}

// errNowhere is the error for a relative URL that is not the path of a project.
var errNowhere = errors.New("its relative URL does not name a project on this server")

// dialer returns how to reach an address. end is called when nothing more is fetched from it.
func (w *walker) dialer(a Address) (dial func(context.Context) (transport, error), bases []Address, end func(), err error) {
	if a.Kind == Local {
		none := fault.New(fault.Refused, "", "%w", errNowhere).
			WithHint("relative URLs start from the project's URL on this server; if you mean another server, set  submodules_base  in the project's configuration to the project's URL there")
		if w.Local == nil {
			return nil, nil, nil, none
		}
		p, err := w.Local(w.ctx, a.path)
		if err != nil {
			if fault.KindOf(err) == fault.Usage {
				err = none
			}
			return nil, nil, nil, err
		}
		return func(ctx context.Context) (transport, error) { return pipeTo(ctx, p.Serve), nil }, w.basesOf(a), p.Close, nil
	}
	if err := w.allowed(a.Host()); err != nil {
		return nil, nil, nil, err
	}
	return w.dial(a, hosts{w.allowed, w.named}), []Address{a}, func() {}, nil
}

// dial returns how to connect to another server.
func (r *Resolver) dial(a Address, to hosts) func(context.Context) (transport, error) {
	return func(ctx context.Context) (transport, error) {
		switch a.Kind {
		case HTTP:
			return newWeb(r.HTTP, a, r.Agent, to), nil
		case SSH:
			return dialSSH(ctx, a, r.Home, to)
		default:
			return dialGit(ctx, a, to)
		}
	}
}

// mirror returns the mirror of an address; ok is false if there is none for it.
func (r *Resolver) mirror(a Address) (m Address, ok bool) {
	if a.Kind == Local || a.Kind == Relative {
		return m, false
	}
	url, best := a.plain(), ""
	for _, e := range r.Mirrors {
		from, to, _ := strings.Cut(e, "=")
		if from == "" || len(from) <= len(best) || !strings.HasPrefix(url, from) {
			continue
		}
		rest := url[len(from):]
		if !strings.HasSuffix(rest, ".git") {
			rest = strings.TrimRight(rest, "/") + ".git" // as in mirrors
		}
		to = strings.TrimSpace(to)
		if x, err := ParseAddress(to + rest); err == nil && x.Kind != Relative {
			m, best, ok = x, from, true
		}
	}
	return m, ok
}

// fetchMirrored is fetchCommit for a repository, from the mirror of an address if there is one. done reports whether the commit is stored now.
func (w *walker) fetchMirrored(ctx context.Context, g *repository, what string, a Address, h plumbing.Hash) (done bool) {
	m, ok := w.mirror(a)
	if !ok {
		return false
	}
	// The operator configured the mirror: it may be contacted, but may not redirect to other hosts.
	stay := func(host string) error {
		if strings.EqualFold(host, m.Host()) {
			return nil
		}
		return fault.New(fault.Refused, "", "redirects of a mirror to another host are not followed")
	}
	err := g.fetchCommit(ctx, h, w.dial(m, operators(stay)), w.Limits, w.ID(), w.Agent)
	if err != nil && w.Say != nil {
		w.Say(fmt.Sprintf("%s: not on the mirror %s: %v", what, m, plain(err, m)))
	}
	return err == nil
}

// named reports whether the operator named a host.
func (w *walker) named(host string) bool {
	return slices.ContainsFunc(w.Hosts, func(h string) bool {
		return strings.EqualFold(h, host) || strings.HasPrefix(h, "*.") && strings.HasSuffix(strings.ToLower(host), strings.ToLower(h[1:]))
	})
}

// allowed reports whether a host may be contacted.
func (w *walker) allowed(host string) error {
	if len(w.Hosts) == 0 || slices.Contains(w.Hosts, "*") || w.named(host) {
		return nil
	}
	return fault.New(fault.Refused, "", "this server does not fetch from %s", printable.Clip(host, 200)).
		WithHint("an administrator can add it to  submodules.hosts  in the server's configuration")
}

// fetch fetches a commit from an address into its repository; what says what it is for.
func (w *walker) fetch(what string, a Address, h plumbing.Hash, dial func(context.Context) (transport, error)) (*repository, error) {
	dir := filepath.Join(w.Dir, a.key())
	g, err := w.repository(dir)
	if err == nil && g == nil {
		if g, err = makeRepository(dir, w.Mode, w.Now); err == nil {
			w.set.open[dir] = g
			w.names = append(w.names, a.key())
		}
	}
	if err != nil {
		return nil, err
	}
	if w.Say != nil {
		w.Say(fmt.Sprintf("%s: fetching %s (%s)", what, a, h.String()[:7]))
	}
	return g, within(w.ctx, w.Timeout, a, func(ctx context.Context) error {
		if w.fetchMirrored(ctx, g, what, a, h) {
			return nil
		}
		return g.fetchCommit(ctx, h, dial, w.Limits, w.ID(), w.Agent)
	})
}

// within runs a function that communicates with an address, with a timeout that defaults to defaultTimeout. Its error is a lateError after the
// timeout, and is passed through plain.
func within(ctx context.Context, timeout time.Duration, a Address, f func(context.Context) error) error {
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := f(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = lateError(timeout)
	}
	return plain(err, a)
}

// plain redacts the secrets of an address in messages of a server or a library.
func plain(err error, a Address) error {
	var fe *fault.Error
	var limit *pack.LimitError
	var bad *fsck.Error
	switch {
	case err == nil, errors.As(err, &fe), errors.As(err, &limit), errors.As(err, &bad), errors.Is(err, object.ErrCorrupt),
		errors.Is(err, ErrNoCommit), errors.Is(err, errNoRefs), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	var missing *store.MissingError
	if errors.As(err, &missing) {
		return fault.New(fault.Refused, "", "%w", err)
	}
	text := err.Error()
	for _, s := range a.Secrets() {
		text = strings.ReplaceAll(text, s, "…")
	}
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() {
		text = "no response: " + text
	}
	return errors.New(printable.Clip(text, 200))
}

// lateError reports that a fetch took longer than Resolver.Timeout.
type lateError time.Duration

func (e lateError) Error() string { return fmt.Sprintf("not complete within %s", time.Duration(e)) }

func (e lateError) Unwrap() error { return context.DeadlineExceeded }
