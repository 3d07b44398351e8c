// Package system has the state functions of settings of a machine: sysctl and alternatives.
package system
