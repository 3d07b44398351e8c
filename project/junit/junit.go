package junit

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"corpus-git/internal/humanize"
	"corpus-git/internal/printable"
)

// The limits of one report: its bytes, the depth of its elements, the number of its tests. They limit the cost of reading one.
const (
	MaxBytes = 4 << 20
	maxDepth = 32
	maxCases = 100_000
)

// The limits of what a record keeps of the failed tests of one step: their number, and the characters of their texts; the same number of problems with files is
// kept.
const (
	MaxFailures = 20
	maxName     = 200
	maxMessage  = 500
)

// Summary sums up the reports of one step.
type Summary struct {
	Step string `json:"step"`
	// Files is the number of reports that were read.
	Files int `json:"files"`
	// Tests is the number of tests; those that neither failed nor were skipped passed. Errors counts tests that did not run to the end.
	Tests   int `json:"tests"`
	Failed  int `json:"failed"`
	Errors  int `json:"errors"`
	Skipped int `json:"skipped"`
	// Duration is the total duration of the tests.
	Duration time.Duration `json:"duration_ns"`
	// Failures are the first MaxFailures tests that failed or had an error.
	Failures []Case `json:"failures,omitempty"`
	// Problems say which reports could not be read, and why.
	Problems []string `json:"problems,omitempty"`
}

// Case is a test that failed.
type Case struct {
	// Class is the group of the test, as its runner names it; "" if it names none.
	Class string `json:"class,omitempty"`
	Name  string `json:"name"`
	// Message is the runner's message about it, on one line.
	Message string `json:"message,omitempty"`
}

// Bad returns the number of tests that did not pass.
func (s Summary) Bad() int { return s.Failed + s.Errors }

// Passed returns the number of tests that passed.
func (s Summary) Passed() int { return s.Tests - s.Bad() - s.Skipped }

// Text returns the summary in a few words.
func (s Summary) Text() string {
	out := humanize.Plural(s.Tests, "test")
	for _, x := range []struct {
		n    int
		what string
	}{{s.Failed, "failed"}, {s.Errors, "with errors"}, {s.Skipped, "skipped"}} {
		if x.n > 0 {
			out += fmt.Sprintf(", %d %s", x.n, x.what)
		}
	}
	if s.Bad() == 0 && s.Tests > 0 {
		out += ", none failed"
	}
	if s.Duration > 0 {
		out += ", " + humanize.Seconds(s.Duration)
	}
	return out
}

// Lines returns the summary for people: Text, then the tests that failed and the reports that could not be read.
func (s Summary) Lines() []string {
	out := []string{s.Step + ": " + s.Text()}
	for _, c := range s.Failures {
		line := "! " + c.Full()
		if c.Message != "" {
			line += ": " + c.Message
		}
		out = append(out, "  "+line)
	}
	if more := s.Bad() - len(s.Failures); more > 0 {
		out = append(out, fmt.Sprintf("  and %d more", more))
	}
	for _, p := range s.Problems {
		out = append(out, "  "+p)
	}
	for i := range out {
		out[i] = printable.Line(out[i])
	}
	return out
}

// Full returns the name of a test, including its class.
func (c Case) Full() string {
	if c.Class == "" {
		return c.Name
	}
	return c.Class + " " + c.Name
}

// Total adds up summaries: their figures, without texts.
func Total(all []Summary) (out Summary) {
	for _, s := range all {
		out.Files += s.Files
		out.Tests += s.Tests
		out.Failed += s.Failed
		out.Errors += s.Errors
		out.Skipped += s.Skipped
		out.Duration += s.Duration
	}
	return out
}

// Add adds a report. show returns a text with its secrets hidden: it is called with the whole text, before any of it is cut. If the error is not nil, nothing was
// added except the problem, which begins with name.
func (s *Summary) Add(name string, src []byte, show func(string) string) error {
	r := &reader{show: show, room: MaxFailures - len(s.Failures)}
	if err := r.read(src); err != nil {
		s.Problem(show(name), err)
		return err
	}
	s.Files++
	s.Tests += r.sum.Tests
	s.Failed += r.sum.Failed
	s.Errors += r.sum.Errors
	s.Skipped += r.sum.Skipped
	s.Duration += r.sum.Duration
	s.Failures = append(s.Failures, r.sum.Failures...)
	return nil
}

// Problem records that a report could not be read.
func (s *Summary) Problem(name string, err error) {
	if len(s.Problems) < MaxFailures {
		s.Problems = append(s.Problems, short(name, maxName)+": "+short(err.Error(), maxMessage))
	}
}

// reader reads one report.
type reader struct {
	show func(string) string
	room int // number of failures that may still be kept
	sum  Summary
}

