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

// maxForm bounds what a form sends, in bytes; a public key is the largest thing.
const maxForm = 128 << 10

// token is what the forms of a page carry: who does not know the reader's credential cannot make it. A page of another site that has a browser send a form knows
// nothing that would let it. (The cookie is SameSite=Strict, and Sec-Fetch-Site and Origin are looked at before: three reasons of which one is enough.)
func (p *Pages) token(r *http.Request) string {
	mac := hmac.New(sha256.New, []byte(p.reader.Secret(r)))
	mac.Write([]byte("corpus-git form"))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// once is a key by which the API does nothing twice, however often a form is sent.
func once() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand
	return hex.EncodeToString(b[:])
}

// Parse reads a form that one of our pages showed to this reader.
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

// done answers a form that was sent: with the page of what was made.
func done(w http.ResponseWriter, r *http.Request, at string) error {
	http.Redirect(w, r, at, http.StatusSeeOther)
	return nil
}

// words splits what was typed in a field that takes several names.
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
