// Package system has the state functions of settings of a machine: sysctl, alternatives, the modules of Apache, answers of debconf, locales, and
// the time zone.
package system
