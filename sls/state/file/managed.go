package file

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"corpus-git/internal/py"
	"corpus-git/internal/vfs"
	"corpus-git/sls/host"
	"corpus-git/sls/state/command"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/difflib"
	"corpus-git/sls/state/fetch"
)

// Managed is what file.managed determines before it changes the file.
type Managed struct {
	Path    string
	Data    []byte
	hasData bool
	isText  bool // from contents, not from a source
	Owner   core.Owner
	Mode    *fs.FileMode
	dirMode *fs.FileMode
	Follow  bool
	label   label
	ignore  ignoreRules
	counts  bool // what changes is a change for requisites, whatever ignore leaves out
	skip    bool // no change is one for requisites
}

// fileManaged implements file.managed. Source: Salt documentation, file state, managed.
func fileManaged(c *core.Call) core.Return {
	m, from, fail := managedArguments(c)
	if fail != "" {
		return core.Failf("%s", fail)
	}
	if !c.Bool("create", true) && !core.IsFile(m.Path) {
		return core.OKf("File %s is not present and is not set for creation", m.Path)
	}
	if !c.Has("user") && c.Has("owner") {
		c.Args.SetStr("user", c.Str("owner", ""))
	}
	if m.Owner, fail = c.Owner(); fail != "" {
		return core.Failf("%s", fail)
	}
	if !filepath.IsAbs(m.Path) {
		return core.Failf("Specified file %s is not an absolute path", m.Path)
	}
	if core.IsDir(m.Path) {
		return core.Failf("Specified target %s is a directory", m.Path)
	}
	if replace := c.Bool("replace", true) && (from.source || from.contents); !replace && core.Exists(m.Path) {
		return onlyPerms(c, m)
	}
	if from.source {
		mode, err := SourceData(c, &m)
		if bad := fetch.ChecksumError(""); errors.As(err, &bad) {
			return core.Failf("%s", bad)
		}
		if err != nil {
			return core.Failf("%s", err)
		}
		if from.keepMode && mode != 0 {
			k := mode & core.ModeBits
			m.Mode = &k
		}
	}
	if c.Test {
		return manageTest(c, m)
	}
	if from.source && c.Bool("signature", false) && m.differs() {
		if ret, ok := signedManaged(c, m); !ok {
			return ret
		}
	}
	if m.isText && c.Bool("encoding", false) {
		if ret, ok := encodeManaged(c, &m); !ok {
			return ret
		}
	}
	if m.hasData && c.Has("check_cmd") {
		if ret, ok := checkCmd(c, &m); !ok {
			return ret
		}
	}
	return Manage(c, m)
}

// differs reports whether the content would be written.
func (m *Managed) differs() bool {
	old, err := vfs.ReadFollowed(m.Path, vfs.MaxRead)
	return err != nil || !bytes.Equal(old, m.Data) || core.IsLink(m.Path) && !m.Follow
}

// onlyPerms is file.managed if the content is not to be changed.
func onlyPerms(c *core.Call, m Managed) core.Return {
	changes, err := c.Enforce(m.Path, m.Owner, m.Mode, m.Follow)
	if err != nil {
		return core.Failf("Failed to change owner or mode of %s: %s", m.Path, core.Cause(err))
	}
	ret := core.Return{Result: core.True, Changes: changes}
	remarks, err := attribute(c, m.Path, m.Follow, &ret)
	if err != nil {
		return core.Failf("%s", err)
	}
	remarks = append(remarks, relabel(c, m.Path, m.label, &ret)...)
	ret.Comment = strings.Join(remarks, "; ")
	switch {
	case c.Test:
		ret.Comment = "File " + m.Path + " not updated"
		if ret.Changed() {
			ret.Result = core.None
		}
		if v, ok := changes.GetStr("mode"); ok {
			st, err := os.Stat(m.Path)
			if err == nil {
				ret.Comment = "File " + m.Path + " will be updated with permissions " + py.Str(v) +
					" from its current state of " + core.Octal(st.Mode())
			}
		}
	case !ret.Changed() && ret.Result == core.True:
		ret.Comment = "File " + m.Path + " exists with proper permissions. No changes made."
	}
	return ret
}

