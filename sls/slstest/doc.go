// Package slstest is the conformance suite of SLS runners: trees of SLS files, each with the results that Salt produces.
//
// It owns the trees (testdata/*.txtar) and the comparison of a runner with them. The expected results of a tree were recorded
// from the real Salt: every state in order, its result, its changes and comment, and the files afterwards.
//
// A tree is a txtar archive. Its comment describes it; lines "key: value" in it set options: test: true runs it as a
// test, root: true skips it for other users, needs: names a program that the machine must have, os: names a distribution that it must run, apt:
// true gives it its own apt directory (@APT@, its files are below apt/), etc: true gives it replacements of files in /etc (@ETC@, they are below
// etc/: passwd, group, shadow, login.defs; the current date in them is @TODAY@). Files below salt/ are the file roots, where @D@ stands for the
// working directory and @B@ for its parent directory; salt/t.sls is run. setup.sh prepares the working directory; programs below bin/ take
// precedence over those of the machine; pillar.json and cfg.json are data. golden is what Salt did; if the built-in runner differs on purpose,
// golden.builtin has its results, and a line "difference: reason" in the comment gives the reason.
//
// Markdown generates the compatibility page from the trees and from what the built-in runner supports.
package slstest
