package app

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"strings"

	"golang.org/x/crypto/ssh"

	"corpus-git/bundle"
	"corpus-git/cmd/corpus-git/agents"
	"corpus-git/cmd/corpus-git/verbs"
	"corpus-git/fleet/agent"
	"corpus-git/remote"
)

// dialIn keeps connections to the hub until ctx ends. It deploys only what the hub has signed.
func (s *server) dialIn(ctx context.Context, c *command, hub *agent.Hub, key ssh.Signer, up *agents.Upgrading) error {
	if _, _, err := s.bundles().Trust(ctx, hub.HostKey); err != nil {
		return err
	}
	own, err := s.signer()
	if err != nil {
		return err
	}
	trusted := bundle.Signers{Path: s.state.BundleSigners(), Own: own.PublicKey()}.Trusted
	process := rand.Text()
	hello := func() remote.Hello {
		h := s.hello()
		h.Process, h.Program, h.Failed, h.HubKeys = process, up.Programs.Own, up.Programs.Failed(), s.agent.Load().Pinned()
		return h
	}
	a := &agent.Agent{Hub: *hub, Key: key, Log: s.log.With().Str("part", "agent").Logger(), Hello: func() any { return hello() }, Connected: up.Programs.Confirm, Learned: func(h agent.Hub) error { return agents.Keep(s.state, h) }, Replaced: func(old string) error {
		_, _, err := s.bundles().Untrust(ctx, old)
		return err
	}, Serve: func(ctx context.Context, in io.Reader, out io.Writer) error {
		var said strings.Builder
		b := s.backend(nil)
		b.Hello, b.Upgrade = hello, func(ctx context.Context, in *bufio.Reader) error {
			return up.Take(ctx, in, s.pipeline.Busy, trusted, s.log)
		}
		b.HubKeys = func(said bundle.Succession) error { return s.pinHub(ctx, said) }
		if code := verbs.Run(ctx, b, c.caller(), []string{"bundle", "session"}, in, out, &said); code != 0 {
			return errors.New(strings.TrimSpace(said.String()))
		}
		return nil
	}}
	s.agent.Store(a)
	s.serving.Go(func() { a.Run(ctx) })
	return nil
}

// pinHub keeps by which keys this machine's agent knows its hub, and trusts the bundles of both.
func (s *server) pinHub(ctx context.Context, said bundle.Succession) error {
	if err := s.agent.Load().Pin(said.Current, said.Next, said.Verify); err != nil {
		return err
	}
	for _, key := range []string{said.Current, said.Next} {
		if key == "" {
			continue
		}
		if _, _, err := s.bundles().Trust(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// hello returns the description of this machine for another one.
func (c *core) hello() remote.Hello { return agents.Hello(c.build.Release, c.facts()) }
