package file

import (
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"corpus-git/internal/configfile"
	"corpus-git/internal/py"
	"corpus-git/internal/vfs"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/fetch"
)

// addConfigured adds corpus.file, which writes one of the files that the configuration of a project contains. The file is one of: text, as it is; base64; jinja,
// a template; or values in a format, merged over those of the existing file if existing is true, without the keys in remove.
func addConfigured(t *core.Table) {
	t.Add("corpus.file", "text base64 jinja format values existing remove within user group mode makedirs show_changes", configured)
}

func configured(c *core.Call) core.Return {
	if within := c.Str("within", ""); within != "" {
		if fail := staysWithin(within, c.Name); fail != "" {
			return core.Failf("%s", fail)
		}
	}
	data, err := configuredData(c)
	if err != nil {
		return core.Failf("%s", core.Cause(err))
	}
	sub := *c
	sub.Args = py.NewDict("name", c.Name, "contents", "", "follow_symlinks", false)
	for _, k := range []string{"user", "group", "mode", "makedirs", "show_changes"} {
		if v, ok := c.Value(k); ok {
			sub.Args.SetStr(k, v)
		}
	}
	sub.Verbatim = data
	return core.Guard(fileManaged)(&sub)
}

// configuredData returns the contents of the file.
func configuredData(c *core.Call) ([]byte, error) {
	switch {
	case c.Has("text"):
		return []byte(c.Str("text", "")), nil
	case c.Has("base64"):
		return base64.StdEncoding.DecodeString(strings.Join(strings.Fields(c.Str("base64", "")), ""))
	case c.Has("jinja"):
		text, err := fetch.RenderText(c, c.Str("jinja", ""), c.ID)
		return []byte(text), err
	}
	v, _ := c.Value("values")
	values, _ := v.(*py.Dict)
	var remove [][]string
	for _, path := range c.List("remove") {
		var keys []string
		if list, ok := path.(*py.List); ok {
			for _, k := range list.Items() {
				keys = append(keys, py.Str(k))
			}
		}
		if len(keys) > 0 {
			remove = append(remove, keys)
		}
	}
	var old []byte
	if c.Bool("existing", false) {
		st, err := os.Lstat(c.Name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		case !st.Mode().IsRegular():
			return nil, core.Errorf("%s is not a regular file, so its values are not read", c.Name)
		default:
			if old, err = vfs.ReadFollowed(c.Name, vfs.MaxRead); err != nil {
				return nil, err
			}
			if old == nil {
				old = []byte{}
			}
		}
	}
	return configfile.Edit(configfile.Format(c.Str("format", "")), old, values, remove)
}

// staysWithin returns an error message if the folder of a file leads out of a tree through symbolic links. Whoever owns the tree may exchange a folder
// afterwards, as with every state that writes there.
func staysWithin(tree, name string) string {
	real, err := filepath.EvalSymlinks(tree)
	if err != nil {
		return core.Cause(err)
	}
	dir := filepath.Dir(name)
	for !core.Lexists(dir) && len(dir) > len(tree) {
		dir = filepath.Dir(dir)
	}
	at, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return core.Cause(err)
	}
	if at != real && !strings.HasPrefix(at, real+"/") {
		return dir + " is a symbolic link that leads out of the project's tree"
	}
	return ""
}
