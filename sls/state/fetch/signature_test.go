package fetch

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The lines are those of GnuPG 2.2.
func TestVerification(t *testing.T) {
	const (
		ann = "0919C256906357A6B168B45D5186125BB5F6B521"
		bob = "EEFE9B4FCDC2D88B7C881F68335ECE41E65B6E35"
		sub = "1111111111111111111111111111111111111111"
	)
	valid := func(by, primary string) []string {
		return []string{"NEWSIG", "SIG_ID abc 2020-01-01 1577836800", "GOODSIG 5186125BB5F6B521 ann",
			"VALIDSIG " + by + " 2020-01-01 1577836800 0 4 0 22 8 00 " + primary}
	}
	trust := func(l []string, level string) []string { return append(l, "TRUST_"+level+" 0 pgp") }
	for _, tt := range []struct {
		about   string
		lines   []string
		trusted bool
		keys    []string
	}{
		{"nothing", nil, false, nil},
		{"bad", []string{"NEWSIG", "BADSIG 5186125BB5F6B521 ann"}, false, nil},
		{"no key", []string{"NEWSIG", "ERRSIG 5186125BB5F6B521 22 8 00 1577836800 9 " + ann, "NO_PUBKEY 5186125BB5F6B521"}, false, nil},
		{"good", trust(valid(ann, ann), "UNDEFINED"), true, []string{ann}},
		{"of a subkey", trust(valid(sub, ann), "ULTIMATE"), true, []string{ann}},
		{"without a word on trust", valid(ann, ann), false, nil},
		{"two", append(trust(valid(ann, ann), "FULLY"), trust(valid(bob, bob), "NEVER")...), true, []string{ann, bob}},
		{"bad and good", append([]string{"NEWSIG", "BADSIG 5186125BB5F6B521 ann"}, trust(valid(bob, bob), "MARGINAL")...), true, []string{bob}},
		{"short", []string{"", "VALIDSIG x"}, false, nil},
	} {
		v := &verification{}
		for _, l := range tt.lines {
			v.status(l)
		}
		require.Equal(t, tt.trusted, v.trusted, tt.about)
		require.Equal(t, tt.keys, v.keys, tt.about)
	}
}
