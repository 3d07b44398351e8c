package file

import (
	"errors"
	"io/fs"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/state/codecs"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/fetch"
)

// managedFrom says where file.managed reads the content from.
type managedFrom struct {
	source, contents bool
	keepMode         bool // the mode is that of the source
}

// managedArguments reads the arguments of file.managed, and the content if it is among them. fail is Salt's error message.
func managedArguments(c *core.Call) (m Managed, from managedFrom, fail string) {
	m = Managed{Path: c.ExpandUser(c.Name), Follow: c.Bool("follow_symlinks", true)}
	if m.Path == "" {
		return m, from, "Destination file name is required"
	}
	from.keepMode = strings.EqualFold(c.Str("mode", ""), "keep")
	if !from.keepMode {
		m.Mode = c.Mode("mode")
	}
	m.dirMode = c.Mode("dir_mode")
	m.ignore = readIgnoreRules(c)
	if m.label, fail = wantedLabel(c); fail != "" {
		return m, from, fail
	}
	n := 0
	for _, k := range []string{"contents", "contents_pillar", "contents_grains"} {
		if c.Has(k) {
			n++
		}
	}
	src, _ := c.Value("source")
	_, among := src.(*py.List) // an empty list, too, has no source that could be found
	from.source, from.contents = among || c.Bool("source", false), n > 0
	switch {
	case from.source && n > 0:
		return m, from, "'source' cannot be used in combination with 'contents', 'contents_pillar', or 'contents_grains'"
	case from.keepMode && n > 0:
		return m, from, "Mode preservation cannot be used in combination with 'contents', 'contents_pillar', or 'contents_grains'"
	case n > 1:
		return m, from, "Only one of 'contents', 'contents_pillar', and 'contents_grains' is permitted"
	case n > 0:
		fail = readContents(c, &m)
	}
	return m, from, fail
}

// signedManaged checks the signature of a new content; ok is false if it is not as it must be.
func signedManaged(c *core.Call, m Managed) (ret core.Return, ok bool) {
	sig, _ := c.Value("signature")
	err := fetch.CheckSignature(c, m.Data, sig)
	if bad := fetch.RefusedSignature(""); errors.As(err, &bad) {
		return core.Failf("Failed checking new file's signature: %s", bad), false
	}
	if err != nil {
		return core.Failf("Unable to manage file: %s", err), false
	}
	return ret, true
}

// encodeManaged turns the text into the encoding that is requested; ok is false if it can't be. As in Salt, a new file
// is there by then.
func encodeManaged(c *core.Call, m *Managed) (core.Return, bool) {
	data, err := codecs.Encode(string(m.Data), c.Str("encoding", ""), c.Str("encoding_errors", "strict"))
	if err == nil {
		m.Data = data
		return core.Return{}, true
	}
	if c.Has("check_cmd") {
		return core.Failf("Unable to check_cmd file: %s", err), false
	}
	if !core.Lexists(m.Path) {
		empty := *m
		empty.Data = nil
		if m.Mode != nil {
			private := fs.FileMode(0o600)
			empty.Mode = &private
		}
		if fail := create(c, &empty, &core.Return{}); fail != "" {
			return core.Failf("%s", fail), false
		}
	}
	return core.Failf("Unable to manage file: %s", err), false
}

// SourceData reads, verifies and renders the source. An error is the whole comment; a test run says less.
func SourceData(c *core.Call, m *Managed) (fs.FileMode, error) {
	fail := func(err error) (fs.FileMode, error) {
		if c.Test {
			return 0, err
		}
		return 0, unableToManage(err)
	}
	src, sum, err := fetch.Source(c)
	if err != nil {
		return 0, unableToManage(err)
	}
	verify := fetch.Scheme(src) != "salt" && !c.Bool("skip_verify", false)
	s := fetch.Scheme(src)
	if verify && sum == "" && (s == "http" || s == "https") {
		return fail(fetch.Unverified(src, ""))
	}
	if p := strings.TrimPrefix(src, "file://"); verify && sum != "" && (s == "" || s == "file") && !core.Exists(p) {
		return fail(core.Errorf("Local file source %s does not exist", p))
	}
	var want fetch.Sum
	if verify && sum != "" {
		if want, err = fetch.WantedSum(c, src, sum); err != nil {
			return fail(unableToManage(err))
		}
	}
	data, mode, err := fetch.File(c, src)
	if err != nil {
		return fail(err)
	}
	if verify && sum != "" {
		if err := want.Check(data, m.Path); err != nil {
			return 0, err
		}
	}
	if c.Has("template") {
		if s == "" && src == m.Path || s == "file" && strings.TrimPrefix(src, "file://") == m.Path {
			return fail(core.Errorf("Source file cannot be the same as destination"))
		}
		text, err := fetch.RenderFile(c, string(data), src)
		if err != nil {
			return fail(err)
		}
		data = []byte(text)
	}
	m.Data, m.hasData = data, true
	return mode, nil
}

func unableToManage(err error) error { return core.Errorf("Unable to manage file: %w", err) }
