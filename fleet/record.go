package fleet

import (
	"context"
	"encoding/json"
	"time"

	"corpus-git/project"
)

// noteWithin is when what note changed is written at the latest.
const noteWithin = 200 * time.Millisecond

// change changes the progress. It is durable on return: changes that arrive while the file is written are written together by the next one.
func (r *Rollout) change(f func(*Progress)) error {
	r.mu.Lock()
	f(r.p)
	r.changes++
	own := r.changes
	r.mu.Unlock()
	return r.write(own)
}

// note changes the progress where nothing depends on it being durable: a node whose answer is lost with this process is asked again. It is written soon, and by the next change or save.
func (r *Rollout) note(f func(*Progress)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(r.p)
	r.changes++
	if r.due {
		return
	}
	r.due = true
	time.AfterFunc(noteWithin, func() {
		r.writing.Lock()
		defer r.writing.Unlock()
		if r.mu.Lock(); !r.due {
			r.mu.Unlock()
			return // written by save
		}
		r.due = false
		r.mu.Unlock()
		_ = r.writeLocked() // save writes it again, and reports the error
	})
}

// save makes all changes durable. Nothing is written after it, until the next change.
func (r *Rollout) save() error {
	r.mu.Lock()
	own := r.changes
	r.due = false
	r.mu.Unlock()
	return r.write(own)
}

// write writes the file, unless it has that many changes already.
func (r *Rollout) write(changes int) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	if r.written >= changes {
		return nil
	}
	return r.writeLocked()
}

// writeLocked writes the file, if it lacks changes. Called with writing held.
func (r *Rollout) writeLocked() error {
	r.mu.Lock()
	all := r.changes
	if r.written >= all {
		r.mu.Unlock()
		return nil
	}
	text, err := r.text()
	r.mu.Unlock()
	if err == nil {
		err = writeProgress(r.FS, r.Path, text)
	}
	if err == nil {
		r.written = all
		r.saved()
	}
	return err
}

// saved calls Saved.
func (r *Rollout) saved() {
	if r.Saved != nil {
		r.Saved()
	}
}

// The two parts of the file: with many nodes the first is long, and the second is written often.
type (
	fixedProgress struct {
		Deployment project.Deployment `json:"deployment"`
		Plan       *Plan              `json:"plan"`
		KV         json.RawMessage    `json:"kv,omitempty"`
		Others     []NodeProgress     `json:"others,omitempty"`
	}
	changingProgress struct {
		State   string          `json:"state"`
		Waits   bool            `json:"waits,omitempty"`
		Paused  bool            `json:"paused,omitempty"`
		Started time.Time       `json:"started"`
		Ended   time.Time       `json:"ended,omitzero"`
		Nodes   []NodeProgress  `json:"nodes"`
		Stages  []StageProgress `json:"stages"`
		Leader  string          `json:"leader,omitempty"`
		Token   int64           `json:"token,omitempty"`
	}
)

// text returns the JSON of the progress. Called with mu held.
func (r *Rollout) text() (_ []byte, err error) {
	p := r.p
	if r.fixed == nil {
		if r.fixed, err = json.Marshal(fixedProgress{p.Deployment, p.Plan, p.KV, p.Others}); err != nil {
			return nil, err
		}
	}
	text, err := json.Marshal(changingProgress{p.State, p.Waits, p.Paused, p.Started, p.Ended, p.Nodes, p.Stages, p.Leader, p.Token})
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(r.fixed)+len(text))
	out = append(out, r.fixed...)
	out[len(out)-1] = ','
	return append(out, text[1:]...), nil
}

// keys returns the keys that the project sees now, as a JSON object; nil if there are none.
func (r *Rollout) keys(ctx context.Context) (json.RawMessage, error) {
	if r.KV == nil {
		return nil, nil
	}
	keys, err := r.KV(ctx)
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	return json.Marshal(keys)
}
