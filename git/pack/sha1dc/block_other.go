//go:build !amd64 || !gc

package sha1dc

const fast = false

func compress(*[5]uint32, *byte, int, *scratch) (int, bool) { panic("not called where fast is false") }
