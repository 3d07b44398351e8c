package prepare

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"corpus-git/container"
	"corpus-git/container/credentials"
	"corpus-git/container/names"
	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/internal/vfs"
)

// Plan describes how one machine becomes a node.
type Plan struct {
	Container container.Container
	Driver    container.Driver
	Store     container.Store
	Keys      credentials.Store
	// Agent is the option of ssh(1) with which the server finds the private key.
	Agent string
	// Hosts is the file in which the machine's name is written; "" means none.
	Hosts string
	// DNS is the name server on which the name is set; nil means none.
	DNS *names.DNS
	// Open are the ports of the machine that others may reach, over TCP; ssh is always open.
	Open []uint16
	// Env are variables of all logins and services there that read /etc/environment: KEY=VALUE.
	Env []string
	// Program is the corpus-git binary to run there.
	Program string
	// Projects are assigned to the node: they run there without a nodes.yaml.
	Projects []string
	// Deploy are projects that are deployed when everything is ready.
	Deploy []string
	// Verb runs a command of the server, and returns its exit status.
	Verb func(ctx context.Context, argv []string, out, errw io.Writer) (int, error)
	// Out receives a line for each step, and the output of deployments.
	Out io.Writer
	Now func() time.Time
}

// step is one step. It returns what it found or did, in one line.
type step struct {
	name string
	do   func(context.Context) (string, error)
	// input tells the options of the step from others; "" if none were given. A step that is done is done again with other options.
	input string
	// served is what the step sets on a name server; zero for nothing.
	served Served
}

func (p *Plan) steps() []step {
	var served Served
	if p.DNS != nil {
		served = Served{p.DNS.Full(p.Container.Name) + " " + p.DNS.Server, p.DNS.Reverse}
	}
	return []step{
		{name: "base", do: p.base}, {name: "keys", do: p.keys}, {name: "address", do: p.address}, {name: "name", do: p.name, input: digest(append([]string{served.Server}, served.Reverse...)...), served: served},
		{name: "firewall", do: p.firewall, input: digest(p.open()...)}, {name: "environment", do: p.environment, input: digest(p.Env...)}, {name: "agent", do: p.agent}, {name: "node", do: p.node},
		{name: "deploy", do: p.deploy, input: digest(p.Deploy...)},
	}
}

// digest returns a hash of options, which may be secret; "" if there are none.
func digest(options ...string) string {
	text := strings.Join(options, "\x00")
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// open returns the ports in Open.
func (p *Plan) open() (out []string) {
	for _, port := range p.Open {
		out = append(out, strconv.Itoa(int(port)))
	}
	return out
}

// Names returns the names of the steps, in their order.
func Names() (out []string) {
	for _, s := range (&Plan{}).steps() {
		out = append(out, s.name)
	}
	return out
}

// record is the journal: the steps that have begun, in their order.
type record struct {
	Steps []stepRecord `json:"steps"`
	Served
}

// Served is what was set, or was to be set, on a name server.
type Served struct {
	// Server is the name and the server: NAME SERVER. It is "" if there is none.
	Server string `json:"server,omitempty"`
	// Reverse are the zones there in which addresses lead to the name, or led to it before a later run named others.
	Reverse []string `json:"reverse,omitempty"`
}

// and returns what is set once another is set, too. On another name server, nothing is known of the earlier one.
func (s Served) and(later Served) Served {
	switch later.Server {
	case "":
		return s
	case s.Server:
		later.Reverse = slices.Compact(slices.Sorted(slices.Values(slices.Concat(s.Reverse, later.Reverse))))
	}
	return later
}

type stepRecord struct {
	Name  string    `json:"name"`
	Begun time.Time `json:"begun"`
	// Done is when the step was done, zero until then.
	Done time.Time `json:"done,omitzero"`
	// Said is what the step returned, Input the digest of its options.
	Said  string `json:"said,omitempty"`
	Input string `json:"input,omitempty"`
}

// done reports whether a step was done, with the options that it has now.
func (r stepRecord) done(s step) bool {
	return r.Name == s.name && !r.Done.IsZero() && (s.input == "" || s.input == r.Input)
}

func (p *Plan) journal() string { return filepath.Join(p.Store.Folder(p.Container.Name), "init.json") }

// Begun reports whether a machine's preparation has begun.
func Begun(s container.Store, name string) bool {
	_, err := os.Lstat((&Plan{Store: s, Container: container.Container{Name: name}}).journal())
	return err == nil
}

// ReadServed returns what the preparation of a machine set on a name server.
func ReadServed(s container.Store, name string) (Served, error) {
	r, err := (&Plan{Store: s, Container: container.Container{Name: name}}).read()
	return r.Served, err
}

// read returns what the journal has, nothing if there is none yet.
func (p *Plan) read() (r record, err error) {
	text, err := os.ReadFile(p.journal())
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return r, fault.New(fault.Failed, "", "%s: %w", p.journal(), err)
	}
	return r, nil
}

