package salt

import (
	"encoding/json"
	"sort"
	"strconv"
	"strings"
	"time"

	"corpus-git/internal/fault"
	"corpus-git/sls"
	"corpus-git/sls/host"
)

// saltState is one state in Salt's result.
type saltState struct {
	Changes  json.RawMessage `json:"changes"`
	Result   *bool           `json:"result"`
	Comment  json.RawMessage `json:"comment"`
	SLS      string          `json:"__sls__"`
	ID       string          `json:"__id__"`
	Num      int             `json:"__run_num__"`
	Ran      *bool           `json:"__state_ran__"`
	Start    string          `json:"start_time"`
	Duration json.RawMessage `json:"duration"`
	// Unevaluated is what the driver did not evaluate in a plan.
	Unevaluated []string `json:"__unevaluated__"`
}

// results turns Salt's result into ours.
func (s *Call) results(in *sls.Input, out []byte) ([]sls.StateResult, error) {
	var doc struct {
		Local json.RawMessage `json:"local"`
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		return nil, fault.New(fault.Internal, "read salt-call's result", "%w", err)
	}
	var problems []string
	if json.Unmarshal(doc.Local, &problems) == nil {
		return nil, saltProblem(in, strings.Join(problems, "\n"))
	}
	var text string
	if json.Unmarshal(doc.Local, &text) == nil {
		return nil, saltProblem(in, text)
	}
	var states map[string]saltState
	if err := json.Unmarshal(doc.Local, &states); err != nil {
		return nil, fault.New(fault.Internal, "read salt-call's result", "%w", err)
	}
	tags := make([]string, 0, len(states))
	for t := range states {
		tags = append(tags, t)
	}
	sort.Slice(tags, func(i, j int) bool {
		a, b := states[tags[i]], states[tags[j]]
		if a.Num != b.Num {
			return a.Num < b.Num
		}
		return tags[i] < tags[j]
	})
	began := in.Host.Now()
	var res []sls.StateResult
	for _, t := range tags {
		p := strings.Split(t, "_|-")
		if len(p) != 4 {
			continue
		}
		if p[0] == "no" && p[1] == "no" { // no_|-states_|-states_|-None: nothing to do
			return nil, nil
		}
		res = append(res, saltResult(in, p, states[t], began))
	}
	for i := range res {
		res[i].Num, res[i].Of = i+1, len(res)
	}
	return res, nil
}

func saltResult(in *sls.Input, tag []string, st saltState, began time.Time) sls.StateResult {
	r := sls.StateResult{
		StateRef: sls.StateRef{ID: st.ID, Name: tag[2], Function: tag[0] + "." + tag[3], SLS: st.SLS},
		Started:  began,
	}
	if r.ID == "" {
		r.ID = tag[1]
	}
	switch {
	case st.Result == nil:
		r.Outcome = sls.WouldChange
	case *st.Result:
		r.Outcome = sls.Succeeded
	default:
		r.Outcome = sls.FailedState
	}
	var comment string
	if json.Unmarshal(st.Comment, &comment) != nil {
		var many []string
		if json.Unmarshal(st.Comment, &many) == nil {
			comment = strings.Join(many, "\n")
		}
	}
	r.Comment = comment
	r.Skipped = st.Ran != nil && !*st.Ran
	r.Unevaluated = st.Unevaluated
	var ms float64
	if json.Unmarshal(st.Duration, &ms) != nil {
		var s string
		if json.Unmarshal(st.Duration, &s) == nil {
			ms, _ = strconv.ParseFloat(strings.TrimSuffix(s, " ms"), 64)
		}
	}
	r.Duration = time.Duration(ms * float64(time.Millisecond))
	var changes map[string]json.RawMessage
	if json.Unmarshal(st.Changes, &changes) == nil && len(changes) > 0 {
		r.Changed, r.Changes = true, st.Changes
		_ = json.Unmarshal(changes["diff"], &r.Diff)
		if r.Diff == "New file" || !strings.HasPrefix(r.Diff, "---") {
			r.Diff = ""
		}
		var code int
		if tag[0] == "cmd" && changes["retcode"] != nil && json.Unmarshal(changes["retcode"], &code) == nil {
			r.Command = &sls.CommandResult{Line: tag[2], ExitStatus: code}
			var e string
			if json.Unmarshal(changes["stderr"], &e) == nil {
				r.Command.StderrTail = host.LastLines(e, 40)
			}
		}
	}
	r.File, r.Line = findID(in, st.SLS, r.ID)
	return r
}

// findID guesses where a state is declared: the line that begins with its ID.
func findID(in *sls.Input, sls, id string) (file string, line int) {
	f, err := in.Roots.SLS(sls)
	if err != nil {
		return "", 0
	}
	file = f.Display()
	b, err := f.Read()
	if err != nil {
		return file, 0
	}
	for i, l := range strings.Split(string(b), "\n") {
		if k := strings.Trim(strings.SplitN(l, ":", 2)[0], `"'`); k == id && strings.Contains(l, ":") {
			return file, i + 1
		}
	}
	return file, 0
}
