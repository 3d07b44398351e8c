package status

import (
	"time"

	"corpus-git/project"
)

// Job is a stored job of a project.
type Job struct {
	Project  project.Name `json:"project"`
	Name     string       `json:"name"`
	Revision int64        `json:"revision"`
	About    string       `json:"about,omitempty"`
	Added    time.Time    `json:"added"`
	AddedBy  string       `json:"added_by,omitempty"`
	// Text is the document; a list has none.
	Text string `json:"text,omitempty"`
}

// Jobs is what job list --json prints.
type Jobs struct {
	Version int   `json:"version"`
	Jobs    []Job `json:"jobs"`
}

// JobDocument is what job set --json and job show --json print.
type JobDocument struct {
	Version int `json:"version"`
	Job     Job `json:"job"`
}
