package checks

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"corpus-git/internal/quantity"
	"corpus-git/internal/vfs"
	"corpus-git/project"
)

// askHTTP sends one request. The answer is the status line and the body, which is read up to maxAnswer.
func (r Runner) askHTTP(ctx context.Context, c project.Check) ([]byte, error) {
	h := c.HTTP
	var body io.Reader
	if h.Body != "" {
		body = strings.NewReader(h.Body)
	}
	req, err := http.NewRequestWithContext(ctx, h.Method, c.Target, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "corpus-git check")
	for _, l := range h.Headers {
		req.Header.Set(l.Name, l.Value)
		if l.Name == "Host" {
			req.Host = l.Value
		}
	}
	if c.TLSName != "" {
		req.Host = c.TLSName
	}
	cfg, err := tlsConfig(c)
	if err != nil {
		return nil, err
	}
	target := req.URL.Host
	transport := &http.Transport{TLSClientConfig: cfg, DisableKeepAlives: true, ForceAttemptHTTP2: true,
		MaxResponseHeaderBytes: 64 << 10,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			var d net.Dialer
			if h.Socket != "" {
				return d.DialContext(ctx, "unix", h.Socket)
			}
			return d.DialContext(ctx, network, resolved(h.Resolve, target, addr))
		}}
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport, CheckRedirect: onlyTo(h, req.URL)}
	if !h.Follow {
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	answer := append([]byte(resp.Proto+" "+resp.Status+"\n"), content...)
	switch wrong := r.compareStatus(h, resp); {
	case wrong != nil:
		return answer, wrong
	case ctx.Err() == context.DeadlineExceeded:
		return answer, wrongf("status %s, and the body did not end within %s", resp.Status, quantity.FormatDuration(c.Timeout))
	case err != nil:
		return answer, err
	}
	return answer, r.compareContent(h, content)
}

// maxRedirects is how many redirects are followed.
const maxRedirects = 10

// onlyTo follows redirects, and sends headers and bodies only to the server that the check names, because they may contain secrets. net/http
// itself drops only well-known headers.
func onlyTo(h project.HTTPCheck, first *url.URL) func(*http.Request, []*http.Request) error {
	return func(next *http.Request, via []*http.Request) error {
		if len(via) >= maxRedirects {
			return fmt.Errorf("more than %d redirects", maxRedirects)
		}
		if next.URL.Scheme == first.Scheme && next.URL.Host == first.Host {
			return nil
		}
		if next.Body != nil && next.Body != http.NoBody {
			return fmt.Errorf("redirected to %s, which does not get the body of the check", next.URL.Host)
		}
		for _, l := range h.Headers {
			next.Header.Del(l.Name)
		}
		return nil
	}
}

// compareStatus compares the status of an answer with the expected ones.
func (r Runner) compareStatus(h project.HTTPCheck, resp *http.Response) error {
	good := false
	for _, s := range h.Status {
		good = good || resp.StatusCode >= s.First && resp.StatusCode <= s.Last
	}
	if !good {
		to := ""
		if l := resp.Header.Get("Location"); l != "" {
			to = " to " + l
		}
		return wrongf("status %s%s, wanted %s", resp.Status, to, wantedStatus(h.Status))
	}
	return nil
}

// compareContent compares the body of an answer with the expected one.
func (r Runner) compareContent(h project.HTTPCheck, content []byte) error {
	if h.Contains != "" && !bytes.Contains(content, []byte(h.Contains)) {
		return wrongf("the body does not contain %s", strconv.Quote(h.Contains))
	}
	if len(h.JSON) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	var doc any
	if err := d.Decode(&doc); err != nil {
		return wrongf("the body is not JSON: %v", err)
	}
	for _, j := range h.JSON {
		if err := r.judgeJSON(doc, j); err != nil {
			return err
		}
	}
	return nil
}

func wantedStatus(ranges []project.StatusRange) string {
	var out []string
	for _, r := range ranges {
		switch {
		case r.First == r.Last:
			out = append(out, strconv.Itoa(r.First))
		case r.First%100 == 0 && r.Last == r.First+99:
			out = append(out, strconv.Itoa(r.First/100)+"xx")
		default:
			out = append(out, fmt.Sprintf("%d-%d", r.First, r.Last))
		}
	}
	return strings.Join(out, ", ")
}

// judgeJSON compares the value at a path with the expected one. Numbers are compared by value: 1 and 1.0 are equal.
func (r Runner) judgeJSON(doc any, want project.JSONValue) error {
	got, ok := lookUp(doc, want.Path)
	if !ok {
		return wrongf("%s is not in the body, wanted %s", want.Path, want.Value)
	}
	text, err := json.Marshal(got)
	if err != nil {
		return err
	}
	if string(text) == want.Value {
		return nil
	}
	if n, ok := got.(json.Number); ok {
		a, err := n.Float64()
		b, err2 := strconv.ParseFloat(want.Value, 64)
		if err == nil && err2 == nil && a == b {
			return nil
		}
	}
	return wrongf("%s is %.100s, wanted %s", want.Path, r.hidden(string(text)), want.Value)
}

// lookUp follows a path such as db.state or items[0].name.
func lookUp(doc any, path string) (any, bool) {
	for path != "" {
		if rest, ok := strings.CutPrefix(path, "["); ok {
			num, after, _ := strings.Cut(rest, "]")
			n, err := strconv.Atoi(num)
			list, ok := doc.([]any)
			if err != nil || !ok || n >= len(list) {
				return nil, false
			}
			doc, path = list[n], strings.TrimPrefix(after, ".")
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		m, ok := doc.(map[string]any)
		if !ok {
			return nil, false
		}
		if doc, ok = m[path[:end]]; !ok {
			return nil, false
		}
		path = strings.TrimPrefix(path[end:], ".")
	}
	return doc, true
}

// resolved returns the address to connect to: that of resolve for the host of the URL, and addr for hosts that redirects lead to.
func resolved(resolve, target, addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if resolve == "" || err != nil || host != (&url.URL{Host: target}).Hostname() {
		return addr
	}
	if h, p, err := net.SplitHostPort(resolve); err == nil {
		return net.JoinHostPort(h, p)
	}
	return net.JoinHostPort(strings.Trim(resolve, "[]"), port)
}

// tlsConfig returns how certificates are verified; with neither name nor CA, as the system does.
func tlsConfig(c project.Check) (*tls.Config, error) {
	cfg := &tls.Config{ServerName: c.TLSName, MinVersion: tls.VersionTLS12}
	if c.CA == "" {
		return cfg, nil
	}
	// The project's user may have replaced it by a fifo, which must not block.
	pem, err := vfs.ReadFollowed(c.CA, maxAnswer)
	if err != nil {
		return nil, err
	}
	cfg.RootCAs = x509.NewCertPool()
	if !cfg.RootCAs.AppendCertsFromPEM(pem) {
		return nil, wrongf("%s has no certificate in PEM", c.CA)
	}
	return cfg, nil
}
