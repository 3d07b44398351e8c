package receive

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"corpus-git/git/pktline"
	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/receive/sshd"
)

// listener is the kind of client that reads a refusal.
type listener uint8

const (
	person     listener = iota // reads standard error
	gitClient                  // git fetch, push, clone, ls-remote: waits for an advertisement
	gitArchive                 // git archive --remote: sends its arguments, and waits for an answer
)

// listenerOf determines the kind from the command. Git appends the path of the repository to the command of --upload-pack or
// --receive-pack; a terminal carries no pkt-lines.
func (s *Service) listenerOf(sess *sshd.Session) listener {
	argv, err := Words(sess.Command)
	if err != nil || len(argv) == 0 || sess.Terminal.Pty || sess.Subsystem != "" {
		return person
	}
	last := argv[len(argv)-1]
	_, _, err = ParsePath(s.Root, last)
	switch name := path.Base(argv[0]); {
	case name == "git-upload-archive":
		return gitArchive
	case name == "git-receive-pack", name == "git-upload-pack":
		return gitClient
	case len(argv) > 1 && err == nil && strings.HasSuffix(last, ".git"):
		return gitClient
	}
	return person
}

// archiveArguments limits what is read of a git archive --remote before it is answered.
const archiveArguments = 1000

// Refuse sends a client the reason for a refusal, and returns the exit status. A git client shows messages in its own protocol; after a
// message on standard error it would add that the connection broke. It is for sshd.Server, too.
func (s *Service) Refuse(sess *sshd.Session, err error) int { return s.refuse(sess, err) }

func (s *Service) refuse(sess *sshd.Session, err error) int {
	exit := fault.ExitCode(err)
	if fault.KindOf(err) == fault.Internal {
		s.Log.Error().Err(err).Str("key", sess.Identity.Name).Str("command", sess.Command).Msg("session failed")
		err = &fault.Error{Kind: fault.Internal, Err: errors.New("internal server error; see the server's log")}
	}
	hint := ""
	if h := fault.HintOf(err); h != "" {
		hint = "\nhint: " + event.WithCommands(h, s.commands(sess.Identity))
	}
	var werr error
	switch s.listenerOf(sess) {
	case gitClient:
		// gitprotocol-pack(5): an ERR line may be sent instead of the advertisement; git prints it as "fatal: remote error: …".
		werr = pktline.NewWriter(sess.Stdout).Errorf("%s%s", err, hint)
	case gitArchive:
		// It reads only after it has sent all of its arguments.
		in := pktline.NewReader(sess.Stdin, pktline.Limits{Lines: archiveArguments})
		for kind, rerr := pktline.Data, error(nil); kind == pktline.Data && rerr == nil; {
			kind, _, rerr = in.Next()
		}
		werr = pktline.NewWriter(sess.Stdout).Linef("NACK %s%s", err, hint)
	default:
		_, werr = fmt.Fprintf(sess.Stderr, "error: %s%s\n", err, hint)
	}
	if werr != nil {
		s.Log.Debug().Err(werr).Msg("telling a client of its error")
	}
	return exit
}
