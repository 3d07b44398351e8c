package pkgrepo

import (
	"cmp"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/internal/vfs"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/pkg"
)

// States adds Salt's pkgrepo module for machines with apt. Source: Salt documentation, pkgrepo state and aptpkg execution module.
func States(t *core.Table) {
	const elsewhere = " humanname? baseurl? mirrorlist? metalink? gpgkey? gpgcheck? gpgautoimport? copr?"
	t.Add("pkgrepo.managed", "disabled enabled architectures comps file dist uri uris suites types type? trusted signedby comments "+
		"keyid keyserver key_url key_text clean_file refresh refresh_db aptkey allow_insecure_key "+
		"consolidate ppa ppa_auth repo **"+elsewhere, pkgrepoManaged)
	t.Add("pkgrepo.absent", "keyid aptkey refresh? ppa ppa_auth keyid_ppa **"+elsewhere, pkgrepoAbsent)
}

// aptArguments are those that change an entry, in no order of their own.
var aptArguments = []string{"uri", "uris", "comps", "architectures", "file", "dist", "suites", "signedby", "trusted", "types"}

// isTrue is Salt's rule of truth for arguments. Source: salt.utils.data.is_true.
func isTrue(v any) bool {
	switch x := v.(type) {
	case string:
		n, err := py.ToInt(x, 10)
		return strings.EqualFold(x, "true") || err == nil && isTrue(n)
	case int64:
		return x > 0
	case float64:
		return x > 0
	}
	return py.Truth(v)
}

// repoOff reports whether the repository is to be disabled.
func repoOff(c *core.Call) (off bool, fail string) {
	enabled, hasOn := c.Value("enabled")
	disabled, hasOff := c.Value("disabled")
	switch {
	case hasOn && hasOff:
		return false, "Only one of enabled/disabled is allowed"
	case hasOn:
		return !isTrue(enabled), ""
	}
	return hasOff && isTrue(disabled), ""
}

// keyConflict is Salt's error about more than one way to a key.
func keyConflict(c *core.Call) string {
	id := c.Has("keyid") || c.Has("keyserver")
	switch {
	case c.Has("key_url") && id:
		return `You may not use both "keyid"/"keyserver" and "key_url" argument.`
	case c.Has("key_text") && id:
		return `You may not use both "keyid"/"keyserver" and "key_text" argument.`
	case c.Has("key_text") && c.Has("key_url"):
		return `You may not use both "key_url" and "key_text" argument.`
	case strings.HasPrefix(strings.TrimSpace(c.Str("key_url", "")), "http:") && !c.Bool("allow_insecure_key", true):
		return "Cannot have 'key_url' using http with 'allow_insecure_key' set to True"
	}
	return ""
}

func pkgrepoManaged(c *core.Call) core.Return {
	if _, given := c.Args.GetStr("repo"); given {
		return core.Failf("'repo' is not a supported argument for this state. The 'name' argument is probably what was intended.")
	}
	off, fail := repoOff(c)
	if fail = cmp.Or(keyConflict(c), fail); fail != "" {
		return core.Failf("%s", fail)
	}
	want, fail := newAptLine(repoLine(c), "")
	if fail != "" {
		return core.Failf("%s", fail)
	}
	list, err := readAptList(c)
	if err != nil {
		return core.Failf("Failed to examine repo '%s': %s", c.Name, err)
	}
	wanted := repoWanted(c, want, off)
	var before *py.Dict
	if r := list.find(withAuth(c, want)); r != nil {
		before = r.shown()
		if !staleFile(c) {
			before.Delete("file")
			wanted.Delete("file")
			if repoUnchanged(c, wanted, before) {
				return core.OKf("Package repo '%s' already configured", c.Name)
			}
		}
	}
	if c.Test {
		changes := py.NewDict()
		if before == nil {
			changes.SetStr("repo", c.Name)
		} else {
			changes = differences(wanted, before, wanted)
		}
		return core.Would(changes, "Package repo '%s' would be configured. This may cause pkg states to behave differently than stated if this "+
			"action is repeated without test=True, due to the differences in the configured repositories.", c.Name)
	}
	if err := repoWrite(c, want, off, wanted, before); err != nil {
		return core.Failf("Failed to configure repo '%s': %s", c.Name, err)
	}
	ret := core.Return{Result: core.True, Changes: py.NewDict("repo", c.Name), Comment: "Configured package repo '" + c.Name + "'"}
	if before == nil {
		return ret
	}
	if list, err = readAptList(c); err != nil {
		return core.Failf("Failed to confirm config of repo '%s': %s", c.Name, err)
	}
	after := py.NewDict()
	if r := list.find(withAuth(c, want)); r != nil {
		after = r.shown()
	}
	ret.Changes = differences(wanted, before, after)
	return ret
}

