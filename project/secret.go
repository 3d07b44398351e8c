package project

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// Secret is a string that must not be shown: it appears as "[secret]" to fmt with every verb, to JSON, YAML and text encoders,
// and to loggers. string(s) is the value; write that only where the value is needed. The empty Secret
// shows as "". It must not be the key of a map: encoding/json writes keys of this kind as they are.
type Secret string

// shownSecret is what is shown instead of a Secret.
const shownSecret = "[secret]"

// String returns "[secret]", never the value.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return shownSecret
}

// Format implements fmt.Formatter, so that %x, %q, %#v and every other verb print "[secret]" too.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// GoString implements fmt.GoStringer.
func (s Secret) GoString() string { return s.String() }

// MarshalText implements encoding.TextMarshaler, which JSON and zerolog's Interface use as well.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON implements json.Marshaler.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }

// MarshalYAML implements the marshaler of YAML packages.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// UnmarshalText reads the value.
func (s *Secret) UnmarshalText(b []byte) error {
	*s = Secret(b)
	return nil
}

// Key returns the secret as the key of a signature of Standard Webhooks: base64 of 24 to 64 bytes, with whsec_ before it or not.
// Source: github.com/standard-webhooks/standard-webhooks, "Signature scheme".
func (s Secret) Key() ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(string(s), "whsec_"))
	if err != nil || len(key) < 24 || len(key) > 64 {
		return nil, errors.New("must be base64 of 24 to 64 bytes, with or without whsec_ before it")
	}
	return key, nil
}
