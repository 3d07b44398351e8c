package checks

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"corpus-git/project"
)

// FuzzAnswer checks that, whatever a service responds, the judge does not panic, accepts only what is expected, and shows few short lines
// of text without a secret or its beginning.
func FuzzAnswer(f *testing.F) {
	const secret = "s3cr3tvalue"
	for _, src := range []string{`{"a": [{"b": 1}]}`, `{"a": [{"b": 1.0}]} x`, `{"a": []}`, `{"a": {"b": 1}}`, "[[1]]", "", "\x00", strings.Repeat("\xff", 300),
		strings.Repeat("é", 150), strings.Repeat("x", 195) + secret, strings.Repeat("\n\r", 20) + strings.Repeat("l\n", 12)} {
		f.Add([]byte(src))
	}
	r := Runner{Hide: func(s string) string { return strings.ReplaceAll(s, secret, "***") }}
	h := project.HTTPCheck{Status: []project.StatusRange{{First: 200, Last: 299}}, JSON: []project.JSONValue{{Path: "a[0].b", Value: "1"}}}
	f.Fuzz(func(t *testing.T, body []byte) {
		if r.compareStatus(h, &http.Response{StatusCode: http.StatusOK}) == nil && r.compareContent(h, body) == nil {
			var doc struct {
				A []struct{ B float64 }
			}
			if err := json.NewDecoder(strings.NewReader(string(body))).Decode(&doc); err != nil || len(doc.A) == 0 || doc.A[0].B != 1 {
				t.Fatalf("%q is good: %v", body, err)
			}
		}
		lines := r.firstLines(body)
		if len(lines) > shownLines+1 {
			t.Fatalf("%d lines", len(lines))
		}
		for _, l := range lines {
			if len(l) > shownBytes+len("...") || !utf8.ValidString(l) || strings.Contains(l, secret) {
				t.Fatalf("%q", l)
			}
		}
		// A secret at each position of a long line, in particular across the end of what is shown, leaves no part of itself.
		pad := strings.Repeat("-", shownBytes-len(body)%(2*len(secret)))
		for _, l := range r.firstLines([]byte(pad + secret + pad)) {
			if strings.Contains(l, secret[:1]) {
				t.Fatalf("the beginning of a secret: %q", l)
			}
		}
	})
}
