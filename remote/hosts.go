package remote

import (
	"errors"
	"slices"
	"strings"
	"sync"
)

// Hosts are machines that are reached repeatedly: a connection to each stays for a while (ControlPersist of ssh_config(5)) and is reused.
// Its methods are safe for concurrent use.
type Hosts struct {
	// Like has what all have in common: Exec, Env, Dir, SSH.
	Like *Host

	mu sync.Mutex
	by map[string]*Host
}

// Get returns the machine that target and options name.
func (h *Hosts) Get(target string, options []string) *Host {
	key := strings.Join(append([]string{target}, options...), "\x00")
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.by == nil {
		h.by = map[string]*Host{}
	}
	if h.by[key] == nil {
		h.by[key] = &Host{Target: target, Options: slices.Clone(options), SSH: h.Like.SSH, Exec: h.Like.Exec, Env: h.Like.Env, Dir: h.Like.Dir}
	}
	return h.by[key]
}

// Close ends all connections.
func (h *Hosts) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var errs []error
	for _, host := range h.by {
		errs = append(errs, host.Close())
	}
	h.by = nil
	return errors.Join(errs...)
}