// read walks over the elements. encoding/xml resolves only the entities of XML itself, and loads nothing.
func (r *reader) read(src []byte) error {
	if len(src) > MaxBytes {
		return fmt.Errorf("it has more than %d MiB", MaxBytes>>20)
	}
	d := xml.NewDecoder(bytes.NewReader(src))
	root := false
	for {
		t, err := d.Token()
		switch {
		case errors.Is(err, io.EOF) && root:
			return nil
		case errors.Is(err, io.EOF):
			return errors.New("it is not JUnit's XML: it has no element")
		case err != nil:
			return wrong(d, err)
		}
		start, ok := t.(xml.StartElement)
		if !ok {
			continue
		}
		if name := start.Name.Local; root || name != "testsuites" && name != "testsuite" {
			return fmt.Errorf("it is not JUnit's XML: it begins with <%s>, not with <testsuites> or <testsuite>", short(name, 40))
		}
		root = true
		if err := r.suites(d); err != nil {
			return err
		}
	}
}

// wrong describes what the decoder found, with the line.
func wrong(d *xml.Decoder, err error) error {
	line, _ := d.InputPos()
	var syntax *xml.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("line %d: %s", syntax.Line, syntax.Msg)
	}
	return fmt.Errorf("line %d: %w", line, err)
}

// suites reads to the end of the root element, whose start tag was read.
func (r *reader) suites(d *xml.Decoder) error {
	return walk(d, func(t xml.Token, _ int) (read bool, err error) {
		start, ok := t.(xml.StartElement)
		if !ok || start.Name.Local != "testcase" {
			return false, nil
		}
		return true, r.testcase(d, start)
	})
}

// walk passes f the tokens up to the end of the element whose start tag was read, with their depth: 1 in the element itself. f reports whether it read the
// element that it was passed to its end.
func walk(d *xml.Decoder, f func(t xml.Token, depth int) (read bool, err error)) error {
	for depth := 1; depth > 0; {
		t, err := d.Token()
		if err != nil {
			return wrong(d, err)
		}
		read, err := f(t, depth)
		if err != nil {
			return err
		}
		switch t.(type) {
		case xml.StartElement:
			if read {
				continue
			}
			if depth++; depth > maxDepth {
				return fmt.Errorf("its elements are more than %d deep", maxDepth)
			}
		case xml.EndElement:
			depth--
		}
	}
	return nil
}

// testcase reads one test to its end. A test that both failed and had an error, such as one whose cleanup fails, counts once.
func (r *reader) testcase(d *xml.Decoder, start xml.StartElement) error {
	if r.sum.Tests++; r.sum.Tests > maxCases {
		return fmt.Errorf("it has more than %d tests", maxCases)
	}
	r.sum.Duration += took(attribute(start, "time"))
	failed, errored, skipped, message := false, false, false, ""
	err := walk(d, func(t xml.Token, depth int) (read bool, err error) {
		e, ok := t.(xml.StartElement)
		if !ok || depth > 1 {
			return false, nil
		}
		failed = failed || e.Name.Local == "failure"
		errored = errored || e.Name.Local == "error"
		skipped = skipped || e.Name.Local == "skipped"
		if bad := e.Name.Local == "failure" || e.Name.Local == "error"; bad && message == "" && r.room > 0 {
			message, err = r.message(d, e)
			return true, err
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	switch {
	case failed:
		r.sum.Failed++
	case errored:
		r.sum.Errors++
	case skipped:
		r.sum.Skipped++
	}
	if (failed || errored) && r.room > 0 {
		r.room--
		r.sum.Failures = append(r.sum.Failures, Case{Class: short(r.show(attribute(start, "classname")), maxName), Name: short(r.show(attribute(start, "name")), maxName), Message: message})
	}
	return nil
}

// message returns the message of an element failure or error, reading it to its end: its attribute, or otherwise its text.
func (r *reader) message(d *xml.Decoder, start xml.StartElement) (string, error) {
	var text strings.Builder
	if err := walk(d, func(t xml.Token, _ int) (bool, error) {
		if t, ok := t.(xml.CharData); ok {
			text.Write(t)
		}
		return false, nil
	}); err != nil {
		return "", err
	}
	if m := attribute(start, "message"); strings.TrimSpace(m) != "" {
		return short(r.show(m), maxMessage), nil
	}
	return short(r.show(text.String()), maxMessage), nil
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// took reads seconds, which some runners write with thousands separators; what cannot be a duration is 0.
func took(text string) time.Duration {
	s, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	if err != nil || math.IsNaN(s) || s < 0 || s > 86400 {
		return 0
	}
	return time.Duration(s * float64(time.Second))
}

// short returns a text on one line, its white space collapsed, cut to max characters and an ellipsis.
func short(text string, max int) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "�")), " ")
	n := 0
	for i := range text {
		if n == max {
			return text[:i] + "…"
		}
		n++
	}
	return text
}
