package signed

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/project/demands"
)

// gpgTime is the time limit for gpg.
const gpgTime = 30 * time.Second

// openpgp verifies a signature with gpg(1) and the operator's keyring. It fetches no keys from elsewhere.
func (v *Verifier) openpgp(ctx context.Context, payload []byte, sig string) (s demands.Signature, err error) {
	home := v.Settings().GPGHome
	if home == "" {
		return s, fault.New(fault.Refused, "signature", "it is by an OpenPGP key: %w, as this server has no keyring", ErrUnknown).
			WithHint("sign with an SSH key ( git config gpg.format ssh ); or an administrator sets  require.gpg_home  in the server's configuration")
	}
	dir, err := os.MkdirTemp("", "corpus-git-signature")
	if err != nil {
		return s, fault.New(fault.Internal, "signature", "%w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "signature")
	if err := os.WriteFile(file, []byte(sig), 0o600); err != nil {
		return s, fault.New(fault.Internal, "signature", "%w", err)
	}
	program, err := exec.LookPath("gpg")
	if err != nil {
		return s, fault.New(fault.Internal, "require.gpg_home", "%w", err).WithHint("install gpg, or leave  require.gpg_home  out")
	}
	ctx, stop := context.WithTimeout(ctx, gpgTime)
	defer stop()
	var status, told bytes.Buffer
	st, err := v.Exec.Run(ctx, execx.Cmd{
		Argv: []string{program, "--homedir", home, "--batch", "--no-tty", "--no-auto-key-retrieve", "--no-auto-check-trustdb", "--trust-model", "always", "--status-fd", "1", "--verify", file, "-"},
		Dir:  dir, Env: []string{"PATH=/usr/bin:/bin:/usr/local/bin", "HOME=" + dir, "LC_ALL=C", "GNUPGHOME=" + home}, Stdin: bytes.NewReader(payload), Stdout: &status, Stderr: &told,
	})
	if err != nil {
		return s, fault.New(fault.Internal, "gpg", "%w", err)
	}
	return readStatus(status.String(), st.Exit, told.String())
}

// readStatus reads what gpg writes to its status descriptor (GnuPG, doc/DETAILS): exactly one signature, good, by a key that is valid now.
func readStatus(status string, exit int, told string) (s demands.Signature, err error) {
	var good, valid int
	for line := range strings.Lines(status) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "[GNUPG:]" {
			continue
		}
		switch f[1] {
		case "GOODSIG":
			good++
			if len(f) > 3 {
				s.Signer = printable.Clip(strings.Join(f[3:], " "), 200)
			}
		case "VALIDSIG":
			if valid++; len(f) > 2 {
				s.Key = f[len(f)-1] // that of the primary key, if it is given
				if len(f) < 12 {
					s.Key = f[2]
				}
			}
		case "ERRSIG", "NO_PUBKEY":
			return s, fault.New(fault.Refused, "signature", "it is by the unknown OpenPGP key %.40s: %w", printable.Line(strings.Join(f[2:min(3, len(f))], "")), ErrUnknown).
				WithHint("an administrator can add the key to the keyring in  require.gpg_home")
		case "EXPSIG", "EXPKEYSIG", "REVKEYSIG":
			return s, fault.New(fault.Refused, "signature", "the signature or its OpenPGP key has expired or is revoked (%s): %w", f[1], ErrUnknown)
		}
	}
	if exit != 0 || good != 1 || valid != 1 || s.Key == "" {
		first, _, _ := strings.Cut(strings.TrimSpace(told), "\n")
		return demands.Signature{}, fault.New(fault.Refused, "signature", "it is not valid: %s", printable.Clip(first, 200)).WithHint("the signed text or the signature was changed")
	}
	s.Kind = "openpgp"
	return s, nil
}
