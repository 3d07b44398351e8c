package hooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"corpus-git/internal/printable"
	"corpus-git/project"
)

// Webhook posts the verdict of deployments to a web address.
type Webhook struct {
	// URL is http or https. It may hold a token, so it appears in no message but by its host.
	URL project.Secret
	// Client is the HTTP client; nil means one that gives up after ten seconds and follows no redirect.
	Client *http.Client
}

// Notification is the posted document, version 1.
type Notification struct {
	Version int `json:"version"`
	// Event is Result.Event, or that of Check.
	Event string `json:"event"`
	// Deployment is the one that ended; with Check the one that brought what is live.
	Deployment project.Deployment `json:"deployment"`
	Result     project.Result     `json:"result"`
	// Check is a check that runs periodically, and fails now or succeeds again.
	Check *project.CheckPeriod `json:"check,omitempty"`
}

// Post sends n once. An answer of 300 or more is an error. Nothing is tried again: the event log has it all.
func (w Webhook) Post(ctx context.Context, n Notification) error {
	host := "?"
	if u, err := url.Parse(string(w.URL)); err == nil {
		host = u.Host
	}
	n.Version, n.Event = 1, n.Result.Event()
	if n.Check != nil {
		n.Event = n.Check.Event()
	}
	body, err := json.Marshal(n)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, string(w.URL), bytes.NewReader(printable.JSON(body)))
	if err != nil {
		return errors.New("notify: the address is not a URL")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "corpus-git")
	c := w.Client
	if c == nil {
		c = &http.Client{
			Timeout:       10 * time.Second,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	res, err := c.Do(req)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err // the outer error prints the address
		}
		return fmt.Errorf("notify %s: %w", host, err)
	}
	_ = res.Body.Close()
	if res.StatusCode >= 300 {
		return fmt.Errorf("notify %s: answered %s", host, res.Status)
	}
	return nil
}
