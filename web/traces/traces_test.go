package traces

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"corpus-git/internal/event"
	"corpus-git/project"
	"corpus-git/project/config"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

func logOf(list ...event.Event) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for _, e := range list {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// failing is a deployment whose second step failed, and that was rolled back.
func failing() (project.Record, iter.Seq2[event.Event, error]) {
	rec := project.Record{State: project.RolledBack, Result: &project.Result{State: project.RolledBack, Reason: "failed in \x1b[31m200_break", Started: at(2), Ended: at(20)}}
	rec.ID, rec.Project, rec.Trigger, rec.At, rec.Code, rec.Pusher.Key = "0198c2f4-1111-7222-8333-444455556666", "app", project.TriggerPush, at(0), "c1", "marie"
	return rec, logOf(
		event.Event{Time: at(2), Kind: event.Head},
		event.Event{Time: at(3), Kind: event.ProcedureStart, Procedure: "archive"},
		event.Event{Time: at(5), Kind: event.ProcedureDone, Procedure: "archive", Status: event.OK},
		event.Event{Time: at(6), Kind: event.ProcedureStart, Procedure: "install"},
		event.Event{Time: at(6), Kind: event.ProcedureStart, Procedure: "install", Of: 2, Text: "2 steps"},
		event.Event{Time: at(6), Kind: event.StepStart, Procedure: "install", Step: "100_build", N: 1, Of: 2},
		event.Event{Time: at(7), Kind: event.Output, Procedure: "install", Step: "100_build", Text: "line"},
		event.Event{Time: at(9), Kind: event.StepDone, Procedure: "install", Step: "100_build", N: 1, Of: 2, Changed: 3},
		event.Event{Time: at(9), Kind: event.StepStart, Procedure: "install", Step: "200_break", N: 2, Of: 2},
		event.Event{Time: at(12), Kind: event.Failure, Procedure: "install", Step: "200_break", Text: "2/2 200_break  failed after 3s"},
		event.Event{Time: at(13), Kind: event.ProcedureStart, Procedure: "rollback"},
		event.Event{Time: at(15), Kind: event.ProcedureDone, Procedure: "rollback", Status: event.OK},
		event.Event{Time: at(16), Kind: event.ProcedureStart, Procedure: "install"},
		event.Event{Time: at(16), Kind: event.ProcedureStart, Procedure: "install", Of: 2, Text: "2 steps"},
		event.Event{Time: at(16), Kind: event.StepStart, Procedure: "install", Step: "100_build", N: 1, Of: 1},
		event.Event{Time: at(19), Kind: event.StepDone, Procedure: "install", Step: "100_build", N: 1, Of: 1},
		event.Event{Time: at(20), Kind: event.ProcedureDone, Procedure: "install", Status: event.OK},
	)
}

// A deployment becomes one trace: the whole, the wait, a span for each procedure and step, in which those that failed say so.
func TestSpans(t *testing.T) {
	spans := spansOf(failing())
	type row struct {
		name, parent string
		from, to     int
		failed       bool
	}
	names := map[string]string{"": ""}
	for _, s := range spans {
		require.NotContains(t, names, s.ID, "%s has the ID of another span", s.Name)
		names[s.ID] = s.Name
	}
	var got []row
	for _, s := range spans {
		got = append(got, row{s.Name, names[s.Parent], int(s.Begun.Sub(noon).Seconds()), int(s.Ended.Sub(noon).Seconds()), s.Failed})
	}
	require.Equal(t, []row{
		{"push app", "", 0, 20, true},
		{"wait", "push app", 0, 2, false},
		{"archive", "push app", 3, 5, false},
		{"100_build", "install", 6, 9, false},
		{"200_break", "install", 9, 12, true},
		{"install", "push app", 6, 13, true},
		{"rollback", "push app", 13, 15, false},
		{"100_build", "install", 16, 19, false},
		{"install", "push app", 16, 20, false},
	}, got)
	for _, s := range spans {
		require.Contains(t, s.Attributes, attribute{Key: "corpus.deployment", Text: "0198c2f4-1111-7222-8333-444455556666"}, s.Name)
	}
	require.Equal(t, "2/2 200_break  failed after 3s", spans[4].Message)
	require.Equal(t, spans, spansOf(failing()), "what is sent twice is the same")
	require.NotContains(t, spans[0].Message, "\x1b")
}

// A log that ends early, that cannot be read, or whose clock went back leaves no span open, and none of a negative length.
func TestSpansOfADamagedLog(t *testing.T) {
	rec, _ := failing()
	require.Nil(t, spansOf(project.Record{}, logOf()))
	bad := func(yield func(event.Event, error) bool) { yield(event.Event{}, errors.New("gone")) }
	require.Len(t, spansOf(rec, bad), 2)
	rec.Result.Ended = at(-5)
	spans := spansOf(rec, logOf(
		event.Event{Time: at(9), Kind: event.StepStart, Procedure: "install", Step: "100_build"},
		event.Event{Time: at(10), Kind: event.StepDone, Procedure: "install", Step: "another"},
		event.Event{Time: at(11), Kind: event.ProcedureDone, Procedure: "install"},
		event.Event{Time: at(12), Kind: event.ProcedureStart, Procedure: "sync"},
		event.Event{Time: at(3), Kind: event.StepStart, Procedure: "sync", Step: "x"},
	))
	require.Len(t, spans, 5)
	for _, s := range spans {
		require.False(t, s.Ended.Before(s.Begun), s.Name)
		require.Len(t, s.ID, 16)
	}
	require.Equal(t, "0198c2f4111172228333444455556666", traceID(rec.ID))
	require.Len(t, traceID("short"), 32)
}

// parse reads a request with OpenTelemetry's own description of it, which says base64 where OTLP has hexadecimal digits.
func parse(t *testing.T, body []byte) *tracepb.TracesData {
	t.Helper()
	text := string(body)
	for _, key := range []string{"traceId", "spanId", "parentSpanId"} {
		parts := strings.Split(text, `"`+key+`":"`)
		for i, p := range parts[1:] {
			id, rest, _ := strings.Cut(p, `"`)
			b, err := hex.DecodeString(id)
			require.NoError(t, err)
			parts[i+1] = base64.StdEncoding.EncodeToString(b) + `"` + rest
		}
		text = strings.Join(parts, `"`+key+`":"`)
	}
	var out tracepb.TracesData
	require.NoError(t, protojson.Unmarshal([]byte(text), &out), text)
	return &out
}

// collector takes what is sent, and answers as it is told.
type collector struct {
	*httptest.Server
	bodies  chan []byte
	answers chan int
	headers chan http.Header
}

func newCollector(t *testing.T, answers ...int) *collector {
	c := &collector{bodies: make(chan []byte, 10), headers: make(chan http.Header, 10), answers: make(chan int, 10)}
	for _, a := range answers {
		c.answers <- a
	}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/v1/traces" || r.Method != http.MethodPost {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		c.bodies <- body
		c.headers <- r.Header
		select {
		case status := <-c.answers:
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(status)
		default:
			_, _ = io.WriteString(w, "{}")
		}
	}))
	t.Cleanup(c.Close)
	return c
}

