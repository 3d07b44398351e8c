package salt

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// request is one step, as the driver reads it.
type request struct {
	SLS  string `json:"sls"`
	Test bool   `json:"test,omitempty"`
	// Check compiles the step and runs none of it.
	Check bool `json:"check,omitempty"`
	// Plan runs no command and no Python that the files name.
	Plan bool `json:"plan,omitempty"`
	// Mark marks the end of what the step wrote to standard error.
	Mark string `json:"mark"`
	// Anyway runs the step even if the process is stale.
	Anyway bool `json:"anyway,omitempty"`
}

// answer is one line of the driver. Kind says which fields are set.
type answer struct {
	Kind string `json:"t"`

	// hello, ready
	PID    int    `json:"pid"`
	Salt   string `json:"salt"`
	Python string `json:"python"`

	// fatal, stale
	Why  string `json:"why"`
	Text string `json:"text"`

	// start
	State string `json:"state"`
	Fun   string `json:"fun"`
	Name  string `json:"name"`
	SLS   string `json:"sls"`

	// start, out
	ID string `json:"id"`

	// start, done
	Of int `json:"of"`

	// done; result: the document of salt-call --out=json
	Tag string          `json:"tag"`
	Ret json.RawMessage `json:"ret"`

	// out
	Stream string `json:"stream"`
	Line   string `json:"line"`

	// result
	Retcode int `json:"retcode"`
	// result of a check: the command that a template would have run, and the function that would have read the
	// machine.
	Refused string `json:"refused"`
	Asked   string `json:"asked"`

	// end
	Status int `json:"status"`
	Signal int `json:"signal"`
}

// The kinds of answers.
const (
	hello  = "hello"  // the process began
	ready  = "ready"  // the minion is made
	fatal  = "fatal"  // it can't be
	stale  = "stale"  // a fresh process would run this step otherwise
	start  = "start"  // a state begins
	done   = "done"   // a state ended, or was left out
	output = "out"    // a line of a state's command
	result = "result" // the step's result
	ended  = "end"    // the step's fork is gone
	logged = "log"    // a line of standard error; never sent by the driver
)

// parseAnswer reads one line. A line that is not an answer was printed before the driver took over.
func parseAnswer(line []byte) (answer, bool) {
	var a answer
	if len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &a) != nil {
		return answer{}, false
	}
	switch a.Kind {
	case hello, ready, fatal, stale, start, done, output, result, ended:
		return a, true
	}
	return answer{}, false
}

// maxAnswer limits one line of the driver, in bytes: the result of a step with all its diffs.
const maxAnswer = 64 << 20

// splitter is a writer that splits the output of the driver into lines. It is not safe for concurrent use.
type splitter struct {
	buf  []byte
	emit func(line []byte)
}

// Write fails when a line gets too long.
func (s *splitter) Write(p []byte) (int, error) {
	n := len(p)
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			break
		}
		if len(s.buf) == 0 {
			s.emit(p[:i])
		} else {
			s.emit(append(s.buf, p[:i]...))
			s.buf = nil
		}
		p = p[i+1:]
	}
	if len(s.buf)+len(p) > maxAnswer {
		return 0, fmt.Errorf("salt wrote an answer of more than %d bytes", maxAnswer)
	}
	s.buf = append(s.buf, p...)
	return n, nil
}
