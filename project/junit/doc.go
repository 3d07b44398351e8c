// Package junit reads reports in JUnit's XML format, as test runners write them: pytest, PHPUnit, Surefire, gotestsum and others.
//
// It owns the figures from them that are kept in a deployment's record, and their limits. The format has no standard: this package counts the testcase elements, at any
// depth, and the failure, error or skipped elements in them (https://github.com/testmoapp/junitxml describes what programs write). It does not trust the counts in the
// attributes of suites.
//
// It runs nothing and writes nothing. What it returns is untrusted input, and is shown as text only; a crash leaves nothing behind.
package junit
