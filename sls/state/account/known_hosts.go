package account

import (
	"crypto/hmac"
	"crypto/md5" // #nosec G501 -- a kind of fingerprint that recipes name
	"crypto/rand"
	"crypto/sha1" // #nosec G505 -- known_hosts' hashed names are HMAC-SHA1
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/internal/vfs"
	"corpus-git/sls/host"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/file"
)

// addKnownHosts adds Salt's ssh_known_hosts module: the keys of other machines, of one user or of all.
func addKnownHosts(t *core.Table) {
	t.Add("ssh_known_hosts.present", "user fingerprint key port enc config hash_known_hosts timeout fingerprint_hash_type", knowHost)
	t.Add("ssh_known_hosts.absent", "user config", forgetHost)
}

// hostKey is a key of a host, as in a line of known_hosts or ssh-keyscan.
type hostKey struct{ host, enc, key string }

func (k hostKey) value(fingerprint string) *py.Dict {
	return py.NewDict("hostname", k.host, "key", k.key, "enc", k.enc, "fingerprint", fingerprint)
}

// parseHostKeys reads what ssh-keygen -F and ssh-keyscan print; at are the numbers of the lines that were found, in the same order.
func parseHostKeys(text string) (keys []hostKey, at []int) {
	line := 0
	for _, l := range strings.Split(text, "\n") {
		if _, n, ok := strings.Cut(l, " found: line "); ok && strings.HasPrefix(l, "# ") {
			line, _ = strconv.Atoi(strings.TrimSpace(strings.SplitN(n, " ", 2)[0]))
			continue
		}
		f := strings.Fields(l)
		if len(f) == 0 || strings.HasPrefix(l, "#") {
			continue
		}
		if len(f) >= 3 && !strings.HasPrefix(f[0], "@") { // a line with a marker is for a CA key or a revoked key
			keys, at = append(keys, hostKey{f[0], f[1], f[2]}), append(at, line)
		}
	}
	return keys, at
}

// fingerprintOf returns a key's digest in hexadecimal with colons, in the format of the argument fingerprint; "" for an invalid key or an unknown kind
// of digest.
func fingerprintOf(key, kind string) string {
	makes, ok := map[string]func() hash.Hash{"md5": md5.New, "sha1": sha1.New, "sha224": sha256.New224, "sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New}[kind]
	raw, err := base64.StdEncoding.DecodeString(key)
	if !ok || err != nil {
		return ""
	}
	h := makes()
	_, _ = h.Write(raw)
	var pairs []string
	for b := range slices.Values(h.Sum(nil)) {
		pairs = append(pairs, hex.EncodeToString([]byte{b}))
	}
	return strings.Join(pairs, ":")
}

// typeOf returns the type that is encoded in a key; "" for an invalid key. Source: RFC 4253, section 6.6.
func typeOf(key string) string {
	raw, err := base64.StdEncoding.DecodeString(key)
	if err != nil || len(raw) < 4 || strings.ContainsAny(key, "\r\n") { // which base64 of Go skips
		return ""
	}
	n := binary.BigEndian.Uint32(raw)
	if uint64(n) > uint64(len(raw)-4) {
		return ""
	}
	return string(raw[4 : 4+n])
}

// hashedHost returns a name as hashed in known_hosts. Source: OpenSSH, hostfile.c; sshd(8), SSH_KNOWN_HOSTS FILE FORMAT.
func hashedHost(name string) (string, error) {
	salt := make([]byte, sha1.Size)
	if _, err := rand.Read(salt); err != nil {
		return "", err
	}
	h := hmac.New(sha1.New, salt)
	_, _ = h.Write([]byte(name))
	return "|1|" + base64.StdEncoding.EncodeToString(salt) + "|" + base64.StdEncoding.EncodeToString(h.Sum(nil)), nil
}

// knownHosts is the file that a call is about, and its entries for the host.
type knownHosts struct {
	path, config string
	user         *host.User // nil for the file of all users
	name         string     // of the host, with a port that is not 22
	keys         []hostKey
	at           []int
}

// knownHostsOf finds the file and the host's keys in it; done is set if the state has failed, or if a test run has its result.
func knownHostsOf(c *core.Call) (k knownHosts, done *core.Return) {
	fail := func(format string, args ...any) (knownHosts, *core.Return) {
		ret := core.Failf(format, args...)
		return knownHosts{}, &ret
	}
	name := c.Str("user", "")
	k.config, k.name = c.Str("config", "/etc/ssh/ssh_known_hosts"), c.Name
	if name != "" {
		k.config = c.Str("config", ".ssh/known_hosts")
	}
	if port := c.Int("port", 22); port != 22 {
		k.name = "[" + c.Name + "]:" + strconv.FormatInt(port, 10)
	}
	if c.Name == "" || strings.HasPrefix(c.Name, "-") || strings.ContainsAny(c.Name, " \t\r\n,*?") {
		return fail("%q is no name of one host", c.Name)
	}
	k.path = k.config
	switch {
	case name == "" && !filepath.IsAbs(k.config):
		return fail(`If not specifying a "user", specify an absolute "config".`)
	case name != "":
		u, err := c.Host.Users.User(name)
		if err != nil && c.Test { // an earlier state may make the account
			ret := core.Would(nil, "Key for %s is set to be added to %s", c.Name, k.config)
			return k, &ret
		}
		if err != nil {
			return fail("User %s does not exist", name)
		}
		k.user = &u
		k.config = strings.NewReplacer("%h", u.Home, "%u", u.Name, "%%", "%").Replace(k.config)
		if k.path = k.config; !filepath.IsAbs(k.path) {
			k.path = filepath.Join(u.Home, k.config)
		}
	}
	if !c.Installed("ssh-keygen") {
		return fail("ssh-keygen is not installed on this machine")
	}
	if core.Exists(k.path) {
		out, _ := c.Query("ssh-keygen", "-F", k.name, "-f", k.path) // its exit status is 1 if nothing is found
		k.keys, k.at = parseHostKeys(out)
	}
	return k, nil
}

// write rewrites the file without the lines with the given numbers and with others appended.
func (k knownHosts) write(c *core.Call, without []int, with []string) error {
	text, err := vfs.ReadFollowed(k.path, vfs.MaxRead)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	var lines []string
	for i, l := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		if !slices.Contains(without, i+1) && (l != "" || len(text) > 0) {
			lines = append(lines, l)
		}
	}
	lines = append(lines, with...)
	if k.user != nil {
		return writeKeys(c, k.path, lines, *k.user)
	}
	data := []byte(strings.Join(lines, "\n") + "\n")
	if core.Exists(k.path) {
		return c.Rewrite(k.path, data)
	}
	if err := c.MakeDirs(filepath.Dir(k.path), core.Owner{}, nil); err != nil {
		return err
	}
	mode := os.FileMode(0o644) // all users must be able to read it
	return file.WriteNew(c, k.path, file.Managed{Data: data, Mode: &mode})
}

