package redact

import (
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"corpus-git/internal/fault"
)

// MinBytes is the length from which a value is hidden; shorter ones would blank out ordinary words.
const MinBytes = 6

// Closed is what a Redactor without its secrets shows instead of text.
const Closed = "[redacted]"

// Secret is one value to hide, and the key path that replaces it.
type Secret struct {
	// Label is the path of the value's key, such as "data.db.password"; it is shown as [pillar:data.db.password].
	Label string
	Value string
	// Whose replaces the word "pillar" in the label: a word of ours, never from the pillar.
	Whose string
}

// Redactor replaces secrets in texts. The zero value, and a nil one, hides whole texts.
type Redactor struct {
	mu      sync.Mutex // guards secrets, held while a new matcher is built
	secrets []Secret
	known   map[string][]pattern // of the secrets, by value
	match   atomic.Pointer[matcher]
}

// New returns a Redactor for these secrets. Values that are too short to be hidden are skipped.
func New(secrets []Secret) *Redactor {
	r := &Redactor{}
	r.Extend(secrets)
	return r
}

// None returns a Redactor that hides nothing, for texts that cannot hold a secret.
func None() *Redactor { return New(nil) }

// Extend adds secrets; open texts and streams use them from their next write on. Extending a zero Redactor opens it.
func (r *Redactor) Extend(secrets []Secret) {
	r.mu.Lock()
	defer r.mu.Unlock()
	have := make(map[string]bool, len(r.secrets))
	for _, s := range r.secrets {
		have[s.Value] = true
	}
	known := len(r.secrets)
	for _, s := range secrets {
		if len(s.Value) >= MinBytes && !have[s.Value] {
			have[s.Value] = true
			r.secrets = append(r.secrets, s)
		}
	}
	if len(r.secrets) == known && r.match.Load() != nil {
		return
	}
	if r.known == nil {
		r.known = map[string][]pattern{}
	}
	r.match.Store(newMatcher(r.secrets, r.known))
}

// matcher returns nil for a closed Redactor.
func (r *Redactor) matcher() *matcher {
	if r == nil {
		return nil
	}
	return r.match.Load()
}

// String returns s with every secret replaced by its label. The text counts as complete: if it ends with at least half of a secret, that
// half is hidden too.
func (r *Redactor) String(s string) string {
	m := r.matcher()
	if m == nil {
		if s == "" {
			return ""
		}
		return Closed
	}
	if len(m.buckets) == 0 || s == "" {
		return s
	}
	var st stream
	out := string(st.run(m, nil, s, true))
	if strings.IndexByte(out, 0x1b) >= 0 {
		// The content of an escape sequence, such as a window's title, is also read by people.
		st = stream{t: text{inside: true}}
		out = string(st.run(m, nil, out, true))
	}
	return out
}

// Contains reports whether a text contains a secret; for a closed Redactor that is every text but the empty one.
func (r *Redactor) Contains(s string) bool { return r.String(s) != s }

// Error returns err with every text redacted: operation, cause, place and hint. The kind is kept; the chain of causes is not, because its texts
// are not redacted, nor is the position of a wrapped fault, except in the text. A nil error stays nil.
func (r *Redactor) Error(err error) error {
	if err == nil {
		return nil
	}
	out := &fault.Error{Kind: fault.KindOf(err), Hint: r.String(fault.HintOf(err))}
	e, ok := err.(*fault.Error)
	if !ok {
		out.Err = errors.New(r.String(err.Error()))
		return out
	}
	out.Op = r.String(e.Op)
	out.At = e.At
	out.At.File, out.At.Text = r.String(e.At.File), r.String(e.At.Text)
	if e.Err != nil {
		out.Err = errors.New(r.String(e.Err.Error()))
	}
	return out
}

// Writer redacts a stream. It may hold back the end of what was written while that can still become a secret.
type Writer struct {
	r  *Redactor
	w  io.Writer
	st stream
	// closed redactors: whether the current line was replaced already
	hidden bool
}

// Writer returns a stream that writes redacted text to w. The caller ends it with Flush.
func (r *Redactor) Writer(w io.Writer) *Writer { return &Writer{r: r, w: w} }

// Write always takes all of p: it returns len(p) unless the underlying writer fails.
func (w *Writer) Write(p []byte) (int, error) {
	m := w.r.matcher()
	if m == nil {
		return len(p), w.writeClosed(p)
	}
	for rest := p; len(rest) > 0; {
		n := min(len(rest), chunk)
		if err := w.emit(w.st.run(m, nil, string(rest[:n]), false)); err != nil {
			return len(p) - len(rest), err
		}
		rest = rest[n:]
	}
	return len(p), nil
}

// chunk bounds the work buffers of one pass.
const chunk = 32 << 10

func (w *Writer) writeClosed(p []byte) error {
	var out []byte
	for _, c := range p {
		switch {
		case c == '\n':
			out = append(out, c)
			w.hidden = false
		case !w.hidden:
			out = append(out, Closed...)
			w.hidden = true
		}
	}
	return w.emit(out)
}

// Idle writes what is held back if it is harmless: fewer than 4 characters of a secret. If the rest of the secret follows, that rest is hidden.
// Longer parts stay held back, so an idle stream never shows a secret's beginning. Call it when a stream has been silent for a while.
func (w *Writer) Idle() error { return w.emit(w.st.idle(w.r.matcher())) }

// Pending returns the number of bytes held back.
func (w *Writer) Pending() int { return len(w.st.buf) - w.st.sent }

// Flush ends the text: what is held back is redacted as a complete text is (see String) and written. The Writer can be used again, for
// another text.
func (w *Writer) Flush() error {
	m := w.r.matcher()
	if m == nil {
		w.hidden = false
		w.st = stream{}
		return nil
	}
	return w.emit(w.st.run(m, nil, "", true))
}

func (w *Writer) emit(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	_, err := w.w.Write(b)
	return err
}
