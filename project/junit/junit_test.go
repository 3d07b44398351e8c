package junit_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"corpus-git/project/junit"
)

func same(s string) string { return s }

func TestReports(t *testing.T) {
	for name, c := range map[string]struct {
		src  string
		want junit.Summary
	}{
		"pytest": {`<?xml version="1.0" encoding="utf-8"?><testsuites><testsuite name="pytest" errors="1" failures="1" skipped="1" tests="4" time="0.05">
			<testcase classname="test_a" name="test_ok" time="0.5"/><testcase classname="test_a" name="test_bad" time="0.25"><failure message="assert 1 == 2">def test_bad():&#10;long</failure></testcase>
			<testcase classname="test_a" name="test_skip"><skipped type="pytest.skip" message="later">x</skipped></testcase>
			<testcase classname="test_a" name="test_err"><error message="failed on setup">E</error></testcase></testsuite></testsuites>`,
			junit.Summary{Files: 1, Tests: 4, Failed: 1, Errors: 1, Skipped: 1, Duration: 750 * time.Millisecond, Failures: []junit.Case{{Class: "test_a", Name: "test_bad", Message: "assert 1 == 2"}, {Class: "test_a", Name: "test_err", Message: "failed on setup"}}}},
		"suites in suites, text in place of a message": {`<testsuite><properties><property name="a" value="b"/></properties><testsuite><testcase name="a" time="1,000.5"><failure><![CDATA[ one
			two <b> ]]></failure><system-out>failure</system-out></testcase></testsuite></testsuite>`,
			junit.Summary{Files: 1, Tests: 1, Failed: 1, Duration: 1000500 * time.Millisecond, Failures: []junit.Case{{Name: "a", Message: "one two <b>"}}}},
		"failed, and an error while cleaning up": {`<testsuite><testcase name="a"><failure message="x"/><error message="y"/></testcase></testsuite>`,
			junit.Summary{Files: 1, Tests: 1, Failed: 1, Failures: []junit.Case{{Name: "a", Message: "x"}}}},
		"times that cannot be":               {`<testsuite><testcase name="a" time="NaN"/><testcase name="b" time="-1"/><testcase name="c" time="1e300"/><testcase name="d" time="soon"/></testsuite>`, junit.Summary{Files: 1, Tests: 4}},
		"empty":                              {`<testsuites/>`, junit.Summary{Files: 1}},
		"figures of suites are not believed": {`<testsuites tests="99" failures="99"><testcase name="a"/></testsuites>`, junit.Summary{Files: 1, Tests: 1}},
		"output that looks like a test":      {`<testsuite><testcase name="a"><system-out>&lt;failure/&gt;</system-out></testcase></testsuite>`, junit.Summary{Files: 1, Tests: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var got junit.Summary
			require.NoError(t, got.Add("a.xml", []byte(c.src), same))
			require.Equal(t, c.want, got)
		})
	}
}

func TestWhatIsNoReport(t *testing.T) {
	for src, want := range map[string]string{
		"":                                    "no element",
		"hello":                               "no element",
		"<html/>":                             "begins with <html>",
		"<testsuite>\n<testcase></testsuite>": "line 2",
		"<testsuite>":                         "unexpected EOF",
		"<testsuite/><testsuite/>":            "begins with",
		`<?xml version="1.0" encoding="latin1"?><testsuite/>`:                           "encoding",
		`<!DOCTYPE a [<!ENTITY b "bbb">]><testsuite><testcase name="&b;"/></testsuite>`: "entity",
		"<testsuite>" + strings.Repeat("<a>", 40):                                       "deep",
		"<testsuite><testcase>" + strings.Repeat("<a>", 40):                             "deep",
		"<testsuite><testcase><failure>" + strings.Repeat("<a>", 40):                    "deep",
		"<testsuite>" + strings.Repeat("<testcase/>", 100_001) + "</testsuite>":         "more than 100000 tests",
		"<testsuite>" + strings.Repeat(" ", junit.MaxBytes) + "</testsuite>":            "more than 4 MiB",
	} {
		var s junit.Summary
		err := s.Add("a.xml", []byte(src), same)
		require.ErrorContains(t, err, want, "%.80s", src)
		require.Equal(t, []string{"a.xml: " + err.Error()}, s.Problems)
		require.Zero(t, s.Tests)
	}
}

// A secret is hidden before a text is cut: no part of it remains.
func TestSecretsAreHiddenBeforeTextsAreCut(t *testing.T) {
	secret := strings.Repeat("s3cret", 10)
	hide := func(s string) string { return strings.ReplaceAll(s, secret, "[hidden]") }
	var s junit.Summary
	require.NoError(t, s.Add("a.xml", []byte(`<testsuite><testcase name="`+strings.Repeat("x", 190)+secret+`" classname="`+secret+`"><failure message="`+strings.Repeat("x", 490)+secret+`"/></testcase></testsuite>`), hide))
	text, err := json.Marshal(s)
	require.NoError(t, err)
	require.NotContains(t, string(text), "s3cret")
	require.Contains(t, string(text), "[hidden]")
}

// However many tests fail, and however long their messages, a record stays small; the figures count all.
func TestSummariesAreBounded(t *testing.T) {
	var s junit.Summary
	one := `<testsuite>` + strings.Repeat(`<testcase name="`+strings.Repeat("é", 3000)+`"><failure>`+strings.Repeat("é", 3000)+`</failure></testcase>`, 100) + `</testsuite>`
	for range 3 {
		require.NoError(t, s.Add("a.xml", []byte(one), same))
	}
	for range 100 {
		require.Error(t, s.Add(strings.Repeat("b", 3000), nil, same))
	}
	text, err := json.Marshal(s)
	require.NoError(t, err)
	require.Equal(t, 300, s.Failed)
	require.Len(t, s.Failures, junit.MaxFailures)
	require.Less(t, len(text), 64<<10)
	require.Equal(t, "300 tests, 300 failed", s.Text())
	require.Contains(t, s.Lines(), "  and 280 more")
}

func FuzzAdd(f *testing.F) {
	f.Add([]byte(`<?xml version="1.0"?><testsuites><testsuite name="s"><testcase classname="c" name="n" time="0.1"><failure message="m">t</failure></testcase><testcase name="b"><skipped/></testcase></testsuite></testsuites>`))
	f.Add([]byte(`<testsuite><testcase name="a"><error><![CDATA[x]]></error><system-out>a</system-out></testcase></testsuite>`))
	f.Add([]byte(`<!DOCTYPE a [<!ENTITY b "c">]><testsuite>&b;</testsuite>`))
	f.Fuzz(func(t *testing.T, src []byte) {
		var s junit.Summary
		err := s.Add("a.xml", src, same)
		if (err != nil) != (len(s.Problems) == 1) || err != nil && s.Tests != 0 {
			t.Fatalf("%v, and %+v", err, s)
		}
		if s.Passed() < 0 || s.Duration < 0 || len(s.Failures) > s.Bad() || len(s.Failures) > junit.MaxFailures {
			t.Fatalf("figures that cannot be: %+v", s)
		}
		for _, l := range s.Lines() {
			if !utf8.ValidString(l) || strings.Contains(l, "\n") {
				t.Fatalf("not a line: %q", l)
			}
		}
	})
}