// received returns the keys that the host itself sends now.
func received(c *core.Call) []hostKey {
	argv := []string{"ssh-keyscan", "-T", strconv.FormatInt(c.Int("timeout", 5), 10)}
	if port := c.Int("port", 22); port != 22 {
		argv = append(argv, "-p", strconv.FormatInt(port, 10))
	}
	if enc := c.Str("enc", ""); enc != "" {
		argv = append(argv, "-t", enc)
	}
	for range 3 {
		out, _ := c.Query(append(argv, "--", c.Name)...)
		if keys, _ := parseHostKeys(out); len(keys) > 0 {
			return keys
		}
	}
	return nil
}

// knowHost implements ssh_known_hosts.present. Of the keys that a host sends, those that match the fingerprint are written, or all if none is given.
// Source: Salt documentation, ssh_known_hosts state.
func knowHost(c *core.Call) core.Return {
	k, done := knownHostsOf(c)
	if done != nil {
		return *done
	}
	key, fingerprint, enc, kind := c.Str("key", ""), c.Str("fingerprint", ""), c.Str("enc", ""), c.Str("fingerprint_hash_type", "sha256")
	switch {
	case key != "" && fingerprint != "":
		return core.Failf(`Specify either "key" or "fingerprint", not both.`)
	case key != "" && enc == "":
		return core.Failf(`Required argument "enc" if using "key" argument.`)
	case fingerprintOf("", kind) == "":
		return core.Failf("%s is no kind of fingerprint: md5, sha1, sha224, sha256, sha384 or sha512", kind)
	case c.Int("port", 22) != 22 && c.Bool("hash_known_hosts", true):
		return core.Failf("argument port can not be used in conjunction with argument hash_known_hosts")
	}
	if key != "" {
		of := typeOf(key)
		if want, err := keyType(enc); err != nil || of != want && !(want == "ecdsa-sha2-nistp256" && strings.HasPrefix(of, "ecdsa-")) {
			return core.Failf("The key of %s is none of the type %s", c.Name, enc)
		}
		enc = of
	}
	known := func(want func(h hostKey) bool) bool { return slices.ContainsFunc(k.keys, want) }
	status := "exists"
	switch {
	case len(k.keys) == 0:
		status = "added"
	case key != "" && !known(func(h hostKey) bool { return h.key == key }),
		fingerprint != "" && !known(func(h hostKey) bool { return fingerprintOf(h.key, kind) == fingerprint }):
		status = "updated"
	}
	switch {
	case c.Test && status == "exists":
		return core.OKf("Host %s is already in %s", c.Name, k.config)
	case c.Test:
		return core.Would(nil, "Key for %s is set to be %s to %s", c.Name, status, k.config)
	case status == "exists" && (key != "" || fingerprint != ""):
		return core.OKf("%s already exists in %s", c.Name, k.config)
	}
	fresh := []hostKey{{k.name, enc, key}}
	if key == "" {
		if fresh = received(c); len(fresh) == 0 {
			return core.Failf("Unable to receive remote host keys")
		}
		if fingerprint != "" {
			fresh = slices.DeleteFunc(fresh, func(h hostKey) bool { return fingerprintOf(h.key, kind) != fingerprint })
		}
		if len(fresh) == 0 {
			return core.Failf("Remote host public keys found but none of their fingerprints match the one you have provided")
		}
		if status == "exists" && sameKeys(fresh, k.keys, enc) {
			return core.OKf("%s already exists in %s", c.Name, k.config)
		}
	}
	return k.replace(c, fresh, kind)
}

