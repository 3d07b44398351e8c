package app

import (
	"context"

	"corpus-git/cmd/corpus-git/limits"
)

// reload reads the configuration again and logs what changed. A configuration with an error changes nothing.
func (s *server) reload(ctx context.Context) {
	next, err := s.load()
	if err != nil {
		s.log.Error().Err(err).Msg("the configuration was not reloaded: it has an error")
		return
	}
	if s.web != nil && s.web.Certificate != nil {
		if err := s.web.Certificate.Reload(); err != nil {
			s.log.Error().Err(err).Msg("the TLS certificate was not reloaded")
		}
	}
	old := s.cfg.Load()
	changes := old.Diff(next)
	if len(changes) == 0 {
		s.log.Info().Msg("the configuration was reloaded; nothing changed")
		return
	}
	// Keys that need a restart keep their values.
	applied := *next
	applied.Root, applied.StateDir, applied.Listen, applied.HTTP = old.Root, old.StateDir, old.Listen, old.HTTP
	applied.DiskReserve, applied.DiskPercent = old.DiskReserve, old.DiskPercent
	s.cfg.Store(&applied)
	s.level.Set(applied.Log.Level)
	s.service.Store(s.newService(&applied))
	s.ssh.SetLimits(limits.SSH(applied.Limits))
	// Logged once it is in effect.
	for _, ch := range changes {
		e := s.log.Info().Str("key", ch.Key).Str("old", ch.Old).Str("new", ch.New)
		if !ch.Restart {
			e.Msg("configuration changed")
		} else {
			e.Msg("configuration changed; restart the server to apply it")
		}
	}
	if err := s.syncAdmins(ctx, applied.AdminKeys); err != nil {
		s.log.Error().Err(err).Msg("admin_keys")
	}
	s.converge.Reload()
	if err := s.setDirectory(applied.LDAP); err != nil {
		s.log.Error().Err(err).Msg("the LDAP settings were not reloaded")
	}
	if err := s.access.SetTrust(applied.CAKeys, applied.RevokedKeys); err != nil {
		s.log.Error().Err(err).Msg("the certificate authorities were not reloaded")
	}
}
