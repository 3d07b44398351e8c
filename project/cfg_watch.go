package project

import (
	"regexp"
	"time"

	"corpus-git/internal/py"
	"corpus-git/internal/quantity"
)

const (
	watchKey         = "watch"
	watchDebounceKey = "watch_debounce"
	// watchDebounce is the default.
	watchDebounce    = time.Second
	maxWatchDebounce = time.Hour
	maxWatches       = 100
)

// Watches are the keys of package kv whose changes make the live release be applied again.
type Watches struct {
	// Patterns name them; * stands for any text.
	Patterns []string
	// Debounce is how long the keys must have been unchanged before the release is applied.
	Debounce time.Duration
}

// Watches returns what the key watch sets.
func (c *Cfg) Watches() Watches { return c.watches }

// watch reads and validates the keys watch and watch_debounce.
func (c *Cfg) watch() error {
	fail := func(l Layer, key, says string) error {
		e := cfgError(l, key, "%s", says)
		e.Err = &KeyError{Keys: []string{key}, Text: says}
		return e.WithHint("as in  watch: [shared/colour, 'services/db/*']")
	}
	c.watches.Debounce = watchDebounce
	if l := c.root.get([]string{watchDebounceKey}); l.sub != nil || l.value != nil {
		d, ok := checkDuration(l.value)
		if l.sub != nil || !ok || d < 0 || d > maxWatchDebounce {
			return fail(l.layer, watchDebounceKey, "must be a duration such as 2s, at most "+quantity.FormatDuration(maxWatchDebounce))
		}
		c.watches.Debounce = d
	}
	l := c.root.get([]string{watchKey})
	if l.sub == nil && l.value == nil {
		return nil
	}
	list, ok := l.value.(*py.List)
	if l.sub != nil || !ok || list.Len() > maxWatches {
		return fail(l.layer, watchKey, "must be a list of at most 100 keys")
	}
	valid := regexp.MustCompile(`^(projects/` + regexp.QuoteMeta(string(c.name)) + `|shared|services|nodes)/[A-Za-z0-9._@:*/-]+$`)
	for _, v := range list.Items() {
		text, ok := v.(string)
		if !ok || !valid.MatchString(text) {
			return fail(l.layer, watchKey, "must name keys below projects/"+string(c.name)+"/, shared/, services/ or nodes/; * stands for any text")
		}
		c.watches.Patterns = append(c.watches.Patterns, text)
	}
	return nil
}
