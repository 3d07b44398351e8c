package crypt3_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/crypt3"
)

// The expected hashes are those of libxcrypt.
func TestHash(t *testing.T) {
	for _, c := range [][3]string{
		{"secret", "$6$saltsalt", "$6$saltsalt$TVLlQcbpFVof5W3Yz4DTP6gRstiNuHwwTt6GLc1E5n0U0aDehy0S5knV8wiOQSpT0Y77vwPZN.Pq.H91p5hVO1"},
		{"", "$6$x", "$6$x$QSmr1Bx2g4O6BzKvdkgOcyU6H91X6I/XBv5pSalMhSPkwdH6Beo3F455xZJg0v//bxVK5F4OE5k1.0xuR26MK0"},
		{"pässwörd", "$5$abc", "$5$abc$cgcp2e9c21faVh2fikKWNSIEdf8n1mYAJJcgUrG8di/"},
		{"secret", "$1$abcdefgh", "$1$abcdefgh$cHJi5PXp/ki/ktXzqlk6I1"},
		{"a much longer password than sixteen, and than sixty-four bytes, which is the size of a hash", "$1$longersalt", "$1$longersa$lgLq.H49wABM/L9v33zbY/"},
		{"a much longer password than sixteen, and than sixty-four bytes, which is the size of a hash", "$6$longersaltthanitmaybe", "$6$longersaltthanit$eza4towNzjkdSrTZCLpCwZTnA3e2fVPf31BYRnONt.za.NbXXQUnyKIvRWbHRpJGuNr2pruTHwzy.u3cB7VW9/"},
		{"secret", "$5$saltsalt$whatfollows", "$5$saltsalt$0IyaXrmV7.sGNS6tirgqHLqX/G.FBvgkYA.lpPdS5sA"},
		{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "$5$s", "$5$s$yBh69N5Y/es8yFfV8TGlJ8GxfXGCEd.Tax6k7U2/bT."},
		{"secret", "$6$SALTsalt", "$6$SALTsalt$1Wk0kLlYjGkSti/2.n7SWkk7Hgtc39LLACR54KNz4nWmO1SlmnEYTbZsAjRODv2Mn.h8lcAcKjRBe2cqItRNk1"},
		{"x", "$6$", "$6$$KvRrc0bxRLyTUhO8OJOmRczh7oCol5BACiR8rmdfVzvuGgm8JmLDumsL/ah.jFtT.DswxoP9Nv3ByfU4j5hm/0"},
		{"x", "$2b$12$abc", ""}, {"x", "$y$j9T$abc$", ""}, {"x", "ab", ""}, {"x", "$7$x", ""}, {"x", "$6$rounds=x$abc", ""}, {"x", "$6$a:b", ""}, {"a\x00b", "$6$x", ""},
	} {
		got, ok := crypt3.Hash(c[0], c[1])
		require.Equal(t, c[2], got, c[1])
		require.Equal(t, c[2] != "", ok)
	}
	require.Equal(t, "h9FWgUz3n9YxylKLlR5SQ/", crypt3.MD5("secret", "abcdefgh", "$apr1$"))
}
