package run

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"corpus-git/internal/py"
	"corpus-git/internal/sleep"
	"corpus-git/sls/compile"
	"corpus-git/sls/state/core"
)

type retrySpec struct {
	until                     bool
	attempts, interval, splay int64
}

func retryOf(v any) retrySpec {
	s := retrySpec{true, 2, 30, 0}
	if b, ok := v.(bool); ok && !b {
		s.attempts = 0
		return s
	}
	d, _ := v.(*py.Dict) // anything else, a list of mappings too, asks for the defaults
	if b, has := d.GetStr("until"); has {
		if x, isBool := b.(bool); isBool {
			s.until = x
		}
	}
	for k, p := range map[string]*int64{"attempts": &s.attempts, "interval": &s.interval, "splay": &s.splay} {
		if n, has := d.GetStr(k); has {
			if i, isInt := n.(int64); isInt {
				*p = i
			}
		}
	}
	return s
}

// retry runs a state again until it returns the wanted result. Source: Salt documentation, "Retrying
// States".
func (r *run) retry(ctx context.Context, c *compile.Chunk, reqs []core.Requisite, ret core.Return, s retrySpec) (core.Return, error) {
	if r.p.Input.Test {
		ret.Comment += fmt.Sprintf("  The state would be retried every %d seconds (with a splay of up to %d seconds) a maximum of %d times or until a result of %s is returned",
			s.interval, s.splay, s.attempts, py.Str(s.until))
		return ret, nil
	}
	var log []string
	for try := int64(1); try < s.attempts && (ret.Result == core.True) != s.until; try++ {
		log = append(log, fmt.Sprintf("Attempt %d: Returned a result of \"%s\", with the following comment: \"%s\"", try, triName(ret.Result), ret.Comment))
		wait := s.interval
		if s.splay > 0 {
			wait += rand.Int64N(s.splay + 1)
		}
		if err := sleep.For(ctx, time.Duration(wait)*time.Second); err != nil {
			return ret, err
		}
		var err error
		if ret, err = r.callState(ctx, c, reqs, false); err != nil {
			return ret, err
		}
	}
	if len(log) > 0 {
		ret.Comment = strings.Join(append(log, ret.Comment), "\n")
	}
	return ret, nil
}
