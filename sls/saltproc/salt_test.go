package saltproc_test

import (
	"os"
	"testing"

	"corpus-git/sls"
	"corpus-git/sls/saltproc"
	"corpus-git/sls/slstest"
)

// saltCall is the real Salt: CORPUS_GIT_TEST_SALT, or salt-call in PATH.
func saltCall(t testing.TB) string {
	bin := os.Getenv("CORPUS_GIT_TEST_SALT")
	if bin == "" {
		bin = sls.FindSaltCall(os.Environ())
	}
	if bin == "" {
		t.Skip("salt-call is not installed; set CORPUS_GIT_TEST_SALT to the path of one")
	}
	return bin
}

// TestConformance holds the driver against what salt-call did with each tree of the suite.
func TestConformance(t *testing.T) {
	if os.Getenv("CORPUS_GIT_TEST_SALT_SUITE") == "" {
		t.Skip("set CORPUS_GIT_TEST_SALT_SUITE for the whole suite: it starts Salt once for each tree")
	}
	bin := saltCall(t)
	slstest.Run(t, slstest.Options{New: func(t *testing.T, dir string) sls.Runner {
		s := saltproc.New(bin, dir)
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return s
	}})
}
