package state

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
)

// managed is what file.managed worked out before it touches the file.
type managed struct {
	path    string
	data    []byte
	hasData bool
	isText  bool // from contents, not from a source
	owner   owner
	mode    *fs.FileMode
	dirMode *fs.FileMode
	follow  bool
	label   label
	ignore  ignoring
	counts  bool // what changes is a change for requisites, whatever ignore leaves out
	skip    bool // no change is one for requisites
}

// fileManaged implements file.managed. Source: Salt documentation, file state, managed.
func fileManaged(c *Call) Return {
	m := managed{path: c.expand(c.Name), follow: c.boolean("follow_symlinks", true)}
	if m.path == "" {
		return Failf("Destination file name is required")
	}
	keepMode := strings.EqualFold(c.str("mode", ""), "keep")
	if !keepMode {
		m.mode = c.mode("mode")
	}
	m.dirMode = c.mode("dir_mode")
	m.ignore = c.ignoring()
	var wrong string
	if m.label, wrong = c.wantedLabel(); wrong != "" {
		return Failf("%s", wrong)
	}
	n := 0
	for _, k := range []string{"contents", "contents_pillar", "contents_grains"} {
		if c.has(k) {
			n++
		}
	}
	src, _ := c.val("source")
	_, among := src.(*py.List) // an empty list, too, has no source that could be found
	hasSource := among || c.boolean("source", false)
	switch {
	case hasSource && n > 0:
		return Failf("'source' cannot be used in combination with 'contents', 'contents_pillar', or 'contents_grains'")
	case keepMode && n > 0:
		return Failf("Mode preservation cannot be used in combination with 'contents', 'contents_pillar', or 'contents_grains'")
	case n > 1:
		return Failf("Only one of 'contents', 'contents_pillar', and 'contents_grains' is permitted")
	}
	replace := c.boolean("replace", true) && (hasSource || n > 0)
	if n > 0 {
		if fail := c.contents(&m); fail != "" {
			return Failf("%s", fail)
		}
	}
	if !c.boolean("create", true) && !isFile(m.path) {
		return OKf("File %s is not present and is not set for creation", m.path)
	}
	if !c.has("user") && c.has("owner") {
		c.Args.SetStr("user", c.str("owner", ""))
	}
	var complaint string
	if m.owner, complaint = c.owner(); complaint != "" {
		return Failf("%s", complaint)
	}
	if !filepath.IsAbs(m.path) {
		return Failf("Specified file %s is not an absolute path", m.path)
	}
	if isDir(m.path) {
		return Failf("Specified target %s is a directory", m.path)
	}
	if !replace && exists(m.path) {
		return c.onlyPerms(m)
	}
	if hasSource {
		mode, err := c.sourceData(&m)
		if bad := checksumError(""); errors.As(err, &bad) {
			return Failf("%s", bad)
		}
		if err != nil {
			return Failf("%s", err)
		}
		if keepMode && mode != 0 {
			k := mode & modeBits
			m.mode = &k
		}
	}
	if c.Test {
		return c.manageTest(m)
	}
	if hasSource && c.boolean("signature", false) && m.stale() {
		sig, _ := c.val("signature")
		err := c.checkSignature(m.data, sig)
		if bad := refusedSignature(""); errors.As(err, &bad) {
			return Failf("Failed checking new file's signature: %s", bad)
		}
		if err != nil {
			return Failf("Unable to manage file: %s", err)
		}
	}
	if m.isText && c.boolean("encoding", false) {
		if ret, ok := c.encodeManaged(&m); !ok {
			return ret
		}
	}
	if m.hasData && c.has("check_cmd") {
		if ret, ok := c.checkCmd(&m); !ok {
			return ret
		}
	}
	return c.manage(m)
}

// stale reports whether the content would be written.
func (m *managed) stale() bool {
	old, err := vfs.ReadFollowed(m.path, vfs.MaxRead)
	return err != nil || !bytes.Equal(old, m.data) || isLink(m.path) && !m.follow
}

