// Package pillar reads the values of a project: PILLAR.sample, and its pillar, which is compiled as Salt compiles one, from the files that
// <root>/pillar/top.sls names for this machine and the project's own.
//
// It owns what of them is a secret (Secrets), and the limits on the files of a pillar. It runs nothing, writes nothing, never shows a line
// of a pillar, and reads no other project's. It keeps nothing: a crash leaves nothing.
package pillar
