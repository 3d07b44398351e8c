package config

import (
	"fmt"
	"net/mail"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"corpus-git/internal/quantity"
	"corpus-git/internal/saltyaml"
	"corpus-git/project"
)

// Sink is one receiver of notifications.
type Sink struct {
	// Name is unique. Deliveries are recorded under it.
	Name string
	// Kind is one of SinkKinds.
	Kind string
	// Projects are globs, Environments names or classes, Events are from project.NotificationEvents, Verdicts from project.Notification.Verdict; an empty list matches all. If
	// Verdicts are given, notifications without a verdict are not sent.
	Projects, Environments, Events, Verdicts []string
	// Private allows addresses of private networks, of this machine and link-local ones.
	Private bool
	// Timeout bounds one attempt; 0 is Notify.Timeout.
	Timeout time.Duration

	// URL is the URL to post to; for matrix that of the home server.
	URL project.Secret
	// Secrets sign the body of the post, each with its own signature, in the format of Standard Webhooks: whsec_ and base64.
	Secrets []project.Secret
	// Room and Token are for matrix.
	Room  string
	Token project.Secret

	// Server is host:port of the mail server, TLS is starttls, tls or none, CA a file of PEM certificates to trust instead of the machine's.
	Server, TLS, CA string
	User            string
	Password        project.Secret
	From            string
	// To are the addresses of the administrators. Addresses are those of users, as NAME=ADDRESS by the names of their keys: the user who creates a project gets that message, too.
	To, Addresses []string

	// Command gets the message as JSON on its standard input; the first word is a path.
	Command []string
}

// Sinks are the receivers of notifications.
type Sinks []Sink

// SinkKinds returns the kinds of sinks.
func SinkKinds() []string {
	return []string{"smtp", "webhook", "json", "slack", "discord", "matrix", "command"}
}

// DefaultSink is the name of the sink that notify.url makes.
const DefaultSink = "notify.url"

// All returns the configured sinks, and the one of notify.url, which receives what it always did: the results of deployments, and changes of periodic checks and of converge
// results.
func (n Notify) All() []Sink {
	out := slices.Clone([]Sink(n.Sinks))
	if n.URL != "" {
		out = append(out, Sink{
			Name: DefaultSink, Kind: "json", URL: n.URL, Private: true,
			Events: []string{project.EventLive, project.EventFailed, project.EventRolledBack, project.Incomplete, project.EventChecks, project.EventConverge},
		})
	}
	for i := range out {
		if out[i].Timeout == 0 {
			out[i].Timeout = n.Timeout
		}
	}
	return out
}

// String returns the names of the sinks, and nothing that may be secret.
func (s Sinks) String() string {
	var out []string
	for _, x := range s {
		out = append(out, x.Name+" ("+x.Kind+")")
	}
	return strings.Join(out, ", ")
}

// secrets returns the secret values of a sink by the key that holds them.
func (s Sink) secrets() map[string][]project.Secret {
	return map[string][]project.Secret{"url": {s.URL}, "secrets": s.Secrets, "token": {s.Token}, "password": {s.Password}}
}

// parseSinks reads a list of sinks as YAML, which includes JSON.
func parseSinks(text string) (Sinks, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	doc, err := saltyaml.Parse("notify.sinks", []byte(text), saltyaml.Options{Private: true, MaxBytes: 1 << 20})
	if err != nil || doc.Root == nil {
		return nil, fmt.Errorf("must be a list of mappings, as YAML or JSON")
	}
	out, _, err := sinksOf(doc.Root)
	return out, err
}

// sinksOf reads a list of sinks. at is the node that caused an error.
func sinksOf(n *saltyaml.Node) (out Sinks, at *saltyaml.Node, err error) {
	if n.Value == nil {
		return nil, nil, nil
	}
	if n.Kind != saltyaml.Sequence {
		return nil, n, fmt.Errorf("must be a list of sinks")
	}
	for i, item := range n.Items {
		s, at, err := sinkOf(item)
		if err == nil {
			at, err = item, s.check()
		}
		if err == nil && slices.ContainsFunc(out, func(x Sink) bool { return x.Name == s.Name }) {
			err = fmt.Errorf("the name %s is used twice", s.Name)
		}
		if err != nil {
			return nil, at, fmt.Errorf("sink %d: %w", i+1, err)
		}
		out = append(out, s)
	}
	return out, nil, nil
}

