// Package testutil holds helpers for the tests of several packages. Only tests import it.
package testutil
