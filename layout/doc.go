// Package layout defines where everything is on disk.
//
// It owns every path of the product, as pure functions of a root directory and
// a project's name. It does no I/O, imports nothing, and never fails: names are
// validated before they reach it (project.Name). A crash leaves nothing.
//
// Two trees are described: Root, what the original corpus calls /srv (projects,
// salt and pillar trees), and State, what only corpus-git knows (database, host
// keys, journals, event logs, socket), by default <root>/.corpus-git.
package layout