// differences returns those of two repositories, for the keys of one.
func differences(keys, before, after *py.Dict) *py.Dict {
	d := py.NewDict()
	for _, e := range keys.Items() {
		was, _ := before.Get(e.Key)
		is, _ := after.Get(e.Key)
		if !py.Equal(was, is) {
			d.SetStr(py.Str(e.Key), py.NewDict("new", is, "old", was))
		}
	}
	return d
}

// repoArgument returns an argument of the state; lists can be written with commas.
func repoArgument(c *core.Call, key string) (any, bool) {
	v, ok := c.Value(key)
	if ok && (key == "comps" || key == "architectures") {
		return c.CommaList(key), true
	}
	return v, ok
}

// repoWanted returns the repository as the arguments want it, in the form in which those that exist are shown.
func repoWanted(c *core.Call, name *aptLine, off bool) *py.Dict {
	line := *name
	for _, k := range aptArguments {
		if v, ok := repoArgument(c, k); ok && k != "suites" && k != "uris" && k != "types" {
			line.set(k, v)
		}
	}
	var e aptSource
	file := cmp.Or(line.file, filepath.Join(aptDir(c), "sources.list"))
	if strings.HasSuffix(file, ".sources") {
		p := &aptParagraph{file: file}
		for _, f := range []struct {
			key string
			v   any
		}{{"types", []string{line.typ}}, {"uris", []string{line.uri}}, {"suites", []string{line.dist}}, {"comps", line.components}} {
			if v, ok := repoArgument(c, f.key); ok && f.key != "comps" {
				f.v = v
			}
			p.set(f.key, f.v)
		}
		if len(line.arch) > 0 {
			p.set("architectures", line.arch)
		}
		if line.key != "" {
			p.set("signedby", line.key)
		}
		if v, ok := c.Value("trusted"); ok {
			p.set("trusted", v)
		}
		p.set("disabled", off)
		e = p
	} else {
		fresh := line
		fresh.line, fresh.file, fresh.off, fresh.remark = "", file, off, ""
		if v, ok := c.Value("trusted"); ok && py.Truth(v) {
			on := true
			fresh.trusted = &on
		} else {
			fresh.trusted = nil
		}
		fresh.line = fresh.render()
		e = &fresh
	}
	uri, suite := strings.Join(e.uris(), " "), strings.Join(e.suites(), " ")
	return py.NewDict("file", file, "comps", core.StringList(e.comps()), "disabled", off, "dist", suite, "suites", core.StringList(e.suites()), "type", e.kind(),
		"types", core.StringList(e.types()), "uri", uri, "uris", core.StringList(e.uris()), "line", e.text(), "architectures", core.StringList(e.archs()),
		"signedby", line.key)
}

// repoUnchanged reports whether a repository is what is requested. Components and architectures are compared in any order.
func repoUnchanged(c *core.Call, wanted, have *py.Dict) bool {
	off, _ := wanted.GetStr("disabled")
	for _, e := range wanted.Items() {
		key := py.Str(e.Key)
		was, _ := have.GetStr(key)
		switch key {
		case "comps":
			if !core.SameItems(core.Texts(e.Value), core.Texts(was)) {
				return false
			}
		case "architectures":
			if len(core.Texts(e.Value)) > 0 && !core.SameItems(core.Texts(e.Value), core.Texts(was)) {
				return false
			}
		case "line":
			text, comment, _ := strings.Cut(py.Str(was), "#")
			if off != true && (!sameLine(py.Str(e.Value), text) || c.Has("comments") && commentLine(c) != strings.TrimSpace(comment)) {
				return false
			}
		default:
			if py.Str(e.Value) != py.Str(was) {
				return false
			}
		}
	}
	return true
}

// commentLine returns the argument comments as one line.
func commentLine(c *core.Call) string {
	return strings.TrimSpace(strings.Join(c.Strings("comments"), " "))
}

// sameLine compares two lines, with what follows the third word in any order.
func sameLine(a, b string) bool {
	x, y := strings.Fields(a), strings.Fields(b)
	n := min(3, len(x), len(y))
	slices.Sort(x[n:])
	slices.Sort(y[n:])
	return slices.Equal(x, y)
}

// staleFile reports whether clean_file finds other entries in the file than the wanted one.
func staleFile(c *core.Call) bool {
	file := c.Str("file", "")
	if !c.Bool("clean_file", false) || file == "" || !core.IsFile(file) {
		return false
	}
	raw, err := vfs.ReadFollowed(file, vfs.MaxRead)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(strings.Split(string(raw), "\n"), func(l string) bool {
		l = strings.TrimSpace(l)
		return l != "" && !strings.HasPrefix(l, "#") && l != strings.TrimSpace(c.Name)
	})
}

