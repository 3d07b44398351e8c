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
	"corpus-git/receive/signed"
)

// Limits limits everything in a push except its pack. A zero field means its default, a negative one no limit.
type Limits struct {
	// Commands is the number of refs that one push may update. Default 10,000.
	Commands int
	// Shallow is the number of shallow roots that a client may send. Default 10,000.
	Shallow int
	// Options is the number of push options in one push, OptionBytes the maximum length of each. Defaults 64 and 1024.
	Options, OptionBytes int
	// RefName is the maximum length of a ref name, in bytes. Default 1024; never more than refs.MaxName.
	RefName int
	// Files is the maximum number of files and folders of the commit to deploy. Default 1,048,576.
	Files int
	// Drain is the number of bytes of a refused push that are discarded, so that the client reads the reason. Default 256 MiB.
	Drain int64
	// DrainIdle is how long a refused client may pause while sending, before the connection is closed. Default 5 s.
	DrainIdle time.Duration
	// Unpack is that of store.IngestOptions. Default 0: every push stays a pack.
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
	// Shallow are the boundary commits of a shallow client.
	Shallow []plumbing.Hash
	// Options are the push options, as received.
	Options []string
	// Certificate is the certificate of a signed push, from which Commands are taken; nil for an unsigned push.
	Certificate *signed.Certificate
}

// Pack reports whether a pack follows: any command except a deletion has one (gitprotocol-pack(5), "Reference Update Request").
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

// Has reports whether the client requested a capability.
func (c Caps) Has(name string) bool { _, ok := c[name]; return ok }

// maxCaps limits the capabilities of one push: later ones are ignored, as are unknown ones.
const maxCaps = 100

// Parse adds a space-separated list of name or name=value. A name that appears twice keeps its first value.
func (c Caps) Parse(s string) {
	for f := range strings.FieldsSeq(s) {
		name, value, _ := strings.Cut(f, "=")
		if _, ok := c[name]; !ok && name != "" && len(c) < maxCaps {
			c[name] = value
		}
	}
}

// protocolError returns the error for a client that does not follow gitprotocol-pack(5).
func protocolError(format string, args ...any) error {
	return fault.New(fault.Usage, "git protocol", format, args...)
}

// readOn is how many lines beyond the limit are read of a request that exceeds one.
const readOn = 1000

// ReadRequest reads shallow lines, commands and push options. A client with nothing to push results in a Request without commands; one that
// disconnects immediately in io.EOF. Errors are fault.Usage and fault.Refused.
//
// A client that receives an error in a report, ref by ref, prints nothing else, while one that is disconnected adds that the connection
// broke. So what exceeds a limit is still read, within reason, and the Request is returned with the error once one command is known, unless
// the client has disconnected.
func ReadRequest(r *pktline.Reader, l Limits) (*Request, error) {
	req, err := readRequest(r, l.WithDefaults())
	if err != nil && (len(req.Commands) == 0 || cut(err)) {
		return nil, err
	}
	return req, err
}

func readRequest(r *pktline.Reader, l Limits) (*Request, error) {
	r.Reset(pktline.Limits{Lines: 2*(l.Commands+l.Shallow) + readOn, Bytes: int64(l.Commands+1)*int64(l.RefName+100) + int64(l.Shallow)*64 + pktline.MaxPayload + signed.MaxCertificate})
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
				req.Commands = nil // there is no client left to report to
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
				return req, protocolError("invalid shallow line %.60q", line)
			}
			if len(req.Shallow) == l.Shallow {
				beyond(fault.New(fault.Refused, "", "more than %d shallow roots", l.Shallow).WithHint("fetch the full history first:  git fetch --unshallow ; or ask an administrator to raise limits.max_shallow_roots"))
				continue
			}
			req.Shallow = append(req.Shallow, plumbing.NewHash(string(h)))
			continue
		}
		if name, caps, _ := strings.Cut(line, "\x00"); name == "push-cert" {
			if req.Certificate != nil || len(req.Commands) > 0 {
				return req, protocolError("a push certificate together with unsigned commands")
			}
			req.Caps.Parse(caps)
			if req.Certificate, err = readCertificate(r); err != nil {
				return req, err
			}
			for _, line := range req.Certificate.Commands {
				if err := req.command(line, l, seen, beyond); err != nil {
					return req, err
				}
			}
			continue
		}
		if req.Certificate != nil {
			return req, protocolError("an unsigned command together with a push certificate")
		}
		line, caps, _ := strings.Cut(line, "\x00") // git sends them with the first command, and accepts them with any
		req.Caps.Parse(caps)
		if err := req.command(line, l, seen, beyond); err != nil {
			return req, err
		}
	}
	if f := req.Caps["object-format"]; f != "" && f != "sha1" {
		return req, fault.New(fault.Refused, "", "the object format of the repository is sha1, that of the push %.20q", f)
	}
	if len(req.Commands) == 0 && over != nil {
		return req, over
	}
	if len(req.Commands) == 0 || !req.Caps.Has("push-options") {
		return req, over
	}
	return req, readOptions(r, l, req, over)
}