// checkCmd runs check_cmd on the new content before it goes live; ok is false if it failed.
func checkCmd(c *core.Call, m *Managed) (core.Return, bool) {
	if old, err := vfs.ReadFollowed(m.Path, vfs.MaxRead); err == nil && bytes.Equal(old, m.Data) {
		return core.Return{}, true
	}
	m.skip = m.ignore.asked
	tmp, err := c.NewTempFile(c.Str("tmp_dir", ""), "corpus-check-", c.Str("tmp_ext", ""))
	if err != nil {
		return core.Failf("Unable to check_cmd file: %s", core.Cause(err)), false
	}
	defer tmp.Discard()
	_, err = tmp.Write(m.Data)
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return core.Failf("Unable to check_cmd file: %s", core.Cause(err)), false
	}
	sh := host.Shell{Line: c.Str("check_cmd", "") + " " + tmp.Name()}
	res, err := c.Host.RunShell(c.Ctx, sh)
	if err != nil {
		return core.Failf("check_cmd execution failed: %s", err), false
	}
	if res.Retcode != 0 {
		ret := core.Failf("%s", strings.TrimSpace("check_cmd execution failed\n"+strings.TrimSpace(res.Stdout+"\n"+res.Stderr)))
		ret.SkipWatch = true
		ret.Command = command.Command(sh.Line, res)
		return ret, false
	}
	return core.Return{}, true
}

// Manage brings the file to its content, owner and mode.
func Manage(c *core.Call, m Managed) core.Return {
	ret := core.Return{Result: core.True}
	old := core.IsFile(m.Path) || core.IsLink(m.Path)
	if old {
		if err := update(c, &m, &ret); err != nil {
			return core.Failf("Failed to commit change: %s", core.Cause(err))
		}
	} else if fail := create(c, &m, &ret); fail != "" {
		return core.Failf("%s", fail)
	}
	changes, err := c.Enforce(m.Path, m.Owner, m.Mode, m.Follow)
	for _, e := range changes.Items() {
		ret.Set(py.Str(e.Key), e.Value)
	}
	if err != nil {
		ret.Result = core.False
		ret.Comment = "Failed to change owner or mode: " + core.Cause(err)
		return ret
	}
	remarks, err := attribute(c, m.Path, m.Follow, &ret)
	if err != nil {
		return core.Failf("%s", err)
	}
	if remarks = append(remarks, relabel(c, m.Path, m.label, &ret)...); len(remarks) > 0 {
		if ret.Comment != "" {
			remarks = append([]string{ret.Comment}, remarks...)
		}
		ret.Comment = strings.Join(remarks, "; ")
	}
	switch {
	case ret.Changed() && (old || ret.Comment == ""):
		ret.Comment = "File " + m.Path + " updated"
	case !ret.Changed() && ret.Result == core.True:
		ret.Comment = "File " + m.Path + " is in the correct state"
	}
	ret.SkipReq = m.skipped(ret)
	return ret
}

// skipped reports whether what changed is not for requisites to see.
func (m *Managed) skipped(ret core.Return) bool {
	return m.skip || m.ignore.asked && ret.Changed() && !m.counts
}

func update(c *core.Call, m *Managed, ret *core.Return) error {
	if !m.hasData {
		return nil
	}
	if core.IsLink(m.Path) && (!m.Follow || !core.Exists(m.Path)) {
		if m.Follow { // a dangling link: the file is created at its target
			target, err := os.Readlink(m.Path)
			if err != nil {
				return err
			}
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(m.Path), target)
			}
			ret.Set("diff", "New file")
			return WriteNew(c, target, *m)
		}
		ret.Set("diff", "Replace symbolic link with regular file")
		if old, err := vfs.ReadFollowed(m.Path, vfs.MaxRead); err == nil && m.isText {
			ret.Diff = difflib.Text(old, m.Data)
			ret.Set("diff", ret.Diff)
		}
		return WriteNew(c, m.Path, *m)
	}
	old, err := vfs.ReadFollowed(m.Path, vfs.MaxRead)
	if err != nil {
		return err
	}
	if bytes.Equal(old, m.Data) {
		return nil
	}
	ret.Diff = difflib.Text(old, m.Data)
	if ret.Diff == "" && m.isText { // the same text in UTF-8 and in Latin-1
		return nil
	}
	m.counts = m.ignore.isChange(old, m.Data)
	if err := c.Backup(m.Path); err != nil {
		return err
	}
	if ret.Diff != "" {
		ret.Set("diff", ret.Diff)
	}
	if !c.Bool("show_changes", true) {
		ret.Set("diff", "<show_changes=False>")
		ret.Diff = ""
	}
	return c.Rewrite(m.Path, m.Data)
}

// WriteNew writes a file that does not exist, with its owner and mode from the start.
func WriteNew(c *core.Call, path string, m Managed) error {
	mode := c.NewMode(0o666)
	if m.Mode != nil {
		mode = *m.Mode
	}
	uid, gid := -1, -1
	if m.Owner.User != nil && *m.Owner.User != c.Host.EUID {
		uid = *m.Owner.User
	}
	if m.Owner.Group != nil && *m.Owner.Group != c.Host.EGID {
		gid = *m.Owner.Group
	}
	return c.ReplaceFile(path, m.Data, mode, uid, gid)
}