// Run runs the remaining steps, and those that were done with other options than are given now. If from is not "", it names a step that is run again, with all steps after it.
func (p *Plan) Run(ctx context.Context, from string) error {
	all := p.steps()
	first := slices.IndexFunc(all, func(s step) bool { return s.name == from })
	if from != "" && first < 0 {
		return fault.New(fault.Usage, "", "%q is not a step", from).WithHint("the steps are: %s", strings.Join(Names(), ", "))
	}
	r, err := p.read()
	if err != nil {
		return err
	}
	for i, s := range all {
		if from == "" || i < first {
			if i < len(r.Steps) && r.Steps[i].done(s) && (s.name != "deploy" || len(p.Projects) == 0) {
				fmt.Fprintf(p.Out, "%-12s done before: %s\n", s.name, r.Steps[i].Said)
				continue
			}
		} else {
			r.Steps = r.Steps[:min(i, len(r.Steps))] // those after it are done again, also by the next run
		}
		begun := stepRecord{Name: s.name, Begun: p.Now().UTC(), Input: s.input}
		r.Served = r.and(s.served)
		if i < len(r.Steps) {
			r.Steps[i] = begun
		} else {
			r.Steps = append(r.Steps, begun)
		}
		if err := p.write(r); err != nil {
			return err
		}
		said, err := s.do(ctx)
		if err != nil {
			e := fault.New(fault.KindOf(err), "", "%s: %w", s.name, err)
			if hint := fault.HintOf(err); hint != "" {
				return e.WithHint("%s", hint)
			}
			return e.WithHint("the same command goes on at this step")
		}
		r.Steps[i].Done, r.Steps[i].Said = p.Now().UTC(), said
		if err := p.write(r); err != nil {
			return err
		}
		fmt.Fprintf(p.Out, "%-12s %s\n", s.name, said)
	}
	return nil
}

func (p *Plan) write(r record) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return vfs.WriteFileAtomic(p.Store.FS, p.journal(), append(text, '\n'), 0o600)
}

// maxSaid limits how much of a script's output an error repeats, in bytes.
const maxSaid = 4 << 10

// sh runs a script on the machine, with arguments, and returns its output. An error contains the last line that the
// script printed.
func (p *Plan) sh(ctx context.Context, in io.Reader, script string, args ...string) (string, error) {
	var out bytes.Buffer
	said := &execx.Tail{Max: maxSaid}
	if in == nil {
		in = strings.NewReader("")
	}
	exit, err := p.Driver.Exec(ctx, p.Container, container.Command{Argv: append([]string{"sh", "-euc", script, "sh"}, args...), Stdin: in, Stdout: &out, Stderr: said})
	if err != nil {
		return "", err
	}
	if exit != 0 {
		lines := strings.Split(strings.TrimSpace(said.String()), "\n")
		return "", fault.New(fault.Failed, "", "on %s: exit status %d: %s", p.Container.Name, exit, printable.Text(lines[len(lines)-1]))
	}
	return strings.TrimSpace(out.String()), nil
}

// put writes a file on the machine, and makes it durable there. changed reports whether the file changed.
func (p *Plan) put(ctx context.Context, path, mode string, content io.Reader) (changed bool, err error) {
	out, err := p.sh(ctx, content, `t="$1.corpus-git-new"; trap 'rm -f "$t"' EXIT; mkdir -p "$(dirname "$1")"; cat >"$t"; chmod "$2" "$t"
if cmp -s "$t" "$1"; then rm "$t"; chmod "$2" "$1"; else sync "$t"; mv "$t" "$1"; sync "$(dirname "$1")"; echo changed; fi`, path, mode)
	return out == "changed", err
}

// changes describes whether something was changed.
func changes(changed bool, what string) string {
	if changed {
		return what
	}
	return what + ", unchanged"
}
