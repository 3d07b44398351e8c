package signed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/crypto/ssh"

	"corpus-git/access"
	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/internal/sshsig"
	"corpus-git/project"
	"corpus-git/project/demands"
)

// namespace is the one that git uses (gpg-interface.c).
const namespace = "git"

// ErrUnknown is wrapped if a signature is good, but the signer is unknown here or has no permission.
var ErrUnknown = errors.New("no key with permission")

// Authority knows the principals; access.Store is one.
type Authority interface {
	// Identify returns the principal of a key or a certificate that may log in.
	Identify(ctx context.Context, o access.Offer) (who access.Identity, ok bool, err error)
	Can(ctx context.Context, who access.Identity, name project.Name, want project.Right) (bool, error)
	// Revoked reports whether a key must not be trusted, whatever file lists it.
	Revoked(k ssh.PublicKey) (bool, error)
}

// Settings are the settings of the operator.
type Settings struct {
	// AllowedSigners is a file in the format of ssh-keygen's allowed signers, "" for none. It is read for each signature, and trusted for all projects.
	AllowedSigners string
	// GPGHome is the folder of a keyring of gpg(1), "" for none: each key in it is trusted for all projects.
	GPGHome string
}

// Verifier verifies signatures. All fields are required.
type Verifier struct {
	Access   Authority
	Settings func() Settings
	Exec     execx.Commander
	Now      func() time.Time
}

// For says what a signature is verified for.
type For struct {
	Project project.Name
	// Right is the permission that the signer must have on the project.
	Right project.Right
	// From is the address of the sender, "" if there is none: certificates may be limited to addresses.
	From string
}

// Push verifies a push certificate for the push to which nonce was sent. The error wraps ErrUnknown if everything except the signer is valid; every
// other error refuses the push.
func (v *Verifier) Push(ctx context.Context, c *Certificate, nonce string, options []string, what For) (demands.Signature, error) {
	bad := func(format string, args ...any) (demands.Signature, error) {
		return demands.Signature{}, fault.New(fault.Refused, "push certificate", format, args...)
	}
	if nonce == "" || c.Nonce != nonce {
		return bad("it was made for another push: its nonce is %.80q", c.Nonce)
	}
	if !slices.Equal(c.Options, options) {
		return bad("the push options differ from the signed ones")
	}
	s, err := v.verify(ctx, []byte(c.Payload), c.Signature, what)
	if err != nil {
		return s, err
	}
	s.Of, s.Certificate = demands.OfPush, c.Text
	return s, nil
}

// Object verifies the signature of a commit or a tag. An unsigned one is fault.Refused.
func (v *Verifier) Object(ctx context.Context, id plumbing.Hash, t plumbing.ObjectType, data []byte, what For) (demands.Signature, error) {
	payload, sig, err := Split(t, data)
	if err != nil {
		return demands.Signature{}, fault.New(fault.Refused, t.String()+" "+id.String()[:7], "%w", err)
	}
	if sig == "" {
		return demands.Signature{}, fault.New(fault.Refused, "", "the %s %s is not signed", t, id.String()[:7])
	}
	s, err := v.verify(ctx, payload, sig, what)
	if err != nil {
		var f *fault.Error
		if errors.As(err, &f) {
			return s, fault.New(f.Kind, fmt.Sprintf("the %s %s", t, id.String()[:7]), "%w", f.Err).WithHint("%s", f.Hint)
		}
		return s, err
	}
	s.Of, s.Object = demands.OfCommit, id.String()
	return s, nil
}

func (v *Verifier) verify(ctx context.Context, payload []byte, sig string, what For) (demands.Signature, error) {
	if strings.HasPrefix(strings.TrimSpace(sig), sshsig.Begin) {
		return v.ssh(ctx, payload, sig, what)
	}
	if strings.HasPrefix(sig, "-----BEGIN PGP ") {
		return v.openpgp(ctx, payload, sig)
	}
	return demands.Signature{}, fault.New(fault.Refused, "signature", "unsupported type of signature: %.40s", printable.Line(strings.SplitN(sig, "\n", 2)[0])).
		WithHint("sign with an SSH key:  git config gpg.format ssh ; git config user.signingKey ~/.ssh/id_ed25519.pub")
}

func (v *Verifier) ssh(ctx context.Context, payload []byte, text string, what For) (s demands.Signature, err error) {
	sig, err := sshsig.Parse([]byte(text))
	if err == nil {
		err = sig.Verify(payload, namespace)
	}
	if err != nil {
		return s, fault.New(fault.Refused, "signature", "%w", err).WithHint("the signed text or the signature was changed")
	}
	s = demands.Signature{Kind: "ssh", Key: access.Fingerprint(plainKey(sig.Key))}
	who, known, err := v.Access.Identify(ctx, access.Offer{Key: sig.Key, From: what.From})
	if err != nil {
		return s, err
	}
	if known {
		may, err := v.Access.Can(ctx, who, what.Project, what.Right)
		if err != nil {
			return s, err
		}
		if s.Signer = who.Name; may {
			return s, nil
		}
	}
	name, ok, err := v.listed(sig.Key)
	if err != nil {
		return s, err
	}
	if ok {
		s.Signer = name
		return s, nil
	}
	if known {
		return s, fault.New(fault.Refused, "signature", "it is by %s: %w (permission %s on %s)", who.Name, ErrUnknown, what.Right, what.Project).
			WithHint("an administrator can grant it:  corpus-git access grant %s %s %s", what.Project, who.Name, what.Right)
	}
	return s, fault.New(fault.Refused, "signature", "it is by the unknown key %s: %w", s.Key, ErrUnknown).
		WithHint("an administrator can add the key:  corpus-git key add NAME --user USER --file KEY.pub")
}

// listed looks a key up in the file of allowed signers. If the file cannot be read, no key is trusted.
func (v *Verifier) listed(k ssh.PublicKey) (string, bool, error) {
	file := v.Settings().AllowedSigners
	if file == "" {
		return "", false, nil
	}
	text, err := os.ReadFile(file)
	var list []sshsig.Signer
	if err == nil {
		list, err = sshsig.ParseSigners(text)
	}
	if err != nil {
		return "", false, fault.New(fault.Internal, "require.allowed_signers", "%w", err)
	}
	name, ok := sshsig.Allowed(list, k, namespace, v.Now())
	if !ok {
		return "", false, nil
	}
	revoked, err := v.Access.Revoked(k)
	return printable.Clip(name, 200), err == nil && !revoked, err
}

func plainKey(k ssh.PublicKey) ssh.PublicKey {
	if c, ok := k.(*ssh.Certificate); ok {
		return c.Key
	}
	return k
}
