package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"corpus-git/access"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

// byConfig is the actor recorded for changes of admin_keys.
const byConfig = "configuration"

// syncAdmins makes the keys of admin_keys administrators, and removes those that are no longer listed.
func (c *core) syncAdmins(ctx context.Context, lines []string) error {
	by := access.Identity{Name: byConfig, Admin: true, From: "local"}
	wanted := map[string]bool{}
	for i, line := range lines {
		pub, comment, err := access.ParsePublicKey([]byte(line))
		if err != nil {
			return fault.New(fault.Usage, fmt.Sprintf("admin_keys, item %d", i+1), "%w", err)
		}
		wanted[access.Fingerprint(pub)] = true
		if k, ok, err := c.access.FindByKey(ctx, pub); err != nil {
			return err
		} else if ok {
			if !k.Admin {
				c.log.Warn().Str("key", k.Name).Msg("admin_keys lists a key that was added without --admin: it stays what it is")
			}
			continue
		}
		name := adminName(comment, i)
		_, taken := c.access.FindPrincipal(ctx, name)
		if _, err := c.access.FindByName(ctx, name); err == nil || taken == nil {
			name = fmt.Sprintf("%.50s-%s", name, strings.NewReplacer("/", "", "+", "").Replace(access.Fingerprint(pub)[7:15]))
		}
		if _, err := c.access.AddKey(ctx, by, name, []byte(line), true); err != nil {
			return err
		}
	}
	keys, err := c.access.ListKeys(ctx)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if k.AddedBy == byConfig && !wanted[k.Fingerprint] {
			if err := c.access.RemoveKey(ctx, by, k.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// adminName derives the name of a key from its comment.
func adminName(comment string, i int) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._@+-", r) {
			return r
		}
		return '-'
	}, comment)
	if _, err := access.ParseName(name); err != nil {
		return fmt.Sprintf("admin-%d", i+1)
	}
	return name
}

// tokenFile is the file with the token for the pages.
const tokenFile = "http_token"

// webToken reads the token from the state directory; it is generated once.
func (c *core) webToken() (string, error) {
	path := filepath.Join(c.state.Path(), tokenFile)
	text, err := os.ReadFile(path)
	if err == nil {
		if token := strings.TrimSpace(string(text)); len(token) >= 32 {
			return token, nil
		}
		return "", fault.New(fault.Refused, "http_listen", "%s holds no token of at least 32 characters", path).WithHint("remove it: a new one is made")
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	var b [24]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	token := hex.EncodeToString(b[:])
	if err := vfs.WriteFileAtomic(vfs.OS{}, path, []byte(token+"\n"), 0o600); err != nil {
		return "", err
	}
	c.log.Info().Str("file", path).Msg("made the token that HTTP clients must send")
	return token, nil
}