// sameKeys reports whether two lists have the same keys; of the known ones only those of a type, if one is given.
func sameKeys(fresh, known []hostKey, enc string) bool {
	set := func(keys []hostKey, enc string) (out []string) {
		for _, k := range keys {
			if of, err := keyType(enc); enc == "" || k.enc == enc || err == nil && k.enc == of {
				out = append(out, k.key)
			}
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	return slices.Equal(set(fresh, ""), set(known, enc))
}

// replace replaces the keys of the host, only those of the same type if enc names one.
func (k knownHosts) replace(c *core.Call, fresh []hostKey, kind string) core.Return {
	var without []int
	var old any
	for i, h := range k.keys {
		if old == nil {
			old = py.NewList()
		}
		old.(*py.List).Append(h.value(fingerprintOf(h.key, kind)))
		if c.Str("enc", "") == "" || slices.ContainsFunc(fresh, func(f hostKey) bool { return f.enc == h.enc }) {
			without = append(without, k.at[i])
		}
	}
	var lines []string
	shown := py.NewList()
	for _, h := range fresh {
		name := k.name
		if c.Bool("hash_known_hosts", true) {
			var err error
			if name, err = hashedHost(k.name); err != nil {
				return core.Failf("%s", err)
			}
		}
		lines = append(lines, name+" "+h.enc+" "+h.key)
		shown.Append(h.value(fingerprintOf(h.key, kind)))
	}
	if err := k.write(c, without, lines); err != nil {
		return core.Failf("Couldn't append to known hosts file: '%s'", core.Cause(err))
	}
	what := c.Name + "'s key(s) saved to " + k.config
	switch {
	case c.Str("key", "") != "":
		what = c.Name + "'s key saved to " + k.config + " (key: " + fresh[0].key + ")"
	case c.Str("fingerprint", "") != "":
		what = c.Name + "'s key saved to " + k.config + " (fingerprint: " + c.Str("fingerprint", "") + ")"
	case c.Str("enc", "") != "":
		what = c.Name + "'s " + c.Str("enc", "") + " key saved to " + k.config + " (key: " + fresh[0].key + ")"
	}
	return core.Return{Result: core.True, Changes: py.NewDict("old", old, "new", shown), Comment: what}
}

// forgetHost implements ssh_known_hosts.absent. Source: Salt documentation, ssh_known_hosts state.
func forgetHost(c *core.Call) core.Return {
	k, done := knownHostsOf(c)
	switch {
	case done != nil && done.Result == core.None: // there is no such account yet
		return core.OKf("Host is already absent")
	case done != nil:
		return *done
	case len(k.keys) == 0:
		return core.OKf("Host is already absent")
	case c.Test:
		return core.Would(nil, "Key for %s is set to be removed from %s", c.Name, k.config)
	}
	old := py.NewList()
	for _, h := range k.keys {
		old.Append(h.value(fingerprintOf(h.key, "sha256")))
	}
	if err := k.write(c, k.at, nil); err != nil {
		return core.Failf("%s", core.Cause(err))
	}
	return core.Return{Result: core.True, Changes: py.NewDict("old", old), Comment: k.path + " updated."}
}
