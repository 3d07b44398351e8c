package sshd_test

import (
	"crypto/rand"
	mathrand "math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"corpus-git/internal/vfs"
	"corpus-git/internal/vfs/vfstest"
	"corpus-git/receive/sshd"
)

func keyFiles(f vfs.FS) sshd.KeyFiles {
	return sshd.KeyFiles{FS: f, Ed25519: "/s/ed", ECDSA: "/s/ec", Retired: "/s/retired", Random: rand.Reader}
}

func prints(keys []ssh.Signer) (out []string) {
	for _, k := range keys {
		out = append(out, ssh.FingerprintSHA256(k.PublicKey()))
	}
	return out
}

func published(t *testing.T, f vfs.FS, path string) string {
	text, err := vfs.ReadFile(f, path+".pub")
	require.NoError(t, err)
	k, _, _, _, err := ssh.ParseAuthorizedKey(text)
	require.NoError(t, err)
	return ssh.FingerprintSHA256(k)
}

func TestRotate(t *testing.T) {
	m := vfstest.NewMem(time.Unix(0, 0)).FS()
	f := keyFiles(m)
	old, made, err := f.Load()
	require.NoError(t, err)
	require.Equal(t, []string{"/s/ed", "/s/ec"}, made)
	require.Empty(t, old.Next)
	require.NoError(t, f.Retire(), "without a next key nothing changes")

	began, err := f.Rotate()
	require.NoError(t, err)
	require.True(t, began)
	began, err = f.Rotate()
	require.NoError(t, err)
	require.False(t, began)
	during, made, err := f.Load()
	require.NoError(t, err)
	require.Empty(t, made)
	require.Equal(t, prints(old.Current), prints(during.Current))
	require.Len(t, during.Next, 2)
	require.Empty(t, during.Retired)

	require.NoError(t, f.Retire())
	after, _, err := f.Load()
	require.NoError(t, err)
	require.Equal(t, prints(during.Next), prints(after.Current))
	require.Empty(t, after.Next)
	require.Len(t, after.Retired, 2)
	require.Equal(t, prints(after.Current), []string{published(t, m, "/s/ed"), published(t, m, "/s/ec")})
	_, err = m.Lstat("/s/ed.next.pub")
	require.ErrorIs(t, err, syscall.ENOENT)
}

// Each call fails once, and the machine loses its power then: there is a key of each type, an old or a new one; none that is used counts as retired; and the same command ends what was begun.
func TestRotateAfterACrash(t *testing.T) {
	for i := range 8 {
		retire := i%2 == 0
		var keep *mathrand.Rand // nothing that was not synced survives
		if i > 1 {
			keep = mathrand.New(mathrand.NewPCG(uint64(i), 1))
		}
		for n := 1; ; n++ {
			disk := vfstest.NewMem(time.Unix(0, 0))
			m := disk.FS()
			old, _, err := keyFiles(m).Load()
			require.NoError(t, err)
			var next []string
			if retire {
				_, err := keyFiles(m).Rotate()
				require.NoError(t, err)
				k, _, err := keyFiles(m).Load()
				require.NoError(t, err)
				next = prints(k.Next)
			}
			broken := vfstest.New(m, vfstest.CrashAt(n))
			f := keyFiles(broken)
			if retire {
				err = f.Retire()
			} else {
				_, err = f.Rotate()
			}
			if broken.Count() < n { // all calls have been broken
				require.NoError(t, err)
				break
			}
			ended := err == nil // a file that was read could not be closed
			m = disk.Crash(keep).FS()
			f = keyFiles(m)
			k, made, err := f.Load()
			require.NoError(t, err, "call %d", n)
			require.Empty(t, made)
			if ended && retire {
				require.Equal(t, next, prints(k.Current), "call %d: durable on return", n)
			}
			for i, have := range prints(k.Current) {
				if have != prints(old.Current)[i] {
					require.True(t, retire)
					require.Equal(t, next[i], have)
				}
				for _, r := range k.Retired {
					require.NotEqual(t, have, ssh.FingerprintSHA256(r))
				}
			}
			require.Equal(t, prints(k.Current), []string{published(t, m, "/s/ed"), published(t, m, "/s/ec")})
			if retire {
				require.NoError(t, f.Retire())
			} else {
				_, err := f.Rotate()
				require.NoError(t, err)
			}
			k, _, err = f.Load()
			require.NoError(t, err)
			if retire {
				require.Equal(t, next, prints(k.Current), "call %d", n)
				require.Len(t, k.Retired, 2)
			} else {
				require.Len(t, k.Next, 2)
			}
		}
	}
}