// command adds one command. What exceeds a limit is reported to beyond; seen are the refs of earlier commands.
func (r *Request) command(line string, l Limits, seen map[string]bool, beyond func(error)) error {
	if len(r.Commands) == l.Commands {
		beyond(fault.New(fault.Refused, "", "more than %d refs in one push", l.Commands).WithHint("push the branch to deploy by itself, and the others in smaller groups; or ask an administrator to raise limits.max_commands"))
	}
	c, err := ParseCommand(line)
	if err != nil {
		return err
	}
	if len(c.Ref) > l.RefName {
		beyond(fault.New(fault.Refused, "", "the name of a ref is longer than %d bytes: %.60s…", l.RefName, printable.Line(c.Ref)).
			WithHint("push it under a shorter name, or ask an administrator to raise limits.max_ref_name_bytes"))
	}
	if seen[c.Ref] {
		beyond(fault.New(fault.Refused, "", "%.100s is updated twice in one push", printable.Line(c.Ref)).WithHint("name it once:  git push %s", "REMOTE SOURCE:DESTINATION"))
	}
	seen[c.Ref] = true
	r.Commands = append(r.Commands, c)
	return nil
}

// readCertificate reads the lines between push-cert and push-cert-end, line ends included: they are signed.
func readCertificate(r *pktline.Reader) (*signed.Certificate, error) {
	var text strings.Builder
	for {
		k, line, err := r.Next()
		if err != nil {
			return nil, readError(err)
		}
		if k != pktline.Data {
			return nil, protocolError("%s in a push certificate", k)
		}
		if string(line) == "push-cert-end\n" {
			return signed.ParseCertificate(text.String())
		}
		if text.Len()+len(line) > signed.MaxCertificate {
			return nil, fault.New(fault.Refused, "push certificate", "longer than %d bytes", signed.MaxCertificate).WithHint("push the branch to deploy by itself, and the others in smaller groups")
		}
		text.Write(line)
	}
}

// readOptions reads push options. over is a limit that was exceeded before, or nil; it is returned unless a worse error occurs.
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
				req.Commands = nil // there is no client left to report to
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

// cut reports whether the client has disconnected.
func cut(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

func readError(err error) error {
	switch {
	case errors.Is(err, pktline.ErrTooMuch):
		return fault.New(fault.Refused, "", "the push names too many refs: %w", err).
			WithHint("push them in smaller groups; or ask an administrator to raise limits.max_commands, limits.max_ref_name_bytes or limits.max_shallow_roots")
	case errors.Is(err, pktline.ErrSyntax):
		return fault.New(fault.Usage, "git protocol", "%w", err)
	case errors.Is(err, io.EOF):
		return fault.New(fault.Usage, "git protocol", "%w", io.ErrUnexpectedEOF)
	}
	return fault.New(fault.Usage, "git protocol", "%w", err)
}

// ParseCommand parses "<old> <new> <ref>". The name of the ref is only checked for characters that a report can't contain.
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
		return project.Change{}, protocolError("a ref name contains a newline: %.120q", ref)
	}
	return project.Change{Ref: ref, Old: old, New: new}, nil
}

// Options are the known push options (git push -o).
type Options struct {
	Verbose bool
	Quiet   bool
	// Colour is nil if not set.
	Colour *bool
	Select project.Selection
	// Set are the values of set=key=value.
	Set []project.Setting
	// Force overwrites what was changed by hand.
	Force bool
	// AllowEmpty allows the push to remove the steps.
	AllowEmpty bool
	// AllowMissing skips nodes that are not ready.
	AllowMissing bool
	// Resume is the failed deployment to resume; "last" means the last one.
	Resume project.ID
	// Notes are lines for the pusher about unknown options.
	Notes []string
}

// KnownOptions lists the options that ParseOptions accepts, for messages.
const KnownOptions = "verbose, quiet, color, no-color, only=PROCEDURES, only_steps=STEPS, skip=PROCEDURES, set=KEY=VALUE, allow-empty, allow-missing, force, resume"

// ParseOptions parses push options. An unknown one results in a note; a known one with an invalid value is fault.Usage.
func ParseOptions(list []string) (Options, error) {
	var o Options
	var set []string
	unknown := map[string]bool{}
	for _, s := range list {
		name, value, has := strings.Cut(s, "=")
		name = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), "-", "_")
		flag := func() (bool, error) { return optionFlag(name, value) }
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
		case "allow_missing":
			o.AllowMissing, err = flag()
		case "resume":
			if on, err = flag(); err == nil && on {
				o.Resume = project.ResumeLast
			} else if err != nil {
				var id string
				if id, err = project.ParseIDPrefix(value); err == nil {
					o.Resume = project.ID(id)
				}
			}
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
		o.Notes = append(o.Notes, "unknown push option ignored: "+strings.Join(names, ", "), "known ones: "+KnownOptions)
	}
	return o, nil
}

// optionFlag returns the value of an option that is on or off; without one it is on.
func optionFlag(name, value string) (bool, error) {
	switch strings.ToLower(value) {
	case "", "1", "true", "yes", "on", "always":
		return true, nil
	case "0", "false", "no", "off", "never":
		return false, nil
	}
	return false, fault.New(fault.Usage, "", "push option %s: %.40q is neither true nor false", name, value)
}

// settings parses the values of set=. Those that select procedures or steps are checked like the options of the same name.
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
				return fault.New(fault.Usage, "", "push option %s: %.60q is not a name", option, s)
			}
		}
		if option != "only_steps" && !project.IsProcedure(s) {
			return fault.New(fault.Usage, "", "push option %s: unknown procedure %.60s", option, s).WithHint("procedures are: %s", strings.Join(project.Procedures(), ", "))
		}
		*to = append(*to, s)
		n++
	}
	if n == 0 {
		return fault.New(fault.Usage, "", "push option %s needs a value", option).WithHint("for example  git push -o %s=install …", option)
	}
	return nil
}
