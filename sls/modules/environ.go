package modules

import (
	"errors"
	"strings"

	"corpus-git/internal/py"
)

// addLog adds log.*, which templates call as functions.
func addLog(s table) {
	for _, l := range []string{"trace", "debug", "info", "warning", "warn", "error", "critical", "exception"} {
		s.add("log."+l, "message", func(c *call) (any, error) {
			if c.Log != nil && l != "debug" && l != "trace" && !c.Static {
				c.Log(l + ": " + c.str("message", ""))
			}
			return true, nil
		})
	}
}

// addTest adds the module test.
func addTest(s table) {
	s.add("test.ping", "", func(*call) (any, error) { return true, nil })
	s.add("test.echo", "text", func(c *call) (any, error) { return c.val("text"), nil })
	s.add("test.true", "", func(*call) (any, error) { return true, nil })
	s.add("test.false", "", func(*call) (any, error) { return false, nil })
	s.add("test.exception", "message?", func(c *call) (any, error) { return nil, errors.New(c.str("message", "Test Exception")) })
}

// addEnviron adds the module environ.
func addEnviron(s table) {
	s.add("environ.get", "key default?", func(c *call) (any, error) {
		if v := c.getenv(c.str("key", "")); v != "" {
			return v, nil
		}
		if c.given("default") {
			return c.val("default"), nil
		}
		return "", nil
	})
	s.add("environ.items", "", func(c *call) (any, error) {
		d := py.NewDict()
		for _, kv := range c.Host.Environ {
			k, v, _ := strings.Cut(kv, "=")
			d.SetStr(k, v)
		}
		return d, nil
	})
	s.add("environ.has_value", "key value?", func(c *call) (any, error) { return c.getenv(c.str("key", "")) != "", nil })
}

// addState adds the module state.
func addState(s table) {
	s.add("state.sls_exists", "sls * **", func(c *call) (any, error) {
		_, err := c.Roots.SLS(c.str("sls", ""))
		return err == nil, nil
	})
}
