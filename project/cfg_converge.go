package project

import (
	"slices"
	"time"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/internal/quantity"
)

const convergeKey = "converge"

// Limits of intervals: below the first the machine does little else, a value above the second is probably a typo.
const (
	minConvergeEvery = time.Minute
	maxConvergeEvery = 366 * quantity.Day
)

// convergeKeys holds the keys of converge in cfg; nil means the server's default.
type convergeKeys struct {
	boot         *bool
	every, splay *time.Duration
	mode         ConvergeMode
}

// Converge returns when and how the live release is applied again: the server's default, except for what the key converge sets.
func (c *Cfg) Converge(server ConvergePolicy) ConvergePolicy {
	k, out := c.convergence, server
	if k.boot != nil {
		out.Boot = *k.boot
	}
	if k.every != nil {
		out.Every = *k.every
	}
	if k.splay != nil {
		out.Splay = *k.splay
	}
	if k.mode != "" {
		out.Mode = k.mode
	}
	if out.Mode == "" {
		out.Mode = ConvergeEnforce
	}
	return out
}

// converge reads and validates the key of the same name.
func (c *Cfg) converge() error {
	l := c.root.get([]string{convergeKey})
	fail := func(l Layer, says string, keys ...string) *fault.Error {
		e := cfgError(l, convergeKey, "%s", says)
		e.Err = &KeyError{Keys: append([]string{convergeKey}, keys...), Text: says}
		return e.WithHint("as in  converge: {boot: true, every: 1h, splay: 10m, mode: report}")
	}
	if l.sub == nil && l.value == nil {
		return nil
	} else if l.sub == nil {
		return fail(l.layer, "must be a mapping of boot, every, splay and mode")
	}
	var err error
	l.sub.each(func(k *leaf) {
		if err != nil || k.sub == nil && k.value == nil {
			return // null in a later layer removes a key
		}
		name := py.Str(k.key)
		at := k.nearest(l.layer)
		switch name {
		case "boot":
			v, ok := k.value.(bool)
			if !ok {
				err = fail(at, "must be true or false", name)
			}
			c.convergence.boot = &v
		case "every", "splay":
			d, ok := checkDuration(k.value)
			to, says := &c.convergence.every, "must be 0 or a duration such as 30m or 1d, every of at least "+quantity.FormatDuration(minConvergeEvery)
			if name == "splay" {
				to, says = &c.convergence.splay, "must be a duration such as 10m"
			}
			if k.sub != nil || !ok || d < 0 || d > maxConvergeEvery || name == "every" && d != 0 && d < minConvergeEvery {
				err = fail(at, says, name)
			}
			*to = &d
		case "mode":
			m, _ := k.value.(string)
			if !slices.Contains(ConvergeModes(), ConvergeMode(m)) {
				err = fail(at, "must be enforce or report", name)
			}
			c.convergence.mode = ConvergeMode(m)
		default:
			err = fail(at, "is not known; the keys are boot, every, splay and mode", name)
		}
	})
	return err
}