func create(c *core.Call, m *Managed, ret *core.Return) string {
	dir := filepath.Dir(m.Path)
	if !core.IsDir(dir) {
		if !c.Bool("makedirs", false) {
			return "Parent directory not present"
		}
		if err := c.MakeDirs(dir, m.Owner, parentMode(c, m)); err != nil {
			return "Failed to create directory " + dir + ": " + core.Cause(err)
		}
	}
	if m.hasData {
		ret.Set("diff", "New file")
		if c.Bool("new_file_diff", false) {
			ret.Diff = difflib.Text(nil, m.Data)
			ret.Set("diff", ret.Diff)
		}
	} else {
		ret.Set("new", "file "+m.Path+" created")
		ret.Comment = "Empty file"
	}
	if err := WriteNew(c, m.Path, *m); err != nil {
		if m.hasData {
			return "File " + m.Path + " not created: " + core.Cause(err)
		}
		return "Empty file " + m.Path + " not created: " + core.Cause(err)
	}
	st, err := os.Stat(m.Path)
	if err != nil {
		return core.Cause(err)
	}
	// What enforce finds in place already was set when the file was made; Salt reports it as changed.
	sys := st.Sys().(*syscall.Stat_t)
	if m.Owner.User != nil && *m.Owner.User != c.Host.EUID && sys.Uid == uint32(*m.Owner.User) {
		ret.Set("user", m.Owner.ShownUser())
	}
	if m.Owner.Group != nil && *m.Owner.Group != c.Host.EGID && sys.Gid == uint32(*m.Owner.Group) {
		ret.Set("group", m.Owner.ShownGroup())
	}
	// Salt makes the file from a temporary one of mode 0600, and reports the mode if that is not the wanted one.
	made, want := c.NewMode(0o666), c.NewMode(0o666)
	if m.Mode != nil {
		want = *m.Mode
	}
	if m.Mode != nil || m.hasData && !m.isText {
		made = 0o600
	}
	if made != want {
		ret.Set("mode", core.Octal(want))
	}
	return ""
}

// parentMode returns dir_mode, or the mode with search permission wherever it has read permission.
func parentMode(c *core.Call, m *Managed) *fs.FileMode {
	if m.dirMode != nil || m.Mode == nil {
		return m.dirMode
	}
	d := m.Mode.Perm()
	for _, bits := range []fs.FileMode{0o700, 0o070, 0o007} {
		if d&bits != 0 {
			d |= bits & 0o111
		}
	}
	return &d
}

func manageTest(c *core.Call, m Managed) core.Return {
	ret := core.Return{Result: core.True}
	switch {
	case !core.Lexists(m.Path), m.hasData && m.Follow && !core.Exists(m.Path): // nothing, or a link to nothing
		m.counts = true
		ret.Set("newfile", m.Path)
		if m.hasData && !core.IsBinary(m.Data) && c.Bool("show_changes", true) {
			ret.Diff = difflib.Text(nil, m.Data)
		}
		if c.Bool("new_file_diff", false) {
			ret.Set("diff", difflib.Text(nil, m.Data))
		}
	default:
		if m.hasData {
			old, err := vfs.ReadFollowed(m.Path, vfs.MaxRead)
			if err == nil && !bytes.Equal(old, m.Data) {
				m.counts = m.ignore.isChange(old, m.Data)
				if ret.Diff = difflib.Text(old, m.Data); ret.Diff != "" || !m.isText {
					ret.Set("diff", ret.Diff)
				}
				if ret.Diff != "" && !c.Bool("show_changes", true) {
					ret.Set("diff", "<show_changes=False>")
					ret.Diff = ""
				}
			}
		}
		changes, err := c.Enforce(m.Path, m.Owner, m.Mode, m.Follow)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return core.Failf("%s", core.Cause(err))
		}
		for _, e := range changes.Items() {
			ret.Set(py.Str(e.Key), e.Value)
		}
		wouldAttribute(c, m.Path, &ret)
		if remarks := relabel(c, m.Path, m.label, &ret); ret.Result == core.False {
			return core.Failf("%s", strings.Join(remarks, "; "))
		}
	}
	ret.SkipReq = m.skipped(ret)
	if !ret.Changed() {
		ret.Comment = "The file " + m.Path + " is in the correct state"
		return ret
	}
	ret.Result = core.None
	ret.Comment = "The file " + m.Path + " is set to be changed\nNote: No changes made, actual changes may\nbe different due to other states."
	return ret
}