// encodeManaged turns the text into the encoding that is asked for; ok is false where it can't be. As in Salt, a new file
// is there by then.
func (c *Call) encodeManaged(m *managed) (Return, bool) {
	data, err := encodeText(string(m.data), c.str("encoding", ""), c.str("encoding_errors", "strict"))
	if err == nil {
		m.data = data
		return Return{}, true
	}
	if c.has("check_cmd") {
		return Failf("Unable to check_cmd file: %s", err), false
	}
	if !lexists(m.path) {
		empty := *m
		empty.data = nil
		if m.mode != nil {
			private := fs.FileMode(0o600)
			empty.mode = &private
		}
		if fail := c.create(&empty, &Return{}); fail != "" {
			return Failf("%s", fail), false
		}
	}
	return Failf("Unable to manage file: %s", err), false
}

// sourceData reads, verifies and renders the source. An error is the whole comment; a test run says less.
func (c *Call) sourceData(m *managed) (fs.FileMode, error) {
	fail := func(err error) (fs.FileMode, error) {
		if c.Test {
			return 0, err
		}
		return 0, unmanaged(err)
	}
	src, sum, err := c.source()
	if err != nil {
		return 0, unmanaged(err)
	}
	verify := scheme(src) != "salt" && !c.boolean("skip_verify", false)
	s := scheme(src)
	if verify && sum == "" && (s == "http" || s == "https") {
		return fail(unverified(src, ""))
	}
	if p := strings.TrimPrefix(src, "file://"); verify && sum != "" && (s == "" || s == "file") && !exists(p) {
		return fail(saltSays("Local file source %s does not exist", p))
	}
	var want sourceSum
	if verify && sum != "" {
		if want, err = c.sourceSum(src, sum); err != nil {
			return fail(unmanaged(err))
		}
	}
	data, mode, err := c.fetch(src)
	if err != nil {
		return fail(err)
	}
	if verify && sum != "" {
		if err := want.check(data, m.path); err != nil {
			return 0, err
		}
	}
	if c.has("template") {
		if s == "" && src == m.path || s == "file" && strings.TrimPrefix(src, "file://") == m.path {
			return fail(saltSays("Source file cannot be the same as destination"))
		}
		text, err := c.renderFile(string(data), src)
		if err != nil {
			return fail(err)
		}
		data = []byte(text)
	}
	m.data, m.hasData = data, true
	return mode, nil
}

func unmanaged(err error) error { return saltSays("Unable to manage file: %w", err) }

// onlyPerms is file.managed where the content is not to be touched.
func (c *Call) onlyPerms(m managed) Return {
	changes, err := c.enforce(m.path, m.owner, m.mode, m.follow)
	if err != nil {
		return Failf("Failed to change owner or mode of %s: %s", m.path, why(err))
	}
	ret := Return{Result: True, Changes: changes}
	remarks, err := c.attribute(m.path, m.follow, &ret)
	if err != nil {
		return Failf("%s", err)
	}
	remarks = append(remarks, c.relabel(m.path, m.label, &ret)...)
	ret.Comment = strings.Join(remarks, "; ")
	switch {
	case c.Test:
		ret.Comment = "File " + m.path + " not updated"
		if ret.Changed() {
			ret.Result = None
		}
		if v, ok := changes.GetStr("mode"); ok {
			st, err := os.Stat(m.path)
			if err == nil {
				ret.Comment = "File " + m.path + " will be updated with permissions " + py.Str(v) +
					" from its current state of " + octal(st.Mode())
			}
		}
	case !ret.Changed() && ret.Result == True:
		ret.Comment = "File " + m.path + " exists with proper permissions. No changes made."
	}
	return ret
}

// checkCmd runs check_cmd on the new content before it goes live; ok is false where it failed.
func (c *Call) checkCmd(m *managed) (Return, bool) {
	if old, err := vfs.ReadFollowed(m.path, vfs.MaxRead); err == nil && bytes.Equal(old, m.data) {
		return Return{}, true
	}
	m.skip = m.ignore.asked
	tmp, err := c.newScratch(c.str("tmp_dir", ""), "corpus-check-", c.str("tmp_ext", ""))
	if err != nil {
		return Failf("Unable to check_cmd file: %s", why(err)), false
	}
	defer tmp.discard()
	_, err = tmp.Write(m.data)
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return Failf("Unable to check_cmd file: %s", why(err)), false
	}
	sh := host.Shell{Line: c.str("check_cmd", "") + " " + tmp.Name()}
	res, err := c.Host.RunShell(c.Ctx, sh)
	if err != nil {
		return Failf("check_cmd execution failed: %s", err), false
	}
	if res.Retcode != 0 {
		ret := Failf("%s", strings.TrimSpace("check_cmd execution failed\n"+strings.TrimSpace(res.Stdout+"\n"+res.Stderr)))
		ret.SkipWatch = true
		ret.Command = command(sh.Line, res)
		return ret, false
	}
	return Return{}, true
}

