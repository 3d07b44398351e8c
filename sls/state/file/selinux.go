package file

import (
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/host"
	"corpus-git/sls/state/core"
)

// label is an SELinux context: user, role, type and range; "" means that a part is not requested.
type label [4]string

// wantedLabel reads the argument selinux. The string is Salt's error message.
func wantedLabel(c *core.Call) (label, string) {
	var l label
	v, ok := c.Value("selinux")
	if !ok || !py.Truth(v) {
		return l, ""
	}
	d, ok := v.(*py.Dict)
	if !ok {
		return l, "'" + py.TypeName(v) + "' object has no attribute 'get'"
	}
	for i, key := range []string{"seuser", "serole", "setype", "serange"} {
		if x, ok := d.GetStr(key); ok && py.Truth(x) {
			l[i] = py.Str(x)
		}
	}
	return l, ""
}

// currentLabel returns the context that a file has; ok is false if the system has none for it.
func currentLabel(c *core.Call, path string) (l label, ok bool) {
	out, err := c.Query("stat", "-c", "%C", path)
	parts := strings.Split(out, ":")
	if err != nil || len(parts) != 4 {
		return l, false
	}
	return label(parts), true
}

// relabel returns a file the parts of a context that it lacks yet, for good, through semanage and chcon. The remarks go
// into the comment. Source: Salt, salt/modules/file.py, check_perms and set_selinux_context.
func relabel(c *core.Call, path string, want label, ret *core.Return) (remarks []string) {
	if want == (label{}) {
		return nil
	}
	have, ok := currentLabel(c, path)
	if !ok {
		ret.Result = core.False
		return []string{"Failed to get selinux attributes"}
	}
	var set label
	var before, after []string
	for i, kind := range [...]string{"User: ", "Role: ", "Type: ", "Range: "} {
		if want[i] != "" && want[i] != have[i] {
			set[i] = want[i]
			before, after = append(before, kind+have[i]), append(after, kind+want[i])
		}
	}
	if len(before) == 0 {
		return nil
	}
	changes := py.NewDict("Old", strings.Join(before, " "), "New", strings.Join(after, " "))
	if c.Test {
		ret.Result = core.None
		ret.Set("selinux", changes)
		return nil
	}
	asked := set
	if set[2] == "" { // what is set needs a type
		set[2] = have[2]
	}
	if err := labelPolicy(c, path, set); err != nil {
		ret.Result = core.False
		return []string{"Problem setting fcontext: " + err.Error()}
	}
	argv := []string{"chcon"}
	for i, flag := range [...]string{"-u", "-r", "-t", "-l"} {
		if set[i] != "" {
			argv = append(argv, flag, set[i])
		}
	}
	_, err := c.Tool(append(argv, path)...)
	now, ok := currentLabel(c, path)
	if err != nil || !ok {
		ret.Result = core.False
		return []string{"Failed to set selinux attributes"}
	}
	remarks = []string{"The file " + path + " is set to be changed"}
	for i, kind := range [...]string{"seuser", "serole", "setype", "serange"} {
		if asked[i] != "" && now[i] != asked[i] {
			remarks = append(remarks, "Unable to update "+kind+" context")
			ret.Result = core.False
		}
	}
	ret.Set("selinux", changes)
	return remarks
}

// labelPolicy makes a context also the one that a relabelling of the system sets on the file.
// Source: Salt, salt/modules/selinux.py, fcontext_add_policy; semanage-fcontext(8).
func labelPolicy(c *core.Call, path string, set label) error {
	spec := py.ReEscape(path)
	argv := []string{"semanage", "fcontext", "--add", "--type", set[2]}
	if list, err := c.Query("semanage", "fcontext", "--list"); err == nil {
		for line := range strings.Lines(list) {
			if strings.HasPrefix(line, spec+" ") {
				argv[2] = "--modify"
			}
		}
	}
	if set[0] != "" {
		argv = append(argv, "--seuser", set[0])
	}
	if set[3] != "" {
		argv = append(argv, "--range", set[3])
	}
	_, err := c.ToolShell(host.Shell{Argv: append(argv, spec)})
	return err
}
