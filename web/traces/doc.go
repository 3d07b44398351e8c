// Package traces sends deployments that have ended to a collector of OpenTelemetry: a trace for each, with a span for the wait in the queue, for each
// procedure and for each step, over OTLP/HTTP in its JSON form.
//
// It owns a queue in memory of what is to be sent, and changes nothing. Spans are made from the record and the event log of a deployment after its end, so
// nothing of a deployment waits for a collector, and what is sent was redacted when it was written. IDs are made from that of the deployment: what is sent
// twice is the same trace.
//
// What a collector does not take is logged and dropped, and so is what a crash leaves in the queue. An Exporter is safe for concurrent use.
package traces
