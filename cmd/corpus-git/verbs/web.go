package verbs

import (
	"strings"

	"github.com/spf13/cobra"

	"corpus-git/internal/audit"
	"corpus-git/internal/fault"
)

func webCommand(s *session) *cobra.Command {
	return group(s, "web", "The server's pages", webLogin(s))
}

func webLogin(s *session) *cobra.Command {
	return &cobra.Command{
		Use: "login", Short: "Print a link that logs a browser in to the pages",
		Long: "The link is good for one login within five minutes; the session lasts twelve hours and has your rights.\n" +
			"Programs send an API token instead:  corpus-git token create NAME",
		Args: exactly(),
		RunE: func(*cobra.Command, []string) error {
			// A token or a session starts none: one that was stolen would outlive itself.
			if f := s.who.Fingerprint; s.who.Name == "" || f == "session" || strings.HasPrefix(f, "token:") {
				return s.audited(audit.Entry{Action: "web login"}, fault.New(fault.Refused, "web login", "only a key, a certificate or a user of the server's machine, starts a session"))
			}
			if s.b.WebLogin == nil {
				return fault.New(fault.Refused, "web login", "no server runs").WithHint("start it:  corpus-git serve --http-listen 127.0.0.1:8080")
			}
			link, err := s.b.WebLogin(s.ctx, s.who.Identity)
			if err := s.audited(audit.Entry{Action: "web login"}, err); err != nil {
				return err
			}
			p := s.printer()
			p.line("%s", link)
			return p.err
		},
	}
}
