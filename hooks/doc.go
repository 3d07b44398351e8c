// Package hooks runs executables of the operator and of projects at points of a
// deployment.
//
// It owns lifecycle hooks: executables in the server's own <state>/hooks/<point>.d/
// and those that the caller names, which are in its private copy of a recipe. The deployment is described on standard
// input (JSON, schema version 1) and in the environment (CORPUS_*).
//
// It never decides what a failure means: the procedure does. It keeps no
// state, so a crash leaves only a running child, which recovery ends.
package hooks
