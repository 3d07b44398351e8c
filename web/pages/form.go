package pages

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"corpus-git/internal/fault"
)

// maxForm is the maximum size of a form, in bytes; a public key is the largest thing sent.
const maxForm = 128 << 10

// token returns the CSRF token of forms, derived from the reader's credential, which another site does not know. (In addition the cookie is SameSite=Strict,
// and Sec-Fetch-Site and Origin are checked; each of the three is sufficient.)
func (p *Pages) token(r *http.Request) string {
	mac := hmac.New(sha256.New, []byte(p.reader.Secret(r)))
	mac.Write([]byte("corpus-git form"))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// once returns an idempotency key for a form.
func once() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand
	return hex.EncodeToString(b[:])
}

// Parse reads a form that was shown to this reader.
func (p *Pages) Parse(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return fault.New(fault.Usage, "", "the form could not be read")
	}
	if p.reader.Secret(r) == "" || !hmac.Equal([]byte(r.PostForm.Get("token")), []byte(p.token(r))) {
		return refused("this form is not of a page that you were shown: open the page again")
	}
	return nil
}

func refused(text string) error {
	var out refusal
	out.Status, out.Detail = http.StatusForbidden, text
	return out
}

// done responds to a form with a redirect to the page of the result.
func done(w http.ResponseWriter, r *http.Request, at string) error {
	http.Redirect(w, r, at, http.StatusSeeOther)
	return nil
}

// words splits the value of a field that accepts several names.
func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\r' || r == '\n' })
}

// settings reads lines of KEY=VALUE.
func settings(text string) (map[string]string, error) {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || key == "" {
			return nil, fault.New(fault.Usage, "", "%q is not KEY=VALUE", line)
		}
		out[key] = value
	}
	return out, nil
}
