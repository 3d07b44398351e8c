package run

import (
	"context"

	"corpus-git/internal/py"
	"corpus-git/sls/compile"
)

// slots calls the functions named by the slots in a state's arguments.
func (r *run) slots(ctx context.Context, args *py.Dict) error {
	return compile.SlotTexts(args, func(text string) (any, error) {
		s, ok, err := compile.ParseSlot(text)
		if err != nil || !ok {
			return text, err
		}
		v, err := r.env.Modules(ctx, s.Fun, s.Args, s.Kw)
		if err != nil {
			return nil, err
		}
		if s.Path != "" {
			v, _ = py.Traverse(v, s.Path, ".")
		}
		if str, isText := v.(string); isText && s.HasTail {
			v = str + s.Tail
		}
		return v, nil
	})
}
