package hubs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"

	"corpus-git/cluster/member"
	"corpus-git/cmd/corpus-git/statedir"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/receive/sshd"
)

// lockWait is how long hub join waits for a command that uses the state; again is the interval at which it asks whether the other hubs have joined.
const (
	lockWait = 3 * time.Second
	again    = time.Second
)

// JoinCommand returns the subcommand of hub that works on the machine, without the server. where returns the configured folders, until a context that ends when the program is to stop.
func JoinCommand(where func() (layout.Root, layout.State, error), until func() (context.Context, func()), out io.Writer) *cobra.Command {
	return &cobra.Command{
		Use: "join [TOKEN]", Short: "Make this machine a further hub",
		Long: "Joins the hub that made TOKEN with  hub add : receives its list of hubs, its host keys, and a certificate for the NATS server beside this machine's hub, whose private\n" +
			"key stays here. It waits until all three hubs have joined; run again, without TOKEN, it continues. A machine with projects of its own is refused.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			root, state, err := where()
			if err != nil {
				return err
			}
			ctx, stop := until()
			defer stop()
			lock, err := statedir.Take(state, "corpus-git hub join", lockWait)
			if err != nil {
				return err
			}
			l, config, err := member.Joining{
				Root: root, State: state, Token: strings.Join(args, ""), Again: again,
				Key: func(path string) (ssh.Signer, error) {
					key, _, err := sshd.HostKey(vfs.OS{}, path, ssh.KeyAlgoED25519, rand.Reader)
					return key, err
				},
				Waiting: func(l member.List) { waiting(out, l) },
			}.Join(ctx)
			if err = errors.Join(err, lock.Release()); err != nil {
				return err
			}
			return joined(out, state, l, config)
		},
	}
}

func waiting(out io.Writer, l member.List) {
	var missing []string
	for _, m := range l.Hubs {
		if !m.Joined {
			missing = append(missing, m.Name)
		}
	}
	if len(l.Hubs) < member.Size {
		missing = append(missing, "a hub that is not added yet")
	}
	fmt.Fprintf(out, "joined; waiting for %s (the next  corpus-git hub join  continues)\n", strings.Join(missing, ", "))
}

func joined(out io.Writer, state layout.State, l member.List, config string) error {
	self, _, err := member.LoadSelf(state)
	if err != nil {
		return err
	}
	var others []string
	for _, m := range l.Hubs {
		if m.Name != self.Name {
			others = append(others, m.Name)
		}
	}
	if l.Find(self.Name) < 0 {
		return fault.New(fault.Refused, "", "this hub was removed from the others")
	}
	_, err = fmt.Fprintf(out, "this machine is the hub %s, beside %s\non this machine:\n  start the NATS server:  nats-server -c %s\n  start the hub:  corpus-git serve\non the others, which were there before: restart the NATS server, then the hub\n",
		self.Name, strings.Join(others, " and "), config)
	return err
}
