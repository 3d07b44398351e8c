package fleet

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"time"

	"corpus-git/internal/fault"
	"corpus-git/internal/nearest"
	"corpus-git/internal/strictyaml"
	"corpus-git/project"
)

// Job is a stored document that deploys the live commits of a project to its nodes in stages of its own, at a person's request.
type Job struct {
	Project project.Name `json:"project"`
	Name    string       `json:"name"`
	// Revision counts the texts that were stored under the name, from 1. A revision never changes.
	Revision int64     `json:"revision"`
	About    string    `json:"about,omitempty"`
	Added    time.Time `json:"added"`
	AddedBy  string    `json:"added_by,omitempty"`
	// Text is the document, as it was stored.
	Text string `json:"text,omitempty"`
}

// Ref returns the job's name and revision, as a deployment records them.
func (j Job) Ref() string { return fmt.Sprintf("%s@%d", j.Name, j.Revision) }

// JobDocument is what the text of a job says.
type JobDocument struct {
	// About is one line for people.
	About string `yaml:"about"`
	// OnlySteps are the steps that run on the nodes; none means all.
	OnlySteps []string `yaml:"only_steps"`
	// AllowMissing skips nodes that are not ready.
	AllowMissing bool `yaml:"allow_missing"`
	// OnFailure and Stages are those of Stages, except that nodes that no stage takes are left out.
	OnFailure string  `yaml:"on_failure"`
	Stages    []Stage `yaml:"stages"`
}

// maxJob limits the text of a job, in bytes.
const maxJob = 64 << 10

