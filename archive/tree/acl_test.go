package tree

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzACL checks that what was read from a file system is converted back unchanged, and that nothing else is accepted as an ACL.
func FuzzACL(f *testing.F) {
	f.Add([]byte("\x02\x00\x00\x00\x01\x00\x06\x00\xff\xff\xff\xff\x02\x00\x04\x00\xd2\x04\x00\x00"), "user::rw-,other::---")
	f.Fuzz(func(t *testing.T, acl []byte, text string) {
		if x := aclText(acl); x != "" {
			back, err := aclBytes(x)
			require.NoError(t, err)
			require.Equal(t, x, aclText(back))
		}
		if b, err := aclBytes(text); err == nil {
			_, err := aclBytes(aclText(b))
			require.NoError(t, err)
		}
	})
}

func TestACLText(t *testing.T) {
	acl := "\x02\x00\x00\x00" + "\x01\x00\x07\x00\xff\xff\xff\xff" + "\x02\x00\x05\x00\xe8\x03\x00\x00" + "\x04\x00\x04\x00\xff\xff\xff\xff" +
		"\x08\x00\x06\x00\x01\x00\x00\x00" + "\x10\x00\x07\x00\xff\xff\xff\xff" + "\x20\x00\x00\x00\xff\xff\xff\xff"
	require.Equal(t, "user::rwx,user:1000:r-x,group::r--,group:1:rw-,mask::rwx,other::---", aclText([]byte(acl)))
	back, err := aclBytes(aclText([]byte(acl)))
	require.NoError(t, err)
	require.Equal(t, acl, string(back))
	for _, bad := range []string{"", "user", "user::rw", "user::rwq", "mask:1:rwx", "user:x:rwx", "nobody::rwx", "user:5000000000:rwx"} {
		_, err := aclBytes(bad)
		require.ErrorIs(t, err, ErrBadACL, bad)
	}
	for _, bad := range []string{"", "\x02\x00\x00\x00x", "\x03\x00\x00\x00", "\x02\x00\x00\x00" + "\x03\x00\x07\x00\xff\xff\xff\xff"} {
		require.Empty(t, aclText([]byte(bad)))
	}
}
