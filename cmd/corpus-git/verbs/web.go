package verbs

import (
	"github.com/spf13/cobra"

	"corpus-git/internal/audit"
	"corpus-git/internal/fault"
)

func webCommand(s *session) *cobra.Command {
	return group(s, "web", "The server's pages", webLogin(s))
}

func webLogin(s *session) *cobra.Command {
	return &cobra.Command{
		Use: "login", Short: "Print a link that lets a browser see the pages",
		Long: "The link is good for one login within five minutes; the session lasts twelve hours and sees all projects.\n" +
			"Programs send the token instead, which the file http_token of the state directory holds.",
		Args: exactly(),
		RunE: func(*cobra.Command, []string) error {
			if err := s.admin("web login", ""); err != nil {
				return err
			}
			if s.b.WebLogin == nil {
				return fault.New(fault.Refused, "web login", "no server runs").WithHint("start it:  corpus-git serve --http-listen 127.0.0.1:8080")
			}
			link, err := s.b.WebLogin(s.ctx, s.who.Name)
			if err := s.audited(audit.Entry{Action: "web login"}, err); err != nil {
				return err
			}
			p := s.printer()
			p.line("%s", link)
			return p.err
		},
	}
}
