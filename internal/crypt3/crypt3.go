// Package crypt3 hashes passwords as crypt(3) does, for /etc/shadow.
//
// It owns the methods $1$ (MD5), $5$ (SHA-256) and $6$ (SHA-512). It reads no file and generates no salt.
//
// Concurrency: functions without state. A crash leaves nothing.
//
// Sources: "Unix crypt using SHA-256 and SHA-512", Ulrich Drepper; the MD5 method of FreeBSD's crypt.c.
package crypt3

import (
	"crypto/md5"
	"crypto/sha256"
	"crypto/sha512"
	"hash"
	"strings"
)

// Letters are the 64 characters of crypt(3) for salts and hashes.
const Letters = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// Hash returns the hash of a password with a setting such as $6$salt; anything after the salt is ignored. ok is false if the setting names
// another method, or a number of rounds.
func Hash(password, setting string) (hashed string, ok bool) {
	f := strings.Split(setting, "$")
	if len(f) < 3 || f[0] != "" || strings.Contains(password, "\x00") || strings.ContainsAny(setting, "\x00\n:") || strings.HasPrefix(f[2], "rounds=") {
		return "", false
	}
	most := 16
	if f[1] == "1" {
		most = 8
	}
	salt := f[2][:min(most, len(f[2]))]
	switch f[1] {
	case "1":
		hashed = MD5(password, salt, "$1$")
	case "5":
		hashed = sha(sha256.New, password, salt)
	case "6":
		hashed = sha(sha512.New, password, salt)
	default:
		return "", false
	}
	return "$" + f[1] + "$" + salt + "$" + hashed, true
}

// encode encodes the bits of bytes, the lowest six first.
func encode(out *strings.Builder, x, y, z byte, n int) {
	for w := uint(x)<<16 | uint(y)<<8 | uint(z); n > 0; n-- {
		out.WriteByte(Letters[w&63])
		w >>= 6
	}
}

// MD5 returns the hash of the MD5 method for the given prefix: $1$, or $apr1$ for Apache's.
func MD5(password, salt, name string) string {
	p, s := []byte(password), []byte(salt)
	bin := md5.Sum([]byte(password + salt + password))
	h := md5.New()
	h.Write(p)
	h.Write([]byte(name))
	h.Write(s)
	for n := len(p); n > 0; n -= 16 {
		h.Write(bin[:min(16, n)])
	}
	for n := len(p); n > 0; n >>= 1 {
		if n&1 != 0 {
			h.Write([]byte{0})
		} else {
			h.Write(p[:1])
		}
	}
	sum := h.Sum(nil)
	for i := range 1000 {
		sum = turn(md5.New(), i, p, s, sum)
	}
	var out strings.Builder
	for _, t := range [][3]int{{0, 6, 12}, {1, 7, 13}, {2, 8, 14}, {3, 9, 15}, {4, 10, 5}} {
		encode(&out, sum[t[0]], sum[t[1]], sum[t[2]], 4)
	}
	encode(&out, 0, 0, sum[11], 2)
	return out.String()
}

// turn is one round.
func turn(h hash.Hash, i int, p, s, a []byte) []byte {
	if i&1 != 0 {
		h.Write(p)
	} else {
		h.Write(a)
	}
	if i%3 != 0 {
		h.Write(s)
	}
	if i%7 != 0 {
		h.Write(p)
	}
	if i&1 != 0 {
		h.Write(a)
	} else {
		h.Write(p)
	}
	return h.Sum(nil)
}

func sha(algorithm func() hash.Hash, password, salt string) string {
	p, s := []byte(password), []byte(salt)
	sum := func(parts ...[]byte) []byte {
		h := algorithm()
		for _, b := range parts {
			h.Write(b)
		}
		return h.Sum(nil)
	}
	b := sum(p, s, p)
	parts := [][]byte{p, s, stretch(b, len(p))}
	for n := len(p); n > 0; n >>= 1 {
		if n&1 != 0 {
			parts = append(parts, b)
		} else {
			parts = append(parts, p)
		}
	}
	a := sum(parts...)
	parts = parts[:0]
	for range p {
		parts = append(parts, p)
	}
	pp := stretch(sum(parts...), len(p))
	parts = parts[:0]
	for range 16 + int(a[0]) {
		parts = append(parts, s)
	}
	ss := stretch(sum(parts...), len(s))
	const rounds = 5000
	for i := range rounds {
		a = turn(algorithm(), i, pp, ss, a)
	}
	var out strings.Builder
	if len(a) == sha512.Size {
		for n, i, j, k := 0, 0, 21, 42; n < 21; n, i, j, k = n+1, j+1, k+1, i+1 {
			encode(&out, a[i], a[j], a[k], 4)
		}
		encode(&out, 0, 0, a[63], 2)
		return out.String()
	}
	for n, i, j, k := 0, 0, 10, 20; n < 10; n, i, j, k = n+1, k+1, i+1, j+1 {
		encode(&out, a[i], a[j], a[k], 4)
	}
	encode(&out, 0, a[31], a[30], 3)
	return out.String()
}

func stretch(b []byte, n int) []byte {
	out := make([]byte, 0, n)
	for len(out)+len(b) <= n {
		out = append(out, b...)
	}
	return append(out, b[:n-len(out)]...)
}