// manage brings the file to its content, owner and mode.
func (c *Call) manage(m managed) Return {
	ret := Return{Result: True}
	old := isFile(m.path) || isLink(m.path)
	if old {
		if err := c.update(&m, &ret); err != nil {
			return Failf("Failed to commit change: %s", why(err))
		}
	} else if fail := c.create(&m, &ret); fail != "" {
		return Failf("%s", fail)
	}
	changes, err := c.enforce(m.path, m.owner, m.mode, m.follow)
	for _, e := range changes.Items() {
		ret.Set(py.Str(e.Key), e.Value)
	}
	if err != nil {
		ret.Result = False
		ret.Comment = "Failed to change owner or mode: " + why(err)
		return ret
	}
	remarks, err := c.attribute(m.path, m.follow, &ret)
	if err != nil {
		return Failf("%s", err)
	}
	if remarks = append(remarks, c.relabel(m.path, m.label, &ret)...); len(remarks) > 0 {
		if ret.Comment != "" {
			remarks = append([]string{ret.Comment}, remarks...)
		}
		ret.Comment = strings.Join(remarks, "; ")
	}
	switch {
	case ret.Changed() && (old || ret.Comment == ""):
		ret.Comment = "File " + m.path + " updated"
	case !ret.Changed() && ret.Result == True:
		ret.Comment = "File " + m.path + " is in the correct state"
	}
	ret.SkipReq = m.skipped(ret)
	return ret
}

// skipped reports whether what changed is none of requisites' business.
func (m *managed) skipped(ret Return) bool {
	return m.skip || m.ignore.asked && ret.Changed() && !m.counts
}

func (c *Call) update(m *managed, ret *Return) error {
	if !m.hasData {
		return nil
	}
	if isLink(m.path) && (!m.follow || !exists(m.path)) {
		if m.follow { // a dangling link: the file is made where it points
			target, err := os.Readlink(m.path)
			if err != nil {
				return err
			}
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(m.path), target)
			}
			ret.Set("diff", "New file")
			return c.writeNew(target, *m)
		}
		ret.Set("diff", "Replace symbolic link with regular file")
		if old, err := vfs.ReadFollowed(m.path, vfs.MaxRead); err == nil && m.isText {
			ret.Diff = diffText(old, m.data)
			ret.Set("diff", ret.Diff)
		}
		return c.writeNew(m.path, *m)
	}
	old, err := vfs.ReadFollowed(m.path, vfs.MaxRead)
	if err != nil {
		return err
	}
	if bytes.Equal(old, m.data) {
		return nil
	}
	ret.Diff = diffText(old, m.data)
	if ret.Diff == "" && m.isText { // the same text in UTF-8 and in Latin-1
		return nil
	}
	m.counts = m.ignore.counts(old, m.data)
	if err := c.backup(m.path); err != nil {
		return err
	}
	if ret.Diff != "" {
		ret.Set("diff", ret.Diff)
	}
	if !c.boolean("show_changes", true) {
		ret.Set("diff", "<show_changes=False>")
		ret.Diff = ""
	}
	return c.rewrite(m.path, m.data)
}

// writeNew writes a file that is not there, with its owner and mode from the start.
func (c *Call) writeNew(path string, m managed) error {
	mode := c.newMode(0o666)
	if m.mode != nil {
		mode = *m.mode
	}
	uid, gid := -1, -1
	if m.owner.user != nil && *m.owner.user != c.Host.EUID {
		uid = *m.owner.user
	}
	if m.owner.group != nil && *m.owner.group != c.Host.EGID {
		gid = *m.owner.group
	}
	return c.replaceFile(path, m.data, mode, uid, gid)
}

