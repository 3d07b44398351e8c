// Package junit reads the reports of test runners that write JUnit's XML: pytest, PHPUnit, Surefire, gotestsum and others.
//
// It owns the figures that a deployment's record keeps of them, and their limits. There is no standard of the format: what counts here are the elements testcase, wherever
// they are, with failure, error or skipped in them (https://github.com/testmoapp/junitxml describes what programs write). Attributes of suites that count
// are not believed.
//
// It runs nothing and writes nothing. What it returns was written by others, and is shown as text only; a crash leaves nothing.
package junit
