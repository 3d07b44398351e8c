package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"time"

	"corpus-git/internal/py"
	"corpus-git/sls/jinja"
)

//go:embed jinjapeer.py
var jinjaPeer string

const (
	jinjaRuns  = 9
	jinjaSlice = 150 * time.Millisecond // of rendering by the peer, for one measurement
)

// jinjaCase is a set of templates, of which main is rendered with the variables.
type jinjaCase struct {
	Name      string            `json:"-"`
	About     string            `json:"-"`
	Templates map[string]string `json:"templates"`
	Vars      any               `json:"vars"`
}

// benchJinja renders templates typical of SLS files with sls/jinja and with Jinja2, in turn, once from source to text
// and once with a compiled template. Both must give the same text. Jinja2 is that of the Python named by JINJA_PYTHON,
// a path; default: python3 in PATH.
func benchJinja(*lab) error {
	python := os.Getenv("JINJA_PYTHON")
	if python == "" {
		python = "python3"
	}
	cases := jinjaCases()
	peer, err := startJinjaPeer(python, cases)
	if err != nil {
		return fmt.Errorf("%w: name a Python that has Jinja2 in JINJA_PYTHON", err)
	}
	defer peer.close()
	fmt.Printf("beside Jinja2 %s on Python %s\n", peer.Version, peer.Python)
	fmt.Printf("%-12s %-16s %10s %12s %12s %7s\n", "template", "", "output", "corpus-git", "Jinja2", "ratio")
	worst := 0.0
	for i := range cases {
		c := cases[i]
		ours, err := newJinjaOurs(c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		c.Vars, cases[i].Vars = nil, nil
		runtime.GC() // what other cases left behind is not a part of this one's work
		for _, compile := range []bool{true, false} {
			a, b, ratio, size, err := compareJinja(ours, peer, c.Name, compile)
			if err != nil {
				return fmt.Errorf("%s: %w", c.Name, err)
			}
			what := "render"
			if compile {
				what = "compile, render"
			}
			worst = max(worst, ratio)
			fmt.Printf("%-12s %-16s %8.1f k %9.3f ms %9.3f ms %7.3f\n", c.Name, what, float64(size)/1000, a*1000, b*1000, ratio)
		}
	}
	fmt.Printf("slowest ratio %.3f\n", worst)
	return nil
}

// compareJinja returns the medians in seconds of one render, and the median of the ratios of neighbours.
func compareJinja(ours *jinjaOurs, peer *jinjaProcess, name string, compile bool) (a, b, ratio float64, size int, err error) {
	one, want, err := peer.render(name, 1, compile)
	if err != nil {
		return 0, 0, 0, 0, err
	}
	n := max(1, int(jinjaSlice.Seconds()/one))
	var as, bs, ratios []float64
	for i := range jinjaRuns + 1 {
		t, text, err := ours.render(n, compile)
		if err != nil {
			return 0, 0, 0, 0, err
		}
		if sum := sha256.Sum256([]byte(text)); hex.EncodeToString(sum[:]) != want {
			return 0, 0, 0, 0, fmt.Errorf("the two outputs differ")
		}
		size = len(text)
		u, _, err := peer.render(name, n, compile)
		if err != nil {
			return 0, 0, 0, 0, err
		}
		if i > 0 {
			as, bs, ratios = append(as, t), append(bs, u), append(ratios, t/u)
		}
	}
	slices.Sort(as)
	slices.Sort(bs)
	slices.Sort(ratios)
	return as[len(as)/2], bs[len(bs)/2], ratios[len(ratios)/2], size, nil
}

// jinjaOurs is a case for sls/jinja.
type jinjaOurs struct {
	options jinja.Options
	ready   *jinja.Template
	vars    *py.Dict
}

func newJinjaOurs(c jinjaCase) (*jinjaOurs, error) {
	text, err := json.Marshal(c.Vars)
	if err != nil {
		return nil, err
	}
	v, err := py.FromJSON(string(text))
	if err != nil {
		return nil, err
	}
	o := &jinjaOurs{vars: v.(*py.Dict), options: jinja.Options{Loader: jinja.MapLoader(c.Templates), StrictUndefined: true,
		KeepTrailingNewline: true, Limits: jinja.Limits{Fuel: 1e12, Memory: 1 << 40}}}
	o.ready, err = jinja.New(o.options).Get(context.Background(), "main")
	return o, err
}

// render returns the seconds of one render, and its text.
func (o *jinjaOurs) render(n int, compile bool) (seconds float64, text string, err error) {
	ctx := context.Background()
	begin := time.Now()
	for range n {
		t := o.ready
		if compile {
			if t, err = jinja.New(o.options).Get(ctx, "main"); err != nil {
				return 0, "", err
			}
		}
		if text, err = t.Render(ctx, o.vars); err != nil {
			return 0, "", err
		}
	}
	return time.Since(begin).Seconds() / float64(n), text, nil
}

// jinjaProcess is a Python that renders.
type jinjaProcess struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	Version string `json:"version"`
	Python  string `json:"python"`
}

func startJinjaPeer(python string, cases []jinjaCase) (*jinjaProcess, error) {
	p := &jinjaProcess{cmd: exec.Command(python, "-c", jinjaPeer)}
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	all := map[string]jinjaCase{}
	for _, c := range cases {
		all[c.Name] = c
	}
	if err := p.ask(all, p); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *jinjaProcess) ask(request, answer any) error {
	if err := json.NewEncoder(p.in).Encode(request); err != nil {
		return err
	}
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("the Python of Jinja2 ended: %w", err)
	}
	return json.Unmarshal(line, answer)
}

// render returns the seconds of one render, and the hash of its text.
func (p *jinjaProcess) render(name string, n int, compile bool) (seconds float64, sum string, err error) {
	var a struct {
		Seconds float64 `json:"seconds"`
		Sum     string  `json:"sum"`
	}
	err = p.ask(map[string]any{"case": name, "n": n, "compile": compile}, &a)
	return a.Seconds / float64(n), a.Sum, err
}

func (p *jinjaProcess) close() {
	_ = p.in.Close()
	_ = p.cmd.Wait()
}