func exporter(c *collector, pauses *[]time.Duration) *Exporter {
	_, events := failing()
	return New(Config{
		Settings: func() config.Traces {
			return config.Traces{Endpoint: c.URL, Headers: "authorization=Bearer x, x-scope = ops", Timeout: time.Minute}
		},
		Events: func(project.Name, project.ID) iter.Seq2[event.Event, error] { return events }, Host: "host.example", Release: "1.2.3", Log: zerolog.Nop(),
		Pause: func(_ context.Context, d time.Duration) { *pauses = append(*pauses, d) },
	})
}

// What is sent is what OpenTelemetry's description of it has; a collector that is busy is asked again, when it says.
func TestExport(t *testing.T) {
	c := newCollector(t, http.StatusServiceUnavailable, http.StatusTooManyRequests)
	var pauses []time.Duration
	x := exporter(c, &pauses)
	rec, _ := failing()
	require.NoError(t, x.export(t.Context(), rec))
	require.Equal(t, []time.Duration{7 * time.Second, 7 * time.Second}, pauses)
	require.Len(t, c.bodies, 3)
	body := <-c.bodies
	h := <-c.headers
	require.Equal(t, []string{"application/json", "Bearer x", "ops"}, []string{h.Get("Content-Type"), h.Get("Authorization"), h.Get("X-Scope")})
	got := parse(t, body)
	spans := got.ResourceSpans[0].ScopeSpans[0].Spans
	require.Len(t, spans, 9)
	require.Equal(t, "0198c2f4111172228333444455556666", hex.EncodeToString(spans[0].TraceId))
	require.Empty(t, spans[0].ParentSpanId)
	require.Equal(t, tracepb.Span_SPAN_KIND_SERVER, spans[0].Kind)
	require.Equal(t, tracepb.Status_STATUS_CODE_ERROR, spans[0].Status.Code)
	require.Equal(t, tracepb.Status_STATUS_CODE_OK, spans[2].Status.Code)
	require.Equal(t, uint64(at(3).UnixNano()), spans[2].StartTimeUnixNano)
	numbers := map[string]int64{}
	for _, a := range spans[3].Attributes {
		numbers[a.Key] = a.Value.GetIntValue()
	}
	require.Equal(t, int64(3), numbers["corpus.step.changed"])
	require.Equal(t, "corpus-git", got.ResourceSpans[0].Resource.Attributes[0].Value.GetStringValue())
}

// What a collector refuses is not sent again; one that stays busy is given up.
func TestExportGivesUp(t *testing.T) {
	rec, _ := failing()
	for _, given := range []struct {
		answers []int
		want    int
	}{{[]int{400}, 1}, {[]int{503, 503, 503, 503, 503}, attempts}, {[]int{302}, 1}} {
		c := newCollector(t, given.answers...)
		var pauses []time.Duration
		require.ErrorContains(t, exporter(c, &pauses).export(t.Context(), rec), "answered")
		require.Len(t, c.bodies, given.want)
	}
}

// Without a collector nothing is queued; a full queue drops and never waits; what is queued at the end is still sent.
func TestQueue(t *testing.T) {
	c := newCollector(t)
	var pauses []time.Duration
	x := exporter(c, &pauses)
	rec, _ := failing()
	set := x.Settings
	x.Settings = func() config.Traces { return config.Traces{} }
	x.Ended(rec)
	require.Empty(t, x.queue)
	x.Settings = set
	x.Ended(rec)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	x.Run(ctx)
	require.Len(t, c.bodies, 1)
	for range waiting + 1 {
		x.Ended(rec)
	}
	require.Len(t, x.queue, waiting)
}
