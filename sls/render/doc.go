// Package render renders SLS files and file templates with Jinja, in the same context as Salt.
//
// It owns the variables (salt, opts, grains, pillar, cfg, sls, tpldir, …), Salt's filters and tests,
// the import tags, and the search for salt:// templates. It never parses the result and changes
// nothing itself; the functions that a template calls are in package modules.
//
// Invariants: an undefined variable is an error where it is used; an error names the template and
// line, and never contains a value. Concurrency: a Renderer belongs to one goroutine.
//
// Source: Salt documentation, "Understanding Jinja", and "SLS Template Variable Reference".
package render
