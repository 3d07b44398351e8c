package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"corpus-git/internal/py"
	"corpus-git/internal/vfs"
	"corpus-git/sls/state/core"
)

// maxDownload limits the size of an http source.
const maxDownload = 4 << 30

// File reads a file source: salt://, file://, an absolute path, http(s)://. mode is the mode of the file, 0 if unknown.
func File(c *core.Call, source string) (data []byte, mode fs.FileMode, err error) {
	switch Scheme(source) {
	case "salt":
		f, err := c.Roots.Find(source)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, 0, core.Errorf("Source file %s not found in saltenv 'base'", source)
		}
		if err != nil {
			return nil, 0, err
		}
		data, err = f.Read()
		if st, serr := f.Stat(); serr == nil {
			mode = st.Mode()
		}
		return data, mode, err
	case "http", "https":
		data, err = download(c, source)
		return data, 0, err
	case "", "file":
		p := strings.TrimPrefix(source, "file://")
		st, err := os.Stat(p)
		if err != nil {
			return nil, 0, core.Errorf("Local file source %s does not exist", p)
		}
		data, err = vfs.ReadFollowed(p, maxDownload)
		return data, st.Mode(), err
	}
	return nil, 0, fmt.Errorf("sources of the kind %s:// are not supported", Scheme(source))
}

// Scheme returns the part of a source before ://, "" for a path.
func Scheme(source string) string {
	if i := strings.Index(source, "://"); i > 0 {
		return strings.ToLower(source[:i])
	}
	return ""
}

func download(c *core.Call, source string) ([]byte, error) {
	u, err := url.Parse(source)
	if err != nil {
		return nil, errors.New("the source is not a URL")
	}
	ctx, cancel := context.WithTimeout(c.Ctx, time.Hour)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, source, nil)
	if err != nil {
		return nil, errors.New("the source is not a URL")
	}
	u.User = nil
	failed := func(err error) error {
		var of *url.Error // which would repeat the address, with its password
		if errors.As(err, &of) {
			err = of.Err
		}
		return core.Errorf("Failed to cache %s: Error: %w reading %s", u, err, u.Path)
	}
	resp, err := client(c).Do(req)
	if err != nil {
		return nil, failed(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		code, reason, _ := strings.Cut(resp.Status, " ")
		return nil, failed(fmt.Errorf("HTTP %s: %s", code, reason))
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxDownload+1))
	if err == nil && len(b) > maxDownload {
		err = fmt.Errorf("more than %d bytes", int64(maxDownload))
	}
	if err != nil {
		return nil, failed(err)
	}
	return b, nil
}

// client returns an HTTP client that verifies certificates, unless verify_ssl is false.
func client(c *core.Call) *http.Client {
	if !c.Has("verify_ssl") || c.Bool("verify_ssl", true) {
		return http.DefaultClient
	}
	return c.Once("unverified http client", func() any {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
		return &http.Client{Transport: t}
	}).(*http.Client)
}

// Source picks the first source that exists, from one or a list, and its hash.
func Source(c *core.Call) (src, sum string, err error) {
	sum = c.Str("source_hash", "")
	v, _ := c.Value("source")
	l, ok := v.(*py.List)
	if !ok {
		if v == nil {
			return "", sum, nil
		}
		return py.Str(v), sum, nil
	}
	for _, it := range l.Items() {
		s, h := py.Str(it), sum
		if d, isDict := it.(*py.Dict); isDict {
			if d.Len() != 1 {
				continue
			}
			e := d.Items()[0]
			s = py.Str(e.Key)
			if py.Truth(e.Value) {
				h = py.Str(e.Value)
			}
		}
		switch Scheme(s) {
		case "salt":
			if _, err := c.Roots.Find(s); err == nil {
				return s, h, nil
			}
			if _, err := c.Roots.FindDir(s); err == nil {
				return s, h, nil
			}
		case "http", "https":
			if _, err := download(c, s); err == nil {
				return s, h, nil
			}
		case "", "file":
			if p := strings.TrimPrefix(s, "file://"); filepath.IsAbs(p) && core.Exists(p) {
				return s, h, nil
			}
		}
	}
	return "", "", errors.New("none of the specified sources were found")
}

// RedactURL returns a URL without its password.
func RedactURL(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return s
	}
	u.User = nil
	return u.String()
}

// vars returns the variables of a template: defaults, then context.
func vars(c *core.Call) *py.Dict {
	v := py.NewDict()
	v.Update(c.Dict("defaults"))
	v.Update(c.Dict("context"))
	seen := map[any]bool{}
	for _, value := range v.Values() {
		keepOrder(value, seen)
	}
	return v
}

// keepOrder makes all mappings in a value of an SLS file keep their order, since Salt reads them into OrderedDicts. Values
// shared by aliases are visited once.
func keepOrder(v any, seen map[any]bool) {
	var inner []any
	switch x := v.(type) {
	case *py.Dict:
		x.KeepOrder()
		inner = x.Values()
	case *py.List:
		inner = x.Items()
	default:
		return
	}
	if seen[v] {
		return
	}
	seen[v] = true
	for _, e := range inner {
		keepOrder(e, seen)
	}
}

// RenderText renders a text of the state itself.
func RenderText(c *core.Call, text, name string) (string, error) {
	return render(c, core.Template{Name: name, Source: text})
}

// RenderFile renders the content of a source.
func RenderFile(c *core.Call, text, source string) (string, error) {
	t := core.Template{Name: source, Source: text}
	if Scheme(source) == "salt" {
		if f, err := c.Roots.Find(source); err == nil {
			t.Name = f.Display()
		}
	}
	return render(c, t)
}

func render(c *core.Call, t core.Template) (string, error) {
	t.Engine = c.Str("template", "jinja")
	if t.Engine != "jinja" {
		return "", core.Errorf("Specified template format %s is not supported by the built-in runner", t.Engine)
	}
	t.Vars = py.NewDict("name", c.Name)
	for _, k := range []string{"source", "user", "group", "mode"} {
		v, _ := c.Args.GetStr(k)
		t.Vars.SetStr(k, v)
	}
	t.Vars.Update(vars(c))
	if a := c.Accumulated[c.ExpandUser(c.Name)]; a != nil {
		t.Vars.SetStr("accumulator", a.Texts)
	}
	return c.Render(c.Ctx, t)
}
