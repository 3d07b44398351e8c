package pkgrepo

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/host"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/fetch"
)

// aptKeyTool reports whether keys are given to apt-key, which newer releases do not have, and not kept as files.
func aptKeyTool(c *core.Call) bool { return c.Bool("aptkey", true) && c.Installed("apt-key") }

// aptKey gets the key of a repository from the source set by the arguments. signedBy is the file that the repository
// names, "" if it names none. Source: apt-secure(8); Salt documentation, pkg.add_repo_key.
func aptKey(c *core.Call, signedBy string) error {
	switch {
	case c.Has("keyid"):
		return aptKeyIDs(c, signedBy)
	case c.Has("key_url"):
		return aptKeyURL(c, signedBy)
	case c.Has("key_text"):
		if out, _ := c.ToolShell(host.Shell{Argv: []string{"apt-key", "add", "-"}, Stdin: c.Str("key_text", "")}); !isOK(out) {
			return core.Errorf("Error: failed to add key (key_text needs apt-key; key_url takes a file too)")
		}
	}
	return nil
}

func isOK(out string) bool { return strings.HasPrefix(strings.ToUpper(out), "OK") }

// keyID returns a key's ID as text: YAML makes a number of some.
func keyID(v any) string {
	if n, ok := v.(int64); ok {
		return fmt.Sprintf("%#x", n)
	}
	return py.Str(v)
}

// aptKeyIDs gets keys from a key server.
func aptKeyIDs(c *core.Call, signedBy string) error {
	server := c.Str("keyserver", "")
	if server == "" {
		return core.Errorf("both keyserver and keyid options required.")
	}
	if !aptKeyTool(c) && signedBy == "" {
		return core.Errorf("keyid needs the option signed-by in the name of the repository: without apt-key the key is kept in that file")
	}
	for _, v := range c.List("keyid") {
		id := keyID(v)
		if aptKeyTool(c) {
			if out, _ := c.Query("apt-key", "export", id); strings.HasPrefix(out, "-----BEGIN PGP") {
				continue
			}
			if err := c.Manual(); err != nil {
				return err
			}
			if out, err := c.Tool("apt-key", "adv", "--batch", "--keyserver", server, "--logger-fd", "1", "--recv-keys", id); err != nil {
				return core.Errorf("Error: key retrieval failed: %s", strings.TrimSpace(out))
			}
			continue
		}
		if file, err := keyFileOf(c, filepath.Dir(signedBy), id); err == nil && file != "" {
			continue
		}
		if err := c.MkdirAll(filepath.Dir(signedBy), 0o755); err != nil {
			return err
		}
		if err := c.Before(signedBy); err != nil {
			return err
		}
		if _, err := c.Tool("gpg", "--no-default-keyring", "--keyring", signedBy, "--keyserver", server, "--recv-keys", id); err != nil {
			return core.Errorf("Error: Could not add key: %s", id)
		}
		if err := os.Chmod(signedBy, 0o644); err != nil { // apt reads it as another user
			return err
		}
	}
	return nil
}

// aptKeyURL gets a key from salt://, a path or an address. An ASCII-armoured key is kept as it is if the file's name
// ends in .asc, otherwise it is stored without armour.
func aptKeyURL(c *core.Call, signedBy string) error {
	url := c.Str("key_url", "")
	data, _, err := fetch.File(c, url)
	if err != nil {
		return core.Errorf("Error: file not found: %s", fetch.RedactURL(url))
	}
	if aptKeyTool(c) {
		if err := c.Manual(); err != nil {
			return err
		}
		out, _ := c.ToolShell(host.Shell{Argv: []string{"apt-key", "add", "-"}, Stdin: string(data)})
		if !isOK(out) {
			return core.Errorf("Error: failed to add key from %s", fetch.RedactURL(url))
		}
		return nil
	}
	file := signedBy
	if file == "" {
		file = filepath.Join(aptDir(c), "keyrings", path.Base(fetch.RedactURL(url)))
	}
	if bytes.HasPrefix(bytes.Trim(data, "-"), []byte("BEGIN PGP")) && !strings.HasSuffix(file, ".asc") {
		if data, err = dearmor(c, data); err != nil {
			return core.Errorf("Error: Could not add key: %s", fetch.RedactURL(url))
		}
	}
	if err := c.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return c.ReplaceFile(file, data, 0o644, -1, -1)
}

// dearmor removes the ASCII armour of a key, using gpg.
func dearmor(c *core.Call, armoured []byte) ([]byte, error) {
	if !c.Installed("gpg") {
		return nil, errors.New("gpg is not installed on this machine")
	}
	dir, err := os.MkdirTemp("", "aptkey-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	in, out := filepath.Join(dir, "key"), filepath.Join(dir, "key.gpg")
	if err := os.WriteFile(in, armoured, 0o600); err != nil {
		return nil, err
	}
	if _, err := c.Tool("gpg", "--yes", "--output", out, "--dearmor", in); err != nil {
		return nil, err
	}
	return os.ReadFile(out)
}

// keyFileOf returns the file of a directory that contains a key, "" if none does.
func keyFileOf(c *core.Call, dir, id string) (string, error) {
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, f := range files {
		file := filepath.Join(dir, f.Name())
		out, _ := c.Query("gpg", "--no-default-keyring", "--keyring", file, "--list-keys", "--with-colons")
		for _, l := range strings.Split(out, "\n") {
			if p := strings.Split(l, ":"); len(p) > 4 && p[0] == "pub" && strings.HasSuffix(p[4], strings.TrimPrefix(id, "0x")) {
				return file, nil
			}
		}
	}
	return "", nil
}

// aptKeyRemove removes a key, and returns its ID, or false if there is none.
func aptKeyRemove(c *core.Call, id string) (any, error) {
	if aptKeyTool(c) {
		if err := c.Manual(); err != nil {
			return nil, err
		}
		if _, err := c.Tool("apt-key", "del", id); err != nil {
			return nil, core.Errorf("Failed to remove keyid %s: %s", id, strings.Join(c.Problems(err), ""))
		}
		return id, nil
	}
	if len(id) != 8 && len(id) != 16 {
		return false, nil
	}
	file, err := keyFileOf(c, filepath.Join(aptDir(c), "keyrings"), id)
	if err != nil || file == "" {
		return false, err
	}
	return id, c.Remove(file)
}
