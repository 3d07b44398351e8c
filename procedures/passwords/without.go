package passwords

import "corpus-git/internal/py"

// Without replaces texts with a generated secret: one that no deployment has stored yet is different each time.
func Without(v any, generated func(string) bool) any {
	switch v := v.(type) {
	case string:
		if generated(v) {
			return "generated"
		}
	case *py.Dict:
		out := py.NewDict()
		v.Range(func(k, v any) bool {
			_ = out.Set(k, Without(v, generated)) // the key was one before
			return true
		})
		return out
	case *py.List:
		out := py.NewList()
		for _, x := range v.Items() {
			out.Append(Without(x, generated))
		}
		return out
	}
	return v
}
