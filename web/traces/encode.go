package traces

import (
	"encoding/json"
	"strconv"
	"time"

	"corpus-git/internal/printable"
)

// What follows is opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest in the JSON form of OTLP: IDs are hexadecimal, enumerations numbers,
// 64-bit numbers texts. Source: OpenTelemetry Protocol Specification, "JSON Protobuf Encoding".
type request struct {
	ResourceSpans []resourceSpans `json:"resourceSpans"`
}

type resourceSpans struct {
	Resource   resource     `json:"resource"`
	ScopeSpans []scopeSpans `json:"scopeSpans"`
}

type resource struct {
	Attributes []keyValue `json:"attributes"`
}

type scopeSpans struct {
	Scope scope     `json:"scope"`
	Spans []spanDoc `json:"spans"`
}

type scope struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

type spanDoc struct {
	TraceID           string     `json:"traceId"`
	SpanID            string     `json:"spanId"`
	ParentSpanID      string     `json:"parentSpanId,omitempty"`
	Name              string     `json:"name"`
	Kind              int        `json:"kind"`
	StartTimeUnixNano string     `json:"startTimeUnixNano"`
	EndTimeUnixNano   string     `json:"endTimeUnixNano"`
	Attributes        []keyValue `json:"attributes,omitempty"`
	Status            statusDoc  `json:"status"`
}

type statusDoc struct {
	Message string `json:"message,omitempty"`
	Code    int    `json:"code,omitempty"`
}

type keyValue struct {
	Key   string `json:"key"`
	Value value  `json:"value"`
}

type value struct {
	StringValue *string `json:"stringValue,omitempty"`
	IntValue    string  `json:"intValue,omitempty"`
}

// The kinds and statuses that are used: SPAN_KIND_INTERNAL, SPAN_KIND_SERVER, STATUS_CODE_OK, STATUS_CODE_ERROR.
const (
	kindInternal, kindServer = 1, 2
	statusOK, statusError    = 1, 2
)

// encode writes the request that exports the spans of one trace.
func encode(trace string, from []attribute, release string, spans []span) ([]byte, error) {
	out := scopeSpans{Scope: scope{"corpus-git", release}}
	for _, s := range spans {
		d := spanDoc{TraceID: trace, SpanID: s.ID, ParentSpanID: s.Parent, Name: printable.Line(s.Name), Kind: kindInternal, StartTimeUnixNano: nanos(s.Begun), EndTimeUnixNano: nanos(s.Ended),
			Attributes: keyValues(s.Attributes), Status: statusDoc{Code: statusOK}}
		if s.Parent == "" {
			d.Kind = kindServer
		}
		if s.Failed {
			d.Status = statusDoc{Message: s.Message, Code: statusError}
		}
		out.Spans = append(out.Spans, d)
	}
	return json.Marshal(request{[]resourceSpans{{Resource: resource{keyValues(from)}, ScopeSpans: []scopeSpans{out}}}})
}

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

func keyValues(list []attribute) (out []keyValue) {
	for _, a := range list {
		v := value{IntValue: strconv.FormatInt(a.N, 10)}
		if !a.IsN {
			text := printable.Line(a.Text)
			v = value{StringValue: &text}
		}
		out = append(out, keyValue{a.Key, v})
	}
	return out
}
