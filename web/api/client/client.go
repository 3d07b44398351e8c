// Package client is a client for the HTTP API of a corpus-git server. Types and methods are generated from the API's OpenAPI document.
//
// A Client is safe for concurrent use. Unsuccessful responses are returned as *Problem errors.
package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
)

// maxAnswer is the maximum size of a response.
const maxAnswer = 256 << 20

// Client is a server and the credentials for it.
type Client struct {
	// URL is the server's, such as https://deploy.example; the API is below it.
	URL string
	// Token is an API token; "" sends none.
	Token string
	// HTTP is http.DefaultClient where nil.
	HTTP *http.Client
}

// Option changes one request.
type Option func(r *http.Request, answer *http.Header) *http.Header

// Query adds a parameter to the URL.
func Query(name, value string) Option {
	return func(r *http.Request, h *http.Header) *http.Header {
		q := r.URL.Query()
		q.Add(name, value)
		r.URL.RawQuery = q.Encode()
		return h
	}
}

// Header sets a field of the request, such as If-Match or Idempotency-Key.
func Header(name, value string) Option {
	return func(r *http.Request, h *http.Header) *http.Header { r.Header.Set(name, value); return h }
}

// Into stores the header of the response, such as ETag, Link and Location.
func Into(h *http.Header) Option {
	return func(*http.Request, *http.Header) *http.Header { return h }
}

// Error implements error.
func (p *Problem) Error() string {
	text := p.Detail
	for _, e := range p.Errors {
		text += "; " + e.Location + ": " + e.Message
	}
	if p.Hint != "" {
		text += " (" + p.Hint + ")"
	}
	return strconv.FormatInt(p.Status, 10) + " " + text
}

func (c *Client) send(ctx context.Context, method, path string, body any, options []Option) (*http.Response, error) {
	var in io.Reader
	if body != nil && !reflect.ValueOf(body).IsNil() {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		in = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.URL, "/")+"/api/v1"+path, in)
	if err != nil {
		return nil, err
	}
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.Token != "" {
		r.Header.Set("Authorization", "Bearer "+c.Token)
	}
	var answer *http.Header
	for _, o := range options {
		answer = o(r, answer)
	}
	h := c.HTTP
	if h == nil {
		h = http.DefaultClient
	}
	res, err := h.Do(r)
	if err != nil {
		return nil, err
	}
	if answer != nil {
		*answer = res.Header
	}
	if res.StatusCode < 300 {
		return res, nil
	}
	defer res.Body.Close()
	p := &Problem{}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(p); err != nil || p.Status == 0 {
		return nil, fmt.Errorf("%s %s: %s", method, path, res.Status)
	}
	return nil, p
}

func (c *Client) do(ctx context.Context, method, path string, body, out any, options []Option) error {
	res, err := c.send(ctx, method, path, body, options)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	return json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(out)
}

// Export writes an archive, a tar in zstd, to w. After an error what was written is not whole.
func (c *Client) Export(ctx context.Context, project, archive string, w io.Writer) error {
	res, err := c.send(ctx, http.MethodGet, "/projects/"+url.PathEscape(project)+"/archives/"+url.PathEscape(archive)+"/export", nil, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(w, res.Body)
	return err
}

// Follow calls each for the events of a deployment after seq as they arrive, until its end or until each returns false.
func (c *Client) Follow(ctx context.Context, project, id string, seq uint64, each func(Event) bool) error {
	res, err := c.send(ctx, http.MethodGet, "/projects/"+url.PathEscape(project)+"/deployments/"+url.PathEscape(id)+"/events", nil, []Option{Query("after", strconv.FormatUint(seq, 10))})
	if err != nil {
		return err
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		var e Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return err
		}
		if !each(e) {
			return nil
		}
	}
	return lines.Err()
}
