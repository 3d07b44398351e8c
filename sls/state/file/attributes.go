package file

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/host"
	"corpus-git/sls/state/core"
)

// attributes returns the chattr(1) attributes of a file, in the order of lsattr(1); there is false if the file system has
// none. Source: salt/modules/file.py, lsattr.
func attributes(c *core.Call, path string) (has string, there bool) {
	out, _ := c.Query("lsattr", path)
	other := c.Once("attributes", func() any {
		if oldChattr(c) {
			return regexp.MustCompile(`[^acdijstuADST]`)
		}
		return regexp.MustCompile(`[^aAcCdDeijPsStTu]`)
	}).(*regexp.Regexp)
	for line := range strings.Lines(out) {
		f := strings.SplitN(strings.TrimRight(line, "\n"), " ", 2)
		if len(f) == 2 && strings.TrimLeft(f[1], " ") == path {
			return other.ReplaceAllString(f[0], ""), true
		}
	}
	return "", false
}

// oldChattr reports whether the e2fsprogs of the machine are not later than 1.41.12, or of an unknown release.
func oldChattr(c *core.Call) bool {
	if !c.Installed("tune2fs") {
		return true
	}
	q := *c
	q.Output = nil
	out, _ := q.ToolShell(host.Shell{Argv: []string{"tune2fs"}, Merge: true}) // it fails for want of arguments
	m := regexp.MustCompile(`tune2fs ([0-9]+)\.([0-9]+)(?:\.([0-9]+))?`).FindStringSubmatch(out)
	if m == nil {
		return true
	}
	var version []int
	for _, part := range m[1:] {
		n, _ := strconv.Atoi(part)
		version = append(version, n)
	}
	return slices.Compare(version, []int{1, 41, 12}) <= 0
}

// attributesDiffer returns the attributes to add and to remove, sorted. An e can't be removed.
func attributesDiffer(has, want string) (add, remove string) {
	only := func(a, b string) string {
		var out []rune
		for _, r := range a {
			if !strings.ContainsRune(b, r) && !slices.Contains(out, r) {
				out = append(out, r)
			}
		}
		slices.Sort(out)
		return string(out)
	}
	if strings.Contains(has, "e") {
		want += "e"
	}
	return only(want, has), only(has, want)
}

// attribute sets the attributes of a file to those of the argument attrs. If lsattr is not installed, it does nothing, as
// in Salt. Remarks are added to the comment; an error means that the file system has no attributes.
// Source: salt/modules/file.py, check_perms.
func attribute(c *core.Call, path string, follow bool, ret *core.Return) (remarks []string, err error) {
	if !c.Has("attrs") || !c.Installed("lsattr") || core.IsDir(path) || core.IsLink(path) && !follow {
		return nil, nil
	}
	want := c.Str("attrs", "")
	has, there := attributes(c, path)
	add, remove := attributesDiffer(has, want)
	if add == "" && remove == "" {
		return nil, nil
	}
	if !there {
		return nil, unableToManage(core.Errorf("the file system has no attributes for %s", path))
	}
	now := want
	if !c.Test {
		for _, set := range []string{"+" + add, "-" + remove} {
			if len(set) > 1 {
				_, _ = c.Tool("chattr", set, path) // the result is checked afterwards
			}
		}
		after, _ := attributes(c, path)
		if add, remove := attributesDiffer(after, want); add != "" || remove != "" {
			ret.Result = core.False
			remarks = append(remarks, "Failed to change attributes to "+want)
			now = after
		}
	}
	if has != now {
		ret.Set("attrs", py.NewDict("old", has, "new", now))
	}
	return remarks, nil
}

// wouldAttribute is attribute for a test run of a file with content.
func wouldAttribute(c *core.Call, path string, ret *core.Return) {
	want := c.Str("attrs", "")
	if want == "" || !c.Installed("lsattr") {
		return
	}
	has, _ := attributes(c, path)
	if add, remove := attributesDiffer(has, want); add != "" || remove != "" {
		ret.Set("attrs", want)
	}
}
