package session

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/pktline"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/project"
)

// Limits bounds what a push may ask for beside its pack. A zero field means its default, a negative one none at all.
type Limits struct {
	// Commands is how many refs one push may update. Default 10,000.
	Commands int
	// Shallow is how many shallow roots a client may name. Default 10,000.
	Shallow int
	// Options is how many push options one push may carry, OptionBytes how long each may be. Defaults 64 and 1024.
	Options, OptionBytes int
	// RefName is how long the name of a ref may be, in bytes. Default 1024; never more than refs.MaxName.
	RefName int
	// Files is how many files and folders the commit to deploy may have. Default 1,048,576.
	Files int
	// Drain is how many bytes of a refused push are read on, so that the client comes to read why. Default 256 MiB.
	Drain int64
	// DrainIdle is how long a client that was refused may pause while it sends on, before we hang up. Default 5 s.
	DrainIdle time.Duration
	// Unpack is store.IngestOptions'. Default 0: every push stays a pack.
	Unpack int
}

// WithDefaults fills in the defaults.
func (l Limits) WithDefaults() Limits {
	for _, f := range []struct {
		p *int
		v int
	}{{&l.Commands, 10_000}, {&l.Shallow, 10_000}, {&l.Options, 64}, {&l.OptionBytes, 1024}, {&l.RefName, 1024}, {&l.Files, 1 << 20}} {
		if *f.p == 0 {
			*f.p = f.v
		}
		*f.p = max(*f.p, 0)
	}
	if l.Drain <= 0 {
		l.Drain = 256 << 20
	}
	if l.DrainIdle <= 0 {
		l.DrainIdle = 5 * time.Second
	}
	return l
}

// Request is what a client sends before its pack.
type Request struct {
	Commands []project.Change
	Caps     Caps
	// Shallow are the roots where the client's history is cut.
	Shallow []plumbing.Hash
	// Options are the push options, as they came.
	Options []string
}

// Pack reports whether a pack follows: any command but a deletion brings one (gitprotocol-pack(5), "Reference Update Request").
func (r *Request) Pack() bool {
	for _, c := range r.Commands {
		if c.New != "" {
			return true
		}
	}
	return false
}

// Caps are capabilities by name; the value is "" for those that have none.
type Caps map[string]string

// Has reports whether the client asked for one.
func (c Caps) Has(name string) bool { _, ok := c[name]; return ok }

// maxCaps bounds the capabilities of one push: what comes after as many is passed over, as all are that mean nothing here.
const maxCaps = 100

// Parse adds a space-separated list of name or name=value. A name that comes twice keeps its first value.
func (c Caps) Parse(s string) {
	for f := range strings.FieldsSeq(s) {
		name, value, _ := strings.Cut(f, "=")
		if _, ok := c[name]; !ok && name != "" && len(c) < maxCaps {
			c[name] = value
		}
	}
}

// protocolError is a client that does not speak as gitprotocol-pack(5) has it.
func protocolError(format string, args ...any) error {
	return fault.New(fault.Usage, "git protocol", format, args...)
}

// ErrSigned says that a push carries a certificate.
var ErrSigned = errors.New("signed pushes are not supported")

// readOn is how many lines are read, beside as many again as the limit, of a request that is beyond one.
const readOn = 1000

// ReadRequest reads shallow lines, commands and push options. A client that has nothing to push gives a Request without
// commands; one that hung up before saying a word io.EOF. Errors are fault.Usage and fault.Refused.
//
// A client that is told of an error in a report, ref by ref, says nothing but that, while one that is cut off adds that the connection broke. So
// what is beyond a limit is read on, within reason, and the Request comes with the error as soon as a command of it is known, but where the client is gone.
func ReadRequest(r *pktline.Reader, l Limits) (*Request, error) {
	req, err := readRequest(r, l.WithDefaults())
	if err != nil && (len(req.Commands) == 0 || cut(err)) {
		return nil, err
	}
	return req, err
}

