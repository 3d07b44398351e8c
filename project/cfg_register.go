package project

import (
	"regexp"

	"corpus-git/internal/py"
)

const (
	registerKey = "register"
	// maxServices limits the services of a project, maxService the description of one, in bytes of
	// JSON.
	maxServices = 50
	maxService  = 4 << 10
)

var validService = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,62}$`)

// Services returns the services of the key register, each with its description, a JSON object.
func (c *Cfg) Services() map[string]string { return c.services }

// register reads and validates the key of the same name.
func (c *Cfg) register() error {
	l := c.root.get([]string{registerKey})
	if l.sub == nil && l.value == nil {
		return nil
	}
	fail := func(says string, keys ...string) error {
		e := cfgError(l.layer, registerKey, "%s", says)
		e.Err = &KeyError{Keys: append([]string{registerKey}, keys...), Text: says}
		return e.WithHint("as in  register: {web: {port: 8080}}")
	}
	if l.sub == nil || len(l.sub.keys) > maxServices {
		return fail("must be a mapping of at most 50 services")
	}
	if l.sub.hidden() {
		return fail("must not contain a secret pillar value, as everybody can read it")
	}
	all := l.sub.dict()
	c.services = map[string]string{}
	for _, e := range all.Items() {
		name, ok := e.Key.(string)
		of, is := e.Value.(*py.Dict)
		if !ok || !validService.MatchString(name) || !is {
			return fail("must map names of services, of letters, digits and . _ - , to mappings", py.Str(e.Key))
		}
		text, err := py.ToJSON(of, py.JSONOptions{})
		if err != nil || len(text) > maxService {
			return fail("the value of a service must be JSON of at most 4096 bytes", name)
		}
		c.services[name] = text
	}
	return nil
}

// hidden reports whether the tree holds a value that must not be shown.
func (t *tree) hidden() (yes bool) {
	t.each(func(l *leaf) {
		yes = yes || l.secret || l.declared || l.sub != nil && l.sub.hidden()
	})
	return yes
}
