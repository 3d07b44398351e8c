package notify

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPrivate(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1": true, "::1": true, "10.1.2.3": true, "172.16.0.1": true, "192.168.1.1": true, "169.254.169.254": true, "fe80::1%eth0": true, "fd00::1": true, "0.0.0.0": true, "::": true,
		"100.64.0.1": true, "255.255.255.255": true, "224.0.0.1": true, "ff02::1": true, "::ffff:127.0.0.1": true, "64:ff9b::7f00:1": true, "64:ff9b::10.0.0.1": true, "2002:7f00:1::": true, "::127.0.0.1": true,
		"2001::1": true, "198.18.0.1": true, "240.0.0.1": true, "fec0::1": true,
		"1.1.1.1": false, "2606:4700::1111": false, "64:ff9b::101:101": false, "172.32.0.1": false, "100.128.0.1": false, "::ffff:8.8.8.8": false,
	} {
		require.Equal(t, want, private(netip.MustParseAddr(address)), address)
	}
}
