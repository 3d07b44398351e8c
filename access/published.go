package access

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"corpus-git/internal/fault"
)

// maxPublished is the maximum number of keys from one address.
const maxPublished = 50

// Published is a key that a host publishes.
type Published struct {
	Key
	// Text is for NewKey.Text.
	Text []byte `json:"-"`
}

// FetchKeys reads the keys that a host publishes for a user, such as https://HOST/USER.keys of GitHub, GitLab and Gitea: one per line, as
// in authorized_keys. It uses only HTTPS, follows redirects only on the same host, and ends within ten seconds. A line that is not an
// acceptable key is an error.
func FetchKeys(ctx context.Context, client *http.Client, address string) ([]Published, error) {
	bad := func(format string, args ...any) *fault.Error {
		return fault.New(fault.Refused, "keys of "+address, format, args...)
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, fault.New(fault.Usage, "", "--from must be an https address without a password").WithHint("such as  https://github.com/marie.keys")
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	same := *client
	same.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		if next.URL.Scheme != "https" || next.URL.Host != u.Host {
			return fmt.Errorf("it redirects to another host: %s", next.URL.Host)
		}
		if len(via) > 3 {
			return errors.New("too many redirects")
		}
		return nil
	}
	res, err := same.Do(req)
	if err != nil {
		return nil, bad("%w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, bad("the host responded with status %d", res.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxKeyText+1))
	if err != nil {
		return nil, bad("%w", err)
	}
	if len(text) > maxKeyText {
		return nil, bad("it is longer than %d bytes", maxKeyText)
	}
	out, err := publishedIn(text)
	if err != nil {
		return nil, bad("%w", err)
	}
	return out, nil
}

func publishedIn(text []byte) (out []Published, err error) {
	n := 0
	for line := range bytes.Lines(text) {
		n++
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		pub, comment, err := ParsePublicKey(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if len(out) == maxPublished {
			return nil, fmt.Errorf("more than %d keys", maxPublished)
		}
		out = append(out, Published{Key: Key{Fingerprint: Fingerprint(pub), Type: pub.Type(), Comment: comment}, Text: line})
	}
	if len(out) == 0 {
		return nil, errors.New("it contains no key")
	}
	return out, nil
}
