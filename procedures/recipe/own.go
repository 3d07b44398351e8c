package recipe

import (
	"errors"
	"io/fs"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/layout"
	"corpus-git/project"
)

// ownFiles returns the names that a procedure's own file may have.
func ownFiles(procedure string) []string {
	names := []string{procedure + ".sls"}
	if other := project.ProcedureKey(procedure); other != procedure {
		names = append(names, other+".sls")
	}
	return names
}

// OwnFile finds a recipe's own file for a procedure; stock ones are ignored.
func OwnFile(recipe fs.FS, procedure string) (s Step, own bool, err error) {
	for _, file := range ownFiles(procedure) {
		data, err := fs.ReadFile(recipe, file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return s, false, fault.New(fault.KindOf(err), "read "+layout.SaltDir+"/"+file, "%w", err)
		}
		if isStock(procedure, string(data)) {
			continue
		}
		if own {
			return s, false, fault.New(fault.Failed, "read "+layout.SaltDir, "%s and %s are the same procedure", s.File, file).
				WithPos(fault.Pos{File: layout.SaltDir + "/" + file}).WithHint("keep one of them")
		}
		s, own = Step{Name: strings.TrimSuffix(file, ".sls"), File: file}, true
	}
	return s, own, nil
}

// OwnStep is a project's own file for a procedure.
type OwnStep struct {
	Step
	Procedure string
}

// OwnIn lists the procedures that a recipe has its own files for.
func OwnIn(recipe fs.FS) ([]OwnStep, error) {
	var out []OwnStep
	for _, name := range Procedures() {
		s, own, err := OwnFile(recipe, name)
		if err != nil {
			return nil, err
		}
		if own {
			out = append(out, OwnStep{s, name})
		}
	}
	return out, nil
}
