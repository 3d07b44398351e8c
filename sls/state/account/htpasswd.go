package account

import (
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/bcrypt"

	"corpus-git/internal/crypt3"
	"corpus-git/internal/py"
	"corpus-git/internal/vfs"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/file"
)

// addWebutil adds webutil.user_exists and user_absent: lines of an Apache password file.
func addWebutil(t *core.Table) {
	t.Add("webutil.user_exists", "password htpasswd_file options force runas update", htpasswdUser)
	t.Add("webutil.user_absent", "htpasswd_file runas", htpasswdAbsent)
	t.Alias("htpasswd", "webutil")
}

func htpasswd(c *core.Call) (path string, lines []string, at int, fail string) {
	path = c.ExpandUser(c.Str("htpasswd_file", ""))
	if !filepath.IsAbs(path) {
		return path, nil, -1, "htpasswd_file must be an absolute path"
	}
	at = -1
	b, err := vfs.ReadFollowed(path, vfs.MaxRead)
	if err != nil && !os.IsNotExist(err) {
		return path, nil, -1, core.Cause(err)
	}
	lines = core.SplitKeep(string(b))
	for i, l := range lines {
		if strings.HasPrefix(l, c.Name+":") {
			at = i
		}
	}
	return path, lines, at, ""
}

func writeHtpasswd(c *core.Call, path string, lines []string) error {
	data := []byte(strings.Join(lines, ""))
	if core.Exists(path) {
		return c.Rewrite(path, data)
	}
	return file.WriteNew(c, path, file.Managed{Data: data})
}

// htpasswdUser implements webutil.user_exists; the hash is made here, so that the password appears on no
// command line. Source: Salt documentation, webutil state; htpasswd(1) for options.
func htpasswdUser(c *core.Call) core.Return {
	if c.Name == "" || strings.ContainsAny(c.Name, ":\n") {
		return core.Failf("The name of a user must not be empty or hold a colon")
	}
	path, lines, at, fail := htpasswd(c)
	if fail != "" {
		return core.Failf("%s", fail)
	}
	password := c.Str("password", "")
	if at >= 0 && !c.Bool("force", false) {
		if !c.Bool("update", false) || htpasswdMatches(strings.TrimSpace(lines[at][len(c.Name)+1:]), password) {
			return core.OKf("User already known")
		}
	}
	if c.Test {
		return core.Would(py.NewDict(c.Name, true), "User '%s' is set to be added to htpasswd file", c.Name)
	}
	hash, err := htpasswdHash(c.Str("options", ""), password)
	if err != "" {
		return core.Failf("%s", err)
	}
	line := c.Name + ":" + hash + "\n"
	if at >= 0 {
		lines[at] = line
	} else {
		if n := len(lines); n > 0 && !strings.HasSuffix(lines[n-1], "\n") {
			lines[n-1] += "\n"
		}
		lines = append(lines, line)
	}
	if err := writeHtpasswd(c, path, lines); err != nil {
		return core.Failf("%s: %s", path, core.Cause(err))
	}
	return core.Return{Result: core.True, Changes: py.NewDict(c.Name, true)}
}

func htpasswdAbsent(c *core.Call) core.Return {
	path, lines, at, fail := htpasswd(c)
	if fail != "" {
		return core.Failf("%s", fail)
	}
	if at < 0 {
		return core.OKf("User already not in file")
	}
	if c.Test {
		return core.Would(py.NewDict(c.Name, true), "User '%s' is set to be removed from htpasswd file", c.Name)
	}
	if err := writeHtpasswd(c, path, append(lines[:at:at], lines[at+1:]...)); err != nil {
		return core.Failf("%s: %s", path, core.Cause(err))
	}
	return core.Return{Result: core.True, Changes: py.NewDict(c.Name, true)}
}

// htpasswdHash makes the hash that the options of htpasswd request: m (MD5, the default), B, s, p.
func htpasswdHash(options, password string) (hash, fail string) {
	switch {
	case strings.ContainsRune(options, 'B'):
		h, err := bcrypt.GenerateFromPassword([]byte(password), 10)
		if err != nil {
			return "", "the password cannot be hashed with bcrypt: it is longer than 72 bytes"
		}
		return strings.Replace(string(h), "$2a$", "$2y$", 1), ""
	case strings.ContainsRune(options, 's'):
		sum := sha1.Sum([]byte(password))
		return "{SHA}" + base64.StdEncoding.EncodeToString(sum[:]), ""
	case strings.ContainsRune(options, 'p'):
		return password, ""
	case strings.ContainsRune(options, 'd'):
		return "", "the option d (crypt) is not supported: use m or B"
	}
	return apr1(password, cryptSalt(8)), ""
}

// cryptSalt returns a random salt for a hash.
func cryptSalt(n int) string {
	salt := make([]byte, n)
	_, _ = rand.Read(salt) // never fails
	for i := range salt {
		salt[i] = crypt3.Letters[salt[i]&63]
	}
	return string(salt)
}

func htpasswdMatches(hash, password string) bool {
	switch {
	case strings.HasPrefix(hash, "$apr1$"):
		p := strings.Split(hash, "$")
		return len(p) == 4 && apr1(password, p[2]) == hash
	case strings.HasPrefix(hash, "$2"):
		return bcrypt.CompareHashAndPassword([]byte(hash), []byte(password)) == nil
	case strings.HasPrefix(hash, "{SHA}"):
		sum := sha1.Sum([]byte(password))
		return hash == "{SHA}"+base64.StdEncoding.EncodeToString(sum[:])
	}
	return hash == password
}

// apr1 is Apache's MD5 password hash. Source: Apache documentation, "Password Formats".
func apr1(password, salt string) string {
	return "$apr1$" + salt + "$" + crypt3.MD5(password, salt, "$apr1$")
}
