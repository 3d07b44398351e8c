// Package testutil holds what tests of several packages need. Nothing but tests imports it.
package testutil
