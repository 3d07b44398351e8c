// Package system implements the state functions for settings of a machine: sysctl, alternatives, the modules of Apache, answers of debconf,
// locales, and the time zone.
package system
