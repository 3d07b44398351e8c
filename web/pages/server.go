package pages

import (
	"bytes"
	"net/http"
	"os"
	"runtime/metrics"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"corpus-git/access"
	"corpus-git/internal/audit"
	"corpus-git/internal/fault"
	"corpus-git/project"
	"corpus-git/project/status"
)

// auditRows is how many entries a page of the audit log has.
const auditRows = 100

// audit shows the audit log: of the project of the path, or of all.
func (p *Pages) audit(w http.ResponseWriter, r *http.Request) error {
	b := struct {
		projectHead
		Entries []audit.Entry
		Older   string
	}{}
	v := page{Title: "Audit"}
	var args []string
	if r.PathValue("name") != "" {
		head, rights, err := p.open(r, project.Admin)
		if err != nil {
			return err
		}
		b.projectHead, args = head, []string{string(head.Project.Name)}
		v.Title, v.Tabs = string(head.Project.Name), p.tabs(r, head.Project.Name, rights)
	} else if err := p.forAdmins(r); err != nil {
		return err
	}
	words := "audit --limit=" + strconv.Itoa(auditRows)
	if before := r.URL.Query().Get("before"); before != "" {
		seq, err := strconv.ParseInt(before, 10, 64)
		if err != nil {
			return fault.New(fault.Usage, "", "before must be a number")
		}
		words += " --before=" + strconv.FormatInt(seq, 10)
	}
	var doc status.Audit
	if err := p.read(r, &doc, words, args...); err != nil {
		return err
	}
	if b.Entries = doc.Entries; len(doc.Entries) == auditRows {
		b.Older = r.URL.EscapedPath() + "?before=" + strconv.FormatInt(doc.Entries[auditRows-1].Seq, 10)
	}
	v.Body = b
	p.Show(w, r, http.StatusOK, "audit.html", v)
	return nil
}

// diagnosis is what doctor said last.
type diagnosis struct {
	At     time.Time
	Checks []status.Check
}

// disk is a file system.
type disk struct {
	Path              string
	Size, Free, Taken int64
	// Percent that is taken.
	Percent int64
}

// systemBody is what the page of the machine shows.
type systemBody struct {
	Build    status.Build
	Started  time.Time
	PID      int
	Disks    []disk
	Resident int64
	Heap     uint64
	Threads  uint64
	Doctor   diagnosis
	Problem  *problem
	ReadOnly bool
}

func (p *Pages) system(w http.ResponseWriter, r *http.Request) error {
	if err := p.forAdmins(r); err != nil {
		return err
	}
	return p.showSystem(w, r, nil)
}

func (p *Pages) showSystem(w http.ResponseWriter, r *http.Request, wrong error) error {
	b := systemBody{Build: p.Build, Started: p.started, PID: os.Getpid(), Resident: resident(), ReadOnly: p.reader.Identity(r).ReadOnly || p.Run == nil}
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/sched/goroutines:goroutines"}}
	metrics.Read(samples)
	b.Heap, b.Threads = samples[0].Value.Uint64(), samples[1].Value.Uint64()
	for _, path := range p.Disks {
		var st unix.Statfs_t
		if err := unix.Statfs(path, &st); err != nil {
			return err
		}
		d := disk{Path: path, Size: int64(st.Blocks) * st.Bsize, Free: int64(st.Bavail) * st.Bsize, Taken: int64(st.Blocks-st.Bfree) * st.Bsize}
		d.Percent = 100 * d.Taken / max(1, d.Taken+d.Free)
		b.Disks = append(b.Disks, d)
	}
	p.mu.Lock()
	b.Doctor = p.doctor
	p.mu.Unlock()
	code := http.StatusOK
	if wrong != nil {
		c, text := p.explain(r, wrong)
		code, b.Problem = c, &text
	}
	p.Show(w, r, code, "system.html", page{Title: "System", Body: b})
	return nil
}

// resident returns the resident memory of this process in bytes (proc(5), /proc/pid/statm); 0 if unknown.
func resident() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(text)
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// runDoctor runs doctor, which may take longer than a page, and stores its output.
func (p *Pages) runDoctor(w http.ResponseWriter, r *http.Request) error {
	if err := p.form(w, r); err != nil {
		return err
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // a recorder in tests has none
	var doc status.Doctor
	if err := p.read(r, &doc, "doctor"); err != nil {
		return p.showSystem(w, r, err)
	}
	p.mu.Lock()
	p.doctor = diagnosis{p.Now(), doc.Checks}
	p.mu.Unlock()
	return done(w, r, "/system")
}

// keysBody is the list of keys, and the form to add one.
type keysBody struct {
	Keys     []access.Key
	More     int
	Added    string
	Problem  *problem
	Typed    map[string][]string
	ReadOnly bool
}

// Or returns what was typed in a field.
func (b keysBody) Or(field string) string {
	if len(b.Typed[field]) == 0 {
		return ""
	}
	return b.Typed[field][0]
}

// keyRows is how many keys are listed.
const keyRows = 200

func (p *Pages) keysPage(w http.ResponseWriter, r *http.Request) error {
	return p.showKeys(w, r, nil)
}

func (p *Pages) showKeys(w http.ResponseWriter, r *http.Request, wrong error) error {
	if err := p.forAdmins(r); err != nil {
		return err
	}
	var doc access.Keys
	if err := p.read(r, &doc, "key list"); err != nil {
		return err
	}
	b := keysBody{Keys: doc.Keys, Added: r.URL.Query().Get("added"), ReadOnly: p.reader.Identity(r).ReadOnly, Typed: r.PostForm}
	if len(b.Keys) > keyRows {
		b.Keys, b.More = b.Keys[:keyRows], len(b.Keys)-keyRows
	}
	code := http.StatusOK
	if wrong != nil {
		c, text := p.explain(r, wrong)
		code, b.Problem = c, &text
	}
	p.Show(w, r, code, "keys.html", page{Title: "Keys", Body: b})
	return nil
}

func (p *Pages) addKey(w http.ResponseWriter, r *http.Request) error {
	if err := p.form(w, r); err != nil {
		return err
	}
	_, err := p.change(r, http.MethodPost, "/keys", struct {
		Name    string `json:"name"`
		Key     string `json:"key"`
		User    string `json:"user,omitempty"`
		Admin   bool   `json:"admin,omitempty"`
		Expires string `json:"expires,omitempty"`
	}{r.PostForm.Get("name"), r.PostForm.Get("key"), r.PostForm.Get("user"), r.PostForm.Get("admin") != "", r.PostForm.Get("expires")})
	if err != nil {
		return p.showKeys(w, r, err)
	}
	return done(w, r, "/keys")
}
