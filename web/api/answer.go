package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
)

// Answer is a buffered response. It implements http.ResponseWriter.
type Answer struct {
	Headers http.Header
	// Status is 0 until something is written.
	Status int
	Body   bytes.Buffer
}

// NewAnswer returns an empty response.
func NewAnswer() *Answer { return &Answer{Headers: http.Header{}} }

// Header implements http.ResponseWriter.
func (a *Answer) Header() http.Header { return a.Headers }

// WriteHeader implements http.ResponseWriter.
func (a *Answer) WriteHeader(status int) {
	if a.Status == 0 {
		a.Status = status
	}
}

// Write implements http.ResponseWriter.
func (a *Answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.Body.Write(p)
}

// tag returns the entity tag of a body.
func (a *Answer) tag() string {
	h := sha256.Sum256(a.Body.Bytes())
	return `"` + hex.EncodeToString(h[:16]) + `"`
}

func (a *Answer) send(w http.ResponseWriter) {
	for k, v := range a.Headers {
		w.Header()[k] = v
	}
	w.WriteHeader(max(a.Status, http.StatusOK))
	_, _ = w.Write(a.Body.Bytes())
}
