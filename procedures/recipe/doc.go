// Package recipe reads the folder .salt of a commit: its steps and tasks, the project's own files for procedures, files that
// would not run, and the private copy that everything runs from (ADR 15).
//
// It reads commits and writes below the state folder only. It never runs anything, and knows no deployment. A crash leaves a
// private copy, which the start of the server removes.
package recipe
