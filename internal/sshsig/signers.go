package sshsig

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// Signer is a line of an allowed_signers file.
type Signer struct {
	// Principals are patterns, with * and ?, of the principals of the key; a pattern that begins with ! excludes.
	Principals []string
	Key        ssh.PublicKey
	// Authority: the key signs certificates, whose principals must match.
	Authority bool
	// Namespaces are patterns of what it may sign; empty means everything.
	Namespaces []string
	// After and Before limit the time in which the key is valid; zero is no limit.
	After, Before time.Time
}

// maxSigners limits the lines of a file.
const maxSigners = 100_000

// ParseSigners parses an allowed_signers file (ssh-keygen(1), "ALLOWED SIGNERS"). An error names the line: a file that is understood only in part would
// accept keys that were meant to be limited. Times without Z are UTC.
func ParseSigners(text []byte) ([]Signer, error) {
	var out []Signer
	n := 0
	for line := range bytes.Lines(text) {
		n++
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		if len(out) == maxSigners {
			return nil, fmt.Errorf("line %d: more than %d signers", n, maxSigners)
		}
		s, err := parseSigner(string(line))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		out = append(out, s)
	}
	return out, nil
}

func parseSigner(line string) (s Signer, err error) {
	names, rest, ok := word(line)
	if !ok || names == "" {
		return s, errors.New("no principals")
	}
	if s.Principals, err = patterns(names); err != nil {
		return s, fmt.Errorf("principals: %w", err)
	}
	for {
		var w string
		if w, rest, ok = word(rest); !ok || w == "" {
			return s, errors.New("no key")
		}
		if isKeyType(w) {
			raw, _, ok := word(rest)
			if !ok || raw == "" {
				return s, errors.New("no key")
			}
			blob, err := base64.StdEncoding.DecodeString(raw)
			if err != nil {
				return s, fmt.Errorf("the key: %w", err)
			}
			if s.Key, err = ssh.ParsePublicKey(blob); err != nil {
				return s, fmt.Errorf("the key: %w", err)
			}
			if s.Key.Type() != w {
				return s, fmt.Errorf("the key is %s, not %s", s.Key.Type(), w)
			}
			return s, nil
		}
		if err := s.options(w); err != nil {
			return s, err
		}
	}
}

func isKeyType(w string) bool {
	return strings.HasPrefix(w, "ssh-") || strings.HasPrefix(w, "ecdsa-") || strings.HasPrefix(w, "sk-ssh-") || strings.HasPrefix(w, "sk-ecdsa-")
}

// options parses the options in one word, separated by commas outside of quotes.
func (s *Signer) options(w string) error {
	for _, o := range split(w) {
		name, value, has := strings.Cut(o, "=")
		value, err := unquote(value)
		if err != nil {
			return fmt.Errorf("option %.40q: %w", name, err)
		}
		switch name = strings.ToLower(name); {
		case name == "cert-authority" && !has:
			s.Authority = true
		case name == "namespaces" && has:
			s.Namespaces, err = patterns(value)
		case name == "valid-after" && has:
			s.After, err = parseTime(value)
		case name == "valid-before" && has:
			s.Before, err = parseTime(value)
		default:
			err = errors.New("not known")
		}
		if err != nil {
			return fmt.Errorf("option %.40q: %w", name, err)
		}
	}
	return nil
}

// word returns the first word of a line; quotes may contain spaces. ok is false for an unterminated quote.
func word(s string) (w, rest string, ok bool) {
	s = strings.TrimLeft(s, " \t")
	quoted := false
	for i, c := range []byte(s) {
		switch {
		case c == '"':
			quoted = !quoted
		case (c == ' ' || c == '\t') && !quoted:
			return s[:i], s[i:], true
		}
	}
	return s, "", !quoted
}

// split splits at commas outside of quotes.
func split(s string) (out []string) {
	quoted, from := false, 0
	for i, c := range []byte(s) {
		switch {
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			out = append(out, s[from:i])
			from = i + 1
		}
	}
	return append(out, s[from:])
}

func unquote(s string) (string, error) {
	if !strings.Contains(s, `"`) {
		return s, nil
	}
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' || strings.Contains(s[1:len(s)-1], `"`) {
		return "", errors.New("quotes must be around the whole value")
	}
	return s[1 : len(s)-1], nil
}

// patterns returns the patterns of a comma-separated list; each is checked.
func patterns(s string) ([]string, error) {
	s, err := unquote(s)
	if err != nil {
		return nil, err
	}
	list := strings.Split(s, ",")
	for _, p := range list {
		if strings.TrimPrefix(p, "!") == "" {
			return nil, errors.New("an empty pattern")
		}
	}
	return list, nil
}

// parseTime reads YYYYMMDD, YYYYMMDDHHMM or YYYYMMDDHHMMSS, with Z or without.
func parseTime(s string) (time.Time, error) {
	s = strings.TrimSuffix(s, "Z")
	for _, form := range []string{"20060102", "200601021504", "20060102150405"} {
		if len(s) == len(form) {
			return time.Parse(form, s)
		}
	}
	return time.Time{}, fmt.Errorf("%.40q is not a time such as 20261231Z", s)
}

// matches reports whether a name matches a list of patterns (ssh_config(5), "PATTERNS"): a pattern that excludes wins.
func matches(list []string, name string) bool {
	found := false
	for _, p := range list {
		p, not := strings.CutPrefix(p, "!")
		if !glob(p, name) {
			continue
		}
		if not {
			return false
		}
		found = true
	}
	return found
}

// glob supports only * and ?; both match every character.
func glob(pattern, name string) bool {
	escape := strings.NewReplacer(`\`, `\\`, `[`, `\[`, "/", "\x00")
	ok, err := path.Match(escape.Replace(pattern), strings.ReplaceAll(name, "/", "\x00"))
	return err == nil && ok
}

// Allowed returns the principal of a key, or of a certificate, in a list: the first principal of the line that has the key, or the principal of the certificate
// that the line matches. ok is false for a key that is not in it, or not for this namespace or time. A certificate is checked completely: its signature, its
// time, and that it has no critical option.
func Allowed(list []Signer, key ssh.PublicKey, namespace string, at time.Time) (name string, ok bool) {
	cert, isCert := key.(*ssh.Certificate)
	for _, s := range list {
		if len(s.Namespaces) > 0 && !matches(s.Namespaces, namespace) || !s.After.IsZero() && at.Before(s.After) || !s.Before.IsZero() && at.After(s.Before) {
			continue
		}
		if !s.Authority {
			if string(s.Key.Marshal()) == string(key.Marshal()) {
				return strings.Join(s.Principals, ","), true
			}
			continue
		}
		if !isCert || string(cert.SignatureKey.Marshal()) != string(s.Key.Marshal()) || cert.CertType != ssh.UserCert || cert.Signature.Format == ssh.KeyAlgoRSA { // SHA-1
			continue
		}
		check := ssh.CertChecker{Clock: func() time.Time { return at }}
		for _, p := range cert.ValidPrincipals {
			if matches(s.Principals, p) && check.CheckCert(p, cert) == nil {
				return p, true
			}
		}
	}
	return "", false
}
