package command

import (
	"context"

	"corpus-git/sls/state/core"
)

// addWait adds corpus.wait, which pauses until the wait with the state's name has ended: see package signals. Salt gets the same state
// as sls/salt/saltmodules/corpus.py.
func addWait(t *core.Table) {
	t.Add("corpus.wait", "count from timeout on_failure", wait)
}

func wait(c *core.Call) core.Return {
	if c.Test {
		return core.OKf("it would wait for signals")
	}
	if c.Wait == nil {
		return core.Failf("this is not a step of a deployment that can wait")
	}
	args := c.Args.Copy()
	_, _ = args.Pop("name")
	said, err := c.Wait(c.Ctx, c.Name, args)
	if context.Cause(c.Ctx) != nil {
		return core.Failf("%s", context.Cause(c.Ctx))
	}
	if err != nil {
		return core.Failf("%s", err)
	}
	return core.OKf("%s", said)
}
