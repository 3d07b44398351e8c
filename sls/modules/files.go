package modules

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"hash"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"syscall"

	"corpus-git/internal/py"
	"corpus-git/internal/pyre"
	"corpus-git/internal/vfs"
	"corpus-git/sls/host"
)

// addFileStat adds the functions of the module file about a path: its kind, mode, owner and times.
func addFileStat(s table) {
	is := func(test func(os.FileInfo) bool, follow bool) func(*call) (any, error) {
		return func(c *call) (any, error) {
			stat := os.Stat
			if !follow {
				stat = os.Lstat
			}
			st, err := stat(c.str("path", ""))
			return err == nil && test(st), nil
		}
	}
	file := func(st os.FileInfo) bool { return st.Mode().IsRegular() }
	dir := func(st os.FileInfo) bool { return st.IsDir() }
	link := func(st os.FileInfo) bool { return st.Mode()&os.ModeSymlink != 0 }
	any_ := func(os.FileInfo) bool { return true }
	s.live("file.file_exists", "path", is(file, true))
	s.live("file.directory_exists", "path", is(dir, true))
	s.live("file.path_exists_glob", "path", func(c *call) (any, error) {
		m, err := filepath.Glob(c.str("path", ""))
		return err == nil && len(m) > 0, nil
	})
	s.live("file.access", "path mode", func(c *call) (any, error) {
		st, err := os.Stat(c.str("path", ""))
		if err != nil {
			return false, nil
		}
		switch c.str("mode", "f") {
		case "x":
			return st.Mode()&0o111 != 0, nil
		case "w":
			return c.Host.EUID == 0 || st.Mode()&0o222 != 0, nil
		}
		return true, nil
	})
	s.live("file.is_link", "path", is(link, false))
	s.live("file.lexists", "path", is(any_, false))
	s.live("file.stats", "path hash_type? follow_symlinks?", func(c *call) (any, error) {
		st, err := os.Stat(c.str("path", ""))
		if err != nil {
			return nil, err
		}
		sys := st.Sys().(*syscall.Stat_t)
		d := py.NewDict("inode", int64(sys.Ino), "uid", int64(sys.Uid), "gid", int64(sys.Gid), "size", st.Size(),
			"mode", "0"+octal(st.Mode()), "mtime", float64(st.ModTime().UnixNano())/1e9, "target", c.str("path", ""))
		d.SetStr("user", c.accountName(int(sys.Uid), false))
		d.SetStr("group", c.accountName(int(sys.Gid), true))
		return d, nil
	})
	s.live("file.get_mode", "path follow_symlinks?", func(c *call) (any, error) {
		st, err := os.Stat(c.str("path", ""))
		if err != nil {
			return "", nil
		}
		return "0" + octal(st.Mode()), nil
	})
	for _, kind := range []string{"user", "group"} {
		s.live("file.get_"+kind, "path follow_symlinks?", func(c *call) (any, error) {
			st, err := os.Stat(c.str("path", ""))
			if err != nil {
				return false, nil
			}
			sys := st.Sys().(*syscall.Stat_t)
			if kind == "group" {
				return c.accountName(int(sys.Gid), true), nil
			}
			return c.accountName(int(sys.Uid), false), nil
		})
	}
}

// addFileContents adds the functions of the module file about the contents of a file or folder.
func addFileContents(s table) {
	s.live("file.read", "path binary?", func(c *call) (any, error) {
		b, err := vfs.ReadFollowed(c.str("path", ""), vfs.MaxRead)
		if err != nil {
			return nil, err
		}
		return string(b), nil
	})
	s.live("file.readlink", "path canonicalize?", func(c *call) (any, error) {
		p := c.str("path", "")
		if c.boolean("canonicalize", false) {
			return filepath.EvalSymlinks(p)
		}
		return os.Readlink(p)
	})
	s.live("alternatives.show_current", "name", func(c *call) (any, error) { // false for a name that does not exist, as in Salt
		to, err := os.Readlink("/etc/alternatives/" + filepath.Base(c.str("name", "")))
		if err != nil {
			return false, nil
		}
		return to, nil
	})
	s.live("file.readdir", "path", func(c *call) (any, error) {
		entries, err := os.ReadDir(c.str("path", ""))
		if err != nil {
			return nil, err
		}
		out := py.NewList(".", "..")
		for _, e := range entries {
			out.Append(e.Name())
		}
		return out, nil
	})
	s.live("file.find", "path **", find)
	s.live("file.contains", "path text", func(c *call) (any, error) {
		b, err := vfs.ReadFollowed(c.str("path", ""), vfs.MaxRead)
		return err == nil && strings.Contains(string(b), strings.TrimSpace(c.str("text", ""))), nil
	})
	s.live("file.contains_regex", "path regex lchar?", func(c *call) (any, error) {
		re, err := pyre.Compile(c.str("regex", ""), 0)
		if err != nil {
			return nil, py.Errorf(py.ValueError, "the regular expression is wrong: %s", err.Error())
		}
		b, err := vfs.ReadFollowed(c.str("path", ""), vfs.MaxRead)
		if err != nil {
			return false, nil
		}
		lines, lead := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(b)), c.str("lchar", "")
		for line := range strings.Lines(lines) {
			m, err := re.Find(strings.TrimLeft(line, lead), false)
			if err != nil {
				return nil, py.Errorf(py.LimitError, "%s", err.Error())
			}
			if m != nil {
				return true, nil
			}
		}
		return false, nil
	})
	s.live("file.get_hash", "path form? chunk_size?", func(c *call) (any, error) {
		b, err := vfs.ReadFollowed(c.str("path", ""), vfs.MaxRead)
		if err != nil {
			return nil, err
		}
		return hashHex(c.str("form", "sha256"), b)
	})
	s.live("file.get_sum", "path form?", func(c *call) (any, error) {
		b, err := vfs.ReadFollowed(c.str("path", ""), vfs.MaxRead)
		if err != nil {
			return "File not found", nil
		}
		return hashHex(c.str("form", "sha256"), b)
	})
}

