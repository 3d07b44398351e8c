// Package slstest is the conformance suite of SLS runners: trees of SLS files, each with what Salt does with it.
//
// It owns the trees (testdata/*.txtar) and how a runner is held against them. What a tree expects was recorded
// from the real Salt: every state in order, its result, its changes and comment, and the files afterwards.
//
// A tree is a txtar archive. Its comment describes it; lines "key: value" in it set options: test: true runs it as a
// test, root: true skips it for other users, needs: names a program that the machine must have, os: a distribution that it must be, apt: true gives
// it apt's directory of its own (@APT@, its files are below apt/), etc: true files that stand in for those of /etc (@ETC@, they
// are below etc/: passwd, group, shadow, login.defs; what they say of today is @TODAY@).
// Files below salt/ are the file roots, with @D@ standing for the working directory and @B@ for the directory that
// holds it; salt/t.sls is run. setup.sh prepares the working directory; programs below bin/ are before those of the
// machine; pillar.json and cfg.json are data. golden is what Salt did; where the built-in runner differs on purpose,
// golden.builtin says how, and a line "difference: reason" in the comment says why.
//
// Markdown writes the page of compatibility from the trees and from what the built-in runner knows.
package slstest