func readRequest(r *pktline.Reader, l Limits) (*Request, error) {
	r.Reset(pktline.Limits{Lines: 2*(l.Commands+l.Shallow) + readOn, Bytes: int64(l.Commands+1)*int64(l.RefName+100) + int64(l.Shallow)*64 + pktline.MaxPayload})
	req := &Request{Caps: Caps{}}
	seen := map[string]bool{}
	var over error
	beyond := func(err error) {
		if over == nil {
			over = err
		}
	}
	for first := true; ; first = false {
		k, line, err := r.Line()
		if err != nil && over != nil {
			if cut(err) {
				req.Commands = nil // nobody is there to be told of them
			}
			return req, over
		}
		if err != nil {
			if first && errors.Is(err, io.EOF) {
				return req, io.EOF
			}
			return req, readError(err)
		}
		if k == pktline.Flush {
			break
		}
		if k != pktline.Data {
			return req, protocolError("%s among the commands", k)
		}
		if root, ok := strings.CutPrefix(line, "shallow "); ok {
			h, ok := project.ParseCommit(strings.TrimSpace(root))
			if !ok || h == "" {
				return req, protocolError("%.60q is not a shallow line", line)
			}
			if len(req.Shallow) == l.Shallow {
				beyond(fault.New(fault.Refused, "", "more than %d shallow roots", l.Shallow).WithHint("fetch the full history first:  git fetch --unshallow ; or have limits.max_shallow_roots raised"))
				continue
			}
			req.Shallow = append(req.Shallow, plumbing.NewHash(string(h)))
			continue
		}
		if strings.HasPrefix(line, "push-cert") {
			return req, fault.New(fault.Refused, "", "%w", ErrSigned).WithHint("push without --signed (push.gpgSign); the key that you log in with says who you are")
		}
		line, caps, _ := strings.Cut(line, "\x00") // git sends them with the first command, and reads them with any
		req.Caps.Parse(caps)
		if len(req.Commands) == l.Commands {
			beyond(fault.New(fault.Refused, "", "more than %d refs in one push", l.Commands).WithHint("push the branch to deploy by itself, and the others in smaller groups; or have limits.max_commands raised"))
		}
		c, err := ParseCommand(line)
		if err != nil {
			return req, err
		}
		if len(c.Ref) > l.RefName {
			beyond(fault.New(fault.Refused, "", "the name of a ref is longer than %d bytes: %.60s…", l.RefName, printable.Line(c.Ref)).
				WithHint("push it under a shorter name, or have limits.max_ref_name_bytes raised"))
		}
		if seen[c.Ref] {
			beyond(fault.New(fault.Refused, "", "%.100s is updated twice in one push", printable.Line(c.Ref)).WithHint("name it once:  git push %s", "REMOTE SOURCE:DESTINATION"))
		}
		seen[c.Ref] = true
		req.Commands = append(req.Commands, c)
	}
	if f := req.Caps["object-format"]; f != "" && f != "sha1" {
		return req, fault.New(fault.Refused, "", "the repository is sha1, the push is %.20q", f)
	}
	if len(req.Commands) == 0 && over != nil {
		return req, over
	}
	if len(req.Commands) == 0 || !req.Caps.Has("push-options") {
		return req, over
	}
	return req, readOptions(r, l, req, over)
}

// readOptions reads push options. over is what was beyond a limit before, or nil; it is given back where nothing worse comes.
func readOptions(r *pktline.Reader, l Limits, req *Request, over error) error {
	r.Reset(pktline.Limits{Lines: 2*l.Options + readOn, Bytes: int64(l.Options+1)*int64(l.OptionBytes+1) + pktline.MaxPayload})
	for {
		k, line, err := r.Line()
		if errors.Is(err, pktline.ErrTooMuch) {
			return fault.New(fault.Refused, "", "more than %d push options of %d bytes", l.Options, l.OptionBytes).
				WithHint("an administrator can raise  limits.max_push_options  and  limits.max_push_option_bytes  in the server's configuration")
		}
		if err != nil && over != nil {
			if cut(err) {
				req.Commands = nil // nobody is there to be told of them
			}
			return over
		}
		if err != nil {
			return readError(err)
		}
		if k == pktline.Flush {
			return over
		}
		if k != pktline.Data {
			return protocolError("%s among the push options", k)
		}
		if len(req.Options) == l.Options {
			over = cmp.Or(over, error(fault.New(fault.Refused, "", "more than %d push options", l.Options).WithHint("an administrator can raise  limits.max_push_options  in the server's configuration")))
			continue
		}
		if len(line) > l.OptionBytes {
			over = cmp.Or(over, error(fault.New(fault.Refused, "", "a push option is longer than %d bytes: %.40s…", l.OptionBytes, printable.Line(line)).
				WithHint("an administrator can raise  limits.max_push_option_bytes  in the server's configuration")))
			continue
		}
		req.Options = append(req.Options, line)
	}
}

