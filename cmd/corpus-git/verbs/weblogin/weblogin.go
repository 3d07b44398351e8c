// Package weblogin is the verb that logs a browser in to the pages.
//
// It owns its words and output. It decides who may have such a link, and keeps nothing.
package weblogin

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"corpus-git/access"
	"corpus-git/cmd/corpus-git/verbs/nodes"
	"corpus-git/internal/audit"
	"corpus-git/internal/fault"
)

// Session is one run of the verb.
type Session struct {
	nodes.Session
	// Link makes a link that logs a browser in as who, once; nil if no server is running.
	Link func(ctx context.Context, who access.Identity) (string, error)
}

// Command returns the verb web.
func Command(s Session) *cobra.Command {
	return s.Group("web", "Log in to the web pages", login(s))
}

func login(s Session) *cobra.Command {
	return &cobra.Command{
		Use: "login", Short: "Print a link that logs a browser in",
		Long: "The link is valid for one login within five minutes; the session lasts twelve hours and has your permissions.\n" +
			"For programs, create an API token:  corpus-git token create NAME",
		Args: s.Exactly(),
		RunE: func(*cobra.Command, []string) error {
			// A token or a session starts none: one that was stolen would outlive itself.
			if f := s.Caller.Fingerprint; s.Caller.Name == "" || f == "session" || strings.HasPrefix(f, "token:") {
				return s.Audited(audit.Entry{Action: "web login"}, fault.New(fault.Refused, "web login", "only SSH keys, certificates and local users can start a session"))
			}
			if s.Link == nil {
				return fault.New(fault.Refused, "web login", "no server is running").WithHint("start it:  corpus-git serve --http-listen 127.0.0.1:8080")
			}
			link, err := s.Link(s.Context, s.Caller)
			if err := s.Audited(audit.Entry{Action: "web login"}, err); err != nil {
				return err
			}
			p := s.Printer()
			p.Line("%s", link)
			return p.Err()
		},
	}
}
