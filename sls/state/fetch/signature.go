package fetch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/host"
	"corpus-git/sls/state/core"
)

// Signatures are the arguments that say who signs, and with which keys that is verified. Of Salt's backends, asymmetric
// needs Salt. Source: Salt documentation, file.managed, signature; gpg execution module, verify.
const Signatures = "signed_by_any signed_by_all keyring gnupghome sig_backend"

// RefusedSignature is the error for a signature that is not sufficient, or that can't be checked.
type RefusedSignature string

func (e RefusedSignature) Error() string { return string(e) }

// CheckSignature checks data against its signature: the source of a detached one, or true for one contained in the data.
// A RefusedSignature is a failed check in Salt's sense; any other error is one in the arguments.
func CheckSignature(c *core.Call, data []byte, signature any) error {
	if !c.Installed("gpg") {
		return RefusedSignature("Signature verification requires the gpg module, which could not be found. Make sure you have the necessary tools and libraries intalled")
	}
	var detached []byte
	if signature != true {
		sources := []any{signature}
		l, list := signature.(*py.List)
		if list {
			sources = l.Items()
		}
		for _, s := range sources {
			sig, _, err := File(c, py.Str(s))
			if err != nil {
				return RefusedSignature("Detached signature file " + py.Str(s) + " not found")
			}
			detached = sig
		}
		if list {
			return errors.New("expected str, bytes or os.PathLike object, not list")
		}
	}
	seen, err := gpgVerify(c, data, detached, signature != true)
	if err != nil {
		return err
	}
	if msg := signedBy(c, seen); msg != "" {
		return RefusedSignature("The file's signature could not be verified: " + msg)
	}
	return nil
}

// signedBy names what is missing among the signatures of gpg's answer, "" if they are enough.
func signedBy(c *core.Call, v *verification) string {
	anyOf, allOf := c.Strings("signed_by_any"), c.Strings("signed_by_all")
	if !c.Bool("signed_by_any", false) {
		anyOf = nil
	}
	if !c.Bool("signed_by_all", false) {
		allOf = nil
	}
	if len(anyOf)+len(allOf) == 0 {
		if !v.trusted {
			return "The signature could not be verified."
		}
		return ""
	}
	good := func(key string) bool { return slices.Contains(v.keys, key) }
	if len(anyOf) > 0 && !slices.ContainsFunc(anyOf, good) {
		return "None of the public keys listed in signed_by_any provided a valid signature"
	}
	for _, key := range allOf {
		if !good(key) {
			return "Public key " + key + " has not provided a valid signature, but was listed in signed_by_all"
		}
	}
	return ""
}

// gpgVerify runs gpg as python-gnupg does, and reads its output.
func gpgVerify(c *core.Call, data, detached []byte, isDetached bool) (*verification, error) {
	home := c.Str("gnupghome", "")
	if home == "" {
		home = gnupgHome(c)
	}
	ring := ""
	if v, ok := c.Value("keyring"); ok && py.Truth(v) {
		if ring, ok = v.(string); !ok {
			return nil, core.Errorf("Please pass keyring as a string. Multiple keyrings are not allowed")
		}
	}
	if !core.IsDir(home) && !c.Test {
		if err := c.MakeDirs(filepath.Dir(home), core.Owner{}, nil); err != nil {
			return nil, err
		}
		private := fs.FileMode(0o700)
		if err := c.MakeDir(home, core.Owner{}, &private); err != nil {
			return nil, err
		}
	}
	argv := []string{"gpg", "--status-fd", "2", "--no-tty", "--no-verbose", "--fixed-list-mode", "--batch", "--with-colons", "--homedir", home}
	if ring != "" {
		argv = append(argv, "--no-default-keyring", "--keyring", ring)
	}
	argv = append(argv, "--verify")
	if c.Bool("signed_by_any", false) || c.Bool("signed_by_all", false) {
		argv = append(argv, "--no-batch") // in a batch gpg ends at the first signature that is not good
	}
	sh := host.Shell{Dir: "/", Env: map[string]string{"PATH": c.ToolPath()}}
	if isDetached {
		dir, discard, err := c.NewTempDir("corpus-gpg-")
		if err != nil {
			return nil, err
		}
		defer discard()
		for name, b := range map[string][]byte{"signature": detached, "data": data} {
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
				return nil, err
			}
		}
		argv = append(argv, filepath.Join(dir, "signature"), filepath.Join(dir, "data"))
	} else {
		sh.Stdin = string(data)
	}
	sh.Argv = argv
	res, err := c.Host.RunShell(c.Ctx, sh)
	if err != nil {
		return nil, fmt.Errorf("gpg: %w", err)
	}
	v := &verification{}
	for line := range strings.Lines(res.Stderr) {
		if status, ok := strings.CutPrefix(line, "[GNUPG:] "); ok {
			v.status(status)
		}
	}
	return v, nil
}

// gnupgHome returns the folder in which gpg keeps its keys by default.
func gnupgHome(c *core.Call) string {
	for _, kv := range c.Host.Environ {
		if v, ok := strings.CutPrefix(kv, "GNUPGHOME="); ok && v != "" {
			return v
		}
	}
	return filepath.Join(c.ExpandUser("~"), ".gnupg")
}

// verification is gpg's result about signatures. Source: GnuPG, doc/DETAILS, Format of the --status-fd output; it is
// interpreted as in python-gnupg's class Verify.
type verification struct {
	trusted bool     // a signature was good enough to speak of its key's trust
	keys    []string // the primary keys of such signatures
	signed  bool     // in a signature, since its SIG_ID
	primary string   // of the last VALIDSIG
}

func (v *verification) status(line string) {
	f := strings.Fields(line)
	if len(f) == 0 {
		return
	}
	switch f[0] {
	case "NEWSIG":
		v.signed, v.primary = false, ""
	case "SIG_ID":
		v.signed = true
	case "VALIDSIG":
		if len(f) > 10 {
			v.primary = f[10]
		}
	case "TRUST_EXPIRED", "TRUST_UNDEFINED", "TRUST_NEVER", "TRUST_MARGINAL", "TRUST_FULLY", "TRUST_ULTIMATE":
		v.trusted = true
		if v.signed && v.primary != "" {
			v.keys = append(v.keys, v.primary)
		}
		v.signed = false
	}
}
