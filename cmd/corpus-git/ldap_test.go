package main

import (
	"bytes"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"

	"corpus-git/internal/testutil"
)

type slapdKey struct{}

// cmdSlapd is  slapd FILE ,  slapd stop  and  slapd start : an OpenLDAP server with what an LDIF file holds, where @DEV@ is the public key of dev; $LDAP is its
// address, $LDAP_CA the file of its authority.
func cmdSlapd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: slapd FILE|start|stop")
	}
	if s, ok := ts.Value(slapdKey{}).(*testutil.Slapd); ok && s.URL != "" {
		if args[0] == "stop" {
			s.Stop()
		} else {
			ts.Check(s.Start())
		}
		return
	}
	key, err := os.ReadFile(filepath.Join(ts.Getenv("HOME"), ".ssh", "dev.pub"))
	ts.Check(err)
	text := bytes.ReplaceAll([]byte(ts.ReadFile(args[0])), []byte("@DEV@"), bytes.TrimSpace(key))
	made, err := testutil.NewSlapd(ts.MkAbs("slapd"), string(text))
	ts.Check(err)
	s := ts.Value(slapdKey{}).(*testutil.Slapd)
	*s = *made
	ts.Check(s.Start())
	ts.Defer(s.Stop)
	ts.Setenv("LDAP", s.URL)
	ts.Setenv("LDAP_CA", s.CA)
}

// hasSlapd is the condition slapd. In CI a machine without one is a fault.
func hasSlapd() (bool, error) {
	return testutil.HasSlapd() || os.Getenv("CI") == "true", nil
}
