package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"corpus-git/internal/printable"
	"corpus-git/project"
	"corpus-git/project/config"
)

// post makes one attempt over HTTP. An answer outside 200 to 299 is an error; 410 (Gone) is a permanent one.
func (w *Worker) post(ctx context.Context, s config.Sink, n project.Notification) error {
	method, address := http.MethodPost, string(s.URL)
	if s.Kind == "matrix" {
		method = http.MethodPut
		address = strings.TrimSuffix(address, "/") + "/_matrix/client/v3/rooms/" + url.PathEscape(s.Room) + "/send/m.room.message/" + url.PathEscape(n.ID)
	}
	body, err := document(s.Kind, n)
	if err != nil {
		return permanent{err}
	}
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return permanent{errors.New("the address is not a URL")}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "corpus-git")
	if s.Token != "" {
		req.Header.Set("Authorization", "Bearer "+string(s.Token))
	}
	if err := sign(req.Header, s.Secrets, n.ID, w.Outbox.now(), body); err != nil {
		return permanent{err}
	}
	c := client(s)
	defer c.CloseIdleConnections()
	res, err := c.Do(req)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err // the outer error prints the address
		}
		return fmt.Errorf("%s: %w", req.URL.Host, err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(res.Body, maxAnswer)); err != nil {
		return fmt.Errorf("%s: read the answer: %w", req.URL.Host, err)
	}
	switch {
	case res.StatusCode >= 200 && res.StatusCode < 300:
		return nil
	case res.StatusCode == http.StatusGone:
		return permanent{fmt.Errorf("%s answered %d", req.URL.Host, res.StatusCode)}
	case res.StatusCode >= 300 && res.StatusCode < 400:
		return fmt.Errorf("%s answered %d: a redirect to another host, or one that does not keep the method, is not followed", req.URL.Host, res.StatusCode)
	}
	return fmt.Errorf("%s answered %d", req.URL.Host, res.StatusCode)
}

// sign adds the headers of Standard Webhooks: each secret yields one signature, so that a receiver can rotate its secret at any
// time. Source: github.com/standard-webhooks/standard-webhooks, "Signature scheme".
func sign(h http.Header, secrets []project.Secret, id string, at time.Time, body []byte) error {
	seconds := strconv.FormatInt(at.Unix(), 10)
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", seconds)
	var all []string
	for _, s := range secrets {
		key, err := s.Key()
		if err != nil {
			return err
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + seconds + "."))
		mac.Write(body)
		all = append(all, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	if len(all) > 0 {
		h.Set("Webhook-Signature", strings.Join(all, " "))
	}
	return nil
}

// document returns the body to send to a kind of sink.
func document(kind string, n project.Notification) ([]byte, error) {
	var doc any
	switch kind {
	case "webhook":
		doc = map[string]any{"type": n.Event, "timestamp": n.At.UTC(), "data": n}
	case "slack":
		doc = map[string]any{"text": slack.Replace(plain(n))}
	case "discord":
		// Names in a push must not mention anybody. A message has at most 2,000 characters.
		doc = map[string]any{"content": printable.Shorten(discord.Replace(plain(n)), 2000), "allowed_mentions": map[string]any{"parse": []string{}}}
	case "matrix":
		doc = map[string]any{"msgtype": "m.notice", "body": plain(n)}
	case "json":
		// Verdicts have the same names everywhere.
		if v := n.Result; v != nil && n.Event == n.Verdict() {
			n.Event = v.Event()
		}
		doc = n
	default:
		doc = n
	}
	body, err := json.Marshal(doc)
	return printable.JSON(body), err
}

var (
	// Source: Slack's documentation, "Formatting text for app surfaces", escaping.
	slack = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	// The characters that format text in Discord's Markdown.
	discord = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "~", `\~`, "`", "\\`", "|", `\|`, ">", `\>`, "[", `\[`, "]", `\]`, "#", `\#`, "<", `\<`)
)

// plain returns a notification as text: its title and details.
func plain(n project.Notification) string {
	return strings.Join(append([]string{title(n)}, details(n)...), "\n")
}
