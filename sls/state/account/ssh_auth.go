package account

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"

	"corpus-git/internal/vfs"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/fetch"
	"corpus-git/sls/state/file"
)

// addSSHAuth adds Salt's ssh_auth module: lines of a user's authorized_keys.
func addSSHAuth(t *core.Table) {
	const params = "user! enc comment source options config fingerprint_hash_type?"
	t.Add("ssh_auth.present", params, func(c *core.Call) core.Return { return authorize(c, true) })
	t.Add("ssh_auth.absent", params, func(c *core.Call) core.Return { return authorize(c, false) })
}

// authKey is one line of authorized_keys.
type authKey struct{ options, enc, key, comment string }

func (k authKey) line() string {
	var parts []string
	for _, s := range []string{k.options, k.enc, k.key, k.comment} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, " ")
}

// in is the last line that has the key, -1 where none has; same reports whether all of it is the same.
func (k authKey) in(lines []string) (at int, same bool) {
	at = -1
	for i, l := range lines {
		if old, ok := parseAuthKey(l); ok && old.key == k.key {
			at, same = i, old == k
		}
	}
	return at, same
}

// decodes reports whether the key is one in base64. Python leaves out what is no letter of it.
func (k authKey) decodes() bool {
	letters := strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("+/=", r)) {
			return r
		}
		return -1
	}, k.key)
	_, err := base64.StdEncoding.DecodeString(letters)
	return err == nil
}

func isKeyType(s string) bool {
	return strings.HasPrefix(s, "ssh-") || strings.HasPrefix(s, "ecdsa-") || strings.HasPrefix(s, "sk-")
}

// parseAuthKey reads a line; ok is false for one that is no key. Source: sshd(8), AUTHORIZED_KEYS FILE FORMAT.
func parseAuthKey(line string) (k authKey, ok bool) {
	line = strings.TrimSpace(line)
	if line == "" || line[0] == '#' {
		return k, false
	}
	quoted := false
	end := len(line)
	for i := 0; i < len(line); i++ {
		if line[i] == '"' && (i == 0 || line[i-1] != '\\') {
			quoted = !quoted
		}
		if line[i] == ' ' && !quoted {
			end = i
			break
		}
	}
	if !isKeyType(line[:end]) {
		k.options, line = line[:end], strings.TrimSpace(line[end:])
	}
	f := strings.SplitN(line, " ", 3)
	if len(f) < 2 || !isKeyType(f[0]) {
		return k, false
	}
	k.enc, k.key = f[0], f[1]
	if len(f) == 3 {
		k.comment = strings.TrimSpace(f[2])
	}
	return k, true
}

func wantedKeys(c *core.Call) ([]authKey, error) {
	if src := c.Str("source", ""); src != "" {
		data, _, err := fetch.File(c, src)
		if err != nil {
			return nil, err
		}
		var out []authKey
		for _, l := range strings.Split(string(data), "\n") {
			if k, ok := parseAuthKey(l); ok && k.decodes() {
				if o := c.Strings("options"); len(o) > 0 && !c.Test {
					k.options = strings.Join(o, ",")
				}
				out = append(out, k)
			}
		}
		if len(out) == 0 {
			return nil, core.Errorf("No keys detected in %s. Is file properly formatted?", src)
		}
		return out, nil
	}
	k, ok := parseAuthKey(c.Name)
	if !ok {
		enc := c.Str("enc", "ssh-rsa")
		switch enc {
		case "rsa", "dsa", "ed25519":
			enc = "ssh-" + enc
		case "ecdsa":
			enc = "ecdsa-sha2-nistp256"
		}
		k = authKey{enc: enc, key: strings.TrimSpace(c.Name)}
	}
	if v := c.Str("comment", ""); v != "" && k.comment == "" {
		k.comment = v
	}
	if o := c.Strings("options"); len(o) > 0 && k.options == "" {
		k.options = strings.Join(o, ",")
	}
	return []authKey{k}, nil
}

