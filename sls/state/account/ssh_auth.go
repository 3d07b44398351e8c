package account

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"

	"corpus-git/internal/vfs"
	"corpus-git/sls/host"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/fetch"
	"corpus-git/sls/state/file"
)

// addSSHAuth adds Salt's ssh_auth module: lines of a user's authorized_keys.
func addSSHAuth(t *core.Table) {
	const params = "user! enc comment source options config fingerprint_hash_type?"
	t.Add("ssh_auth.present", params+" **", func(c *core.Call) core.Return { return authorize(c, true) })
	t.Add("ssh_auth.absent", params, func(c *core.Call) core.Return { return authorize(c, false) })
}

// authKey is one line of authorized_keys.
type authKey struct{ options, enc, key, comment string }

// line returns the key as Salt writes it: with a space before the comment, also if there is none.
func (k authKey) line() string {
	line := k.enc + " " + k.key + " " + k.comment
	if k.options != "" {
		line = k.options + " " + line
	}
	return line
}

// in returns the last line that has the key, -1 if there is none; same reports whether the whole line is equal.
func (k authKey) in(lines []string) (at int, same bool) {
	at = -1
	for i, l := range lines {
		if old, ok := parseAuthKey(l); ok && old.key == k.key {
			at, same = i, old == k
		}
	}
	return at, same
}

// decodes reports whether the key is valid base64.
func (k authKey) decodes() bool {
	_, err := base64.StdEncoding.DecodeString(k.key)
	return err == nil
}

// keyTypes are the types of keys that Salt accepts besides the short names of keyType.
// Source: sshd(8), AUTHORIZED_KEYS FILE FORMAT; salt/modules/ssh.py.
const keyTypes = " ssh-rsa ssh-dss ssh-ed25519 ecdsa-sha2-nistp256 ecdsa-sha2-nistp384 ecdsa-sha2-nistp521 rsa-sha2-512 rsa-sha2-256 " +
	"rsa-sha2-512-cert-v01@openssh.com rsa-sha2-256-cert-v01@openssh.com ssh-rsa-cert-v01@openssh.com " +
	"ecdsa-sha2-nistp256-cert-v01@openssh.com ecdsa-sha2-nistp384-cert-v01@openssh.com ecdsa-sha2-nistp521-cert-v01@openssh.com " +
	"sk-ecdsa-sha2-nistp256@openssh.com sk-ecdsa-sha2-nistp256-cert-v01@openssh.com ssh-ed25519-cert-v01@openssh.com " +
	"sk-ssh-ed25519@openssh.com sk-ssh-ed25519-cert-v01@openssh.com "

// keyType returns the type that enc names, as it appears in a line.
func keyType(enc string) (string, error) {
	switch enc {
	case "r", "rsa":
		return "ssh-rsa", nil
	case "d", "dsa", "dss":
		return "ssh-dss", nil
	case "e", "ecdsa":
		return "ecdsa-sha2-nistp256", nil
	case "ed25519":
		return "ssh-ed25519", nil
	}
	if enc == "" || strings.Contains(enc, " ") || !strings.Contains(keyTypes, " "+enc+" ") {
		return "", core.Errorf("Incorrect encryption key type '%s'.", enc)
	}
	return enc, nil
}

func isKeyType(s string) bool {
	return strings.HasPrefix(s, "ssh-") || strings.HasPrefix(s, "ecdsa-") || strings.HasPrefix(s, "sk-")
}

// parseAuthKey reads a line; ok is false for one that is not a key. Source: sshd(8), AUTHORIZED_KEYS FILE FORMAT.
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
			return nil, core.Errorf("Failed to add the ssh key. Source file %s is missing", src)
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
		k = authKey{enc: c.Str("enc", "ssh-rsa")}
		k.key, k.comment, _ = strings.Cut(strings.TrimSpace(c.Name), " ")
		k.comment = strings.TrimSpace(k.comment)
	}
	var err error
	if k.enc, err = keyType(k.enc); err != nil {
		return nil, err
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
	if err != nil && !c.Test { // in a test run an earlier state may make the account
		if !want {
			return core.OKf("Key not present")
		}
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
	label := keys[0].key
	if c.Str("source", "") != "" {
		label = c.Name // Salt reports all keys of a source under the name of the state
	}
	lines, ret, did := changeKeys(keys, lines, want, label)
	if ret.Result == core.False {
		return ret
	}
	if !ret.Changed() {
		if want {
			return core.OKf("The authorized host key %s is already present for user %s", label, name)
		}
		return core.OKf("Key not present")
	}
	if strings.HasPrefix(path, u.Home) && !core.IsDir(u.Home) {
		return core.Failf("Failed to add the ssh key. Is the home directory available, and/or does the key file exist?")
	}
	if err := writeKeys(c, path, lines, u); err != nil {
		return core.Failf("%s", core.Cause(err))
	}
	ret.Comment = "The authorized host key " + label + " for user " + name + " was " + did
	if !want {
		ret.Comment = "Key removed"
	}
	return ret
}

// changeKeys adds keys to the lines of a file, or removes them. did is what was done overall, in Salt's words.
func changeKeys(keys []authKey, lines []string, want bool, label string) (_ []string, ret core.Return, did string) {
	ret, did = core.Return{Result: core.True}, "added"
	for _, k := range keys {
		if want && !k.decodes() {
			return nil, core.Failf("Invalid public ssh key, most likely has spaces or invalid syntax"), ""
		}
		switch at, same := k.in(lines); {
		case want && at < 0:
			lines = append(lines, k.line())
			if did == "added" {
				ret.Set(label, "New")
			}
		case want && !same:
			lines[at] = k.line()
			ret.Set(label, "Updated")
			did = "updated"
		case !want && at >= 0:
			lines = append(lines[:at:at], lines[at+1:]...)
			ret.Set(label, "Removed")
		}
	}
	return lines, ret, did
}

// writeKeys writes a file of authorized keys for its user, with the folders above it.
func writeKeys(c *core.Call, path string, lines []string, u host.User) error {
	uid, gid := u.UID, u.GID
	o := core.Owner{User: &uid, Group: &gid, UserName: u.Name, GrpName: c.GroupName(gid)}
	if c.Host.EUID != 0 {
		o = core.Owner{}
	}
	if dir := filepath.Dir(path); !core.IsDir(dir) {
		mode := os.FileMode(0o700)
		if err := c.MakeDirs(dir, o, &mode); err != nil {
			return err
		}
	}
	data := strings.Join(lines, "\n") + "\n"
	if len(lines) == 0 {
		data = ""
	}
	if core.Exists(path) {
		return c.Rewrite(path, []byte(data))
	}
	mode := os.FileMode(0o600)
	return file.WriteNew(c, path, file.Managed{Data: []byte(data), Owner: o, Mode: &mode})
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