func (c *Call) create(m *managed, ret *Return) string {
	dir := filepath.Dir(m.path)
	if !isDir(dir) {
		if !c.boolean("makedirs", false) {
			return "Parent directory not present"
		}
		if err := c.makeDirs(dir, m.owner, c.parentMode(m)); err != nil {
			return "Failed to create directory " + dir + ": " + why(err)
		}
	}
	if m.hasData {
		ret.Set("diff", "New file")
		if c.boolean("new_file_diff", false) {
			ret.Diff = diffText(nil, m.data)
			ret.Set("diff", ret.Diff)
		}
	} else {
		ret.Set("new", "file "+m.path+" created")
		ret.Comment = "Empty file"
	}
	if err := c.writeNew(m.path, *m); err != nil {
		if m.hasData {
			return "File " + m.path + " not created: " + why(err)
		}
		return "Empty file " + m.path + " not created: " + why(err)
	}
	st, err := os.Stat(m.path)
	if err != nil {
		return why(err)
	}
	// What enforce finds in place already was set when the file was made; Salt reports it as changed.
	sys := st.Sys().(*syscall.Stat_t)
	if m.owner.user != nil && *m.owner.user != c.Host.EUID && sys.Uid == uint32(*m.owner.user) {
		ret.Set("user", m.owner.shownUser())
	}
	if m.owner.group != nil && *m.owner.group != c.Host.EGID && sys.Gid == uint32(*m.owner.group) {
		ret.Set("group", m.owner.shownGroup())
	}
	// Salt makes the file from a temporary one of mode 0600, and reports the mode where that is not the wanted one.
	made, want := c.newMode(0o666), c.newMode(0o666)
	if m.mode != nil {
		want = *m.mode
	}
	if m.mode != nil || m.hasData && !m.isText {
		made = 0o600
	}
	if made != want {
		ret.Set("mode", octal(want))
	}
	return ""
}

// parentMode is dir_mode, or the mode with search where it can be read.
func (c *Call) parentMode(m *managed) *fs.FileMode {
	if m.dirMode != nil || m.mode == nil {
		return m.dirMode
	}
	d := m.mode.Perm()
	for _, bits := range []fs.FileMode{0o700, 0o070, 0o007} {
		if d&bits != 0 {
			d |= bits & 0o111
		}
	}
	return &d
}

func (c *Call) manageTest(m managed) Return {
	ret := Return{Result: True}
	switch {
	case !lexists(m.path):
		m.counts = true
		ret.Set("newfile", m.path)
		if m.hasData && !isBinary(m.data) && c.boolean("show_changes", true) {
			ret.Diff = diffText(nil, m.data)
		}
		if c.boolean("new_file_diff", false) {
			ret.Set("diff", diffText(nil, m.data))
		}
	default:
		if m.hasData {
			old, err := vfs.ReadFollowed(m.path, vfs.MaxRead)
			if err == nil && !bytes.Equal(old, m.data) {
				m.counts = m.ignore.counts(old, m.data)
				if ret.Diff = diffText(old, m.data); ret.Diff != "" || !m.isText {
					ret.Set("diff", ret.Diff)
				}
				if ret.Diff != "" && !c.boolean("show_changes", true) {
					ret.Set("diff", "<show_changes=False>")
					ret.Diff = ""
				}
			}
		}
		changes, err := c.enforce(m.path, m.owner, m.mode, m.follow)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Failf("%s", why(err))
		}
		for _, e := range changes.Items() {
			ret.Set(py.Str(e.Key), e.Value)
		}
		c.wouldAttribute(m.path, &ret)
		if remarks := c.relabel(m.path, m.label, &ret); ret.Result == False {
			return Failf("%s", strings.Join(remarks, "; "))
		}
	}
	ret.SkipReq = m.skipped(ret)
	if !ret.Changed() {
		ret.Comment = "The file " + m.path + " is in the correct state"
		return ret
	}
	ret.Result = None
	ret.Comment = "The file " + m.path + " is set to be changed\nNote: No changes made, actual changes may\nbe different due to other states."
	return ret
}