var validJob = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?$`)

// ReadJob reads the text of a job. Errors are fault.Usage, and name the line where there is one.
func ReadJob(text string) (d JobDocument, err error) {
	bad := func(format string, args ...any) error { return fault.New(fault.Usage, "job", format, args...) }
	if len(text) > maxJob {
		return d, bad("it is longer than %d bytes", maxJob)
	}
	if err := strictyaml.Decode([]byte(text), &d); err != nil {
		return d, bad("%w", err)
	}
	if len(d.Stages) == 0 {
		return d, bad("it has no stages")
	}
	if strings.ContainsAny(d.About, "\r\n") || len(d.About) > 200 {
		return d, bad("about is one line of at most 200 bytes")
	}
	s := Stages{OnFailure: d.OnFailure, Stages: d.Stages}
	err = s.complete("job", []byte(text))
	d.OnFailure = s.OnFailure
	return d, err
}

// JobStages returns the stages of a job for a project whose code is given: the leader is that of its .salt/stages.yaml.
func JobStages(j Job, code fs.FS) (Stages, error) {
	d, err := ReadJob(j.Text)
	if err != nil {
		return Stages{}, err
	}
	own, err := ReadStages(code)
	return Stages{OnFailure: d.OnFailure, Stages: d.Stages, Leader: own.Leader, Partial: true}, err
}

// StagesOf returns the stages of a deployment of a project's code: those of its job, which find finds, or for "" those of the code.
func StagesOf(ctx context.Context, of project.Name, job string, code fs.FS, find func(context.Context, project.Name, string) (Job, error)) (Stages, error) {
	if job == "" {
		return ReadStages(code)
	}
	j, err := find(ctx, of, job)
	if err != nil {
		return Stages{}, err
	}
	return JobStages(j, code)
}

// jobColumns are the columns that scanJob reads. A removed job has a newest revision without a text.
const jobColumns = `project, name, revision, text, added, added_by`

func scanJob(row interface{ Scan(to ...any) error }) (j Job, err error) {
	var added int64
	var name string
	if err := row.Scan(&name, &j.Name, &j.Revision, &j.Text, &added, &j.AddedBy); err != nil {
		return j, err
	}
	j.Project, j.Added = project.Name(name), time.Unix(0, added).UTC()
	if d, err := ReadJob(j.Text); err == nil { // a removed job, or one of another release, has none to show
		j.About = d.About
	}
	return j, nil
}

// SetJob stores a job durably, as a new revision unless the newest one has the same text. changed reports whether it did. An invalid name or text
// is fault.Usage.
func (s *Store) SetJob(ctx context.Context, j Job) (stored Job, changed bool, err error) {
	if !validJob.MatchString(j.Name) {
		return j, false, fault.New(fault.Usage, "job set", "%q is not a valid job name", j.Name).WithHint("lower-case letters, digits, dots, dashes and underscores")
	}
	if _, err := ReadJob(j.Text); err != nil {
		return j, false, err
	}
	return s.putJob(ctx, j)
}

// putJob adds a revision, in one statement: two callers never get the same one.
func (s *Store) putJob(ctx context.Context, j Job) (Job, bool, error) {
	stored, err := scanJob(s.db.QueryRowContext(ctx, `INSERT INTO jobs (`+jobColumns+`)
		SELECT ?1, ?2, coalesce((SELECT max(revision) FROM jobs WHERE project = ?1 AND name = ?2), 0) + 1, ?3, ?4, ?5
		WHERE ?3 IS NOT (SELECT text FROM jobs WHERE project = ?1 AND name = ?2 ORDER BY revision DESC LIMIT 1) RETURNING `+jobColumns,
		string(j.Project), j.Name, j.Text, j.Added.UnixNano(), j.AddedBy))
	if errors.Is(err, sql.ErrNoRows) {
		stored, err = s.Job(ctx, j.Project, j.Name)
		return stored, false, err
	}
	return stored, err == nil, err
}

// Jobs returns the newest revisions of the jobs of a project, of all projects for "", in the order of their names.
func (s *Store) Jobs(ctx context.Context, name project.Name) (out []Job, err error) {
	rows, err := s.db.QueryContext(ctx, `SELECT `+jobColumns+` FROM jobs AS j WHERE (?1 = '' OR project = ?1) AND text != ''
		AND revision = (SELECT max(revision) FROM jobs WHERE project = j.project AND name = j.name) ORDER BY project, name`, string(name))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		j, err := scanJob(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, j)
	}
	return out, rows.Err()
}

// Job finds a job by its name, in its newest revision, or by NAME@REVISION, which also finds the revisions of a removed one. An unknown one is
// fault.Refused.
func (s *Store) Job(ctx context.Context, of project.Name, ref string) (Job, error) {
	name, text, exact := strings.Cut(ref, "@")
	revision, err := strconv.ParseInt(text, 10, 64)
	if exact && err != nil {
		return Job{}, fault.New(fault.Usage, "", "%q is not a revision of a job", text).WithHint("as in  %s@1", name)
	}
	j, err := scanJob(s.db.QueryRowContext(ctx, `SELECT `+jobColumns+` FROM jobs WHERE project = ?1 AND name = ?2 AND (?3 = 0 OR revision = ?3) ORDER BY revision DESC LIMIT 1`,
		string(of), name, revision))
	if err == nil && j.Text != "" {
		return j, nil
	}
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return j, err
	}
	all, err := s.Jobs(ctx, of)
	if err != nil {
		return Job{}, err
	}
	e := fault.New(fault.Refused, "", "%s has no job %s", of, ref)
	var names []string
	for _, x := range all {
		names = append(names, x.Name)
	}
	if near := nearest.To(name, names); near != "" && near != name {
		return Job{}, e.WithHint("did you mean  %s ?", near)
	}
	return Job{}, e.WithHint("corpus-git job list  shows the jobs")
}

// RemoveJob removes a job durably: it is listed and found by its name no more. Its revisions are kept for the deployments that ran them.
func (s *Store) RemoveJob(ctx context.Context, of project.Name, name, by string, now time.Time) error {
	j, err := s.Job(ctx, of, name)
	if err != nil {
		return err
	}
	_, _, err = s.putJob(ctx, Job{Project: of, Name: j.Name, Added: now, AddedBy: by})
	return err
}

// Forget removes what is stored about a destroyed project: all revisions of its jobs, and the node that it is assigned to.
func (s *Store) Forget(ctx context.Context, of project.Name) error {
	_, err := s.db.ExecContext(ctx, `DELETE FROM jobs WHERE project = ?`, string(of))
	_, aerr := s.Assign(ctx, of, "")
	return errors.Join(err, aerr)
}