// cut reports whether the client is gone.
func cut(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

func readError(err error) error {
	switch {
	case errors.Is(err, pktline.ErrTooMuch):
		return fault.New(fault.Refused, "", "the push names too many refs: %w", err).
			WithHint("push them in smaller groups; or have limits.max_commands, limits.max_ref_name_bytes or limits.max_shallow_roots raised")
	case errors.Is(err, pktline.ErrSyntax):
		return fault.New(fault.Usage, "git protocol", "%w", err)
	case errors.Is(err, io.EOF):
		return fault.New(fault.Usage, "git protocol", "%w", io.ErrUnexpectedEOF)
	}
	return fault.New(fault.Usage, "git protocol", "%w", err)
}

// ParseCommand reads "<old> <new> <ref>". The name of the ref is not judged here but for what no report could carry.
func ParseCommand(line string) (project.Change, error) {
	if len(line) < 83 || line[40] != ' ' || line[81] != ' ' {
		return project.Change{}, protocolError("%.120q is not a command", line)
	}
	old, ok1 := project.ParseCommit(line[:40])
	new, ok2 := project.ParseCommit(line[41:81])
	if !ok1 || !ok2 {
		return project.Change{}, protocolError("%.120q is not a command", line)
	}
	ref := line[82:]
	if strings.ContainsAny(ref, "\x00\n\r") {
		return project.Change{}, protocolError("the name of a ref holds a line end: %.120q", ref)
	}
	return project.Change{Ref: ref, Old: old, New: new}, nil
}

// Options are the push options that mean something (git push -o).
type Options struct {
	Verbose bool
	Quiet   bool
	// Colour is nil where nothing was said.
	Colour *bool
	Select project.Selection
	// Set is what set=key=value said.
	Set []project.Setting
	// Force overwrites what was changed by hand.
	Force bool
	// AllowEmpty lets the push take the steps away.
	AllowEmpty bool
	// Notes are lines for the pusher about options that mean nothing.
	Notes []string
}

// KnownOptions lists what ParseOptions understands, for messages.
const KnownOptions = "verbose, quiet, color, no-color, only=PROCEDURES, only_steps=STEPS, skip=PROCEDURES, set=KEY=VALUE, allow-empty, force"

// ParseOptions understands push options. An unknown one is a note; a known one with a value that cannot be is fault.Usage.
func ParseOptions(list []string) (Options, error) {
	var o Options
	var set []string
	unknown := map[string]bool{}
	for _, s := range list {
		name, value, has := strings.Cut(s, "=")
		name = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), "-", "_")
		flag := func() (bool, error) {
			switch strings.ToLower(value) {
			case "", "1", "true", "yes", "on", "always":
				return true, nil
			case "0", "false", "no", "off", "never":
				return false, nil
			}
			return false, fault.New(fault.Usage, "", "push option %s: %.40q is neither true nor false", name, value)
		}
		var err error
		var on bool
		switch name {
		case "verbose":
			o.Verbose, err = flag()
		case "quiet":
			o.Quiet, err = flag()
		case "color", "colour":
			if on, err = flag(); err == nil {
				o.Colour = &on
			}
		case "no_color", "no_colour":
			if on, err = flag(); err == nil {
				on = !on
				o.Colour = &on
			}
		case "only":
			err = addNames(&o.Select.Only, name, value)
		case "only_steps":
			err = addNames(&o.Select.OnlySteps, name, value)
		case "skip":
			err = addNames(&o.Select.Skip, name, value)
		case "force":
			o.Force, err = flag()
		case "allow_empty":
			o.AllowEmpty, err = flag()
		case "set":
			set = append(set, value)
		default:
			if p, ok := strings.CutPrefix(name, "skip_"); ok && (!has || value == "1" || strings.EqualFold(value, "true")) {
				err = addNames(&o.Select.Skip, "skip", strings.ReplaceAll(p, "_", "-"))
				break
			}
			unknown[printable.Line(s)] = true
		}
		if err != nil {
			return Options{}, err
		}
	}
	var err error
	if o.Set, err = settings(set, &o.Select); err != nil {
		return Options{}, err
	}
	if len(unknown) > 0 {
		var names []string
		for n := range unknown {
			names = append(names, fmt.Sprintf("%.60s", n))
		}
		sort.Strings(names)
		names = names[:min(len(names), 5)]
		o.Notes = append(o.Notes, "push option not understood and not used: "+strings.Join(names, ", "), "known ones: "+KnownOptions)
	}
	return o, nil
}

// settings reads what set= was given. What selects procedures or steps is checked as the options of that name are.
func settings(texts []string, sel *project.Selection) ([]project.Setting, error) {
	var picked project.Selection
	set, err := project.ParseSettings(texts, &picked)
	if err != nil {
		return nil, err
	}
	for _, x := range []struct {
		to     *[]string
		option string
		names  []string
	}{{&sel.Only, "only", picked.Only}, {&sel.OnlySteps, "only_steps", picked.OnlySteps}, {&sel.Skip, "skip", picked.Skip}} {
		for _, name := range x.names {
			if err := addNames(x.to, x.option, name); err != nil {
				return nil, err
			}
		}
	}
	return set, nil
}

// addNames adds the comma-separated names of an option's value: steps, which only the commit knows, or procedures.
func addNames(to *[]string, option, value string) error {
	n := 0
	for s := range strings.SplitSeq(value, ",") {
		if s = strings.TrimSpace(s); s == "" {
			continue
		}
		for _, c := range s {
			if c != '-' && c != '_' && c != '.' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
				return fault.New(fault.Usage, "", "push option %s: %.60q is no name", option, s)
			}
		}
		if option != "only_steps" && !project.IsProcedure(s) {
			return fault.New(fault.Usage, "", "push option %s: there is no procedure %.60s", option, s).WithHint("procedures are: %s", strings.Join(project.Procedures(), ", "))
		}
		*to = append(*to, s)
		n++
	}
	if n == 0 {
		return fault.New(fault.Usage, "", "push option %s needs a value", option).WithHint("for example  git push -o %s=install …", option)
	}
	return nil
}
