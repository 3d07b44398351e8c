package submodule

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
)

// Kind says how an address is accessed.
type Kind uint8

const (
	// Relative addresses are relative to another one: see Address.Join.
	Relative Kind = iota
	// Local is a project on this server.
	Local
	// HTTP is https or http.
	HTTP
	// SSH is ssh://host/path, or host:path.
	SSH
	// Git is git://host/path.
	Git
)

// Address is where a submodule comes from.
type Address struct {
	Kind   Kind
	scheme string
	user   *url.Userinfo
	host   string // with the port, if there is one
	path   string
	query  string
}

// maxURL limits the length of a URL, as most servers do.
const maxURL = 2048

var helper = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9+.-]*::`)

// ParseAddress parses the URL of a submodule. Errors are fault.Refused and do not quote what may be a password. Source: git-clone(1), "GIT
// URLS"; git-config(1), protocol.allow.
func ParseAddress(raw string) (Address, error) {
	bad := func(format string, args ...any) (Address, error) {
		return Address{}, fault.New(fault.Refused, "", format, args...).
			WithHint("a submodule's URL is https://, http://, ssh://, git:// or host:path of another server, or ../ and a project of this one")
	}
	switch {
	case raw == "":
		return bad("its URL is empty")
	case len(raw) > maxURL:
		return bad("its URL has %d bytes, more than %d", len(raw), maxURL)
	case strings.ContainsFunc(raw, control):
		return bad("its URL has control characters")
	case raw[0] == '-':
		return bad("its URL begins with '-'")
	case raw == "." || raw == ".." || strings.HasPrefix(raw, "./") || strings.HasPrefix(raw, "../"):
		return Address{Kind: Relative, path: raw}, nil
	case helper.MatchString(raw):
		name, _, _ := strings.Cut(raw, "::")
		return bad("its URL needs the remote helper git-remote-%.40s; remote helpers are not run", name)
	}
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok || strings.ContainsAny(scheme, "/@:") {
		return scpLike(raw, bad)
	}
	u, err := url.Parse(raw)
	if err != nil {
		return bad("its URL cannot be read")
	}
	a := Address{scheme: strings.ToLower(scheme), user: u.User, host: strings.ToLower(u.Host), path: u.Path, query: u.RawQuery}
	switch a.scheme {
	case "http", "https":
		a.Kind = HTTP
	case "ssh", "git+ssh", "ssh+git":
		a.Kind, a.scheme = SSH, "ssh"
		// ssh://host/~user/x means ~user/x there, as in git.
		if strings.HasPrefix(a.path, "/~") {
			a.path = a.path[1:]
		}
	case "git":
		a.Kind = Git
	case "file":
		return bad("its URL is file://: local directories are not supported")
	default:
		return bad("its URL has the unsupported scheme %.20s://", a.scheme)
	}
	name, _ := a.user.Password()
	if strings.ContainsFunc(a.user.Username()+name+a.host+a.path, control) {
		return bad("its URL has control characters")
	}
	if rest == "" || u.Hostname() == "" || a.path == "" || a.path == "/" {
		return bad("its URL has no host or path")
	}
	if strings.HasPrefix(u.Hostname(), "-") || strings.HasPrefix(a.user.Username(), "-") || strings.HasPrefix(a.path, "-") {
		return bad("a part of its URL begins with '-'")
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
			return bad("its URL has no valid port")
		}
	}
	return a, nil
}

// scpLike reads [user@]host:path. A slash before the first colon makes it a path, as in git.
func scpLike(raw string, bad func(string, ...any) (Address, error)) (Address, error) {
	head, p, ok := strings.Cut(raw, ":")
	if strings.HasPrefix(raw, "[") {
		if in, out, closed := strings.Cut(raw[1:], "]"); closed && strings.HasPrefix(out, ":") {
			head, p, ok = in, out[1:], true
			if strings.Contains(in, ":") && net.ParseIP(in) != nil {
				head = "[" + in + "]"
			}
		}
	}
	if !ok || strings.Contains(head, "/") || head == "" || p == "" {
		return bad("its URL is a path: local directories are not supported")
	}
	a := Address{Kind: SSH, path: p, host: head}
	if i := strings.LastIndexByte(head, '@'); i >= 0 {
		user, pass, has := strings.Cut(head[:i], ":")
		a.user, a.host = url.User(user), head[i+1:]
		if has {
			a.user = url.UserPassword(user, pass)
		}
	}
	a.host = strings.ToLower(a.host)
	if a.Host() == "" || strings.ContainsAny(a.Host(), "/ ") || strings.HasPrefix(a.host, "-") || strings.HasPrefix(a.user.Username(), "-") || strings.HasPrefix(p, "-") {
		return bad("its URL has a part that is empty or begins with '-'")
	}
	return a, nil
}

func control(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 }

// LocalAddress returns the address of a repository of this server by its path, as in a client's remote.
func LocalAddress(path string) Address { return Address{Kind: Local, path: path} }

// Path returns the path on the server; for a Local address the input of receive.ParsePath.
func (a Address) Path() string { return a.path }

// Host returns the name of the host, without its port; "" for a Local one.
func (a Address) Host() string {
	u := url.URL{Host: a.host}
	return u.Hostname()
}

// HostPort returns the host with its port, or the protocol's default port if the URL has none.
func (a Address) HostPort() string {
	u := url.URL{Host: a.host}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80", "git": "9418"}[a.scheme]
		if a.Kind == SSH {
			port = "22"
		}
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// Join resolves a relative URL against a. It goes up by one element for each "../", and never to another host. Source: git-submodule(1),
// "add".
func (a Address) Join(rel Address) (Address, error) {
	if rel.Kind != Relative {
		return rel, nil
	}
	base := strings.TrimRight(a.path, "/")
	rest := rel.path
	for rest != "" {
		switch {
		case rest == "..", strings.HasPrefix(rest, "../"):
			i := strings.LastIndexByte(base, '/')
			if base == "" || base == "/" {
				return Address{}, fault.New(fault.Refused, "", "its URL %s leads above %s", printable.Clip(rel.path, 200), a)
			}
			base = base[:max(i, 0)]
			rest = strings.TrimLeft(strings.TrimPrefix(rest, ".."), "/")
		case rest == ".", strings.HasPrefix(rest, "./"):
			rest = strings.TrimLeft(strings.TrimPrefix(rest, "."), "/")
		default:
			if path.Clean("/"+rest) != "/"+strings.TrimRight(rest, "/") {
				return Address{}, fault.New(fault.Refused, "", "its URL %s is not a plain path", printable.Clip(rel.path, 200))
			}
			if base != "" || strings.HasPrefix(a.path, "/") {
				base += "/"
			}
			base += rest
			rest = ""
		}
	}
	out := a
	out.path, out.query = strings.TrimRight(base, "/"), ""
	if out.path == "" {
		return Address{}, fault.New(fault.Refused, "", "its URL %s names no repository", printable.Clip(rel.path, 200))
	}
	return out, nil
}

// String returns the address without secrets: without user and password of a web address, and without its query.
func (a Address) String() string {
	switch a.Kind {
	case Relative:
		return printable.Clip(a.path, 200)
	case Local:
		return printable.Clip(strings.TrimPrefix(a.path, "/"), 200) + " of this server"
	}
	var b strings.Builder
	if a.scheme != "" {
		b.WriteString(a.scheme + "://")
	}
	switch {
	case a.user == nil:
	case a.Kind == SSH:
		b.WriteString(a.user.Username() + "@")
	default:
		b.WriteString("…@")
	}
	b.WriteString(a.host)
	if a.scheme == "" {
		b.WriteString(":")
	} else if !strings.HasPrefix(a.path, "/") {
		b.WriteString("/")
	}
	b.WriteString(a.path)
	if a.query != "" {
		b.WriteString("?…")
	}
	return printable.Clip(b.String(), 200)
}

// plain returns the address as a URL without user, password and query; host:path stays as it is.
func (a Address) plain() string {
	if a.scheme == "" {
		return a.host + ":" + a.path
	}
	slash := ""
	if !strings.HasPrefix(a.path, "/") {
		slash = "/"
	}
	return a.scheme + "://" + a.host + slash + a.path
}

// Secrets returns the parts of the address that must not be shown: passwords, the user name of a web address (which may be a token), the values of its query.
func (a Address) Secrets() []string {
	var out []string
	if p, ok := a.user.Password(); ok && p != "" {
		out = append(out, p)
	}
	if u := a.user.Username(); a.Kind == HTTP && u != "" && u != "git" && len(u) > 7 {
		out = append(out, u)
	}
	if a.query != "" {
		out = append(out, a.query)
		if q, err := url.ParseQuery(a.query); err == nil {
			for _, vs := range q {
				for _, v := range vs {
					if len(v) > 7 {
						out = append(out, v)
					}
				}
			}
		}
	}
	return out
}

// key names the folder of the address' repository: the last element of the path, for people, and a hash of the address without user and password.
func (a Address) key() string {
	bare := a
	bare.user, bare.query = nil, ""
	if a.Kind == SSH {
		bare.user = url.User(a.user.Username())
	}
	id := bare.String()
	if a.Kind == Local {
		id = "local:" + a.path
	}
	sum := sha256.Sum256([]byte(id))
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return -1
	}, strings.TrimSuffix(path.Base(a.path), ".git"))
	if len(name) > 40 {
		name = name[:40]
	}
	return strings.TrimLeft(name+"-"+hex.EncodeToString(sum[:8]), "-") + ".git"
}
