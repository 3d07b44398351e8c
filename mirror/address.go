package mirror

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/url"
	"strings"
)

// shown returns a web address as the lock and messages have it: the lock is served to everybody, so a user, a password and a query, which may contain a token, are left
// out. A few digits of the query's hash tell one query from another.
func shown(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "an address that cannot be read"
	}
	var b strings.Builder
	b.WriteString(u.Scheme + "://")
	if u.User != nil {
		b.WriteString("…@")
	}
	b.WriteString(u.Host + u.EscapedPath())
	if u.RawQuery != "" {
		sum := sha256.Sum256([]byte(u.RawQuery))
		b.WriteString("?…" + hex.EncodeToString(sum[:4]))
	}
	return b.String()
}

// requestError returns the error of a request without its address, which may contain a secret, also one that the server redirected to.
func requestError(err error) error {
	if e := (*url.Error)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}