// repoWrite changes or adds the entry, gets its key, and makes apt read its sources again.
func repoWrite(c *core.Call, want *aptLine, off bool, wanted, before *py.Dict) error {
	file := c.Str("file", "")
	if c.Bool("clean_file", false) {
		if file == "" {
			return core.Errorf("clean_file needs the argument file")
		}
		if err := c.WriteFile(file, nil, 0o644); err != nil {
			return core.Errorf("%s: %s", file, core.Cause(err))
		}
	}
	if name := repoName(c); strings.HasPrefix(name, "ppa:") && (before == nil || !launchpadOS(c)) {
		return addPPA(c, name)
	}
	list, err := readAptList(c)
	if err != nil {
		return err
	}
	if c.Bool("consolidate", false) {
		if err := consolidate(c, list); err != nil {
			return err
		}
	}
	if !want.valid() {
		return core.Errorf("Name %s is not valid. This must be the complete repo entry as seen in the sources file", c.Name)
	}
	if err := aptKey(c, want.key); err != nil {
		return err
	}
	entry := repoEntry(c, list, want)
	if entry == nil {
		trusted, _ := c.Value("trusted")
		on := trust(trusted)
		if !aptKeyTool(c) && want.key == "" && (on == nil || !*on) {
			return core.Errorf("missing 'signedby' or 'trusted' option when apt-key is missing")
		}
		entry = newRepoEntry(want, cmp.Or(file, filepath.Join(list.dir, "sources.list")), trusted)
		list.entries = append(list.entries, entry)
	}
	repoSet(c, entry, want, off, wanted, before)
	if err := saveAptList(c, list); err != nil {
		return err
	}
	return repoRefresh(c)
}

// repoEntry returns the entry that is changed; nil if a new one is made. An entry for the same suite whose architectures
// are others counts as one to change.
func repoEntry(c *core.Call, list *aptList, want *aptLine) aptSource {
	comps := append(slices.Clone(want.components), c.CommaList("comps")...)
	archs := want.arch
	if c.Has("architectures") {
		archs = c.CommaList("architectures")
	}
	typ, dist := c.Str("type", ""), c.Str("dist", "")
	for _, e := range list.entries {
		if !e.valid() {
			continue
		}
		words := strings.Fields(e.kind())
		named := slices.Contains(words, want.typ) && slices.ContainsFunc(e.uris(), func(u string) bool { return sameURI(u, want.uri) }) &&
			slices.Contains(e.suites(), want.dist)
		told := dist != "" && slices.Contains(e.suites(), dist) && slices.Contains(words, typ)
		if !named && !told {
			continue
		}
		if len(e.comps()) == 0 || !slices.Equal(archs, e.archs()) ||
			slices.ContainsFunc(comps, func(s string) bool { return slices.Contains(e.comps(), s) }) {
			return e
		}
	}
	return nil
}

func newRepoEntry(want *aptLine, file string, trusted any) aptSource {
	if !strings.HasSuffix(file, ".sources") {
		e := *want
		e.file = file
		return &e
	}
	p := &aptParagraph{file: file}
	p.setField("Types", want.typ)
	p.setField("URIs", want.uri)
	p.setField("Suites", want.dist)
	p.setField("Components", strings.Join(want.components, " "))
	if trusted == true || trusted == nil && want.trusted != nil && *want.trusted {
		p.setField("Trusted", "yes")
	}
	return p
}

// repoSet sets an entry as the arguments say, in Salt's order: those of the state, then those in its name.
func repoSet(c *core.Call, e aptSource, want *aptLine, off bool, wanted, before *py.Dict) {
	if c.Has("comments") {
		e.set("comments", commentLine(c))
	}
	l, isLine := e.(*aptLine)
	if isLine {
		l.line = repoLine(c) + "\n"
	}
	for _, a := range c.Args.Items() {
		key := py.Str(a.Key)
		if v, ok := repoArgument(c, key); ok && slices.Contains(aptArguments, key) && key != "signedby" &&
			(!isLine || key != "uris" && key != "suites" && key != "types") {
			e.set(key, v)
		}
	}
	e.set("disabled", off)
	// What the entry has as another URI than the name is made that of the name.
	if uri, _ := wanted.GetStr("uri"); before != nil && !c.Has("uri") {
		if was, _ := before.GetStr("uri"); !py.Equal(was, uri) {
			e.set("uri", uri)
		}
	}
	e.set("signedby", want.key)
	if !c.Has("comps") {
		e.set("comps", want.components)
	}
	if !c.Has("architectures") && (len(want.arch) > 0 || len(e.archs()) > 0) {
		e.set("architectures", want.arch)
	}
	if isLine && l.uri != want.uri {
		l.uri = want.uri
		l.line = l.text()
	}
}

// repoRefresh reads the package lists again, unless the state forbids it. A later pkg state reads them if this one did not.
func repoRefresh(c *core.Call) error {
	v, ok := c.Value("refresh_db")
	if !ok {
		v, ok = c.Value("refresh")
	}
	delete(c.Cache, "apt-update")
	if ok && !py.Truth(v) {
		return nil
	}
	return aptUpdate(c)
}

func aptUpdate(c *core.Call) error {
	delete(c.Cache, "apt-update")
	if err, isErr := c.Once("apt-update", func() any { return pkg.AptGet(c, "update") }).(error); isErr {
		return errors.New(strings.Join(c.Problems(err), ""))
	}
	return nil
}
