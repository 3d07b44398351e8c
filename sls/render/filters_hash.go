package render

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"corpus-git/internal/py"
)

// bytesOf is salt.utils.stringutils.to_bytes: a str in UTF-8, or bytes.
func bytesOf(v any) ([]byte, error) {
	if b, ok := v.(py.Bytes); ok {
		return []byte(b), nil
	}
	s, err := text(v)
	if err != nil {
		return nil, typeError("str, bytes, or bytearray", v)
	}
	return []byte(s), nil
}

// digested returns the hash of a value, and charges for its length.
func digested(c call, v any, h hash.Hash) ([]byte, error) {
	b, err := bytesOf(v)
	if err != nil {
		return nil, err
	}
	if err := c.Ops().Work(4 * len(b)); err != nil {
		return nil, err
	}
	h.Write(b)
	return h.Sum(nil), nil
}

func hashFilters() map[string]filter {
	sum := func(algo func() hash.Hash) filter {
		return simple(func(c call) (any, error) {
			b, err := digested(c, c.a[0], algo())
			return hex.EncodeToString(b), err
		})
	}
	mac := func(c call) ([]byte, error) {
		key, err := bytesOf(c.a[1])
		if err != nil {
			return nil, err
		}
		return digested(c, c.a[0], hmac.New(sha256.New, key))
	}
	return map[string]filter{
		"md5": sum(md5.New), "sha1": sum(sha1.New), "sha256": sum(sha256.New), "sha512": sum(sha512.New),
		"hmac_compute": {fn: func(c call) (any, error) {
			b, err := mac(c)
			return hex.EncodeToString(b), err
		}, required: 2, params: []string{"string", "shared_secret"}},
		"hmac": {fn: func(c call) (any, error) {
			b, err := mac(c)
			if err != nil {
				return nil, err
			}
			challenge, err := bytesOf(c.a[2])
			return hmac.Equal([]byte(base64.StdEncoding.EncodeToString(b)), challenge), err
		}, required: 3, params: []string{"string", "shared_secret", "challenge_hmac"}},
		"base64_encode": simple(func(c call) (any, error) {
			b, err := bytesOf(c.a[0])
			if err != nil {
				return nil, err
			}
			return base64.StdEncoding.EncodeToString(b), c.Ops().Alloc(2 * len(b))
		}),
		"base64_decode": simple(func(c call) (any, error) {
			b, err := bytesOf(c.a[0])
			if err != nil {
				return nil, err
			}
			if err := c.Ops().Alloc(len(b)); err != nil {
				return nil, err
			}
			out, err := decodeBase64(b)
			if err != nil {
				return nil, err
			}
			return textOrBytes(out), nil
		}),
		"to_bytes": {fn: func(c call) (any, error) {
			for _, i := range []int{1, 2} {
				if v := c.given(i, nil); v != nil && v != "utf-8" && v != "strict" {
					return nil, notSupported("an encoding in the filter to_bytes")
				}
			}
			b, err := bytesOf(c.a[0])
			return py.Bytes(b), err
		}, required: 1, params: []string{"s", "encoding", "errors"}},
		"uuid": simple(func(c call) (any, error) {
			if b, ok := c.a[0].(py.Bytes); ok {
				if _, ok := b.Text(); !ok {
					return nil, py.Errorf(py.UnicodeError, "the bytes are not UTF-8")
				}
			}
			b, err := bytesOf(c.a[0])
			if err != nil {
				return nil, err
			}
			if err := c.Ops().Work(4 * len(b)); err != nil {
				return nil, err
			}
			return uuid.NewSHA1(saltSpace, b).String(), nil
		}),
		"mac_str_to_bytes": simple(macBytes),
	}
}

// saltSpace is the name space of Salt's UUIDs.
var saltSpace = uuid.MustParse("91633ebf-1c86-5e33-935a-28061f4b480e")

func textOrBytes(b []byte) any {
	if s, ok := py.Bytes(b).Text(); ok {
		return s
	}
	return py.Bytes(b)
}

// decodeBase64 is base64.b64decode, which ignores characters that are not digits, and everything after the
// padding.
func decodeBase64(in []byte) ([]byte, error) {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	var quad []byte
	pads := 0
	for _, c := range in {
		if c == '=' {
			if pads++; len(quad)%4 >= 2 && len(quad)%4+pads >= 4 {
				return base64.RawStdEncoding.DecodeString(string(quad))
			}
			continue
		}
		if strings.IndexByte(digits, c) < 0 {
			continue
		}
		pads = 0
		quad = append(quad, c)
	}
	switch len(quad) % 4 {
	case 0:
		return base64.RawStdEncoding.DecodeString(string(quad))
	case 1:
		return nil, py.Errorf(py.ValueError, "Invalid base64-encoded string: number of data characters cannot be 1 more than a multiple of 4")
	}
	return nil, py.Errorf(py.ValueError, "Incorrect padding")
}

func macBytes(c call) (any, error) {
	s, err := text(c.a[0])
	if err != nil {
		n, lenErr := c.Ops().Len(c.a[0])
		if lenErr == nil && n != 12 && n != 17 {
			return nil, py.Errorf(py.ValueError, "Invalid MAC address")
		}
		return nil, err
	}
	if py.StrLen(s) == 17 {
		if r := []rune(s); true {
			s = strings.ReplaceAll(s, string(r[2]), "")
		}
	} else if py.StrLen(s) != 12 {
		return nil, py.Errorf(py.ValueError, "Invalid MAC address")
	}
	out := make([]byte, 0, 6)
	for i := 0; i < 12; i += 2 {
		v, err := strconv.ParseUint(s[min(i, len(s)):min(i+2, len(s))], 16, 8)
		if err != nil {
			return nil, py.Errorf(py.ValueError, "invalid literal for int() with base 16")
		}
		out = append(out, byte(v))
	}
	return py.Bytes(out), nil
}
