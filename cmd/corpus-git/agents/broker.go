package agents

import (
	"context"
	"io"
	"strings"

	"github.com/rs/zerolog"

	"corpus-git/access"
	"corpus-git/cluster/member"
	"corpus-git/fleet/broker"
	"corpus-git/layout"
	"corpus-git/project/config"
	"corpus-git/receive/sshd"
)

// Run runs a verb of a server.
type Run func(ctx context.Context, who access.Identity, argv []string, stdin io.Reader, stdout, stderr io.Writer, term sshd.Terminal) int

// addresses returns the addresses of the NATS servers of the configuration; with several hubs, those beside them.
func addresses(cfg *config.Config, state layout.State) (string, error) {
	l, err := member.Load(state)
	if err != nil || !l.Formed {
		return cfg.NATS, err
	}
	self, _, err := member.LoadSelf(state)
	return strings.Join(l.Addresses(self.Name), ","), err
}

// Broker connects to the NATS server of the configuration, for agents; nil if there is none. Logins count as those of the ssh server do. The caller closes it.
func Broker(cfg *config.Config, state layout.State, keys *access.Store, s *sshd.Server, run Run, log zerolog.Logger) (*broker.Broker, error) {
	at, err := addresses(cfg, state)
	if err != nil || at == "" {
		return nil, err
	}
	own, err := broker.Load(state.NATS())
	if err != nil {
		return nil, err
	}
	return broker.Start(broker.Config{
		URL: at, Credentials: own, Identify: keys.Identify, LoggedIn: s.LoggedIn, RefusedLogin: s.RefusedLogin, Connections: cfg.Limits.MaxConnections, Log: log.With().Str("part", "nats").Logger(),
		Run: func(ctx context.Context, who access.Identity, argv []string, in io.Reader, out, errw io.Writer) int {
			return run(ctx, who, argv, in, out, errw, sshd.Terminal{})
		},
	})
}
