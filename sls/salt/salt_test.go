package salt_test

import (
	"os"
	"testing"

	"corpus-git/sls/salt"
)

// saltCall is the real Salt: the salt-call that SALT_CALL names, or that in PATH. Package slstest holds every tree of
// its suite against a session.
func saltCall(t testing.TB) string {
	bin, named := os.LookupEnv("SALT_CALL")
	if !named {
		bin = salt.Find(os.Environ())
	}
	if bin == "" {
		t.Skip("salt-call is not installed; set SALT_CALL to the path of one")
	}
	return bin
}
