package verbs

import (
	"github.com/spf13/cobra"

	"corpus-git/cmd/corpus-git/verbs/requests"
	"corpus-git/remote"
)

func bundleSession(s *session) *cobra.Command {
	return &cobra.Command{
		Use: "session", Short: "Answer the requests of another corpus-git on standard input", Hidden: true, Args: exactly(),
		Annotations: map[string]string{ReadsStdin: "yes", Creates: "yes"},
		RunE: func(*cobra.Command, []string) error {
			if err := s.local("bundle session", ""); err != nil {
				return err
			}
			if err := s.prepare(); err != nil {
				return err
			}
			return remote.Serve(s.ctx, s.in, s.out, s.b.Hello, requests.Handler{
				Bundles: s.b.Bundles, Runs: s.b.Runs, Pusher: s.who.Pusher(), Audited: s.audited, Upgrader: s.b.Upgrade, HubKeys: s.b.HubKeys, ExitStatus: exitOf,
			})
		},
	}
}
