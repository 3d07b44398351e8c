// Package render renders SLS files and file templates with Jinja, in the context that Salt gives.
//
// It owns the variables (salt, opts, grains, pillar, cfg, sls, tpldir, …), Salt's filters and tests,
// the import tags, and how salt:// templates are found. It never parses the result and changes nothing
// itself; what a template calls is package modules' business.
//
// Invariants: a variable that is not defined is an error where it is used; an error names the template
// and line and never a value. Concurrency: a Renderer belongs to one goroutine.
//
// Source: Salt documentation, "Understanding Jinja", and "SLS Template Variable Reference".
package render