// authorize implements ssh_auth.present and absent. Source: Salt documentation, ssh_auth state.
func authorize(c *core.Call, want bool) core.Return {
	name := c.Str("user", "")
	if name == "" {
		return core.Failf("the argument user is required")
	}
	u, err := c.Host.Users.User(name)
	if err != nil && !c.Test { // an earlier state may make the account
		return core.Failf("User %s is not available", name)
	}
	config := c.Str("config", ".ssh/authorized_keys")
	config = strings.NewReplacer("%h", u.Home, "%u", u.Name, "%%", "%").Replace(config)
	path := config
	if !filepath.IsAbs(path) {
		path = filepath.Join(u.Home, config)
	}
	keys, kerr := wantedKeys(c)
	if kerr != nil {
		return core.Failf("%s", kerr)
	}
	var b []byte
	if err == nil {
		if b, err = vfs.ReadFollowed(path, vfs.MaxRead); err != nil && !os.IsNotExist(err) {
			return core.Failf("%s", core.Cause(err))
		}
	}
	lines := core.SplitLines(string(b))
	if c.Test {
		return wouldAuthorize(c, want, keys, lines)
	}
	ret, did := core.Return{Result: core.True}, "added"
	for _, k := range keys {
		switch at, same := k.in(lines); {
		case want && at < 0:
			lines = append(lines, k.line())
			ret.Set(k.key, "New")
		case want && !same:
			lines[at] = k.line()
			ret.Set(k.key, "Updated")
			did = "updated"
		case !want && at >= 0:
			lines = append(lines[:at:at], lines[at+1:]...)
			ret.Set(k.key, "Removed")
		}
	}
	if !ret.Changed() {
		if want {
			return core.OKf("The authorized host key %s is already present for user %s", keys[0].key, name)
		}
		return core.OKf("Key not present")
	}
	uid, gid := u.UID, u.GID
	o := core.Owner{User: &uid, Group: &gid, UserName: name, GrpName: c.GroupName(gid)}
	if c.Host.EUID != 0 {
		o = core.Owner{}
	}
	if dir := filepath.Dir(path); !core.IsDir(dir) {
		mode := os.FileMode(0o700)
		if err := c.MakeDirs(dir, o, &mode); err != nil {
			return core.Failf("%s", core.Cause(err))
		}
	}
	data := strings.Join(lines, "\n") + "\n"
	if len(lines) == 0 {
		data = ""
	}
	if core.Exists(path) {
		err = c.Rewrite(path, []byte(data))
	} else {
		mode := os.FileMode(0o600)
		err = file.WriteNew(c, path, file.Managed{Data: []byte(data), Owner: o, Mode: &mode})
	}
	if err != nil {
		return core.Failf("%s", core.Cause(err))
	}
	ret.Comment = "The authorized host key " + keys[0].key + " for user " + name + " was " + did
	if !want {
		ret.Comment = "Key removed"
	}
	return ret
}

// wouldAuthorize is ssh_auth in a test run.
func wouldAuthorize(c *core.Call, want bool, keys []authKey, lines []string) core.Return {
	user, source := c.Str("user", ""), c.Str("source", "")
	todo := ""
	for _, k := range keys {
		at, same := k.in(lines)
		status := "add"
		switch {
		case at >= 0 && same:
			status = "exists"
		case at >= 0:
			status = "update"
		}
		switch {
		case source != "" && want && status != "exists":
			todo += "Set to " + status + ": " + k.key + "\n"
		case source != "" && !want && status != "add":
			todo += "Set to remove: " + k.key + "\n"
		case source != "":
		case want && status == "exists":
			return core.OKf("The authorized host key %s is already present for user %s", k.key, user)
		case want:
			return core.Would(nil, "Key %s for user %s is set to be %s", k.key, user, map[string]string{"add": "added", "update": "updated"}[status])
		case status == "add":
			return core.OKf("Key is already absent")
		default:
			return core.Would(nil, "Key %s for user %s is set for removal", k.key, user)
		}
	}
	if todo != "" {
		return core.Would(nil, "%s", todo)
	}
	return core.OKf("All host keys in file %s are already %s", source, map[bool]string{true: "present", false: "absent"}[want])
}
