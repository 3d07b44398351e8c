package object

import "github.com/go-git/go-git/v5/plumbing"

// ParseHash parses the name of an object: exactly 40 lowercase hexadecimal digits.
func ParseHash[T string | []byte](b T) (h plumbing.Hash, ok bool) {
	if len(b) != 2*len(h) {
		return h, false
	}
	return PrefixFloor(b)
}

// PrefixFloor returns the lowest hash that begins with the digits: 0 to 40 of them, in lower case.
func PrefixFloor[T string | []byte](digits T) (h plumbing.Hash, ok bool) {
	if len(digits) > 2*len(h) {
		return h, false
	}
	for i := range len(digits) {
		c := digits[i]
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		default:
			return h, false
		}
		h[i/2] |= c << (4 * (1 - i%2))
	}
	return h, true
}