// addFileNames adds the functions of the module file that process a path as text.
func addFileNames(s table) {
	s.add("file.dirname", "path", func(c *call) (any, error) { return pyDirname(c.str("path", "")), nil })
	s.add("file.basename", "path", func(c *call) (any, error) {
		p := c.str("path", "")
		return p[strings.LastIndexByte(p, '/')+1:], nil
	})
	s.add("file.join", "*", func(c *call) (any, error) { return pyJoin(c.rest), nil })
	s.add("file.normpath", "path", func(c *call) (any, error) { return path.Clean(c.str("path", "")), nil })
}

// addPkg adds the module pkg.
func addPkg(s table) {
	s.live("pkg.version", "*", func(c *call) (any, error) {
		get := func(name string) string {
			res, err := c.Host.RunShell(c.ctx, host.Shell{Argv: []string{"dpkg-query", "--showformat", "${db:Status-Status} ${Version}", "-W", name}})
			if v, ok := strings.CutPrefix(res.Stdout, "installed "); err == nil && ok && res.Retcode == 0 {
				return v
			}
			return ""
		}
		if len(c.rest) == 1 {
			return get(py.Str(c.rest[0])), nil
		}
		out := py.NewDict()
		for _, n := range c.rest {
			out.SetStr(py.Str(n), get(py.Str(n)))
		}
		return out, nil
	})
}

// addCp adds the module cp.
func addCp(s table) {
	s.add("cp.list_master_dirs", "saltenv? prefix?", func(c *call) (any, error) {
		out := py.NewList()
		for _, d := range c.Roots.Dirs(strings.Trim(c.str("prefix", ""), "/")) {
			out.Append(d)
		}
		return out, nil
	})
	s.add("cp.get_file_str", "path saltenv?", func(c *call) (any, error) {
		f, err := c.Roots.Find(c.str("path", ""))
		if err != nil {
			return false, nil
		}
		b, err := f.Read()
		return string(b), err
	})
	s.add("cp.list_states", "saltenv?", func(c *call) (any, error) {
		out := py.NewList()
		for _, n := range c.Roots.AllSLS() {
			out.Append(n)
		}
		return out, nil
	})
}

func octal(m os.FileMode) string {
	n := uint32(m.Perm())
	if m&os.ModeSetuid != 0 {
		n |= 0o4000
	}
	if m&os.ModeSetgid != 0 {
		n |= 0o2000
	}
	if m&os.ModeSticky != 0 {
		n |= 0o1000
	}
	const digits = "01234567"
	out := ""
	for i := 3; i >= 0; i-- {
		d := n >> (3 * i) & 7
		if out != "" || d != 0 || i < 3 {
			out += string(digits[d])
		}
	}
	return out
}

func pyDirname(p string) string {
	i := strings.LastIndexByte(p, '/')
	head := p[:i+1]
	if t := strings.TrimRight(head, "/"); t != "" {
		return t
	}
	return head
}

func pyJoin(parts []any) string {
	out := ""
	for _, v := range parts {
		p := py.Str(v)
		switch {
		case strings.HasPrefix(p, "/") || out == "":
			out = p
		case strings.HasSuffix(out, "/"):
			out += p
		default:
			out += "/" + p
		}
	}
	return out
}

func hashHex(form string, data []byte) (any, error) {
	var h hash.Hash
	switch form {
	case "md5":
		h = md5.New()
	case "sha1":
		h = sha1.New()
	case "sha224":
		h = sha256.New224()
	case "sha256":
		h = sha256.New()
	case "sha384":
		h = sha512.New384()
	case "sha512":
		h = sha512.New()
	default:
		return nil, py.Errorf(py.ValueError, "Invalid hash type: %s", form)
	}
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil)), nil
}

// find is file.find with the options that templates use: name, iname, type, maxdepth.
func find(c *call) (any, error) {
	root := c.str("path", "")
	opt := func(k string) string {
		if v, ok := c.kw.GetStr(k); ok {
			return py.Str(v)
		}
		return ""
	}
	for _, k := range c.kw.Keys() {
		switch k {
		case "name", "iname", "type", "maxdepth", "print":
		default:
			return nil, py.Errorf(py.TypeError, "file.find() option '%s' is not supported", py.Str(k))
		}
	}
	maxdepth := -1
	if v, ok := c.kw.GetStr("maxdepth"); ok {
		n, err := py.Index(v)
		if err != nil {
			return nil, err
		}
		maxdepth = int(n)
	}
	var found []string
	err := filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		depth := strings.Count(strings.TrimPrefix(p, root), "/")
		if maxdepth >= 0 && depth > maxdepth {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		name := d.Name()
		if n := opt("name"); n != "" && !globMatch(n, name) {
			return nil
		}
		if n := opt("iname"); n != "" && !globMatch(strings.ToLower(n), strings.ToLower(name)) {
			return nil
		}
		if t := opt("type"); t != "" {
			kind := "f"
			switch {
			case d.IsDir():
				kind = "d"
			case d.Type()&os.ModeSymlink != 0:
				kind = "l"
			}
			if !strings.Contains(t, kind) {
				return nil
			}
		}
		found = append(found, p)
		return nil
	})
	if err != nil {
		return nil, err
	}
	sort.Strings(found)
	out := py.NewList()
	for _, f := range found {
		out.Append(f)
	}
	return out, nil
}
