package traces

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"corpus-git/internal/event"
	"corpus-git/project"
	"corpus-git/project/config"
)

const (
	// waiting is how many deployments wait at most until they are sent; further ones are dropped.
	waiting = 1000
	// attempts is how often one is sent, firstPause the pause after the first attempt, which doubles.
	attempts   = 4
	firstPause = time.Second
	// maxPause bounds what a collector may ask for with Retry-After.
	maxPause = 30 * time.Second
	// lastPause is how long a server that stops still sends.
	lastPause = 3 * time.Second
	// maxAnswer is how many bytes of an answer are read.
	maxAnswer = 64 << 10
)

// Config is what an Exporter works with.
type Config struct {
	// Settings are those of the configuration now.
	Settings func() config.Traces
	// Events reads the log of a deployment that has ended.
	Events func(name project.Name, id project.ID) iter.Seq2[event.Event, error]
	// Host is this machine's name, Release the version of the program.
	Host, Release string
	Log           zerolog.Logger
	// Pause waits between two attempts; nil waits as long.
	Pause func(ctx context.Context, d time.Duration)
}

// Exporter sends traces.
type Exporter struct {
	Config
	queue chan project.Record
}

// New makes an exporter. Nothing is sent before Run.
func New(c Config) *Exporter {
	if c.Pause == nil {
		c.Pause = func(ctx context.Context, d time.Duration) {
			select {
			case <-ctx.Done():
			case <-time.After(d):
			}
		}
	}
	return &Exporter{Config: c, queue: make(chan project.Record, waiting)}
}

// Ended queues a deployment that has ended, where the configuration names a collector. It never waits.
func (x *Exporter) Ended(rec project.Record) {
	if x.Settings().Endpoint == "" {
		return
	}
	select {
	case x.queue <- rec:
	default:
		x.Log.Warn().Str("deployment", string(rec.ID)).Msg("trace dropped: too many wait for the collector")
	}
}

// Run sends what is queued, one after another, until ctx ends; then it sends what is left, for a short time.
func (x *Exporter) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			x.drain(ctx)
			return
		case rec := <-x.queue:
			err := x.export(ctx, rec)
			if err != nil && ctx.Err() != nil { // interrupted
				x.drain(ctx, rec)
				return
			}
			x.report(rec, err)
		}
	}
}

// drain sends some deployments, and what is in the queue.
func (x *Exporter) drain(ctx context.Context, first ...project.Record) {
	ctx, stop := context.WithTimeoutCause(context.WithoutCancel(ctx), lastPause, errors.New("the server stops"))
	defer stop()
	for _, rec := range first {
		x.report(rec, x.export(ctx, rec))
	}
	for ctx.Err() == nil {
		select {
		case rec := <-x.queue:
			x.report(rec, x.export(ctx, rec))
		default:
			return
		}
	}
}

func (x *Exporter) report(rec project.Record, err error) {
	if err != nil {
		x.Log.Warn().Err(err).Str("deployment", string(rec.ID)).Msg("trace not sent")
	}
}

// export sends one deployment, a few times where the collector says, or seems, to be busy.
func (x *Exporter) export(ctx context.Context, rec project.Record) error {
	set := x.Settings()
	spans := spansOf(rec, x.Events(rec.Project, rec.ID))
	if set.Endpoint == "" || len(spans) == 0 {
		return nil
	}
	body, err := encode(traceID(rec.ID), []attribute{
		{Key: "service.name", Text: "corpus-git"}, {Key: "service.version", Text: x.Release}, {Key: "host.name", Text: x.Host},
	}, x.Release, spans)
	if err != nil {
		return err
	}
	pause := firstPause
	for n := 1; ; n++ {
		wait, again, err := x.post(ctx, set, body)
		if err == nil || !again || n == attempts || ctx.Err() != nil {
			return err
		}
		x.Pause(ctx, max(wait, pause))
		pause *= 2
	}
}

// post makes one attempt. again: another one may help; wait is what the collector asks for before it.
// Source: OpenTelemetry Protocol Specification, "OTLP/HTTP Response".
func (x *Exporter) post(ctx context.Context, set config.Traces, body []byte) (wait time.Duration, again bool, err error) {
	ctx, stop := context.WithTimeoutCause(ctx, set.Timeout, errors.New("no answer within "+set.Timeout.String()))
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, set.Endpoint+"/v1/traces", bytes.NewReader(body))
	if err != nil {
		return 0, false, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "corpus-git/"+x.Release)
	for pair := range strings.SplitSeq(string(set.Headers), ",") {
		if key, text, ok := strings.Cut(pair, "="); ok {
			req.Header.Set(strings.TrimSpace(key), strings.TrimSpace(text))
		}
	}
	c := &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer c.CloseIdleConnections()
	res, err := c.Do(req)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return 0, true, fmt.Errorf("%s: %w", req.URL.Host, err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxAnswer))
	switch res.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again = true
	}
	if res.StatusCode >= 200 && res.StatusCode < 300 {
		return 0, false, nil
	}
	if seconds, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && seconds > 0 {
		wait = min(time.Duration(seconds)*time.Second, maxPause)
	}
	return wait, again, fmt.Errorf("%s answered %d", req.URL.Host, res.StatusCode)
}
