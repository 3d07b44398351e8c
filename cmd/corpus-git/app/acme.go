package app

import (
	"net"

	"corpus-git/cmd/corpus-git/systemd"
	"corpus-git/internal/fault"
	"corpus-git/project/config"
	"corpus-git/web/acme"
)

// openACME prepares the ACME certificates of the web listener; nil if none are configured.
func (s *server) openACME(cfg *config.Config) (*acme.Certificates, error) {
	if len(cfg.ACME.Hosts) == 0 {
		return nil, nil
	}
	var plain net.Listener
	if cfg.ACME.HTTP != "" {
		var err error
		if plain, err = systemd.Listen(nil, "acme.http_listen", cfg.ACME.HTTP); err != nil {
			return nil, err
		}
	}
	c, err := acme.Open(acme.Config{
		Hosts: cfg.ACME.Hosts, Email: cfg.ACME.Email, CA: cfg.ACME.CA, CAFile: cfg.ACME.CAFile, Dir: s.state.ACME(), Web: s.webAddr.Addr(), HTTP: plain,
		Log: s.log.With().Str("part", "acme").Logger(),
	})
	if err != nil {
		if plain != nil {
			_ = plain.Close()
		}
		return nil, fault.New(fault.Usage, "acme.ca_file", "%w", err)
	}
	return c, nil
}
