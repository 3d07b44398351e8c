package modules

import (
	"crypto/sha512"
	"strings"
)

// sha512Crypt is crypt(3) with $6$ and 5000 rounds.
// Source: "Unix crypt using SHA-256 and SHA-512", Ulrich Drepper.
func sha512Crypt(password, salt string) string {
	if len(salt) > 16 {
		salt = salt[:16]
	}
	p, s := []byte(password), []byte(salt)
	alt := sha512.New()
	alt.Write(p)
	alt.Write(s)
	alt.Write(p)
	b := alt.Sum(nil)
	h := sha512.New()
	h.Write(p)
	h.Write(s)
	h.Write(stretch(b, len(p)))
	for n := len(p); n > 0; n >>= 1 {
		if n&1 != 0 {
			h.Write(b)
		} else {
			h.Write(p)
		}
	}
	a := h.Sum(nil)
	h = sha512.New()
	for range p {
		h.Write(p)
	}
	pp := stretch(h.Sum(nil), len(p))
	h = sha512.New()
	for i := 0; i < 16+int(a[0]); i++ {
		h.Write(s)
	}
	ss := stretch(h.Sum(nil), len(s))
	for i := 0; i < 5000; i++ {
		h = sha512.New()
		if i&1 != 0 {
			h.Write(pp)
		} else {
			h.Write(a)
		}
		if i%3 != 0 {
			h.Write(ss)
		}
		if i%7 != 0 {
			h.Write(pp)
		}
		if i&1 != 0 {
			h.Write(a)
		} else {
			h.Write(pp)
		}
		a = h.Sum(nil)
	}
	const letters = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	var out strings.Builder
	out.WriteString("$6$" + salt + "$")
	put := func(x, y, z byte, n int) {
		w := uint(x)<<16 | uint(y)<<8 | uint(z)
		for ; n > 0; n-- {
			out.WriteByte(letters[w&63])
			w >>= 6
		}
	}
	for n, i, j, k := 0, 0, 21, 42; n < 21; n, i, j, k = n+1, j+1, k+1, i+1 {
		put(a[i], a[j], a[k], 4)
	}
	put(0, 0, a[63], 2)
	return out.String()
}

func stretch(b []byte, n int) []byte {
	out := make([]byte, 0, n)
	for len(out)+len(b) <= n {
		out = append(out, b...)
	}
	return append(out, b[:n-len(out)]...)
}
