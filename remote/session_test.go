package remote_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/bundle"
	"corpus-git/internal/fault"
	"corpus-git/project"
	"corpus-git/remote"
)

// answers takes bundles of one line.
type answers struct{ asked []string }

func (a *answers) Cancel(_ context.Context, q remote.CancelRequest) error {
	a.asked = append(a.asked, "cancel "+string(q.Project)+" "+string(q.Deployment))
	return nil
}

func (a *answers) Converge(_ context.Context, q remote.ConvergeRequest) (project.Result, error) {
	return project.Result{State: project.Done, Reason: string(q.Run.Mode)}, nil
}

func (a *answers) Plan(_ context.Context, q remote.PlanRequest) (remote.Planned, error) {
	a.asked = append(a.asked, "plan "+string(q.Project))
	return remote.Planned{Live: q.Live, Note: "first"}, nil
}

func (a *answers) Untrust(_ context.Context, key string) error {
	a.asked = append(a.asked, "untrust "+key)
	return nil
}

func (a *answers) Keys(_ context.Context, s bundle.Succession) error {
	a.asked = append(a.asked, "keys "+s.Current)
	return nil
}

func (a *answers) Check(_ context.Context, name project.Name) (project.Result, error) {
	a.asked = append(a.asked, "check "+string(name))
	return project.Result{State: project.Done}, nil
}

func (a *answers) Trust(_ context.Context, key string) error {
	a.asked = append(a.asked, "trust "+key)
	if key == "bad" {
		return fault.New(fault.Usage, "", "not a key").WithHint("give one")
	}
	return nil
}

func (a *answers) Tips(_ context.Context, name project.Name) (bundle.Tips, error) {
	a.asked = append(a.asked, "tips "+string(name))
	return bundle.Tips{Code: []project.Commit{"c"}}, nil
}

func (a *answers) Apply(_ context.Context, q remote.ApplyRequest, in *bufio.Reader, send func(remote.Frame) error) error {
	line, err := in.ReadString('\n')
	if err != nil {
		return err
	}
	a.asked = append(a.asked, "apply "+strings.TrimSpace(line))
	if q.StoreOnly {
		return nil
	}
	return send(remote.Frame{Result: &project.Result{State: project.Live}, Exit: 0})
}

func (a *answers) Upgrade(_ context.Context, in *bufio.Reader) error {
	line, err := in.ReadString('\n')
	a.asked = append(a.asked, "upgrade "+strings.TrimSpace(line))
	return err
}

// Requests follow one another, including a bundle; an error is a response, and a bundle that was not read to its end ends the session.
func TestServe(t *testing.T) {
	for name, c := range map[string]struct {
		in    string
		asked []string
		out   string
		err   string
	}{
		"requests, one behind the other": {
			in:    `{"trust":"k"}` + "\n" + `{"tips":"app"}` + "\n" + `{"apply":{"store_only":true}}` + "\nB1\n" + `{"apply":{}}` + "\nB2\n" + `{"tips":"b"}` + "\n",
			asked: []string{"trust k", "tips app", "apply B1", "apply B2", "tips b"},
			out:   "hello done tips+done done result done tips+done",
		},
		"cancel and check": {
			in:    `{"cancel":{"project":"app","deployment":"1"}}` + "\n" + `{"check":"app"}` + "\n",
			asked: []string{"cancel app 1", "check app"}, out: "hello done result+done",
		},
		"keys that are not trusted any more": {in: `{"trust":"k","untrust":["o","p"]}` + "\n" + `{"trust":"bad","untrust":["q"]}` + "\n", asked: []string{"trust k", "untrust o", "untrust p", "trust bad"}, out: "hello done error+done"},
		"the keys of the hub":                {in: `{"keys":{"current":"k"}}` + "\n", asked: []string{"keys k"}, out: "hello hello+done"},
		"a plan":                             {in: `{"plan":{"project":"app"}}` + "\n", asked: []string{"plan app"}, out: "hello planned+done"},
		"the greeting again":                 {in: `{"hello":true}` + "\n", out: "hello hello+done"},
		"a program":                          {in: `{"upgrade":true}` + "\nP\n" + `{"tips":"b"}` + "\n", asked: []string{"upgrade P", "tips b"}, out: "hello done tips+done"},
		"an error is an answer":              {in: `{"trust":"bad"}` + "\n" + `{"tips":"a"}` + "\n", asked: []string{"trust bad", "tips a"}, out: "hello error+done tips+done"},
		"a bundle that is cut":               {in: `{"apply":{}}` + "\nB", out: "hello error+done"},
		"no request":                         {in: "x\n", out: "hello", err: "a request: "},
		"unknown":                            {in: "{}\n", out: "hello error+done"},
		"endless":                            {in: strings.Repeat("x", 1<<20), out: "hello", err: "longer than 65536 bytes"},
		"cut":                                {in: `{"tips"`, out: "hello", err: "is cut off"},
	} {
		t.Run(name, func(t *testing.T) {
			a := &answers{}
			var out strings.Builder
			err := remote.Serve(t.Context(), strings.NewReader(c.in), &out, greeting, a)
			if c.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.err)
			}
			require.Equal(t, c.asked, a.asked)
			require.Equal(t, c.out, kinds(t, out.String()))
		})
	}
}

// kinds are what the frames hold.
func kinds(t *testing.T, text string) string {
	t.Helper()
	var out []string
	for dec := json.NewDecoder(strings.NewReader(text)); ; {
		var f remote.Frame
		err := dec.Decode(&f)
		if err == io.EOF {
			return strings.Join(out, " ")
		}
		require.NoError(t, err)
		var has []string
		for name, is := range map[string]bool{"hello": f.Hello != nil, "tips": f.Tips != nil, "result": f.Result != nil, "error": f.Error != nil, "planned": f.Planned != nil} {
			if is {
				has = append(has, name)
			}
		}
		if f.Done {
			has = append(has, "done")
		}
		out = append(out, strings.Join(has, "+"))
	}
}

func FuzzServe(f *testing.F) {
	f.Add([]byte(`{"trust":"k"}` + "\n" + `{"apply":{"after":3}}` + "\nB1\n"))
	f.Add([]byte("{}\n\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var out strings.Builder
		_ = remote.Serve(t.Context(), strings.NewReader(string(in)), &out, greeting, &answers{})
		require.True(t, strings.HasPrefix(kinds(t, out.String()), "hello"))
	})
}

// A release works with the previous one and with the next one; any other is told to upgrade.
func TestSpeaks(t *testing.T) {
	for name, c := range map[string]struct {
		hello remote.Hello
		want  int
		err   string
	}{
		"the same":        {remote.Hello{Protocol: remote.Protocol, Oldest: remote.OldestProtocol}, remote.Protocol, ""},
		"one older":       {remote.Hello{Protocol: remote.OldestProtocol}, remote.OldestProtocol, ""},
		"one newer":       {remote.Hello{Protocol: remote.Protocol + 1, Oldest: remote.Protocol}, remote.Protocol, ""},
		"two newer":       {remote.Hello{Protocol: remote.Protocol + 2, Oldest: remote.Protocol + 1}, 0, "upgrade this server"},
		"newer and alone": {remote.Hello{Protocol: remote.Protocol + 1}, 0, "upgrade this server"},
		"too old":         {remote.Hello{Protocol: remote.OldestProtocol - 1, Release: "0.1"}, 0, "0.1 is too old"},
	} {
		got, err := c.hello.Negotiate()
		require.Equal(t, c.want, got, name)
		if c.err != "" {
			require.ErrorContains(t, err, c.err, name)
		} else {
			require.NoError(t, err, name)
		}
	}
}