func sinkOf(n *saltyaml.Node) (s Sink, at *saltyaml.Node, err error) {
	if n.Kind != saltyaml.Mapping {
		return s, n, fmt.Errorf("must be a mapping of keys")
	}
	texts := map[string]*string{
		"name": &s.Name, "kind": &s.Kind, "url": (*string)(&s.URL), "room": &s.Room, "token": (*string)(&s.Token), "server": &s.Server, "tls": &s.TLS, "ca": &s.CA,
		"user": &s.User, "password": (*string)(&s.Password), "from": &s.From,
	}
	var secrets []string
	lists := map[string]*[]string{
		"projects": &s.Projects, "environments": &s.Environments, "events": &s.Events, "verdicts": &s.Verdicts, "secrets": &secrets, "to": &s.To, "addresses": &s.Addresses, "command": &s.Command,
	}
	for i, k := range n.Keys {
		name, _ := k.Value.(string)
		item := n.Items[i]
		switch {
		case texts[name] != nil:
			text, ok := item.Value.(string)
			if !ok {
				return s, item, fmt.Errorf("%s: must be text", name)
			}
			*texts[name] = text
		case lists[name] != nil:
			if *lists[name], err = textsOf(item); err != nil {
				return s, item, fmt.Errorf("%s: %w", name, err)
			}
		case name == "private":
			v, ok := item.Value.(bool)
			if !ok {
				return s, item, fmt.Errorf("private: must be true or false")
			}
			s.Private = v
		case name == "timeout":
			text, _ := item.Value.(string)
			if s.Timeout, err = quantity.ParseDuration(text); err != nil || s.Timeout < time.Second {
				return s, item, fmt.Errorf("timeout: must be a duration of a second or more, such as 30s")
			}
		default:
			known := append(append(keysOf(texts), keysOf(lists)...), "private", "timeout")
			return s, k, fmt.Errorf("unknown key %q%s", name, suggest(name, known))
		}
	}
	for _, x := range secrets {
		s.Secrets = append(s.Secrets, project.Secret(x))
	}
	return s, nil, nil
}

// textsOf returns a list of strings, or a single string as one.
func textsOf(n *saltyaml.Node) ([]string, error) {
	if text, ok := n.Value.(string); ok {
		return []string{text}, nil
	}
	if n.Kind != saltyaml.Sequence {
		return nil, fmt.Errorf("must be a list of texts")
	}
	var out []string
	for _, item := range n.Items {
		text, ok := item.Value.(string)
		if !ok {
			return nil, fmt.Errorf("must be a list of texts")
		}
		out = append(out, text)
	}
	return out, nil
}

// verdicts returns the values allowed in Sink.Verdicts.
func verdicts() []string {
	return []string{project.EventLive, project.EventFailed, project.EventRolledBack, project.Incomplete, project.EventRefused}
}

// check reports what a sink lacks, or must not have. It quotes nothing that may be secret.
func (s Sink) check() error {
	if !regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_-]{0,62}$`).MatchString(s.Name) {
		return fmt.Errorf("name: must be letters, digits, - and _, at most 63")
	}
	if !slices.Contains(SinkKinds(), s.Kind) {
		return fmt.Errorf("%s: kind: must be one of: %s", s.Name, strings.Join(SinkKinds(), ", "))
	}
	fail := func(key, format string, args ...any) error {
		return fmt.Errorf("%s: %s: %w", s.Name, key, fmt.Errorf(format, args...))
	}
	for _, g := range s.Projects {
		if _, err := path.Match(g, ""); err != nil {
			return fail("projects", "%q is not a glob", g)
		}
	}
	for key, words := range map[string][2][]string{"events": {s.Events, project.NotificationEvents()}, "verdicts": {s.Verdicts, verdicts()}} {
		for _, w := range words[0] {
			if !slices.Contains(words[1], w) {
				return fail(key, "%q is none of: %s", w, strings.Join(words[1], ", "))
			}
		}
	}
	switch s.Kind {
	case "smtp":
		return s.checkMail(fail)
	case "command":
		if len(s.Command) == 0 || !filepath.IsAbs(s.Command[0]) {
			return fail("command", "must be a list that begins with an absolute path")
		}
		return nil
	}
	u, err := url.Parse(string(s.URL))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fail("url", "must be a web address")
	}
	if s.Kind == "webhook" && len(s.Secrets) == 0 {
		return fail("secrets", "must have at least one secret; generate one with  openssl rand -base64 32")
	}
	for _, x := range s.Secrets {
		if _, err := x.Key(); err != nil {
			return fail("secrets", "%w", err)
		}
	}
	if s.Kind == "matrix" && (!strings.HasPrefix(s.Room, "!") || s.Token == "") {
		return fail("room", "must be the ID of a room (!…), with a token")
	}
	return nil
}

func (s Sink) checkMail(fail func(key, format string, args ...any) error) error {
	if host, port, ok := strings.Cut(s.Server, ":"); !ok || host == "" || !validPort(port) {
		return fail("server", "must be host:port")
	}
	if !slices.Contains([]string{"", "starttls", "tls", "none"}, s.TLS) {
		return fail("tls", "must be starttls, tls or none")
	}
	if s.TLS == "none" && s.Password != "" {
		return fail("password", "is not sent without TLS")
	}
	if len(s.To) == 0 {
		return fail("to", "must have at least one address")
	}
	list := append([]string{s.From}, s.To...)
	for _, x := range s.Addresses {
		name, address, _ := strings.Cut(x, "=")
		if name == "" {
			return fail("addresses", "must be a list of NAME=ADDRESS")
		}
		list = append(list, address)
	}
	for _, a := range list {
		if _, err := mail.ParseAddress(a); err != nil {
			return fail("from, to, addresses", "%q is not an address", a)
		}
	}
	return nil
}

// sinks reads the value of a key that holds sinks.
func (l *fileLoader) sinks(f field, n *saltyaml.Node) (Sinks, error) {
	out, at, err := sinksOf(n)
	if err != nil {
		return nil, l.fail(at, "%s: %w", f.key, err).WithHint("see docs/notifications.md")
	}
	return out, nil
}
