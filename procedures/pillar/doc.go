// Package pillar reads the values of a project: PILLAR.sample, and its pillar, which is compiled in the same way as in Salt, from the
// files that <root>/pillar/top.sls names for this machine and the project's own files.
//
// It determines which of them are secret (Secrets), and limits the files of a pillar. It runs nothing, writes nothing, never shows a line
// of a pillar, and does not read the pillars of other projects. It stores nothing: a crash leaves nothing behind.
package pillar
